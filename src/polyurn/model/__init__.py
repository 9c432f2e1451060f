"""The model: mixtures of Dirichlet-multinomials, their sizes, and the urns that they are drawn from."""

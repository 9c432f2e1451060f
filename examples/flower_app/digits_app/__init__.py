"""An ordinary Flower app: federated averaging on handwritten digits."""

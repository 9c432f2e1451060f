"""One plane for the clients of several populations: the joint t-SNE of the paper's figures.

scikit-learn does it. What the picture means is for the eye; numbers are `polyurn.comparison`'s.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import MissingDependencyError, ParameterError

_PERPLEXITY = 30.0


def joint_plane(
    counts: Mapping[str, NDArray[np.int64]], *, rng: int | np.random.Generator | None = None
) -> dict[str, NDArray[np.float64]]:
    """Places of all clients in one plane, by t-SNE of their normalised histograms.

    Parameters
    ----------
    counts : mapping of name to int array of shape (n_clients, n_categories)
    rng : int or numpy.random.Generator

    Returns
    -------
    dict of name to float array of shape (n_clients, 2)

    Examples
    --------
    >>> tables = {"a": np.eye(20, dtype=int) + 1, "b": np.ones((20, 20), dtype=int)}
    >>> {name: places.shape for name, places in joint_plane(tables, rng=0).items()}
    {'a': (20, 2), 'b': (20, 2)}
    """
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise MissingDependencyError("scikit-learn", "report", "the plane of clients") from error
    together = np.concatenate([*counts.values()])
    if len(together) < 4:
        raise ParameterError(f"expected at least four clients for a plane, got {len(together)}")
    seed = int(np.random.default_rng(rng).integers(2**31))
    shares = together / together.sum(axis=1, keepdims=True)
    perplexity = min(_PERPLEXITY, (len(shares) - 1) / 3)
    plane = TSNE(perplexity=perplexity, init="pca", random_state=seed)
    places = plane.fit_transform(shares).astype(np.float64)
    ends = np.cumsum([len(table) for table in counts.values()])[:-1]
    return dict(zip(counts, np.split(places, ends), strict=True))

"""An index of dispersion: whether clients vary less than any Dirichlet-multinomial can.

Given its component, a client of n points varies around n p_k at least as much as a multinomial does,
and more the smaller α_0 is. The index is Σ_j (c_j - n p_j)² / (n (1 - Σ_j p_j²)): 1 in the mean for a
multinomial, 1 + (n - 1)/(1 + α_0) for a Dirichlet-multinomial, below 1 for clients that are more even
than chance. (Pearson's X² weights each category by 1/p_j and is ruled by the rarest one; this does not.)

How the parameters are learned, and what to do about it, is not said here.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyurn.comparison.estimates import Estimate, mean_estimate, resample_weights
from polyurn.counts import check_counts
from polyurn.model.mdm import MDM


@dataclass(frozen=True)
class Dispersion:
    """The index of true clients, and of as many simulated ones.

    Attributes
    ----------
    true : Estimate
        Below 1: true clients vary less than a multinomial with their component's mean.
    simulated : Estimate
        What the model makes of it; never below 1 but by chance.
    """

    true: Estimate
    simulated: Estimate


def dispersion(
    mdm: MDM,
    *,
    true: object,
    simulated: object,
    n_bootstrap: int = 200,
    rng: int | np.random.Generator | None = None,
) -> Dispersion:
    """How much true and simulated clients vary around the mean of the component they belong to.

    Parameters
    ----------
    mdm : MDM
    true, simulated : int array or scipy.sparse of shape (n_clients, n_categories)
    n_bootstrap : int
        Bootstrap samples of clients.
    rng : int or numpy.random.Generator

    Raises
    ------
    CountsError
        A client is impossible under every component.
    """
    rng = np.random.default_rng(rng)
    indices = [dispersion_index(counts, mdm) for counts in (true, simulated)]
    means = [
        mean_estimate(index, resample_weights(len(index), n_bootstrap, rng=rng))
        for index in indices
    ]
    return Dispersion(*means)


def dispersion_index(counts: object, mdm: MDM) -> NDArray[np.float64]:
    """Each client's index, over the components that it may belong to, shape (n_clients,).

    Examples
    --------
    >>> from polyurn.model.sizes import Sizes
    >>> even = MDM([1.0], [[50.0, 50.0]], Sizes.constant(10))
    >>> dispersion_index([[5, 5], [10, 0]], even).tolist()
    [0.0, 10.0]
    """
    table = check_counts(counts, n_categories=mdm.n_categories)
    dense = table if isinstance(table, np.ndarray) else table.toarray()
    size = dense.sum(axis=1)
    means = mdm.alphas / mdm.alphas.sum(axis=1, keepdims=True)
    spread = 1 - (means**2).sum(axis=1)
    # Σ (c - n p)² without an array of (n_clients, n_components, n_categories).
    squares = (dense.astype(np.float64) ** 2).sum(axis=1)[:, None]
    cross = dense @ means.T
    deviation = squares - 2 * size[:, None] * cross + size[:, None] ** 2 * (1 - spread)
    # A component of one category does not let its clients vary: just as a multinomial.
    varies = spread > 0
    index = np.where(varies, deviation / (size[:, None] * np.where(varies, spread, 1.0)), 1.0)
    return np.asarray((mdm.responsibilities(table) * index).sum(axis=1))

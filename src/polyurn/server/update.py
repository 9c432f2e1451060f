"""One round's sum → the next MDM: the parameter updates of Algorithm 2.

Pure arithmetic on sums; which queries are sent, and when to stop, is `fit.py`.
"""

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import EmptyComponentError, ZeroLikelihoodError
from polyurn.model.mdm import MDM
from polyurn.model.sizes import Sizes
from polyurn.wire import UpdateStatistics


def update(
    mdm: MDM,
    statistics: UpdateStatistics,
    *,
    size_prior: float = 0.0,
    category_prior: float = 0.0,
) -> MDM:
    """The MDM after one round of Algorithm 2 (lines 14 to 16, Theorem 3.1).

    On the full cohort and without priors the likelihood never decreases; with priors, the
    likelihood times the prior never does.

    Parameters
    ----------
    mdm : MDM
        The parameters that were sent.
    statistics : UpdateStatistics
        The sum over the cohort.
    size_prior : float
        Pseudo-clients per component, spread evenly over the size bins. 0 is the paper.
    category_prior : float
        Pseudo-tables per category: α·u is the number of tables that a category is expected to open
        in the component's Chinese restaurants, and this is added to it (the prior ∏ α^category_prior).
        It keeps a category that a cohort did not show from being lost for ever. 0 is the paper.

    Raises
    ------
    ZeroLikelihoodError
        A client of the cohort is impossible under `mdm`.
    EmptyComponentError
        A component received no client.
    """
    if np.isneginf(statistics.log_likelihood):
        raise ZeroLikelihoodError(
            "a client of this cohort has probability zero: it has a category or a size that no "
            "earlier cohort had; use size bins and priors (sizes='binned', size_prior=1, "
            "category_prior=0.01)"
        )
    omega = statistics.responsibilities
    if not ((omega > 0).all() and (statistics.denominators > 0).all()):
        raise EmptyComponentError(
            f"{int((omega <= 0).sum()) or 1} of {mdm.n_components} components received no client; "
            "use fewer components or a larger cohort"
        )
    weights = omega / statistics.n_clients
    alphas = _tables(mdm.alphas, statistics.numerators) + category_prior
    return MDM(
        weights,
        alphas / statistics.denominators[:, None],
        Sizes(mdm.sizes.bins, size_masses(statistics.size_counts, size_prior=size_prior)),
    )


def size_masses(size_counts: NDArray[np.float64], *, size_prior: float) -> NDArray[np.float64]:
    """π_k: the size histogram of each component, normalised, with `size_prior` pseudo-clients.

    Parameters
    ----------
    size_counts : float array of shape (n_components, n_bins)
    """
    masses = size_counts + size_prior / size_counts.shape[1]
    return np.asarray(masses / masses.sum(axis=1, keepdims=True))


def _tables(alphas: NDArray[np.float64], numerators: NDArray[np.float64]) -> NDArray[np.float64]:
    """α ⊙ u; a category that the component cannot produce stays at zero."""
    return np.where(alphas > 0, alphas * numerators, 0.0)

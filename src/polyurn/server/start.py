"""Where the parameters begin: Algorithm 1 of the paper.

A sum of moments in, a first MDM out. How the sum comes about is the aggregator's business.
"""

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import EmptyComponentError, FitError, ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.sizes import Sizes
from polyurn.server.update import size_masses
from polyurn.wire import Initialise, StartStatistics

Moments: TypeAlias = Literal["first", "most_frequent", "pooled"]


def initialise(
    query: Initialise,
    statistics: StartStatistics,
    *,
    moments: Moments = "first",
    size_prior: float = 0.0,
    category_prior: float = 0.0,
) -> MDM:
    """The MDM whose components match the moments of the clients that joined them (Algorithm 1).

    Parameters
    ----------
    query : Initialise
    statistics : StartStatistics
        The sum over the cohort.
    moments : {"first", "most_frequent", "pooled"}
        Which category's second moment fixes α_0: the paper's first one; the component's most
        frequent one, which cannot be empty; or all of them, Σ(P - Q) / Σ(Q - P²).
    size_prior, category_prior : float
        As in `update`; here `category_prior` counts pseudo-clients with uniform proportions.

    Raises
    ------
    EmptyComponentError
        No client joined one of the components.
    FitError
        The matched category does not vary, so that α_0 is not defined.
    """
    if statistics.n_clients < query.n_components:
        raise ParameterError(
            f"{query.n_components} components need at least as many clients, "
            f"got a cohort of {statistics.n_clients:.0f}"
        )
    joined = statistics.size_counts.sum(axis=1)  # m_k
    if (joined == 0).any():
        raise EmptyComponentError(
            f"{int((joined == 0).sum())} of {query.n_components} components received no client "
            "at the start; use fewer components or a larger cohort"
        )
    pseudo = category_prior / query.n_categories
    m = (joined + category_prior)[:, None]
    first = (statistics.first_moments + pseudo) / m  # P̄
    second = (statistics.second_moments + pseudo / query.n_categories) / m  # Q̄
    return MDM(
        np.full(query.n_components, 1.0 / query.n_components),
        _concentrations(first, second, moments)[:, None] * first,
        Sizes(query.size_bins, size_masses(statistics.size_counts, size_prior=size_prior)),
    )


def _concentrations(
    first: NDArray[np.float64], second: NDArray[np.float64], moments: Moments
) -> NDArray[np.float64]:
    """α_0 of each component from the moments of its clients' proportions (equation 9)."""
    spread, variance = first - second, second - first**2
    match moments:
        case "first":
            spread, variance = spread[:, 0], variance[:, 0]
        case "most_frequent":
            each, most = np.arange(len(first)), first.argmax(axis=1)
            spread, variance = spread[each, most], variance[each, most]
        case "pooled":
            spread, variance = spread.sum(axis=1), variance.sum(axis=1)
        case _:
            raise ParameterError(
                f"expected moments 'first', 'most_frequent' or 'pooled', got {moments!r}"
            )
    if not ((spread > 0).all() and (variance > 0).all()):
        raise FitError(
            f"moments of {moments!r} give no concentration: that category is absent or "
            "never varies in some component; use moments='pooled'"
        )
    return spread / variance

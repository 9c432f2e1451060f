"""Which real federations clients resemble: those of a cut, of a table, or drawn from a fitted mixture.

Categories have other names everywhere, so each federation is first laid over the clients' own, and given
their sizes: by rank over equally frequent labels, as data to be cut have them, and by rank over the
clients' pooled shares; the nearer of the two counts. Compared is each client's shares, sorted, by
the energy distance. Sizes are compared by themselves, in doublings. A live federation is compared by the
mixture that was fitted to its sums.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.stats import wasserstein_distance

from polyurn.comparison.estimates import Estimate
from polyurn.counts import check_counts, client_sizes
from polyurn.errors import CountsError
from polyurn.model.mdm import MDM, Relabelled
from polyurn.model.relabelling import Rule
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.typed.arguments import checked
from polyurn.typed.declared import AtLeast, Floats, Ints, Seed
from polyurn.typed.plotted import Plotted
from polyurn.zoo.cards import Profile, profile
from polyurn.zoo.federations import load, names

_FEWEST_CLIENTS = 10
_WIDTH = 1.96  # of a 95 % interval, in standard errors


@dataclass(frozen=True)
class Neighbour:
    """How far a federation of the zoo is from some clients.

    `labels` is the energy distance of clients' sorted shares, with an interval over both sides' clients:
    about 0 or below for clients that differ no more than two draws of one federation. `sizes` is the
    mean difference of the sizes over their mean, quantile by quantile, in doublings.
    """

    name: str
    labels: Estimate
    sizes: float


@dataclass(frozen=True)
class Neighbours(Plotted):
    """The federations of the zoo, the nearest first, and where the clients stand (`profile`)."""

    rows: tuple[Neighbour, ...]
    profile: Profile
    n_clients: int


@checked
def nearest(
    clients: object,
    *,
    max_clients: Annotated[int, AtLeast(_FEWEST_CLIENTS)] = 1_000,
    rng: Seed = None,
) -> Neighbours:
    """Find the federations of the zoo that clients resemble.

    Parameters
    ----------
    clients : int array or scipy.sparse of shape (n_clients, n_categories), or MDM
        The histograms of a cut's clients, or of true ones; or a mixture, which is sampled.
    max_clients : int
        So many clients are compared at most, and so many of each federation drawn.
    rng : int or numpy.random.Generator

    Examples
    --------
    >>> clients = load("lecturers").sample(300, rng=0)
    >>> nearest(clients, rng=0).rows[0].name
    'lecturers'
    """
    rng = np.random.default_rng(rng)
    if isinstance(clients, MDM):
        clients = clients.sample(max_clients, rng=rng)
    table = check_counts(clients)
    n = table.shape[0]
    if n < _FEWEST_CLIENTS:
        raise CountsError(f"expected at least {_FEWEST_CLIENTS} clients to compare, got {n}")
    some = table[rng.permutation(n)[:max_clients]]
    dense = some if isinstance(some, np.ndarray) else some.toarray()
    sizes, pooled = client_sizes(some), dense.sum(axis=0)
    own = _sorted_shares(dense)
    within = cdist(own, own)
    rows = []
    for name in names():
        mdm = load(name)
        found = [
            _energy(own, within, _sorted_shares(laid.sample(max_clients, rng=rng)))
            for laid in _laid_over(mdm, pooled, sizes)
        ]
        labels = min(found, key=lambda distance: distance.value)
        theirs = mdm.sizes.sample(rng.choice(mdm.n_components, len(sizes), p=mdm.weights), rng=rng)
        doublings = (np.log2(x / x.mean()) for x in (sizes, theirs))
        rows.append(Neighbour(name, labels, float(wasserstein_distance(*doublings))))
    rows.sort(key=lambda row: row.labels.value)
    return Neighbours(tuple(rows), profile(table, rng=rng), n)


def _laid_over(mdm: MDM, pooled: Ints, sizes: Ints) -> tuple[MDM | Relabelled, ...]:
    """A federation with the clients' sizes, over equally frequent labels and their pooled shares."""
    if mdm.splits is not None and mdm.splits.laws is not None:
        sizes = np.minimum(sizes, mdm.max_size)  # beyond, laws are not known
    bins = SizeBins(np.union1d(np.union1d(sizes, sizes + 1), [1]))
    masses = np.bincount(bins.locate(sizes), minlength=bins.n_bins) / len(sizes)
    same = replace(mdm, sizes=Sizes(bins, np.tile(masses, (mdm.n_components, 1))))
    rule: Rule = "marginal" if mdm.splits is None else "rank"
    return same.relabelled(len(pooled)), same.relabelled(len(pooled), rule, shares=pooled)


def _sorted_shares(counts: NDArray[Any]) -> Floats:
    """Each client's shares, the largest first."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    return np.asarray(-np.sort(-shares, axis=1))


def _energy(x: Floats, within: Floats, y: Floats) -> Estimate:
    """The unbiased energy distance, and its interval by Hoeffding's projections on the clients."""
    n, m = len(x), len(y)
    across, other = cdist(x, y), cdist(y, y)
    of_x = across.mean(axis=1) - within.sum(axis=1) / (n - 1)
    of_y = across.mean(axis=0) - other.sum(axis=1) / (m - 1)
    value = float(of_x.mean() + of_y.mean())
    error = 2 * np.sqrt(of_x.var(ddof=1) / n + of_y.var(ddof=1) / m)
    return Estimate(value, float(value - _WIDTH * error), float(value + _WIDTH * error))

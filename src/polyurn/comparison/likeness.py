"""`compare`: how alike populations of clients are to true clients, measure by measure.

It draws what has to be drawn and puts the measures of the other modules side by side. It fits nothing to
the populations and reads no files.

Besides distances there is a classifier two-sample test: gradient-boosted trees see a client's
normalised histogram and its size, and are judged on clients that they were not trained on. An area
under the ROC curve (AUC) of 0.5 is perfect: they cannot tell simulated clients from true ones. One of
1: they always can.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from polyurn.comparison import distances
from polyurn.comparison.client_splits import ClientSplit
from polyurn.comparison.comparison_results import Comparison, Floors, Likeness
from polyurn.comparison.estimates import Estimate, normal_estimate
from polyurn.comparison.summaries import dispersion, heterogeneity
from polyurn.counts import Counts, check_counts
from polyurn.errors import CountsError, MissingDependencyError, ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.names import Match, Side, columns_of, laid, n_of, names_of, positions, side_of
from polyurn.model.populations import Population, drawn_from
from polyurn.typed.arguments import checked
from polyurn.typed.arrays import ids_of
from polyurn.typed.declared import AtLeast, Floats, Ints, Seed
from polyurn.wording import counted


def two_sample_auc(
    simulated: Floats, true: Floats, *, n_folds: int = 5, rng: Seed = None
) -> Estimate:
    """Cross-validated AUC of telling simulated clients from true ones; 0.5 is perfect.

    The AUC of each fold is averaged. Its variance is DeLong's, from how each client is placed among
    those of the other kind in its fold, times Nadeau and Bengio's 1 + n_folds/(n_folds - 1): the folds'
    classifiers were trained on much the same clients. Both kinds have shape (n, n_features), and at
    least as many clients as there are folds, two or more.
    """
    rng = np.random.default_rng(rng)
    features = np.concatenate([simulated, true])
    kind = np.repeat([1, 0], [len(simulated), len(true)])
    fold = np.empty(len(kind), dtype=np.int64)
    for k in (0, 1):  # both kinds are dealt out evenly
        mine = rng.permutation(np.flatnonzero(kind == k))
        fold[mine] = np.arange(len(mine)) % n_folds
    placed: dict[int, list[Floats]] = {0: [], 1: []}
    for f in range(n_folds):
        train, test = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        score = _scores(features, kind, train, test, seed=int(rng.integers(2**31)))
        placed[1].append(_placements(score[kind[test] == 1], score[kind[test] == 0]))
        placed[0].append(1 - _placements(score[kind[test] == 0], score[kind[test] == 1]))
    ones, zeros = np.concatenate(placed[1]), np.concatenate(placed[0])
    auc = (ones.mean() + zeros.mean()) / 2  # equal but for folds of unequal sizes
    variance = ones.var(ddof=1) / len(ones) + zeros.var(ddof=1) / len(zeros)
    error = 1.96 * np.sqrt(variance * (1 + n_folds / (n_folds - 1)))
    return Estimate.around(auc, error, 0, 1)


def _placements(scores: Floats, others: Floats) -> Floats:
    """The share of `others` below each score; ties count half."""
    both = rankdata(np.concatenate([scores, others]))[: len(scores)]
    return np.asarray((both - rankdata(scores)) / len(others))


def _scores(features: Floats, kind: Ints, train: Ints, test: Ints, *, seed: int) -> Floats:
    """What a classifier trained on some clients says about others; higher is kind 1."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from threadpoolctl import threadpool_limits  # scikit-learn needs it, too
    except ImportError as error:
        raise MissingDependencyError("scikit-learn", "sklearn", "the two-sample test") from error
    # Small trees, few of them: clients are hundreds, and deep trees learn them by heart.
    tell = HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=8, min_samples_leaf=5, early_stopping=False, random_state=seed
    )
    # So small a task is over before threads have met; on a busy machine they wait for each other.
    with threadpool_limits(1, user_api="openmp"):
        tell.fit(features[train], kind[train])
        return np.asarray(tell.decision_function(features[test]))


# Clients to be drawn, or a table of them.
Compared: TypeAlias = Population | Counts | ArrayLike

# Halves of five say something about the noise; smaller ones do not.
_FEWEST_CLIENTS = 10
# A population is drawn so many times as large as the held-out part, whose own noise is what is left.
_TIMES_HELD_OUT = 5


@checked
def compare(
    populations: Mapping[str, Compared],
    to: object,
    *,
    match: Match | None = None,
    clients: Sequence[object] | None = None,
    fitted: Sequence[object] | None = None,
    n_clients: Annotated[int, AtLeast(_FEWEST_CLIENTS)] | None = None,
    max_clients: Annotated[int, AtLeast(_FEWEST_CLIENTS)] = 2_000,
    n_splits: Annotated[int, AtLeast(100)] = 1_000,  # fewer have no 2.5th percentile
    n_directions: Annotated[int, AtLeast(1)] = 100,
    n_folds: int = 5,
    n_bootstrap: Annotated[int, AtLeast(100)] = 200,
    rng: Seed = None,
) -> Comparison:
    """Measure how alike each population is to clients that were held out from fitting.

    Parameters
    ----------
    populations : mapping of name to Population, Histograms, or counts of shape (n, n_categories)
        A population (an MDM, `IID`, `Dirichlet`, ...) is sampled. An MDM also gives the held-out
        clients' log-likelihood.
    to : Histograms, int array or scipy.sparse of shape (m, n_categories), or ClientSplit
        The true clients, at least ten. A `ClientSplit` is known not to share any with those fitted.
    match : mapping of str to str, or "position", optional
        What tables call the categories of the first population with names: {its name: category}; or all
        have them in the same order. Without it categories go by name.
    clients, fitted : sequences of ids, optional
        The ids of the clients in `to`, and of those that anything was fitted to; the result says how
        many are in both, or that it is not known.
    n_clients : int, optional
        How many clients a population is asked for; five times those held out by default, at most
        `max_clients`.
    max_clients : int
        A larger table is represented by so many of its clients, drawn without replacement (not in the
        log-likelihood, which is that of all).
    n_splits : int
        Random splits of the held-out clients, for the noise floors.
    n_directions : int
        Directions of the sliced Wasserstein distance.
    n_folds : int
        Folds of the two-sample test; 0 leaves it out (it needs scikit-learn).
    n_bootstrap : int
        Bootstrap samples of clients for the heterogeneity.
    rng : int or numpy.random.Generator

    Examples
    --------
    >>> from polyurn import IID, Sizes
    >>> truth = MDM([1.0], [[0.6, 0.9, 0.3]], Sizes.constant(40))
    >>> held_out = truth.sample(60, rng=2)
    >>> verdict = compare({"mdm": truth, "iid": IID.like(held_out)}, held_out, n_folds=0, rng=3)
    >>> [(row.name, round(row.energy_ratio)) for row in verdict.rows]
    [('mdm', 1), ('iid', 9)]
    """
    if not populations:
        raise ParameterError("expected at least one population to compare")
    if n_folds != 0 and not 2 <= n_folds <= _FEWEST_CLIENTS:
        raise ParameterError(f"expected n_folds of 0, or 2 to {_FEWEST_CLIENTS}, got {n_folds}")
    rng = np.random.default_rng(rng)
    table = to.held_out if isinstance(to, ClientSplit) else to
    ours = _categories(populations, table)
    held_out = laid(table, ours, match)
    n_fitted = _n_fitted(to, held_out.shape[0], clients, fitted)
    true = _Clients.some_of(held_out, max_clients, "clients to compare with", rng)
    m, true_bytes = len(true.counts), [client.tobytes() for client in true.counts]
    lines = distances.directions(true.counts.shape[1], n_directions, rng=rng)
    true_on_lines = true.shares @ lines
    halves = distances.random_halves(m, n_splits, rng=rng)
    floors = Floors(
        energy=distances.energy_floor(true.shares, halves),
        sliced_wasserstein=distances.wasserstein_floor(true_on_lines, halves),
        sizes=distances.wasserstein_floor(true.sizes, halves),
    )
    wanted = n_clients or min(max_clients, _TIMES_HELD_OUT * m)
    rows, nulls = [], dict[int, tuple[float, float]]()
    for name, population in populations.items():
        counts, own = _drawn(population, wanted, ours, match, name, rng)
        drawn = _Clients.some_of(counts, max_clients, f"clients of population {name!r}", rng)
        energy, n = distances.energy_distance(drawn.shares, true.shares), len(drawn.counts)
        if n not in nulls:  # populations are mostly of one size
            nulls[n] = distances.energy_null(true.shares, n=n, n_splits=n_splits, rng=rng)
        on_lines, drawn_bytes = drawn.shares @ lines, {one.tobytes() for one in drawn.counts}
        auc = None
        if n_folds:  # with as many clients of each kind, if there are
            auc = two_sample_auc(drawn.features[:m], true.features, n_folds=n_folds, rng=rng)
        row = Likeness(
            name=name,
            n_clients=n,
            log_likelihood=None,
            log_likelihood_given_size=None,
            energy_distance=energy,
            energy_ratio=distances.energy_ratio(energy, floors.energy, n=n, m=m),
            energy_null=nulls[n],
            sliced_wasserstein=distances.wasserstein_distance(on_lines, true_on_lines),
            sliced_wasserstein_ratio=distances.wasserstein_ratio(
                on_lines, true_on_lines, floors.sliced_wasserstein
            ),
            auc=auc,
            size_distance=distances.wasserstein_distance(drawn.sizes, true.sizes),
            size_ratio=distances.wasserstein_ratio(drawn.sizes, true.sizes, floors.sizes),
            n_shared=sum(client in drawn_bytes for client in true_bytes),
            heterogeneity=heterogeneity(drawn.counts, n_bootstrap=n_bootstrap, rng=rng),
            dispersion=None,
        )
        if isinstance(population, MDM):
            tables = (true.counts[:, own], drawn.counts[:, own])
            row = _of_model(row, population, held_out[:, own], *tables, n_bootstrap, rng)
        rows.append(row)
    return Comparison(
        rows=tuple(rows),
        floors=floors,
        heterogeneity=heterogeneity(true.counts, n_bootstrap=n_bootstrap, rng=rng),
        n_clients=held_out.shape[0],
        n_compared=m,
        n_fitted=n_fitted,
        n_twins=sum(times for times in Counter(true_bytes).values() if times > 1),
    )


@dataclass(frozen=True)
class _Clients:
    """Clients as points: shares (n, C) sum to one in each row, sizes (n, 1)."""

    counts: Ints
    shares: Floats
    sizes: Floats

    @classmethod
    def some_of(
        cls, counts: Counts, at_most: int, what: str, rng: np.random.Generator
    ) -> "_Clients":
        """In random order, because what follows takes them a few at a time."""
        n = counts.shape[0]
        if n < _FEWEST_CLIENTS:
            raise CountsError(f"expected at least {_FEWEST_CLIENTS} {what}, got {n}")
        table = counts[rng.permutation(n)[:at_most]]
        dense = table if isinstance(table, np.ndarray) else table.toarray()
        sizes = dense.sum(axis=1, keepdims=True).astype(np.float64)
        return cls(dense.astype(np.int64), dense / sizes, sizes)

    @property
    def features(self) -> Floats:
        """What the two-sample test sees, shape (n, C + 1)."""
        return np.concatenate([self.shares, self.sizes], axis=1)


def _categories(populations: Mapping[str, Compared], table: object) -> Side:
    """The categories of the first that has names, models before tables; or how many the table has."""
    given = [table, *populations.values()]
    models_first = sorted(given, key=lambda one: not isinstance(one, Population))
    named = next((one for one in models_first if names_of(one) is not None), table)
    return side_of(named, columns_of(table)[0].shape[1])


def _drawn(
    given: Compared,
    wanted: int,
    ours: Side,
    match: Match | None,
    name: str,
    rng: np.random.Generator,
) -> tuple[Counts, Any]:
    """The histograms of a population with our categories, and where its own are among ours."""
    try:
        source = drawn_from(given)
        if source is None:
            return laid(given, ours, match), slice(None)
        counts = check_counts(source.sample(wanted, rng=rng), n_categories=n_of(ours))
        at = positions(side_of(source, n_of(ours)), ours, match)
        return (
            (counts, slice(None)) if (np.diff(at) == 1).all() else (counts[:, np.argsort(at)], at)
        )
    except (CountsError, ParameterError) as error:
        raise type(error)(f"population {name!r}: {error}") from None


def _of_model(
    row: Likeness,
    mdm: MDM,
    held_out: Counts,
    true: Ints,
    drawn: Ints,
    n_bootstrap: int,
    rng: np.random.Generator,
) -> Likeness:
    """A row with what only a model has: the log-likelihood of all the held-out clients, the dispersion
    of those compared, and how many of these would be drawn by chance, Σ 1 - (1 - q(c))^n.
    """
    # A size that no component can have makes q(c | n) undefined; the client is impossible all the same.
    given_size = mdm.logpmf_given_size(held_out)
    given_size[np.isnan(given_size)] = -np.inf
    log_likelihood, dispersed = normal_estimate(mdm.logpmf(held_out)), None
    if np.isfinite(log_likelihood.value):  # or else some client belongs to no component
        dispersed = dispersion(mdm, true=true, simulated=drawn, n_bootstrap=n_bootstrap, rng=rng)
    chances = np.minimum(np.exp(mdm.logpmf(true)), 1 - 1e-12)
    return replace(
        row,
        log_likelihood=log_likelihood,
        log_likelihood_given_size=normal_estimate(given_size),
        dispersion=dispersed,
        n_expected=float(-np.expm1(row.n_clients * np.log1p(-chances)).sum()),
    )


def _n_fitted(
    to: object, n_held_out: int, clients: Sequence[object] | None, fitted: Sequence[object] | None
) -> int | None:
    """How many of the clients to compare with were fitted, or None if it is not known."""
    if isinstance(to, ClientSplit):
        if clients is not None or fitted is not None:
            raise ParameterError("a ClientSplit says who was fitted: leave out clients and fitted")
        return 0
    if clients is not None and len(clients) != n_held_out:
        raise ParameterError(f"expected {counted(n_held_out, 'client id')}, got {len(clients):,}")
    if fitted is None:
        return None
    if clients is None:
        raise ParameterError("fitted= needs clients=, the ids of the clients to compare with")
    seen = set(ids_of(fitted, "fitted").tolist())
    return sum(client in seen for client in ids_of(clients, "clients").tolist())

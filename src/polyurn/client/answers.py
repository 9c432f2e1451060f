"""A client's answer to a query: (query, counts) → `Statistics`.

One client is a cohort of one: the same code serves both. Nothing here knows which method the server
runs, and nothing is kept between two answers. Sums of histograms are computed here; `e_step.py` answers
questions about parameters, `private_answers.py` those that noise can protect, and `style_answers.py`
those about features.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Annotated, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyurn.client.cohort import Cohort
from polyurn.client.contrast import contrast_rows
from polyurn.client.e_step import CELLS, answer_divides, answer_expects, answer_update, membership
from polyurn.client.private_answers import answer_private, answer_scaled, with_noise, without_noise
from polyurn.client.rows import Rows, packed
from polyurn.client.style_answers import answer_bounded_style, answer_style
from polyurn.errors import CountsError, ParameterError
from polyurn.model.sizes import SizeBins
from polyurn.typed.arguments import checked
from polyurn.typed.arrays import floats
from polyurn.typed.declared import Between, Floats, Ints, Seed
from polyurn.wire import (
    Affinity,
    AffinityStatistics,
    Batch,
    BatchStatistics,
    Bounded,
    BoundedStyle,
    Contrast,
    ContrastStatistics,
    Divide,
    Expect,
    Group,
    GroupStatistics,
    Initialise,
    Part,
    Query,
    S,
    Scaled,
    Score,
    ScoreStatistics,
    StartStatistics,
    Statistics,
    StyleMoments,
    Survey,
    SurveyStatistics,
    Update,
)

# No machine has more.
Threads: TypeAlias = Annotated[int, Between(1, 1024)]
# One row for each client.
Table: TypeAlias = Floats | sparse.csr_array[Any]
# Clients whose histograms, or whose features, are held in memory at once.
_TOGETHER, _FEATURES_TOGETHER = 65_536, 8_192


@checked
def answer(
    query: Query[S],
    counts: object,
    *,
    buckets: Floats | None = None,
    rng: Seed = None,
    n_threads: Threads = 1,
) -> S:
    """The statistics of one client or of a whole cohort.

    Parameters
    ----------
    query : Query
        Any of the queries in `polyurn.wire`.
    counts : int array or scipy.sparse of shape (n_categories,) or (n_clients, n_categories), or Records
        Questions about style need records.
    buckets : float array of shape (n_clients,), optional
        The number between 0 and 1 that each client drew for itself; a `Part` selects clients by it.
    rng : int or numpy.random.Generator
        For queries whose answer is random (`Initialise`).
    n_threads : int

    Returns
    -------
    Statistics
        The sum over the given clients.

    Examples
    --------
    >>> from polyurn.model.sizes import SizeBins
    >>> answer(Initialise(1, 3, SizeBins.exact(9)), [1, 0, 2], rng=0).first_moments.round(3).tolist()
    [[0.333, 0.0, 0.667]]
    """
    rows = packed(counts)
    if buckets is not None:
        buckets = floats(buckets, "buckets")
        if buckets.shape != (rows.n_clients,):
            raise ParameterError(
                f"expected {rows.n_clients} buckets, one for each client, got shape {buckets.shape}"
            )
    return answer_rows(query, rows, buckets=buckets, rng=rng, n_threads=n_threads)


def answer_rows(
    query: Query[S], rows: Rows, *, members: NDArray[np.integer[Any]] | None = None,
    buckets: Floats | None = None, rng: Seed = None, n_threads: int = 1,
) -> S:  # fmt: skip
    """`answer` for packed histograms; `members`, of shape (n_members,), take part, or all."""
    if rows.n_categories != query.n_categories:
        raise CountsError(
            f"expected {query.n_categories} categories, got histograms of {rows.n_categories}"
        )
    who = np.arange(rows.n_clients) if members is None else members
    streams = np.random.default_rng(rng)
    cohort = Cohort(rows, who.astype(np.uint32, copy=False), streams, buckets, n_threads)
    asked = without_noise(query, len(cohort))  # each client plays a node of its own
    return with_noise(query, cast(S, _answer(asked, cohort)), n_adders=len(cohort))


def _answer(query: Query[Any], cohort: Cohort) -> Statistics:
    for kind in type(query).__mro__:
        if kind in _ANSWERS:
            return _ANSWERS[kind](query, cohort)
    raise ParameterError(f"no client knows how to answer a {type(query).__name__}")


def _answer_all(queries: Sequence[Query[Any]], cohort: Cohort) -> list[Statistics]:
    """The answers to many queries; adjacent queries of one kind are answered together if possible."""
    answers: list[Statistics] = []
    for key, run in groupby(queries, key=_together):
        some: list[Any] = list(run)
        if key[0] is Part:
            answers += _answer_all([part.query for part in some], cohort.part(*key[1:]))
        elif key[0] in _OF_MANY:
            answers += _OF_MANY[key[0]](some, cohort)
        else:
            streams = zip(some, cohort.rng.spawn(len(some)), strict=True)
            answers += [_answer(query, replace(cohort, rng=rng)) for query, rng in streams]
    return answers


def _together(query: Query[Any]) -> tuple[Any, ...]:
    """The properties that queries must share to be answered together."""
    match query:
        case Part(_, low, high):
            return Part, low, high
        case Group() | Expect():
            return type(query), id(query.size_bins), query.shapes["size_counts"]
        case Divide():
            return Divide, query.splits.tree.children.tobytes()
        case _:
            return (type(query),)


def _answer_score(query: Score, cohort: Cohort) -> ScoreStatistics:
    logs = [np.empty((len(query.mdms), 0))]
    for some in cohort.blocks(_TOGETHER):
        counts = some.counts()
        logs.append(np.array([mdm.logpmf(counts) for mdm in query.mdms]))
    found = np.hstack(logs)
    return ScoreStatistics(float(len(cohort)), found.sum(axis=1), found @ found.T)


# ---------------------------------------------------------------------- before there are parameters


def answer_initialise(query: Initialise, cohort: Cohort) -> StartStatistics:
    """Algorithm 1, lines 4 to 7, for all members at once."""
    joined = cohort.rng.integers(query.n_components, size=len(cohort))  # k_i
    p = _proportions(cohort)
    groups = membership(joined[:, None], query.n_components)
    return StartStatistics(
        n_clients=float(len(cohort)),
        size_counts=_size_counts(cohort, joined, query.size_bins, query.n_components),
        first_moments=_dense(groups @ p),  # P = Σ c/n
        second_moments=_dense(groups @ (p * p)),  # Q = Σ (c/n) ⊙ (c/n)
    )


def _answer_survey(query: Survey, cohort: Cohort) -> SurveyStatistics:
    """Sums of features and of their products, and the number of members of each size.

    A client's features are its proportions p; Σ p², which separates concentrated from spread clients;
    and log n / log max_size.
    """
    n_features, max_size = query.n_categories + 2, query.size_bins.max_size
    features = np.zeros(n_features)
    products = np.zeros((n_features, n_features) if query.pairs else n_features)
    for some in cohort.blocks(_FEATURES_TOGETHER):
        p = _proportions(some)
        squares, sizes = _squares(p), _log_sizes(some, max_size)
        x = np.concatenate([_dense(p), squares[:, None], sizes[:, None]], axis=1)
        features += x.sum(axis=0)
        products += x.T @ x if query.pairs else (x * x).sum(axis=0)
    if query.pairs:
        products = products[np.tril_indices(n_features)]
    alone = np.zeros(len(cohort), np.int64)
    (size_counts,) = _size_counts(cohort, alone, query.size_bins, 1)
    return SurveyStatistics(float(len(cohort)), features, products, size_counts)


def _answer_groups(queries: Sequence[Group], cohort: Cohort) -> list[GroupStatistics]:
    """Moments of the members in each group; queries share size bins and the number of groups."""
    rows, bins = cohort.rows, queries[0].size_bins
    n, k = len(queries), len(queries[0].offsets)
    directions = np.concatenate([query.directions for query in queries])
    offsets = np.concatenate([query.offsets for query in queries])
    beside = np.column_stack([directions[:, -2:], offsets])
    proportions = np.zeros((n * k, rows.n_categories))
    squares, size_counts = np.zeros(n * k), np.zeros(n * k * bins.n_bins)
    where = bins.locate(rows.size_values)
    for some in cohort.blocks(_FEATURES_TOGETHER):
        p = _proportions(some)
        of_client, sizes = _squares(p), _log_sizes(some, bins.max_size)
        others = np.column_stack([of_client, sizes, np.ones(len(some))])
        scores = np.asarray(p @ directions[:, :-2].T) + others @ beside.T
        joined = scores.reshape(len(some), n, k).argmax(axis=2) + k * np.arange(n)
        groups = membership(joined, n * k)
        proportions += _dense(groups @ p)
        squares += groups @ of_client
        in_bins = joined * bins.n_bins + where[rows.size_index[some.members]][:, None]
        size_counts += np.bincount(in_bins.reshape(-1), minlength=len(size_counts))
    blocks = zip(
        size_counts.reshape(n, k, -1), proportions.reshape(n, k, -1), squares.reshape(n, k),
        strict=True,
    )  # fmt: skip
    return [GroupStatistics(float(len(cohort)), *sums) for sums in blocks]


def _proportions(cohort: Cohort) -> Table:
    """c/n of each member, one row each; sparse if the rows are."""
    rows, n = cohort.rows, cohort.sizes
    if rows.width:
        cells = rows.cells.reshape(-1, rows.width)[cohort.members]
        return np.asarray(rows.count[cells] / n[:, None])
    p = cohort.counts().astype(np.float64)
    p.data /= np.repeat(n, np.diff(p.indptr))
    return p


def _dense(table: Table) -> Floats:
    return np.asarray(table.toarray() if sparse.issparse(table) else table)


def _squares(p: Table) -> Floats:
    """Σ p² of each member."""
    return np.asarray((p * p).sum(axis=1)).reshape(-1)


def _log_sizes(cohort: Cohort, max_size: int) -> Floats:
    """Each member's log n / log max_size."""
    sizes = np.log(cohort.rows.size_values) / max(np.log(max_size), 1.0)
    return np.asarray(sizes[cohort.rows.size_index[cohort.members]])


def _size_counts(cohort: Cohort, joined: Ints, bins: SizeBins, k: int) -> Floats:
    in_bins = bins.locate(cohort.rows.size_values)[cohort.rows.size_index[cohort.members]]
    which = joined * bins.n_bins + in_bins
    return np.bincount(which, minlength=k * bins.n_bins).reshape(k, -1).astype(np.float64)


# ------------------------------------------------------------------- pairs of a client's own points


def _answer_contrast(query: Contrast, cohort: Cohort) -> ContrastStatistics:
    """The sums over the members that hold at least two points."""
    total = np.zeros(query.n_numbers)
    for some in cohort.blocks(_TOGETHER):
        total += contrast_rows(query, some).sum(axis=0)
    return query.shaped(total)


def _answer_affinity(query: Affinity, cohort: Cohort) -> AffinityStatistics:
    """Sums of √p and √p √pᵀ of the members."""
    c = query.n_categories
    roots, products = np.zeros(c), np.zeros((c, c))
    for some in cohort.blocks(max(CELLS // c, 1)):
        root = np.sqrt(some.counts().toarray() / some.sizes[:, None])
        roots += root.sum(axis=0)
        products += root.T @ root
    return AffinityStatistics(float(len(cohort)), roots, products[np.tril_indices(c)])


# The function that answers each kind of query, and those that answer several at once faster.
_ANSWERS: dict[type, Callable[[Any, Cohort], Statistics]] = {
    Initialise: answer_initialise,
    Survey: _answer_survey,
    Contrast: _answer_contrast,
    Affinity: _answer_affinity,
    Update: answer_update,
    Score: _answer_score,
    Group: lambda query, cohort: _answer_groups([query], cohort)[0],
    Expect: lambda query, cohort: answer_expects([query], cohort)[0],
    Divide: lambda query, cohort: answer_divides([query], cohort)[0],
    StyleMoments: answer_style,
    Bounded: answer_private,
    Scaled: answer_scaled,
    BoundedStyle: answer_bounded_style,
    Batch: lambda query, cohort: BatchStatistics(tuple(_answer_all(query.queries, cohort))),
    Part: lambda query, cohort: _answer(query.query, cohort.part(query.low, query.high)),
}
_OF_MANY: dict[Any, Callable[[list[Any], Cohort], Sequence[Statistics]]] = {
    Group: _answer_groups,
    Expect: answer_expects,
    Divide: answer_divides,
}

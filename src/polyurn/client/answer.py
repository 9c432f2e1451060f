"""A client's answer to a query: (query, counts) → `Statistics`.

One client is a cohort of one: the same code serves both. Nothing here knows which method the server
runs, and nothing is kept between two answers.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from polyurn.client.added_noise import check_reporters, with_noise
from polyurn.client.bounded import answer_bounded
from polyurn.client.contrast import answer_contrast
from polyurn.client.e_step import answer_expects, answer_update
from polyurn.client.rows import Rows, packed
from polyurn.client.scaled_sums import answer_scaled
from polyurn.client.styles import answer_bounded_style, answer_style
from polyurn.client.survey import answer_groups, answer_initialise, answer_survey
from polyurn.errors import CountsError, ParameterError
from polyurn.typed.arguments import checked
from polyurn.typed.arrays import floats
from polyurn.wire import (
    Batch,
    BatchStatistics,
    Bounded,
    BoundedStyle,
    Contrast,
    Expect,
    Group,
    Initialise,
    Noised,
    Part,
    Query,
    S,
    Scaled,
    Score,
    ScoreStatistics,
    Statistics,
    StyleMoments,
    Survey,
    Update,
)

_MOST_THREADS = 1024
# Clients whose histograms are unpacked at once.
_SCORED_TOGETHER = 65_536


@checked
def answer(
    query: Query[S],
    counts: object,
    *,
    buckets: NDArray[np.float64] | None = None,
    rng: int | np.random.Generator | None = None,
    n_threads: int = 1,
) -> S:
    """The statistics of one client or of a whole cohort.

    Parameters
    ----------
    query : Query
        Any of the queries in `polyurn.wire`.
    counts : int array or scipy.sparse of shape (n_categories,) or (n_clients, n_categories), or Records
        Questions about style need records.
    buckets : float array of shape (n_clients,), optional
        The number between 0 and 1 that each client drew for itself; `Part` goes by it.
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
    check_threads(n_threads)
    rows = packed(counts)
    if buckets is not None:
        buckets = floats(buckets, "buckets")
        if buckets.shape != (rows.n_clients,):
            raise ParameterError(
                f"expected {rows.n_clients} buckets, one for each client, got shape {buckets.shape}"
            )
    return answer_rows(query, rows, buckets=buckets, rng=rng, n_threads=n_threads)


def check_threads(n_threads: int) -> None:
    """Refuse a number of threads that no machine has."""
    if not 1 <= n_threads <= _MOST_THREADS:
        raise ParameterError(f"expected n_threads from 1 to {_MOST_THREADS}, got {n_threads}")


def answer_rows(
    query: Query[S],
    rows: Rows,
    *,
    members: NDArray[np.integer[Any]] | None = None,
    buckets: NDArray[np.float64] | None = None,
    rng: int | np.random.Generator | None = None,
    n_threads: int = 1,
) -> S:
    """`answer` for histograms that are packed already.

    Parameters
    ----------
    members : int array of shape (n_members,), optional
        The clients that take part; all of them by default.
    """
    if rows.n_categories != query.dimensions.n_categories:
        raise CountsError(
            f"expected {query.dimensions.n_categories} categories, "
            f"got histograms of {rows.n_categories}"
        )
    who = np.arange(rows.n_clients, dtype=np.uint32) if members is None else members
    some = who.astype(np.uint32, copy=False)
    asked: Query[Any] = query
    if isinstance(asked, Noised):
        check_reporters(asked, len(some))  # each client is played as a node of its own
        asked = asked.query
    sums = cast(S, _answer(asked, rows, some, buckets, np.random.default_rng(rng), n_threads))
    return with_noise(query, sums, n_adders=len(some)) if isinstance(query, Noised) else sums


def _answer(
    query: Query[Any],
    rows: Rows,
    members: NDArray[np.uint32],
    buckets: NDArray[np.float64] | None,
    rng: np.random.Generator,
    n_threads: int,
) -> Statistics:
    match query:
        case Batch(queries):
            return BatchStatistics(_answer_all(queries, rows, members, buckets, rng, n_threads))
        case Part(inner, low, high):
            mine = _part(members, buckets, low, high)
            return _answer(inner, rows, mine, buckets, rng, n_threads)
        case Scaled():
            return answer_scaled(query, rows, members)
        case Bounded():
            return answer_bounded(query, rows, members)
        case StyleMoments():
            return answer_style(query, rows.records, members)
        case BoundedStyle():
            return answer_bounded_style(query, rows.records, members)
        case _:
            return _answer_plain(query, rows, members, rng, n_threads)


def _answer_plain(
    query: Query[Any],
    rows: Rows,
    members: NDArray[np.uint32],
    rng: np.random.Generator,
    n_threads: int,
) -> Statistics:
    """The answer to a query that has no other inside it, and whose sums are exact."""
    match query:
        case Initialise():
            return answer_initialise(query, rows, members, rng)
        case Survey():
            return answer_survey(query, rows, members)
        case Group():
            return answer_groups([query], rows, members)[0]
        case Contrast():
            return answer_contrast(query, rows, members)
        case Update():
            return answer_update(query, rows, members, n_threads)
        case Expect():
            return answer_expects([query], rows, members, n_threads)[0]
        case Score():
            return _answer_score(query, rows, members)
        case _:
            raise ParameterError(f"no client knows how to answer a {type(query).__name__}")


def _answer_all(
    queries: Sequence[Query[Any]],
    rows: Rows,
    members: NDArray[np.uint32],
    buckets: NDArray[np.float64] | None,
    rng: np.random.Generator,
    n_threads: int,
) -> tuple[Statistics, ...]:
    """The answers to many queries; neighbours of one kind are answered together."""
    answers: list[Statistics] = []
    for kind, run in groupby(queries, key=_kind):
        some: list[Any] = list(run)
        if kind[0] is Group:
            answers += answer_groups(some, rows, members)
        elif kind[0] is Expect:
            answers += answer_expects(some, rows, members, n_threads)
        elif kind[0] is Part:
            mine = _part(members, buckets, *kind[1:])
            inner = [part.query for part in some]
            answers += _answer_all(inner, rows, mine, buckets, rng, n_threads)
        else:
            streams = zip(some, rng.spawn(len(some)), strict=True)
            answers += (
                _answer(q, rows, members, buckets, stream, n_threads) for q, stream in streams
            )
    return tuple(answers)


def _kind(query: Query[Any]) -> tuple[Any, ...]:
    """Queries of one kind can be answered together."""
    match query:
        case Part(_, low, high):
            return (Part, low, high)
        case Group(_, offsets, bins):
            return (Group, id(bins), len(offsets))
        case Expect(parameters):
            return (Expect, id(parameters.sizes.bins), len(parameters.weights))
        case _:
            return (type(query),)


def _part(
    members: NDArray[np.uint32], buckets: NDArray[np.float64] | None, low: float, high: float
) -> NDArray[np.uint32]:
    """The members whose bucket is in a part."""
    if buckets is None:
        raise CountsError("a query to a part of the clients needs each client's bucket")
    return members[(buckets[members] >= low) & (buckets[members] < high)]


def _answer_score(query: Score, rows: Rows, members: NDArray[np.uint32]) -> ScoreStatistics:
    logs = np.empty((len(query.mdms), len(members)))
    for start in range(0, len(members), _SCORED_TOGETHER):
        some = slice(start, start + _SCORED_TOGETHER)
        counts = rows.counts_of(members[some])
        for log, mdm in zip(logs, query.mdms, strict=True):
            log[some] = mdm.logpmf(counts)
    return ScoreStatistics(float(len(members)), logs.sum(axis=1), logs @ logs.T)

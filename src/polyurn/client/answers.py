"""A client's answer to a query: (query, counts) → `Statistics`.

One client is a cohort of one: the same code serves both. Nothing here knows which method the server
runs, and nothing is kept between two answers.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Annotated, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from polyurn.client.cohort import Cohort
from polyurn.client.contrast import answer_contrast
from polyurn.client.e_step import answer_expects, answer_update
from polyurn.client.private_answers import answer_private, with_noise, without_noise
from polyurn.client.rows import Rows, packed
from polyurn.client.style_answers import answer_bounded_style, answer_style
from polyurn.client.survey import answer_groups, answer_initialise, answer_survey
from polyurn.errors import CountsError, ParameterError
from polyurn.typed.arguments import checked
from polyurn.typed.arrays import floats
from polyurn.typed.declared import Between
from polyurn.wire import (
    Batch,
    BatchStatistics,
    Bounded,
    BoundedStyle,
    Contrast,
    Expect,
    Group,
    Initialise,
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

# No machine has more.
Threads: TypeAlias = Annotated[int, Between(1, 1024)]
# Clients whose histograms are unpacked at once.
_SCORED_TOGETHER = 65_536


@checked
def answer(
    query: Query[S],
    counts: object,
    *,
    buckets: NDArray[np.float64] | None = None,
    rng: int | np.random.Generator | None = None,
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
    rows = packed(counts)
    if buckets is not None:
        buckets = floats(buckets, "buckets")
        if buckets.shape != (rows.n_clients,):
            raise ParameterError(
                f"expected {rows.n_clients} buckets, one for each client, got shape {buckets.shape}"
            )
    return answer_rows(query, rows, buckets=buckets, rng=rng, n_threads=n_threads)


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
    if rows.n_categories != query.n_categories:
        raise CountsError(
            f"expected {query.n_categories} categories, got histograms of {rows.n_categories}"
        )
    who = np.arange(rows.n_clients) if members is None else members
    streams = np.random.default_rng(rng)
    cohort = Cohort(rows, who.astype(np.uint32, copy=False), streams, buckets, n_threads)
    asked = without_noise(query, len(cohort))  # each client is played as a node of its own
    return with_noise(query, cast(S, _answer(asked, cohort)), n_adders=len(cohort))


def _answer(query: Query[Any], cohort: Cohort) -> Statistics:
    for kind in type(query).__mro__:
        if kind in _ANSWERS:
            return _ANSWERS[kind](query, cohort)
    raise ParameterError(f"no client knows how to answer a {type(query).__name__}")


def _answer_all(queries: Sequence[Query[Any]], cohort: Cohort) -> list[Statistics]:
    """The answers to many queries; neighbours that can be are answered together."""
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
    """What queries that are answered together have in common."""
    match query:
        case Part(_, low, high):
            return Part, low, high
        case Group() | Expect():
            return type(query), id(query.size_bins), query.shapes["size_counts"]
        case _:
            return (type(query),)


def _answer_batch(query: Batch, cohort: Cohort) -> BatchStatistics:
    return BatchStatistics(tuple(_answer_all(query.queries, cohort)))


def _answer_part(query: Part[Any], cohort: Cohort) -> Statistics:
    return _answer(query.query, cohort.part(query.low, query.high))


def _answer_score(query: Score, cohort: Cohort) -> ScoreStatistics:
    logs = [np.empty((len(query.mdms), 0))]
    for some in cohort.blocks(_SCORED_TOGETHER):
        counts = some.counts()
        logs.append(np.array([mdm.logpmf(counts) for mdm in query.mdms]))
    found = np.hstack(logs)
    return ScoreStatistics(float(len(cohort)), found.sum(axis=1), found @ found.T)


# How each kind of query is answered, and those that are faster answered together.
_ANSWERS: dict[type, Callable[[Any, Cohort], Statistics]] = {
    Initialise: answer_initialise,
    Survey: answer_survey,
    Contrast: answer_contrast,
    Update: answer_update,
    Score: _answer_score,
    Group: lambda query, cohort: answer_groups([query], cohort)[0],
    Expect: lambda query, cohort: answer_expects([query], cohort)[0],
    StyleMoments: answer_style,
    Bounded: answer_private,
    Scaled: answer_private,
    BoundedStyle: answer_bounded_style,
    Batch: _answer_batch,
    Part: _answer_part,
}
_OF_MANY: dict[Any, Callable[[list[Any], Cohort], Sequence[Statistics]]] = {
    Group: answer_groups,
    Expect: answer_expects,
}

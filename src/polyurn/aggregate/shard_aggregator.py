"""An aggregator over a folder of packed shards: a round streams them through memory.

It plays the clients of more histograms than memory holds. Everything about a shard follows from the
shard, the query and seeds, wherever it is computed. Answers are added in a tree whose shape depends on
their number alone: the sum has the same bits on any number of threads or workers. `dask.py` does the
same on a cluster.
"""

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import compress
from typing import Any, Literal, TypeAlias, TypeVar, cast

import numpy as np
from numpy.random import SeedSequence
from scipy import sparse

from polyurn.aggregate.local import check_cohort
from polyurn.client.answers import Threads, answer_rows
from polyurn.client.private_answers import with_noise, without_noise
from polyurn.client.rows import Rows, pack
from polyurn.errors import MissingDependencyError, ParameterError
from polyurn.storage.shards import ShardFolder, open_shards
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Bools, Floats, Ints, Seed
from polyurn.wire import Batch, Part, Query, S, Statistics
from polyurn.wording import counted

_A = TypeVar("_A")
_B = TypeVar("_B")

# Histograms of clients of a shard, and their buckets.
LowBuckets: TypeAlias = "tuple[sparse.csr_array[Any], Floats]"
Sampling: TypeAlias = Literal["fixed", "poisson"]

# The clients with the lowest buckets are kept in memory: they screen a search, which would otherwise
# read all shards for a few clients of each. This many bytes of shards are kept, or this share of them.
_AT_HAND_BYTES = 2**24
_AT_HAND_SHARE = 0.125
# numpy draws hypergeometric numbers only from populations smaller than this.
_MOST_FIXED = 10**9
# Summands of a group of the tree: one level serves 16 shards, two serve 256.
FAN_IN = 16


@dataclass(frozen=True)
class ShardDraw:
    """The random draws of a shard in one round; `buckets` are the same in every round.

    `choose` draws the `cohort` clients that take part (None: all do), and `play` makes the clients' own
    draws.
    """

    shard: int
    buckets: SeedSequence
    play: SeedSequence
    cohort: int | None = None
    choose: SeedSequence | None = None

    def members(self, n_clients: int) -> Ints | None:
        """The clients that take part; None if all do."""
        if self.cohort is None:
            return None
        rng = np.random.default_rng(self.choose)
        return rng.choice(n_clients, size=self.cohort, replace=False)


@checked
class ShardClients(ABC):
    """Plays every client of a folder of packed shards; a subclass reads the shards.

    A subclass has `_sum(query, draws)`, the sum over shards as a vector, and `_low_buckets()`: for each
    shard, its clients whose buckets are below `_share_at_hand`.
    """

    def __init__(
        self, folder: "str | os.PathLike[str] | ShardFolder", rng: Seed, sampling: Sampling
    ) -> None:
        self.folder = folder if isinstance(folder, ShardFolder) else open_shards(folder)
        self.categories = self.folder.categories
        self._sizes = [shard.n_clients for shard in self.folder.shards]
        self._rng, self._sampling = np.random.default_rng(rng), sampling
        self._buckets = _seeds(self._rng.spawn(1)[0], len(self._sizes))
        self._share_at_hand = min(_AT_HAND_SHARE, _AT_HAND_BYTES / self.folder.n_bytes)

    @property
    def n_clients(self) -> int:
        return sum(self._sizes)

    def aggregate(self, query: Query[S], cohort_size: int | None) -> S:
        """The sum of the answers of a fresh cohort; None asks every client.

        A shard that cannot be read, or changed since the folder was opened, is a `FileError`; workers of
        a cluster that are lost again and again, or its scheduler, a `FitError`.
        """
        draws = self._draws(cohort_size)
        n_members = sum(self._sizes[d.shard] if d.cohort is None else d.cohort for d in draws)
        asked = without_noise(query, n_members)  # each client is played as a node of its own
        answer = self._of_everyone if cohort_size is None else self._sum
        with one_blas_thread():
            sums = query.shaped(answer(asked, draws))
        return with_noise(query, sums, n_adders=n_members)

    def held_out(self, share: float) -> Bools:
        """Who scores and is never fitted, shape (n_clients,), in a selection that holds out a share."""
        both = zip(self._buckets, self._sizes, strict=True)
        return np.concatenate([buckets_of(seed, n) >= 1.0 - share for seed, n in both])

    def skip(self) -> list[np.random.Generator]:
        """Skip a round: later rounds draw as if it had been asked."""
        return self._rng.spawn(2)

    def _draws(self, cohort_size: int | None) -> list[ShardDraw]:
        """The draws of the shards that the next round asks, in their order."""
        choose, play = self.skip()
        n = len(self._sizes)
        plays = _seeds(play, n)
        if cohort_size is None:
            return [ShardDraw(i, self._buckets[i], plays[i]) for i in range(n)]
        cohorts = self._cohorts(cohort_size, choose)
        chooses = _seeds(choose, n)
        return [
            ShardDraw(i, self._buckets[i], plays[i], cohort, chooses[i])
            for i, cohort in enumerate(cohorts)
            if cohort > 0 or i == 0  # the sum over nobody has its shape too
        ]

    def _cohorts(self, cohort_size: int, rng: np.random.Generator) -> list[int]:
        """The number of clients of each shard that take part."""
        check_cohort(cohort_size, self.n_clients)
        if self._sampling == "poisson":  # each client on its own: the number in a shard is binomial
            drawn = rng.binomial(self._sizes, cohort_size / self.n_clients)
            return cast("list[int]", drawn.tolist())
        if self.n_clients >= _MOST_FIXED:
            raise ParameterError(
                f"expected fewer than {_MOST_FIXED:,} clients to draw a cohort of fixed size from, got "
                f"{self.n_clients:,}; draw with sampling='poisson'"
            )
        drawn = rng.multivariate_hypergeometric(self._sizes, cohort_size, method="marginals")
        return cast("list[int]", drawn.tolist())

    def _of_everyone(self, query: Query[Any], draws: Sequence[ShardDraw]) -> Floats:
        """The sum over all clients: those at hand answer what only they are asked."""
        leaves = [
            leaf if (low, high) == (0.0, 1.0) else Part(leaf, low, max(low, high))
            for leaf, low, high in query.leaves()
        ]
        is_near = [isinstance(leaf, Part) and leaf.high <= self._share_at_hand for leaf in leaves]
        answered_near = np.repeat(is_near, [leaf.n_numbers for leaf in leaves])
        vector = np.empty(len(answered_near))
        if near := tuple(compress(leaves, is_near)):
            vector[answered_near] = self._near(Batch(near), draws[0].play)
        if far := tuple(compress(leaves, np.logical_not(is_near))):
            vector[~answered_near] = self._sum(Batch(far), draws)
        return vector

    def _near(self, query: Query[Any], play: SeedSequence) -> Floats:
        """The sum over those at hand whom a query to parts of the clients means, as a vector."""
        rows, buckets = self._at_hand
        if rows is None:
            return np.zeros(query.n_numbers)
        answer: Statistics = answer_rows(
            query, rows, buckets=buckets, rng=np.random.default_rng(play)
        )
        return answer.to_vector()

    @cached_property
    def _at_hand(self) -> tuple[Rows | None, Floats]:
        """The clients of all shards with the lowest buckets, if there are any, and the buckets."""
        each, lowest = zip(*self._low_buckets(), strict=True)
        buckets = np.concatenate(lowest)
        counts = sparse.csr_array(sparse.vstack(each))
        return (pack(counts) if len(buckets) else None), buckets

    @abstractmethod
    def _sum(self, query: Query[Any], draws: Sequence[ShardDraw]) -> Floats: ...

    @abstractmethod
    def _low_buckets(self) -> Iterable[LowBuckets]: ...

    def __repr__(self) -> str:
        many = counted(len(self.folder.shards), "shard")
        return f"{type(self).__name__}({counted(self.n_clients, 'client')} in {many})"


@checked
class ShardAggregator(ShardClients):
    """Plays every client of a folder of packed shards, in little memory.

    The sum is a function of the shards and the seed alone: the same bits on any number of threads.

    Parameters
    ----------
    folder : path or ShardFolder
        What `pack_shards` wrote.
    rng : int or numpy.random.Generator
        Chooses the cohorts and draws what clients would draw for themselves.
    sampling : {"fixed", "poisson"}
        As in `LocalAggregator`.
    n_threads : int
        The number of shards that are read at the same time.

    Examples
    --------
    >>> import tempfile
    >>> import polyurn as pu
    >>> from polyurn.wire import Survey
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pu.write_histograms([[3, 1], [0, 2], [1, 1]], f"{folder}/clients.csv")
    ...     _ = pu.pack_shards(f"{folder}/clients.csv", f"{folder}/packed", categories=2)
    ...     clients = pu.ShardAggregator(f"{folder}/packed", n_threads=2)
    ...     int(clients.aggregate(Survey(2, pu.SizeBins.exact(9), pairs=False), None).n_clients)
    3
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | ShardFolder,
        *,
        rng: Seed = None,
        sampling: Sampling = "fixed",
        n_threads: Threads = 1,
    ) -> None:
        super().__init__(folder, rng, sampling)
        self._n_threads = n_threads

    def _sum(self, query: Query[Any], draws: Sequence[ShardDraw]) -> Floats:
        """The sum over shards, each of which is mapped for as long as it answers."""

        def one(draw: ShardDraw) -> Floats:
            return answer_shard(query, self.folder.rows(draw.shard), draw)

        return tree_sum(self._map(one, draws))

    def _low_buckets(self) -> Iterator[LowBuckets]:
        def one(i: int) -> LowBuckets:
            return low_buckets(self.folder.rows(i), self._buckets[i], self._share_at_hand)

        return self._map(one, range(len(self._sizes)))

    def _map(self, function: Callable[[_B], _A], shards: Iterable[_B]) -> Iterator[_A]:
        """The results in the order of the shards, few of them ahead of whoever takes them."""
        if self._n_threads == 1:
            yield from map(function, shards)
            return
        waiting: deque[Future[_A]] = deque()
        with ThreadPoolExecutor(self._n_threads) as threads:
            try:
                for one in shards:
                    waiting.append(threads.submit(function, one))
                    if len(waiting) > 2 * self._n_threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()


def answer_shard(query: Query[Any], rows: Rows, draw: ShardDraw) -> Floats:
    """The sum of the answers of a shard's clients, as a vector."""
    buckets = buckets_of(draw.buckets, rows.n_clients) if _has_part(query) else None
    members = draw.members(rows.n_clients)
    play = np.random.default_rng(draw.play)
    answer: Statistics = answer_rows(query, rows, members=members, buckets=buckets, rng=play)
    return answer.to_vector()


def low_buckets(rows: Rows, seed: SeedSequence, share: float) -> LowBuckets:
    """The histograms of a shard's clients whose buckets are below `share`, and the buckets."""
    buckets = buckets_of(seed, rows.n_clients)
    members = np.flatnonzero(buckets < share).astype(np.uint32)
    return rows.counts_of(members), buckets[members]


def one_blas_thread() -> Any:
    """A context in which matrix products have one thread; their sums have other bits on more."""
    return _blas().limit(limits=1, user_api="blas")


@cache
def _blas() -> Any:
    """The libraries of matrix products, which take a millisecond to find."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError as error:
        raise MissingDependencyError("threadpoolctl", "shards", "summing over shards") from error
    return ThreadpoolController()


def _has_part(query: Query[Any]) -> bool:
    match query:
        case Part():
            return True
        case Batch(queries):
            return any(map(_has_part, queries))
        case _:
            return False


def buckets_of(seed: SeedSequence, n_clients: int) -> Floats:
    """The buckets of a shard's clients, the same in every round."""
    return np.random.default_rng(seed).random(n_clients)


def _seeds(rng: np.random.Generator, n: int) -> list[SeedSequence]:
    return cast(SeedSequence, rng.bit_generator.seed_seq).spawn(n)


def add_group(vectors: Sequence[Floats]) -> Floats:
    """The sum of a group, from the left to the right."""
    total = vectors[0].copy()
    for vector in vectors[1:]:
        total += vector
    return total


def tree_sum(vectors: Iterable[Floats]) -> Floats:
    """The sum of at least one vector of shape (n,); few of them are held at once.

    >>> tree_sum(np.full(1, float(i)) for i in range(40)).tolist()
    [780.0]
    """
    levels: list[list[Floats]] = [[]]
    for vector in vectors:
        _put(levels, 0, vector)
    for level in range(len(levels)):  # groups at the end are smaller
        if levels[level] and (level + 1 < len(levels) or len(levels[level]) > 1):
            group, levels[level] = levels[level], []
            if level + 1 == len(levels):
                return add_group(group)
            _put(levels, level + 1, add_group(group))
    (last,) = levels[-1]
    return last


def _put(levels: list[list[Floats]], level: int, vector: Floats) -> None:
    """Put a vector into a level; a full group goes one level up as its sum."""
    if level == len(levels):
        levels.append([])
    levels[level].append(vector)
    if len(levels[level]) == FAN_IN:
        group, levels[level] = levels[level], []
        _put(levels, level + 1, add_group(group))

"""An aggregator over packed shards on a Dask cluster: workers hold shards, and add up their answers.

A future stands for a group of shards, which the worker that holds it maps in every round; if that worker
is lost, another one does. Answers are added on the cluster in the tree of `shard_aggregator.py`, and one
vector comes back, with the same bits as on one machine; the clients at hand answer in this process.
Workers need the folder under the same path.
"""

import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

import numpy as np

from polyurn.aggregate.shard_aggregator import (
    FAN_IN,
    LowBuckets,
    Sampling,
    ShardClients,
    ShardDraw,
    add_group,
    answer_shard,
    low_buckets,
    one_blas_thread,
)
from polyurn.client.rows import Rows
from polyurn.errors import FitError, MissingDependencyError, ParameterError
from polyurn.storage.shards import Shard, ShardFolder, check_shard, map_shard
from polyurn.typed.arguments import checked, got
from polyurn.typed.declared import Floats, Seed
from polyurn.wire import Query

_TASKS_PER_THREAD = 8
_PATIENCE = "10s"  # how long to wait for a scheduler


@contextmanager
def _lost_workers() -> Iterator[None]:
    """Report the failure of a cluster in one line."""
    from concurrent.futures import CancelledError

    from distributed.comm.core import CommClosedError
    from distributed.scheduler import KilledWorker

    try:
        yield
    except KilledWorker as error:
        raise FitError(
            "workers of the cluster were lost again and again with the same shard; give them more "
            "memory, or pack smaller shards"
        ) from error
    except (CommClosedError, CancelledError, TimeoutError) as error:
        raise FitError(
            "the scheduler of the cluster does not answer any more; with --checkpoint the command goes "
            "on where it was"
        ) from error


@checked
class DaskAggregator(ShardClients):
    """Plays every client of a folder of packed shards on the workers of a Dask cluster.

    The sum has the same bits as that of a `ShardAggregator` with the same seed, on any number of
    workers, even if some of them are lost.

    Parameters
    ----------
    client : distributed.Client
        The client of any cluster of `dask.distributed`.
    shards : path or ShardFolder
        The folder that `pack_shards` wrote, under a path that all workers see.
    rng, sampling
        As in `ShardAggregator`.

    Examples
    --------
    docs/scale.md has a cluster on one machine.
    """

    def __init__(
        self,
        client: object,
        shards: str | os.PathLike[str] | ShardFolder,
        *,
        rng: Seed = None,
        sampling: Sampling = "fixed",
    ) -> None:
        if not (
            callable(getattr(client, "submit", None))
            and callable(getattr(client, "nthreads", None))
        ):
            raise ParameterError(f"expected a distributed.Client, got {got(client)}")
        self._cluster = cast(Any, client)
        super().__init__(shards, rng, sampling)
        each, path = self.folder.shards, self.folder.path.resolve()
        with _lost_workers():
            self._n = _together(len(each), sum(self._cluster.nthreads().values()))
            some = [each[i : i + self._n] for i in range(0, len(each), self._n)]
            self._held = self._cluster.map(_hold, [path] * len(some), some, pure=False)

    @_lost_workers()
    def _sum(self, query: Query[Any], draws: Sequence[ShardDraw]) -> Floats:
        """The sum over shards; the query is sent once, and again if a worker is lost."""
        asked = self._submit(_same, query)
        groups = [
            list(group) for _, group in groupby(draws, key=lambda draw: draw.shard // self._n)
        ]
        held = [self._held[group[0].shard // self._n] for group in groups]
        answers = self._cluster.map(_answers, held, groups, query=asked, n=self._n, pure=False)
        indices = [(i, j) for i, group in enumerate(groups) for j in range(len(group))]
        level = []
        for group in (indices[i : i + FAN_IN] for i in range(0, len(indices), FAN_IN)):
            picks = [(i, [j for _, j in some]) for i, some in groupby(group, key=itemgetter(0))]
            lists = [answers[i] for i, _ in picks]
            level.append(self._submit(_add_picked, lists, [which for _, which in picks]))
        while len(level) > 1:
            groups = [level[i : i + FAN_IN] for i in range(0, len(level), FAN_IN)]
            level = [self._submit(add_group, group) for group in groups]
        return cast("Floats", level[0].result())

    @_lost_workers()
    def _low_buckets(self) -> Iterable[LowBuckets]:
        seeds = [self._buckets[i : i + self._n] for i in range(0, len(self._buckets), self._n)]
        share = self._share_at_hand
        parts = self._cluster.map(_low_buckets, self._held, seeds, share=share, pure=False)
        return chain.from_iterable(self._cluster.gather(parts))

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._cluster.submit(function, *arguments, pure=False)


def connected(
    address: str, folder: ShardFolder, *, rng: Seed = None, sampling: Sampling = "fixed"
) -> DaskAggregator:
    """The clients of a folder on the cluster whose scheduler has this address.

    The connection lasts as long as the returned value. A `ParameterError` if no scheduler answers.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingDependencyError("distributed", "cluster", "asking a cluster") from error
    try:
        client = Client(address, timeout=_PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TimeoutError) as error:
        raise ParameterError(
            f"expected the address of a Dask scheduler, as tcp://host:8786, got {address!r}, where "
            "none answers"
        ) from error
    clients = DaskAggregator(client, folder, rng=rng, sampling=sampling)
    weakref.finalize(clients, client.close)
    return clients


@dataclass(frozen=True, eq=False, repr=False)
class _Held:
    """Shards that a worker has checked. Another worker gets their names, and checks them again."""

    path: Path
    shards: tuple[Shard, ...]

    def rows(self, i: int) -> Rows:
        return map_shard(self.path, self.shards[i])

    def __reduce__(self) -> tuple[Any, ...]:
        return _hold, (self.path, self.shards)

    def __sizeof__(self) -> int:  # the scheduler sends tasks to workers that hold much
        return sum(shard.n_bytes for shard in self.shards)


def _hold(path: Path, shards: tuple[Shard, ...]) -> _Held:
    return _Held(path, tuple(check_shard(path, shard) for shard in shards))


def _together(n_shards: int, n_threads: int) -> int:
    """The number of shards in one task, at most a group of the tree: a task costs a millisecond.

    Every thread still gets several tasks, so that none waits long for another.
    """
    most = n_shards // (_TASKS_PER_THREAD * max(n_threads, 1))
    return int(2 ** np.floor(np.log2(np.clip(most, 1, FAN_IN))))


def _answers(held: _Held, draws: list[ShardDraw], *, query: Query[Any], n: int) -> list[Floats]:
    _keep_one_blas_thread()
    return [answer_shard(query, held.rows(draw.shard % n), draw) for draw in draws]


def _add_picked(lists: list[list[Floats]], which: list[list[int]]) -> Floats:
    both = zip(lists, which, strict=True)
    return add_group([vectors[j] for vectors, picked in both for j in picked])


def _low_buckets(held: _Held, seeds: list[Any], *, share: float) -> list[LowBuckets]:
    return [low_buckets(held.rows(i), seed, share) for i, seed in enumerate(seeds)]


def _same(query: Query[Any]) -> Query[Any]:
    return query


@cache
def _keep_one_blas_thread() -> Any:
    """Set for the life of the worker, because its threads would undo each other's settings."""
    return one_blas_thread()

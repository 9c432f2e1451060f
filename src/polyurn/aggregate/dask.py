"""An aggregator over packed shards on a Dask cluster: workers hold shards, and add up their answers.

Each shard is a future, mapped by the worker that holds it; if that worker is lost, another maps it.
Answers are added on the cluster in the tree of `tree.py`, and one vector comes back, with the bits that
`shards.py` gets on one machine. Workers have to see the folder under the same path.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from polyurn.aggregate.shard_round import (
    AtHand,
    Routed,
    Sampling,
    ShardDraw,
    ShardRounds,
    answer_at_hand,
    answer_shard,
    low_buckets,
    one_blas_thread,
    put_at_hand,
    routed,
    with_its_noise,
    without_noise,
)
from polyurn.aggregate.tree import FAN_IN, add_group
from polyurn.client.rows import Rows
from polyurn.errors import FitError, MissingDependencyError, ParameterError
from polyurn.storage.shard_file import (
    Identity,
    Shard,
    check_shard,
    check_unchanged,
    map_shard,
)
from polyurn.storage.shards import ShardFolder, open_shards
from polyurn.typed.arguments import checked, got
from polyurn.wire import Query, S
from polyurn.wording.numbers import counted

_PATIENCE = "10s"  # for a scheduler that does not answer


@checked
class DaskAggregator:
    """Plays every client of a folder of packed shards on the workers of a Dask cluster.

    The sum has the bits that a `ShardAggregator` with the same seed gets, on any number of workers, also
    if some are lost meanwhile.

    Parameters
    ----------
    client : distributed.Client
        Of any cluster of `dask.distributed`.
    shards : path or ShardFolder
        What `pack_shards` wrote, where all workers see it.
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
        rng: int | np.random.Generator | None = None,
        sampling: Sampling = "fixed",
    ) -> None:
        if not (callable(getattr(client, "submit", None)) and hasattr(client, "scheduler_info")):
            raise ParameterError(f"expected a distributed.Client, got {got(client)}")
        self._cluster = cast(Any, client)
        self.folder = shards if isinstance(shards, ShardFolder) else open_shards(shards)
        each = self.folder.shards
        sizes = [shard.n_clients for shard in each]
        self._rounds = ShardRounds(sizes, self.folder.n_bytes, rng=rng, sampling=sampling)
        place = self.folder.path.resolve()
        with _lost_workers():
            self._held = self._cluster.map(_hold, [place] * len(each), each, pure=False)
        self._at_hand: Any = None

    @property
    def n_clients(self) -> int:
        return self._rounds.n_clients

    def aggregate(self, query: Query[S], cohort_size: int | None) -> S:
        """The sum of the answers of a fresh cohort; None asks every client.

        Raises
        ------
        FileError
            A shard cannot be read, or is not the one that was there before.
        FitError
            Workers are lost again and again, or the scheduler is.
        """
        draws = self._rounds.next(cohort_size)
        n_members = cohort_size or self.n_clients
        asked = without_noise(query, n_members)
        with _lost_workers():
            answer = self._of_everyone if cohort_size is None else self._sum
            vector = answer(asked, draws).result()
        return with_its_noise(query, vector, n_members)

    def skip(self) -> list[np.random.Generator]:
        """Leave a round out: later ones draw what they would have drawn after it."""
        return self._rounds.skip()

    def _of_everyone(self, query: Query[Any], draws: Sequence[ShardDraw]) -> Any:
        """The sum over all clients: those at hand answer what only they are asked."""
        parts = routed(query, self._rounds.share_at_hand)
        near = far = None
        if parts.near is not None:
            near = self._submit(_answer_at_hand, parts.near, self._gathered(), draws[0])
        if parts.far is not None:
            far = self._sum(parts.far, draws)
        if near is None or far is None:
            return far if near is None else near
        return self._submit(_joined, parts, near, far)

    def _sum(self, query: Query[Any], draws: Sequence[ShardDraw]) -> Any:
        """The sum over shards, as a future; the query crosses once, and can be sent again."""
        held = [self._held[draw.shard] for draw in draws]
        asked = self._submit(_same, query)
        level = self._cluster.map(_answer, held, draws, query=asked, pure=False)
        while len(level) > 1:
            groups = [level[i : i + FAN_IN] for i in range(0, len(level), FAN_IN)]
            level = [self._submit(add_group, group) for group in groups]
        return level[0]

    def _gathered(self) -> Any:
        """Those at hand, as a future."""
        if self._at_hand is None:
            share, draws = self._rounds.share_at_hand, self._rounds.everyone()
            parts = self._cluster.map(_low_buckets, self._held, draws, share=share, pure=False)
            self._at_hand = self._submit(put_at_hand, parts)
        return self._at_hand

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._cluster.submit(function, *arguments, pure=False)

    def __repr__(self) -> str:
        many = counted(len(self.folder.shards), "shard")
        return f"DaskAggregator({counted(self.n_clients, 'client')} in {many})"


def connected(
    address: str,
    folder: ShardFolder,
    *,
    rng: int | np.random.Generator | None = None,
    sampling: Sampling = "fixed",
) -> DaskAggregator:
    """The clients of a folder on the cluster whose scheduler has this address.

    Raises
    ------
    ParameterError
        Nobody answers there.
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
    return DaskAggregator(client, folder, rng=rng, sampling=sampling)


@dataclass(frozen=True, eq=False, repr=False)
class _Held:
    """A shard on a worker. Another worker gets its name, and maps it again."""

    place: Path
    shard: Shard
    seen: Identity
    rows: Rows

    def __reduce__(self) -> tuple[Any, ...]:
        return _hold, (self.place, self.shard)

    def __sizeof__(self) -> int:  # the scheduler sends questions to where much is held
        return self.shard.n_bytes


def _hold(place: Path, shard: Shard) -> _Held:
    seen = check_shard(place, shard)
    return _Held(place, shard, seen, map_shard(place, shard, seen=seen))


def _answer(held: _Held, draw: ShardDraw, *, query: Query[Any]) -> NDArray[np.float64]:
    _keep_one_blas_thread()
    check_unchanged(held.place, held.shard, held.seen)
    return answer_shard(query, held.rows, draw)


def _low_buckets(held: _Held, draw: ShardDraw, *, share: float) -> Any:
    return low_buckets(held.rows, draw, share)


def _answer_at_hand(query: Query[Any], clients: AtHand, draw: ShardDraw) -> NDArray[np.float64]:
    _keep_one_blas_thread()
    return answer_at_hand(query, clients, draw.play)


def _joined(
    parts: Routed, near: NDArray[np.float64], far: NDArray[np.float64]
) -> NDArray[np.float64]:
    return parts.joined(near, far)


def _same(query: Query[Any]) -> Query[Any]:
    return query


@cache
def _keep_one_blas_thread() -> Any:
    """For as long as the worker lives: its threads could not take turns in setting and resetting it."""
    return one_blas_thread()


@contextmanager
def _lost_workers() -> Iterator[None]:
    """What a cluster that cannot go on says, in one line."""
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

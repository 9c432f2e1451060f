"""An aggregator over a folder of packed shards: a round streams them through memory.

It plays the clients of more histograms than memory holds. What a round asks of a shard is
`shard_round.py`; the same on a cluster is `dask.py`.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from polyurn.aggregate.shard_round import (
    AtHand,
    Sampling,
    ShardClients,
    ShardDraw,
    answer_at_hand,
    answer_shard,
    low_buckets,
    put_at_hand,
    tree_sum,
)
from polyurn.client.answers import Threads
from polyurn.storage.shards import ShardFolder
from polyurn.typed.arguments import checked
from polyurn.wire import Query

_A = TypeVar("_A")


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
        So many shards are read at the same time.

    Examples
    --------
    >>> import tempfile
    >>> import polyurn as pu
    >>> from polyurn.wire import Survey
    >>> with tempfile.TemporaryDirectory() as place:
    ...     pu.write_histograms([[3, 1], [0, 2], [1, 1]], f"{place}/clients.csv")
    ...     _ = pu.pack_shards(f"{place}/clients.csv", f"{place}/packed", categories=2)
    ...     clients = pu.ShardAggregator(f"{place}/packed", n_threads=2)
    ...     int(clients.aggregate(Survey(2, pu.SizeBins.exact(9), pairs=False), None).n_clients)
    3
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | ShardFolder,
        *,
        rng: int | np.random.Generator | None = None,
        sampling: Sampling = "fixed",
        n_threads: Threads = 1,
    ) -> None:
        super().__init__(folder, rng, sampling)
        self._n_threads = n_threads
        self._at_hand: AtHand | None = None

    def _sum(self, query: Query[Any], draws: Sequence[ShardDraw]) -> NDArray[np.float64]:
        """The sum over shards, each of which is mapped for as long as it answers."""

        def one(draw: ShardDraw) -> NDArray[np.float64]:
            return answer_shard(query, self.folder.rows(draw.shard), draw)

        return tree_sum(self._map(one, draws))

    def _near(self, query: Query[Any], draw: ShardDraw) -> NDArray[np.float64]:
        """The sum over those at hand, who are looked for in all shards when they are first asked."""
        if self._at_hand is None:
            share = self._rounds.share_at_hand

            def one(draw: ShardDraw) -> Any:
                return low_buckets(self.folder.rows(draw.shard), draw, share)

            self._at_hand = put_at_hand(self._map(one, self._rounds.everyone()))
        return answer_at_hand(query, self._at_hand, draw.play)

    def _map(self, function: Callable[[ShardDraw], _A], draws: Sequence[ShardDraw]) -> Iterator[_A]:
        """The results in the order of the shards, few of them ahead of whoever takes them."""
        if self._n_threads == 1:
            yield from map(function, draws)
            return
        waiting: deque[Future[_A]] = deque()
        with ThreadPoolExecutor(self._n_threads) as pool:
            try:
                for draw in draws:
                    waiting.append(pool.submit(function, draw))
                    if len(waiting) > 2 * self._n_threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

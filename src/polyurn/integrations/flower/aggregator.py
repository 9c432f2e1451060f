"""An aggregator over a Flower federation: the one method, for whoever writes a ServerApp.

Who is asked and how answers are summed is `aggregate/federated.py`; how messages travel, `exchange.py`.
"""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from polyurn.aggregate.federated import FederatedAggregator
from polyurn.errors import NodesError, ParameterError
from polyurn.integrations.flower.exchange import FlowerExchange
from polyurn.wire import Query, S

if TYPE_CHECKING:
    from flwr.serverapp import Grid

_LOOK = 0.5  # seconds between two looks for nodes that are to come


class FlowerAggregator(FederatedAggregator):
    """Puts queries to the SuperNodes of a Flower federation and adds their answers.

    A node holds one client or a table of many; `cohort_size` counts nodes.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
        As a `ServerApp` gets it.
    numbers : mapping of int to int
        For each of Flower's node ids, the number that the node has in the roster.
    expected : int, optional
        Before the first round, wait until so many nodes are connected; by default all of `numbers`.
    settling : float
        The longest wait for them, in seconds. After it, the rounds begin with `min_nodes` or more.
    secure, roster, clients_per_node, min_nodes, min_fraction, timeout, retries, dropout, colluding, rng
        As in `FederatedAggregator`.

    Examples
    --------
    docs/guides/federation.md takes a reader from nothing to three hosts.
    """

    def __init__(
        self,
        grid: "Grid",
        *,
        numbers: Mapping[int, int],
        secure: bool,
        roster: object = None,
        expected: int | None = None,
        settling: float = 60.0,
        clients_per_node: int = 1,
        min_nodes: int = 3,
        min_fraction: float = 0.7,
        timeout: float = 60.0,
        retries: int = 2,
        dropout: float = 0.3,
        colluding: float = 0.2,
        rng: int | np.random.Generator | None = None,
    ) -> None:
        exchange = FlowerExchange(grid, numbers)
        super().__init__(
            exchange, secure=secure, roster=roster, clients_per_node=clients_per_node,
            min_nodes=min_nodes, min_fraction=min_fraction, timeout=timeout, retries=retries,
            dropout=dropout, colluding=colluding, rng=rng,
        )  # fmt: skip
        wanted = len(numbers) if expected is None else expected
        if not 1 <= wanted <= len(numbers) or settling < 0:
            raise ParameterError(
                f"expected 1 to {len(numbers)} nodes, and a settling time of at least 0, got "
                f"{wanted} and {settling}"
            )
        self._flower, self._wanted, self._settling = exchange, wanted, settling
        self._least, self._is_settled = min_nodes, False

    def retried(self, query: Query[S], cohort_size: int | None, *, before: Callable[[], None]) -> S:
        """As in `FederatedAggregator`; before the first round it waits for the nodes."""
        if not self._is_settled:
            self._settle()
        return super().retried(query, cohort_size, before=before)

    def _settle(self) -> None:
        end = time.monotonic() + self._settling
        while (n_there := len(self._flower.nodes())) < self._wanted and time.monotonic() < end:
            time.sleep(_LOOK)
        if n_there < self._least:
            raise NodesError(
                f"{n_there} of {self._wanted} nodes are connected after {self._settling:g} s, "
                f"{self._least} are needed",
                n_there, self._least,
            )  # fmt: skip
        self._is_settled = True

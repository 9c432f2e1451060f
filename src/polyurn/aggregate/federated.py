"""An aggregator over the nodes of a federation, plain or secure: who is asked, and who is not again.

It speaks to nodes through an `Exchange` and knows no transport. A node holds one client or many; cohorts
are cohorts of nodes.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polyurn.aggregate.asking import Asking
from polyurn.aggregate.exchange import Exchange
from polyurn.aggregate.plain_sum import plain_sum
from polyurn.aggregate.tally import Tally
from polyurn.client.node_policy import kind_of
from polyurn.errors import BudgetError, LostRoundError, NodesError, ParameterError
from polyurn.typed.arguments import checked, got
from polyurn.wire import Noised, Query, S
from polyurn.wire.crossed import Crossed
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    from polyurn.aggregate.secure_sum import Security

# One node alone could say anything about another; two that say the same are believed.
_ENOUGH_ACCUSERS = 2


@checked
class FederatedAggregator:
    """Puts queries to the nodes of a federation and adds their answers.

    How many clients there are is not known: there is no `n_clients`.

    Parameters
    ----------
    exchange : Exchange
        Carries the messages.
    secure : bool
        Whether the server sees sums only (docs/secure-sums.md), or every node's answer.
    roster : polyurn.secure.roster.Roster, optional
        The nodes' public keys; needed for secure sums, in which others take no part.
    clients_per_node : int
        The declared largest number of clients of a node. An answer beyond so many times the bounds of
        one client is refused, and a node with more clients does not answer.
    min_nodes, min_fraction : int, float
        A sum is over at least so many nodes, and at least this share of the cohort; the cohort is
        `cohort_size` nodes, or every node that was ever there.
    timeout : float
        Seconds that a stage waits for replies.
    retries : int
        How often a sum that failed is begun again, with other nodes where there are some. One that
        fails because so many nodes refuse the question, as they would again, is not.
    dropout, colluding : float
        Declared shares of nodes that leave during a secure sum, and that may tell the server all they
        know; as in `choose_graph`.
    rng : int or numpy.random.Generator
        Chooses the cohorts.

    Examples
    --------
    docs/federation-core.md has a federation of nodes in one process.
    """

    def __init__(
        self,
        exchange: Exchange,
        *,
        secure: bool,
        roster: object = None,
        clients_per_node: int = 1,
        min_nodes: int = 3,
        min_fraction: float = 0.7,
        timeout: float = 60.0,
        retries: int = 2,
        dropout: float = 0.3,
        colluding: float = 0.2,
        rng: int | np.random.Generator | None = None,
    ) -> None:
        if not 1 <= clients_per_node < 2**32 or min_nodes < 1 or retries < 0:
            raise ParameterError(
                "expected clients_per_node and min_nodes of at least 1, and retries of at least 0"
            )
        if not 0 <= min_fraction <= 1 or not 0 < timeout < math.inf:
            raise ParameterError("expected min_fraction from 0 to 1, and a timeout above 0")
        if secure and min_nodes < 2:
            raise ParameterError(
                "expected min_nodes of at least 2 for secure sums: a sum over one node is its answer"
            )
        self._exchange, self._timeout = exchange, timeout
        self._security = _security(roster, dropout, colluding) if secure else None
        self._clients_per_node, self._retries = clients_per_node, retries
        self._min_nodes, self._min_fraction = min_nodes, min_fraction
        self._rng, self._tally = np.random.default_rng(rng), Tally()
        self._known: set[int] = set()
        self._present: set[int] = set()
        self._n_begun = 0  # rounds, with those that were left out

    @property
    def refused(self) -> dict[int, dict[str, int]]:
        """For each node whose replies were not used, or were refusals: how often, by reason."""
        return self._tally.refused

    @property
    def benched(self) -> dict[int, str]:
        """The nodes that are not asked any more, and why."""
        return self._tally.benched

    @property
    def crossed(self) -> Crossed:
        """All that crossed so far."""
        return self._tally.crossed(
            secure=self._security is not None,
            clients_per_node=self._clients_per_node,
            known=self._known,
        )

    def aggregate(self, query: Query[S], cohort_size: int | None) -> S:
        """The sum of the answers of a fresh cohort of nodes; None asks every node.

        Parameters
        ----------
        query : Query
        cohort_size : int, optional
            A number of nodes, not of clients.

        Raises
        ------
        NodesError
            Too few nodes are there, or answer; with the numbers.
        """
        return self.retried(query, cohort_size, before=_nothing)

    def retried(self, query: Query[S], cohort_size: int | None, *, before: Callable[[], None]) -> S:
        """`aggregate`, with a function that is called before each attempt; what it raises ends them.

        A private sum is charged there: an attempt that failed may have told somebody something.
        """
        (choose,) = self.skip()
        with self._tally.round(self._n_begun, kind=kind_of(query), n_numbers=query.n_numbers):
            return self._round(query, cohort_size, choose, before)

    def _round(
        self,
        query: Query[S],
        cohort_size: int | None,
        choose: np.random.Generator,
        before: Callable[[], None],
    ) -> S:
        """A sum, in as many attempts as it takes."""
        failed = ""
        for attempt in range(self._retries + 1):
            cohort, needed = self._cohort(cohort_size, choose)
            if isinstance(query, Noised) and query.trust == "distributed":
                needed = max(needed, query.n_reporters)
            try:
                before()
            except BudgetError as error:
                if not failed:
                    raise
                raise BudgetError(f"no sum: {failed}; begun again, {error}") from error
            self._tally.n_attempts += 1
            asking = Asking(self._exchange, self._tally, timeout=self._timeout)
            try:
                total, summed = self._sum(query, cohort, needed, asking)
            except (NodesError, LostRoundError) as error:
                self._bench_suspects(asking, error)
                # Everybody was asked, and those who would not refuse again are too few.
                is_over = cohort_size is None and len(set(cohort) - asking.declined) < needed
                if is_over or attempt == self._retries:
                    raise self._given_up(error, needed, attempt + 1) from error
                failed = f"{error}; {self._absent()}"
                continue
            self._bench_suspects(asking)
            self._tally.summed(summed)
            return query.read(total)
        raise AssertionError("the last attempt returns or raises")

    def skip(self) -> list[np.random.Generator]:
        """Leave a round out: later ones draw what they would have drawn after it."""
        self._n_begun += 1
        return self._rng.spawn(1)

    def __repr__(self) -> str:
        kind = "plain" if self._security is None else "secure"
        return f"FederatedAggregator({counted(len(self._known), 'node')}, {kind})"

    def _cohort(self, cohort_size: int | None, rng: np.random.Generator) -> tuple[list[int], int]:
        """Who is asked, and how many of them have to answer."""
        if cohort_size is not None and cohort_size < self._min_nodes:
            raise ParameterError(
                f"expected a cohort of at least min_nodes={self._min_nodes} nodes, got {cohort_size}"
            )
        there = {node for node in self._exchange.nodes() if self._is_enrolled(node)}
        for node in there - self._present:
            self._tally.alive(node)
        self._known |= there
        self._present = there
        benched = self._tally.benched
        free = sorted(there - set(benched))
        aim = len(self._known) if cohort_size is None else cohort_size
        # 0.7 * 10 may be a little more than 7.
        needed = max(self._min_nodes, math.ceil(self._min_fraction * aim - 1e-9))
        if len(free) < needed:
            raise NodesError(
                f"{len(free)} of {aim} nodes can be asked, {needed} are needed; {self._absent()}",
                len(free), needed,
            )  # fmt: skip
        if cohort_size is None or cohort_size >= len(free):
            return free, needed
        places = rng.choice(len(free), size=cohort_size, replace=False)
        return [free[place] for place in sorted(places)], needed

    def _is_enrolled(self, node: int) -> bool:
        return self._security is None or node in self._security.roster

    def _sum(
        self, query: Query[Any], cohort: list[int], needed: int, asking: Asking
    ) -> tuple[NDArray[np.float64], tuple[int, ...]]:
        if self._security is None:
            return plain_sum(
                query, cohort, asking=asking, clients_per_node=self._clients_per_node,
                needed=needed,
            )  # fmt: skip
        from polyurn.aggregate.secure_sum import secure_sum

        return secure_sum(
            query, cohort, asking=asking, clients_per_node=self._clients_per_node, needed=needed,
            security=self._security,
        )  # fmt: skip

    def _bench_suspects(self, asking: Asking, error: Exception | None = None) -> None:
        suspects = {
            node for node, by in asking.accusers.items() if len(by - {node}) >= _ENOUGH_ACCUSERS
        }
        if isinstance(error, LostRoundError) and error.node is not None:
            suspects.add(error.node)
        for node in suspects:
            self._tally.suspect(node)

    def _given_up(self, error: Exception, needed: int, n_attempts: int) -> NodesError:
        n_left = getattr(error, "n_nodes", 0)
        times = counted(n_attempts, "attempt")
        return NodesError(f"no sum in {times}: {error}; {self._absent()}", n_left, needed)

    def _absent(self) -> str:
        by_reasons: dict[str, list[int]] = {}
        for node, whys in self._tally.refused.items():
            by_reasons.setdefault("; ".join(whys), []).append(node)
        refused = [f"{_listed(nodes)} ({why})" for why, nodes in by_reasons.items()]
        benched = _listed(list(self._tally.benched))
        return f"benched: {benched}, refused: {', '.join(refused) or 'none'}"


def _security(roster: object, dropout: float, colluding: float) -> "Security":
    """What secure sums go by, checked before anybody is asked; needs the extra `flower`."""
    from polyurn.aggregate.secure_sum import Security
    from polyurn.secure.graph import choose_graph
    from polyurn.secure.roster import Roster

    if not isinstance(roster, Roster):
        raise ParameterError(
            f"expected a Roster with the nodes' public keys for secure sums, got {got(roster)}"
        )
    choose_graph(2, dropout=dropout, colluding=colluding)
    return Security(roster, dropout, colluding)


def _nothing() -> None:
    """What happens before an attempt that nobody has to be told of."""


def _listed(nodes: list[int]) -> str:
    more = f" and {len(nodes) - 8} more" if len(nodes) > 8 else ""
    return ", ".join(map(str, nodes[:8])) + more if nodes else "none"

"""The server's side of a federation: which nodes are asked, how answers are added, who is excluded.

An `Exchange` carries the messages; no transport is known here. A node holds one client or many; cohorts
are cohorts of nodes.
"""

import math
import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np

from polyurn.errors import (
    BudgetError,
    InputError,
    LostRoundError,
    MessageError,
    NodesError,
    NumbersError,
    ParameterError,
    RefusedError,
)
from polyurn.federation.exchange import Exchange
from polyurn.federation.keys import Roster
from polyurn.federation.messages import N_TAG_BYTES, Ask, Reply, tag_of
from polyurn.federation.round import SecureSum
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Above, AtLeast, Between, Floats, Seed, check_declared
from polyurn.typed.json_form import Finite
from polyurn.wire import Noised, Query, S, decode_statistics, encode_query, node_bounds
from polyurn.wire.query import ROUNDING
from polyurn.wire.traffic import NOT_THERE, Absence, NodeTraffic, RoundTraffic, Traffic
from polyurn.wording import counted, listed

# One node could accuse another falsely, so that two accusations are needed.
_ENOUGH_ACCUSERS = 2
_FOR_GOOD = 2  # exclusions of a node, after which it is not asked again
_LOOK = 0.5  # seconds between two checks which nodes are connected


@checked
@dataclass(frozen=True, kw_only=True)
class Terms:
    """The terms on which the nodes of a federation are asked, whatever the question is.

    If `secure`, the server sees sums only (docs/secure-sums.md), else every node's answer. A sum is over
    at least `min_nodes` nodes and at least the share `min_fraction` of the cohort, which has
    `cohort_size` nodes, or every node that ever connected. A failed sum is begun again up to `retries`
    times, with other nodes if there are any; but not if it failed because too many nodes refuse the
    question: they would refuse it again. A stage waits `timeout` seconds for replies, and the first
    round `settling` seconds for nodes to connect. `dropout` and `colluding` are the declared shares of
    nodes that leave during a secure sum, and that may collude with the server; as in `choose_graph`.
    """

    secure: bool = True
    min_nodes: Annotated[int, AtLeast(1)] = 3
    retries: Annotated[int, AtLeast(0)] = 2
    min_fraction: Annotated[float, Between(0, 1)] = 0.7
    timeout: Annotated[float, Above(0)] = 60.0
    settling: Annotated[float, Between(0, math.inf)] = 60.0
    dropout: Finite = 0.3
    colluding: Finite = 0.2

    def __post_init__(self) -> None:
        check_declared(self)
        if self.secure and self.min_nodes < 2:
            raise ParameterError(
                "expected min_nodes of at least 2 for secure sums: a sum over one node is its answer"
            )
        for name in ("dropout", "colluding") if self.secure else ():
            if not 0 <= getattr(self, name) < 0.5:
                raise ParameterError(
                    f"expected {name} from 0 to less than 0.5, got {getattr(self, name):g}: where half "
                    "of the nodes go, no majority is left"
                )

    def needed(self, n_asked: int) -> int:
        """The number of nodes that have to answer, out of `n_asked`."""
        return max(self.min_nodes, math.ceil(self.min_fraction * n_asked - 1e-9))  # 0.7 * 10 > 7


@checked
class FederatedAggregator:
    """Puts queries to the nodes of a federation and adds their answers.

    The number of clients is not known: there is no `n_clients`. A node has at most `clients_per_node`
    clients: an answer beyond this number times the bounds of one client is refused, and a node with more
    does not answer. Secure sums need the `roster`, the nodes' public keys; only these nodes take part in
    them. Before the first round, `expected` nodes are waited for, at most `terms.settling` seconds; no
    more than the roster has. Errors call the nodes by `names`, all of which are expected; by default by
    their numbers. `rng` chooses the cohorts. After a sum that nodes left or joined since the sum before,
    `on_change` gets the round, the nodes that left and why, and those that joined; a node that was not
    chosen for a cohort has not left. docs/federation-core.md has a federation in one process.
    """

    def __init__(
        self,
        exchange: Exchange,
        terms: Terms,
        *,
        roster: Roster | None = None,
        clients_per_node: int = 1,
        names: Mapping[int, str] | None = None,
        expected: int = 0,
        rng: Seed = None,
        on_change: Callable[[int, Mapping[int, str], Sequence[int]], None] = lambda *_: None,
    ) -> None:
        if not 1 <= clients_per_node < 2**32:
            raise ParameterError("expected clients_per_node of at least 1")
        self._exchange, self._terms, self._clients_per_node = exchange, terms, clients_per_node
        if terms.secure and roster is None:
            raise ParameterError(
                "expected a roster with the nodes' public keys for secure sums, got None"
            )
        if roster is not None and not 0 <= expected <= len(roster):
            raise ParameterError(
                f"expected 0 to {len(roster)} nodes, as many as are in the roster, got {expected}"
            )
        self._roster = roster if terms.secure else None
        self._expected, self._rng, self._tally = expected, np.random.default_rng(rng), Tally()
        self._on_change, self._free = on_change, set[int]()
        self._names, self._known, self._present = names or {}, set[int](), set[int]()
        self._n_begun = 0  # rounds, with those that were left out

    @property
    def refused(self) -> dict[int, dict[str, int]]:
        """For each node with replies that were refusals or not used: how often, by reason."""
        return self._tally.refused

    @property
    def excluded(self) -> dict[int, str]:
        """The excluded nodes, and why they are excluded."""
        return self._tally.excluded

    @property
    def traffic(self) -> Traffic:
        """The traffic so far."""
        return self._tally.traffic(
            secure=self._terms.secure, clients_per_node=self._clients_per_node, known=self._known
        )

    def aggregate(self, query: Query[S], cohort_size: int | None) -> S:
        """The sum of the answers of a fresh cohort of nodes; None asks every node.

        `cohort_size` is a number of nodes, not of clients. If too few are connected, or answer, that is
        a `NodesError` with the numbers.
        """
        return self.retried(query, cohort_size, before=lambda: None)

    def retried(self, query: Query[S], cohort_size: int | None, *, before: Callable[[], None]) -> S:
        """`aggregate`, with a function that is called before each attempt; its error ends the sum.

        The function charges a private sum: a failed attempt may have revealed something, too.
        """
        self._settle()
        (choose,) = self.skip()
        with self._tally.round(self._n_begun, kind=query.text, n_numbers=query.n_numbers):
            return self._round(query, cohort_size, choose, before)

    def skip(self) -> list[np.random.Generator]:
        """Skip a round: later rounds draw the same random numbers as if it had been asked."""
        self._n_begun += 1
        return self._rng.spawn(1)

    def __repr__(self) -> str:
        kind = "secure" if self._terms.secure else "plain"
        return f"FederatedAggregator({counted(len(self._known), 'node')}, {kind})"

    def _settle(self) -> None:
        """Wait for the nodes that are expected, once."""
        expected, self._expected = self._expected, 0
        end = time.monotonic() + self._terms.settling
        while (n_there := len(self._exchange.nodes())) < expected and time.monotonic() < end:
            time.sleep(_LOOK)
        if expected and n_there < self._terms.min_nodes:
            self._expected, self._present = expected, set(self._exchange.nodes())
            raise NodesError(
                f"{n_there} of {expected} nodes are connected after {self._terms.settling:g} s, "
                f"{self._terms.min_nodes} are needed; {self._absent()}"
            )

    def _round(
        self,
        query: Query[S],
        cohort_size: int | None,
        choose: np.random.Generator,
        before: Callable[[], None],
    ) -> S:
        """A sum, in up to `retries` + 1 attempts."""
        failed, question = "", Ask(self._clients_per_node, encode_query(query))
        for n_attempts in range(1, self._terms.retries + 2):
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
            attempt = Attempt(
                query, question, cohort, needed, self._exchange, self._terms, self._tally
            )
            try:
                if self._roster is None:
                    total, summed = attempt.plain_sum()
                else:
                    total, summed = attempt.secure_sum(self._roster)
            except (NodesError, LostRoundError) as error:
                self._tally.suspect(attempt.suspects(error))
                # Everybody was asked, and too few of them would not refuse again.
                is_over = cohort_size is None and len(set(cohort) - attempt.declined) < needed
                if is_over or n_attempts > self._terms.retries:
                    text = f"no sum in {counted(n_attempts, 'attempt')}: {error}; {self._absent()}"
                    if is_over and attempt.declined:
                        text += "; they refuse it again until that changes and they join again"
                    raise NodesError(text) from error
                failed = f"{error}; {self._absent()}"
                continue
            self._tally.suspect(attempt.suspects())
            there = self._free - set(cohort).difference(summed)
            left, joined = self._tally.summed(summed, there, self._known)
            if left or joined:
                self._on_change(self._n_begun, left, joined)
            return query.read(total)
        raise AssertionError("the last attempt returns or raises")

    def _cohort(self, cohort_size: int | None, rng: np.random.Generator) -> tuple[list[int], int]:
        """The nodes to ask, and how many of them have to answer."""
        if cohort_size is not None and cohort_size < self._terms.min_nodes:
            raise ParameterError(
                f"expected a cohort of at least min_nodes={self._terms.min_nodes} nodes, got "
                f"{cohort_size}"
            )
        there = set(self._exchange.nodes())
        if self._roster is not None:
            there = {node for node in there if node in self._roster}
        for node in there - self._present:
            self._tally.alive(node)
        self._known |= there
        self._present = there
        self._free = there - set(self._tally.excluded)
        free = sorted(self._free)
        aim = len(self._known) if cohort_size is None else cohort_size
        needed = self._terms.needed(aim)
        if len(free) < needed:
            raise NodesError(
                f"{len(free)} of {aim} nodes can be asked, {needed} are needed; {self._absent()}"
            )
        if cohort_size is None or cohort_size >= len(free):
            return free, needed
        chosen = rng.choice(len(free), size=cohort_size, replace=False)
        return [free[index] for index in sorted(chosen)], needed

    def _named(self, nodes: Collection[int]) -> str:
        return listed([self._names.get(node, node) for node in nodes])

    def _absent(self) -> str:
        by_reasons: dict[str, list[int]] = {}
        for node, whys in self._tally.refused.items():
            by_reasons.setdefault("; ".join(whys), []).append(node)
        refused = [f"{self._named(nodes)} ({why})" for why, nodes in by_reasons.items()]
        excluded = self._named(self._tally.excluded)
        missing = sorted((self._known | self._names.keys()) - self._present)
        gone = f"missing: {self._named(missing)}, " * bool(missing)
        return f"{gone}excluded: {excluded}, refused: {', '.join(refused) or 'none'}"


class Tally:
    """Counts the traffic and keeps which nodes are excluded; it has no number of an answer.

    A node that does not reply in time is excluded until a late reply of it arrives, or until it has left
    and joins again. The second time it is excluded for good, and so is a node that made a secure sum
    fail.
    """

    SILENT, SUSPECT = "it did not reply in time", "its part of a secure sum was false"

    def __init__(self) -> None:
        self.n_attempts = self.n_asks = self.n_timeouts = self.bytes_down = self.bytes_up = 0
        self._summed: Counter[int] = Counter()
        self._rounds: list[RoundTraffic] = []
        self._n_in_sum = self._number = 0
        # For each sum: its round, who was in it or not drawn for it, and why others were not.
        self._sums: list[tuple[int, Set[int], dict[int, str]]] = []
        self._whys: dict[int, str] = {}  # of this round
        self._joined: Set[int] = set()
        self._excluded: dict[int, str] = {}
        self._times: Counter[int] = Counter()  # of exclusion
        self._refused: dict[int, Counter[str]] = {}

    @property
    def excluded(self) -> dict[int, str]:
        """The excluded nodes, and why."""
        return dict(sorted(self._excluded.items()))

    @property
    def refused(self) -> dict[int, dict[str, int]]:
        """For each node with replies that were not used: how often, by reason."""
        return {node: dict(why) for node, why in sorted(self._refused.items())}

    @contextmanager
    def round(self, number: int, *, kind: str, n_numbers: int) -> Iterator[None]:
        """Everything sent in this context belongs to one round, which ends with a sum or an error."""
        n_attempts, down, up = self.n_attempts, self.bytes_down, self.bytes_up
        self._n_in_sum, self._number, begun = 0, number, time.monotonic()
        self._whys = {}
        try:
            yield
        finally:
            if self.n_attempts > n_attempts:
                self._rounds.append(RoundTraffic(
                    number=number, kind=kind, n_numbers=n_numbers, n_nodes=self._n_in_sum,
                    n_attempts=self.n_attempts - n_attempts, bytes_down=self.bytes_down - down,
                    bytes_up=self.bytes_up - up, seconds=time.monotonic() - begun,
                ))  # fmt: skip

    def refuse(self, node: int, why: str) -> None:
        """Note a reply that is not used."""
        self._refused.setdefault(node, Counter())[why] += 1
        self._whys[node] = why

    def summed(
        self, nodes: Collection[int], there: Set[int], known: Set[int]
    ) -> tuple[dict[int, str], list[int]]:
        """A round has ended with a sum over these: who has left since then and why, and who joined.

        `there` are these and those that were not drawn for the cohort, `known` all that ever connected.
        """
        self._n_in_sum = len(nodes)
        self._summed.update(nodes)
        before = self._joined if self._sums else known
        whys = {n: self._excluded.get(n) or self._whys.get(n, NOT_THERE) for n in known - there}
        self._sums.append((self._number, there, whys))
        self._joined = before & there | set(nodes)  # one that was not drawn is as it was
        return {n: whys[n] for n in sorted(before - there)}, sorted(self._joined - before)

    def silent(self, nodes: Collection[int]) -> None:
        """Exclude nodes that did not reply in time."""
        self.n_timeouts += bool(nodes)
        for node in nodes:
            self._excluded[node] = self.SILENT
            self._times[node] += 1

    def suspect(self, nodes: Collection[int]) -> None:
        """Exclude nodes for good that made a secure sum fail."""
        for node in nodes:
            self.refuse(node, self.SUSPECT)
            self._excluded[node] = self.SUSPECT
            self._times[node] = _FOR_GOOD

    def alive(self, node: int) -> None:
        """Ask an excluded node again after a sign of life."""
        if self._times[node] < _FOR_GOOD:
            self._excluded.pop(node, None)

    def traffic(self, *, secure: bool, clients_per_node: int, known: Collection[int]) -> Traffic:
        """The counts as a `Traffic`; nodes are named by their numbers."""
        nodes = (
            NodeTraffic(
                node=node, name=str(node), n_summed=self._summed[node],
                excluded=self._excluded.get(node), absent=self._absences(node),
                refused=tuple(self._refused.get(node, {}).items()),
            )
            for node in sorted({*known, *self._summed, *self._excluded, *self._refused})
        )  # fmt: skip
        return Traffic(
            secure=secure, clients_per_node=clients_per_node, n_asks=self.n_asks,
            n_timeouts=self.n_timeouts, rounds=tuple(self._rounds), nodes=tuple(nodes),
        )  # fmt: skip

    def _absences(self, node: int) -> tuple[Absence, ...]:
        """The sums that a node was not in, those without a sum between them as one."""
        found: list[Absence] = []
        was_there = True
        for number, there, whys in self._sums:
            if node not in there:
                one = Absence(number, number, whys.get(node, NOT_THERE))
                found.append(one if was_there else replace(found.pop(), last=number))
            was_there = node in there
        return tuple(found)


@dataclass(frozen=True, eq=False)
class Attempt:
    """One attempt at a sum over a cohort of nodes, plain or secure.

    `question` has the query as bytes. `declined` are nodes that would refuse it again, and `accusers`
    those that blame a node. A sum is an array of shape (n_numbers,) and the nodes that are in it; there
    is none over fewer than `needed`.
    """

    query: Query[Any]
    question: Ask
    cohort: Collection[int]
    needed: int
    exchange: Exchange
    terms: Terms
    tally: Tally
    declined: set[int] = field(default_factory=set)
    accusers: dict[int, set[int]] = field(default_factory=dict)

    def suspects(self, error: Exception | None = None) -> set[int]:
        """Nodes whose messages to others broke the protocol."""
        accused = {
            node for node, by in self.accusers.items() if len(by - {node}) >= _ENOUGH_ACCUSERS
        }
        lost = error.node if isinstance(error, LostRoundError) else None
        return accused if lost is None else accused | {lost}

    def plain_sum(self) -> tuple[Floats, tuple[int, ...]]:
        """Each answer is checked, and added as it comes. The server sees every node's answer."""
        query = self.query
        bounds = query.bounds() * self.question.clients_per_node
        total, lost, summed = np.zeros(query.n_numbers), np.zeros(query.n_numbers), []
        for node, data in self._ask("plain", dict.fromkeys(self.cohort, self.question)):
            vector = _answer(data, query, bounds)
            if isinstance(vector, str):
                self.tally.refuse(node, vector)
                continue
            # Compensated (Neumaier, 1974), so that the sum does not depend on who replied first.
            before, total = total, total + vector
            lost += np.where(
                np.abs(before) >= np.abs(vector),
                (before - total) + vector,
                (vector - total) + before,
            )
            summed.append(node)
        if len(summed) < self.needed:
            raise NodesError(
                f"{len(summed)} of {len(self.cohort)} nodes answered, {self.needed} are needed"
            )
        return total + lost, tuple(sorted(summed))

    def secure_sum(self, roster: Roster) -> tuple[Floats, tuple[int, ...]]:
        """Five stages, in which the server sees masked numbers, and their sum."""
        query, asked = self.query, self.question
        round_ = SecureSum(
            self.cohort, roster=roster, matter=asked.digest, fewest=self.needed,
            bounds=node_bounds(query, asked.clients_per_node), dropout=self.terms.dropout,
            colluding=self.terms.colluding,
        )  # fmt: skip

        def replies(stage: str, bodies: Mapping[int, bytes]) -> dict[int, bytes]:
            first = asked if stage == "advertise" else Ask()
            asks = {node: replace(first, body=body) for node, body in bodies.items()}
            return dict(self._ask(stage, asks))

        try:
            bodies = round_.advertised(replies("advertise", round_.invite()))
            n_seen = round_.graph.n_neighbours + 1
            if (
                isinstance(query, Noised)
                and query.trust == "distributed"
                and query.n_reporters > n_seen
            ):
                # Every node would refuse it.
                raise ParameterError(
                    f"expected n_reporters of at most {n_seen}, a node and its neighbours in the secure "
                    f"sum, got {query.n_reporters}; a node counts no share that it cannot see"
                )
            bodies = round_.shared(replies("share", bodies))
            bodies = round_.masked(replies("mask", bodies))
            bodies = round_.confirmed(replies("confirm", bodies))
            total = round_.revealed(replies("reveal", bodies))
        finally:
            for node, why in round_.refused.items():
                self.tally.refuse(node, why)
        # It is not known which node it was; a smaller false value is not detected.
        most = query.bounds() * asked.clients_per_node * len(round_.summed)
        if (np.abs(total) > most * (1 + ROUNDING)).any():
            text = "the sum is beyond its bounds: a node sent values that are not valid"
            raise LostRoundError(text)
        return total, round_.summed

    def _ask(self, stage: str, asks: Mapping[int, Ask]) -> Iterator[tuple[int, bytes]]:
        """(node, body of its reply) in the order of arrival, only for replies to these messages."""
        # A random tag for each node: only those who know it can reply in the node's name.
        tags = {node: secrets.token_bytes(N_TAG_BYTES) for node in asks}
        messages = {node: ask.encode(tag=tags[node], node=node) for node, ask in asks.items()}
        self.tally.n_asks += 1
        self.tally.bytes_down += sum(map(len, messages.values()))
        heard: set[int] = set()
        answered: set[int] = set()
        for node, data in self.exchange.ask(stage, messages, timeout=self.terms.timeout):
            if node not in messages:
                self.tally.alive(node)
                continue
            heard.add(node)
            body, why = self._opened(node, data, tags[node])
            if body is not None and node in answered:
                body, why = None, "it answered twice"
            if body is None:
                self.tally.refuse(node, why)
                continue
            answered.add(node)
            yield node, body
        self.tally.silent(set(messages) - heard)

    def _opened(self, node: int, data: object, tag: bytes) -> tuple[bytes | None, str]:
        """The body of a reply; or None, and one of a few reasons why it is not used."""
        if not isinstance(data, bytes):
            return None, f"a reply of type {type(data).__name__}"
        if not data:
            return None, "the transport says that it failed"
        self.tally.bytes_up += len(data)
        try:
            reply = Reply.decode(data, tag=None, node=node)
        except RefusedError as error:
            kind = "that cannot be read" if error.node is None else "in another's name"
            return None, f"a reply {kind}"
        if reply.refusal is None:
            is_old = tag_of(data) != tag
            return (None, "a reply to an earlier message") if is_old else (reply.body, "")
        if reply.refusal.lasts:
            self.declined.add(node)
        if reply.suspect is not None:
            self.accusers.setdefault(reply.suspect, set()).add(node)
        return None, reply.refusal.text


def _answer(data: bytes, query: Query[Any], bounds: Floats) -> Floats | str:
    """The numbers of a plain answer, or one of a few reasons why it is not valid."""
    try:
        vector: Floats = decode_statistics(data, query).to_vector()
    except NumbersError:
        return "numbers that are not finite, or beyond 1e150"
    except MessageError:
        return "no answer to the question"
    except InputError:
        return "an answer of another length"
    return "numbers beyond their bounds" if (np.abs(vector) > bounds).any() else vector

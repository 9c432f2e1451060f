"""A node: the histograms or records of one or many clients, and its reply to any message of a server.

The owner's side of a federation. It follows its own policy, logs every message before it replies, and
refuses with a code only: the text of an error never leaves it. No transport is known here.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from polyurn.client.answers import answer_rows
from polyurn.client.cohort import keyed_buckets
from polyurn.client.private_answers import with_noise
from polyurn.client.rows import packed
from polyurn.errors import (
    BudgetError,
    CountsError,
    InputError,
    PolyurnError,
    RefusedError,
    SecureSumError,
)
from polyurn.federation.keys import Roster, Signer
from polyurn.federation.messages import (
    N_TAG_BYTES,
    STAGES,
    Ask,
    Refusal,
    Reply,
    pack,
    tag_of,
    unpack,
)
from polyurn.federation.node_log import LogEntry, NodeLogFile
from polyurn.federation.participant import Participant
from polyurn.federation.policy import NodePolicy
from polyurn.privacy.ledger import Entries, PrivacyLedger, enter_exact
from polyurn.typed.declared import Seed
from polyurn.wire import (
    Noised,
    Query,
    Statistics,
    check_answer,
    decode_query,
    encode_statistics,
    node_bounds,
)
from polyurn.wire.private_grid import DIGITS as GRID_DIGITS
from polyurn.wording import counted

_DAY = timedelta(days=1)
# Bounds a node's memory when a server begins rounds and never ends them.
MOST_OPEN = 4
# Bound the log of a day; beyond, a message is refused without a line.
LINES_PER_ROUND, FEWEST_LINES = 20, 200


class _DeclinedError(Exception):
    """A message that is not answered; this error never leaves the module."""

    def __init__(self, refusal: Refusal, suspect: int | None = None) -> None:
        super().__init__(refusal.text)
        self.refusal, self.suspect = refusal, suspect


@dataclass(frozen=True)
class _OpenRound:
    """A secure sum that the node takes part in: the question, decoded once, and all its secrets."""

    ask: Ask
    query: Query[Any]
    participant: Participant


class Node:
    """Answers for its clients, `counts` of shape (n_clients, n_categories), or records.

    Questions about style are answered of records only. The clients' `ids` never leave; their buckets
    follow from them and from `key`, 32 secret bytes that stay the same (`folder.bucket_key`). A question
    with another `max_size` or `clients_per_node` than the declared ones is refused: to compare what a
    server says with the clients would tell it about them. Without a line in the `log` nothing is
    answered. `ledger` is the owner's budget for all that is ever asked with noise, needed where the
    policy has `most_epsilon`; `entries` gets exact answers where there is none. `signer` and `roster`
    are for secure sums. `memory` is the `memory()` of an earlier process after its last answer.
    `on_failure` gets the error when an answer fails, of which the server gets a code only. `rng`
    is for questions whose answer is random (`Initialise`). docs/federation-core.md has an example.
    """

    def __init__(
        self,
        node: int,
        counts: object,
        *,
        ids: Sequence[object],
        key: bytes,
        policy: NodePolicy,
        log: NodeLogFile,
        max_size: int,
        clients_per_node: int,
        signer: Signer,
        roster: Roster,
        ledger: PrivacyLedger | None = None,
        entries: Entries | None = None,
        memory: Mapping[str, bytes] | None = None,
        on_failure: Callable[[Exception], None] = lambda _: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        rng: Seed = None,
    ) -> None:
        self._node, self._policy, self._log, self._clock = node, policy, log, clock
        self._on_failure, self._ledger = on_failure, ledger
        self._most_lines = max(FEWEST_LINES, LINES_PER_ROUND * policy.rounds_per_day)
        self._entries = entries if ledger is None else ledger.entries
        self._max_size, self._clients_per_node = max_size, clients_per_node
        self._rows = packed(counts)
        if len(ids) != self._rows.n_clients:
            raise InputError(f"expected {self._rows.n_clients} ids, got {len(ids)}")
        self._check_own_clients()
        self._buckets, self._rng = keyed_buckets(ids, key), np.random.default_rng(rng)
        self._signer, self._roster = signer, roster
        self._saved, self._open = dict(memory or {}), dict[str, _OpenRound]()

    def answer(self, stage: str, message: bytes) -> bytes:
        """The reply to an `Ask`, a `Reply` as bytes. It raises nothing: an error is in the log, as a
        code.

        The stage is "plain", or one of a secure sum: "advertise", "share", "mask", "confirm" and
        "reveal".
        """
        tag = bytes(N_TAG_BYTES)
        try:
            with self._log.turn():
                n_over = self._log.n_lines_since(self._clock() - _DAY) - self._most_lines
                if n_over > 0:
                    raise _DeclinedError(Refusal.TOO_OFTEN)
                entry = LogEntry(self._clock(), stage if stage in STAGES else "unknown")
                try:
                    if n_over == 0:
                        raise _DeclinedError(Refusal.TOO_OFTEN)
                    ask = self._read(stage, message)
                    tag = tag_of(message)
                    reply = Reply(body=self._answer(stage, ask, entry))
                except _DeclinedError as declined:
                    reply = Reply(declined.refusal, declined.suspect)
                except Exception as error:
                    # Any error, be it a bug or a lack of memory: its text may hold a client's numbers.
                    self._report(error)
                    reply = Reply(Refusal.FAILED)
                if reply.refusal is not None:
                    entry.refusal, entry.n_numbers = reply.refusal, 0
                entry.when = self._clock()
                self._log.append(entry)
        except _DeclinedError as declined:
            reply = Reply(declined.refusal)  # without a line: there are enough of them in a day
        except Exception as error:
            # No line in the log, no answer.
            self._report(error)
            reply = Reply(Refusal.FAILED)
        return reply.encode(tag=tag, node=self._node)

    def memory(self) -> dict[str, bytes]:
        """State of the open secure sums, by their names, for the next process of this node.

        It is secret while a sum lasts and useless afterwards. Each state may be used once.
        """
        return self._saved | {
            name: pack(replace(one.ask, body=one.participant.save()))
            for name, one in self._open.items()
        }

    def __repr__(self) -> str:
        return f"Node({self._node}, {counted(self._rows.n_clients, 'client')})"

    def _report(self, error: Exception) -> None:
        """Report an error to the owner; if that fails, drop it: the server must not see it."""
        with contextlib.suppress(Exception):
            self._on_failure(error)

    def _read(self, stage: str, message: bytes) -> Ask:
        try:
            ask = Ask.decode(message, tag=None, node=self._node)
        except RefusedError as error:
            raise _DeclinedError(Refusal.UNREADABLE) from error
        if stage not in STAGES:
            raise _DeclinedError(Refusal.UNREADABLE)
        return ask

    def _answer(self, stage: str, ask: Ask, entry: LogEntry) -> bytes:
        """The body of the reply; the entry of the log gets the question on the way."""
        if stage == "plain":
            query = self._decoded(ask)
            self._agree(ask, query, entry, secure=False)
            entry.n_numbers = query.n_numbers
            return encode_statistics(self._statistics(ask, query, entry), query)
        try:
            return self._take_part(stage, ask, entry)
        except SecureSumError as error:
            suspect = None if error.node == self._node else error.node
            raise _DeclinedError(Refusal.OFF_PROTOCOL, suspect) from error

    def _take_part(self, stage: str, ask: Ask, entry: LogEntry) -> bytes:
        """One stage of a secure sum: the question comes in the first, clients answer in the third.

        The log allows each stage of a round once, whatever the memory says: a process may die after its
        reply has left and before its state is saved. Asked again, it would sign a second set of
        survivors, and the server could get both secrets of a node.
        """
        name = entry.round_name = tag_of(ask.body).hex()
        if self._log.has_answered(stage, name, since=self._clock() - _DAY):
            self._forget(name)
            raise RefusedError("a stage that was answered before")
        if stage == "advertise":
            return self._begin(name, ask, entry)
        taken = self._taken(name)
        entry.kind = taken.query.text
        try:
            if stage == "mask":
                return self._masked(taken, ask.body, entry)
            return bytes(getattr(taken.participant, stage)(ask.body))
        except _DeclinedError:
            self._forget(name)
            raise
        finally:
            if taken.participant.is_over:
                self._forget(name)

    def _begin(self, name: str, ask: Ask, entry: LogEntry) -> bytes:
        """The signed keys for a new round about a question, if the owner allows the question."""
        if name in self._open or name in self._saved:
            raise RefusedError("an invitation to a round that has begun")
        query = self._decoded(ask)
        self._agree(ask, query, entry, secure=True)
        taken = _OpenRound(ask, query, self._participant(ask, query))
        body = taken.participant.advertise(ask.body)
        while len(self._saved) + len(self._open) >= MOST_OPEN:
            self._forget(next(iter(self._saved or self._open)))  # the oldest
        self._open[name] = taken
        return body

    def _masked(self, taken: _OpenRound, forwarded: bytes, entry: LogEntry) -> bytes:
        """The masked sum of the clients' numbers."""
        query = taken.query
        self._agree(taken.ask, query, entry, secure=True)
        statistics = self._statistics(taken.ask, query, entry)
        entry.n_numbers = query.n_numbers
        # Shares of noise protect an exact sum: a node's numbers must not be rounded on the way.
        bounds = node_bounds(query, taken.ask.clients_per_node)
        digits = GRID_DIGITS if isinstance(query, Noised) else None
        vector = statistics.to_vector()
        return taken.participant.mask(forwarded, vector, bounds=bounds, digits=digits)

    def _participant(self, ask: Ask, query: Query[Any]) -> Participant:
        """The node in one round, which is about one question.

        The smallest sum that it takes part in is the owner's limit, or one with enough shares of noise,
        counted in the node's neighbourhood. On a ring, a dishonest server can get the sums of several
        parts in one round, and the part of a node has all survivors of its neighbourhood.
        """
        fewest = self._policy.fewest
        if isinstance(query, Noised) and query.trust == "distributed":
            fewest = max(fewest, query.n_reporters)
        return Participant(
            self._node, signer=self._signer, roster=self._roster, matter=ask.digest, fewest=fewest,
            majority=self._policy.majority, neighbours=self._policy.neighbours,
        )  # fmt: skip

    def _taken(self, name: str) -> _OpenRound:
        """The round of this name; one that an earlier process saved is resumed here, and only here."""
        if name in self._saved:
            ask: Ask = unpack(Ask, self._saved.pop(name))
            query = self._decoded(ask)
            participant = self._participant(ask, query)
            participant.load(ask.body)
            self._open[name] = _OpenRound(ask, query, participant)
        if name not in self._open:
            raise RefusedError("a round that this node is not in")
        return self._open[name]

    def _forget(self, name: str) -> None:
        """Leave a round."""
        self._saved.pop(name, None)
        self._open.pop(name, None)

    def _check_own_clients(self) -> None:
        """Refuse clients, before anything is asked, that some question would have to be refused for."""
        n_clients, policy = self._rows.n_clients, self._policy
        check_clients(
            n_clients, int(self._rows.size_values.max()), max_size=self._max_size,
            clients_per_node=self._clients_per_node,
        )  # fmt: skip
        if policy.allow_exact and n_clients < policy.fewest_clients:
            raise InputError(
                f"expected at least {policy.fewest_clients} clients in a node that allows exact sums, "
                f"got {n_clients}: join without --allow-exact, or lower fewest_clients in its policy"
            )
        if policy.most_epsilon > 0 and self._ledger is None:
            raise InputError("expected a ledger with a policy that has most_epsilon above 0")

    def _agree(self, ask: Ask, query: Query[Any], entry: LogEntry, *, secure: bool) -> None:
        """Decline a question that the owner does not allow, or that these clients cannot answer."""
        entry.kind = query.text
        if ask.clients_per_node != self._clients_per_node:
            raise _DeclinedError(Refusal.OTHER_CLIENTS)
        objection = self._lacks(query) or self._policy.objection(
            query, secure=secure, max_size=self._max_size, clients_per_node=ask.clients_per_node
        )
        if objection is not None:
            raise _DeclinedError(objection)
        if self._log.n_rounds_since(self._clock() - _DAY) >= self._policy.rounds_per_day:
            raise _DeclinedError(Refusal.TOO_OFTEN)

    def _lacks(self, query: Query[Any]) -> Refusal | None:
        """Why these clients cannot answer the question: no records, other features or categories."""
        for leaf, _, _ in query.leaves():
            if leaf.n_features is None:
                continue
            if self._rows.records is None:
                return Refusal.NO_RECORDS
            if self._rows.records.n_features != leaf.n_features:
                return Refusal.OTHER_FEATURES
        return None if query.n_categories == self._rows.n_categories else Refusal.OTHER_CATEGORIES

    def _statistics(self, ask: Ask, query: Query[Any], entry: LogEntry) -> Statistics:
        """The clients' sum, within its bounds, with the node's own noise where there is some."""
        inner = query
        if isinstance(query, Noised):
            self._charge(query)
            inner = query.query
        elif self._entries is not None:
            enter_exact(self._entries, query.text, query.n_numbers)
        entry.ledger = "" if self._entries is None else self._entries.mark
        try:
            sums: Statistics = answer_rows(inner, self._rows, buckets=self._buckets, rng=self._rng)
            check_answer(inner, sums, inner.bounds() * ask.clients_per_node)
        except PolyurnError as error:
            raise _DeclinedError(Refusal.NO_ANSWER) from error
        is_local = isinstance(query, Noised) and query.trust == "local"
        n_adders = self._rows.n_clients if is_local else 1
        noised: Statistics = with_noise(query, sums, n_adders=n_adders)
        return noised

    def _charge(self, query: Noised[Any]) -> None:
        """What an answer costs is the owner's to allow, whatever the server's own ledger says."""
        if self._ledger is None:
            return
        try:
            self._ledger.charge(
                query.text, self._policy.noise_of(query), query.n_numbers, trust=query.trust,
                change_norm=query.query.change_norm,
            )  # fmt: skip
        except BudgetError as error:
            raise _DeclinedError(Refusal.BUDGET_SPENT) from error

    def _decoded(self, ask: Ask) -> Query[Any]:
        if len(ask.query) > self._policy.most_bytes:
            raise _DeclinedError(Refusal.TOO_MANY_NUMBERS)
        try:
            return decode_query(ask.query)
        except InputError as error:
            raise _DeclinedError(Refusal.UNREADABLE) from error


def check_clients(n_clients: int, largest: int, *, max_size: int, clients_per_node: int) -> None:
    """Refuse more clients, or a larger one, than the federation has declared."""
    if n_clients > clients_per_node:
        raise CountsError(
            f"the federation has declared at most {clients_per_node:,} clients a node, the table has "
            f"{n_clients:,}: set it up anew with a larger --clients-per-node, or take fewer clients"
        )
    if largest > max_size:
        raise CountsError(
            f"the federation has declared at most {max_size:,} points a client, one has {largest:,}: "
            f"cap them with `polyurn histogram --cap {max_size}`, or set the federation up anew with a "
            "larger --max-size"
        )

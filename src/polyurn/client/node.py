"""A node: the histograms of one or many clients, and its reply to any message of a server.

The owner's side of a federation. It keeps to its own policy, writes down every message before it
replies, and replies to what it refuses with a code: no text of an error leaves it. How messages travel
is not known here.
"""

import contextlib
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from polyurn.client.answer import answer_rows
from polyurn.client.buckets import keyed_buckets
from polyurn.client.node_log import LogEntry, NodeLog
from polyurn.client.node_policy import NodePolicy
from polyurn.client.private import with_noise
from polyurn.client.rows import packed
from polyurn.errors import BudgetError, InputError, PolyurnError, RefusedError, SecureSumError
from polyurn.privacy.ledger import PrivacyLedger
from polyurn.wire import (
    Noised,
    Query,
    Statistics,
    check_answer,
    decode_query,
    encode_statistics,
    node_bounds,
)
from polyurn.wire.grid import DIGITS as GRID_DIGITS
from polyurn.wire.node_messages import N_TAG_BYTES, STAGES, Ask, Refusal, Reply
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    from polyurn.client.secure_rounds import OpenRound, SecureRounds
    from polyurn.secure.roster import Roster, Signer

_DAY = timedelta(days=1)


class _DeclinedError(Exception):
    """A message is not answered; never leaves this module."""

    def __init__(self, refusal: Refusal, suspect: int | None = None) -> None:
        super().__init__(refusal.text)
        self.refusal, self.suspect = refusal, suspect


@dataclass
class _Said:
    """What becomes of one message, as far as it is known."""

    body: bytes = b""
    kind: str = "unknown"
    n_numbers: int = 0
    round_name: str = ""


class Node:
    """Answers for its clients.

    Parameters
    ----------
    node : int
        Its id in the federation.
    counts : int array or scipy.sparse of shape (n_clients, n_categories), or Records
        Questions about style are answered of records only.
    ids : sequence of shape (n_clients,)
        The clients' ids; they never leave, and their buckets follow from them.
    key : bytes
        32 secret ones, the same for as long as the node takes part: see `storage/node_key.py`.
    policy : NodePolicy
    log : NodeLog
        Without a line in it nothing is answered.
    ledger : PrivacyLedger, optional
        The owner's budget for all that is ever asked of these clients; with it, questions that come
        without noise of the node's own are refused, and so are those that the budget does not allow.
    signer, roster : Signer, Roster, optional
        Its long-lived key and everybody's public ones, for secure sums.
    memory : mutable mapping of str to bytes, optional
        What it keeps from stage to stage of a secure sum; a `dict` of its own by default.
    on_failure : function of an exception, optional
        Told of what failed, here and nowhere else: the server gets a code. By default nobody is told.
    clock : function that returns a datetime, optional
    rng : int or numpy.random.Generator
        For questions whose answer is random (`Initialise`).

    Examples
    --------
    docs/federation-core.md has a federation of nodes in one process.
    """

    def __init__(
        self,
        node: int,
        counts: object,
        *,
        ids: Sequence[object],
        key: bytes,
        policy: NodePolicy,
        log: NodeLog,
        ledger: PrivacyLedger | None = None,
        signer: "Signer | None" = None,
        roster: "Roster | None" = None,
        memory: MutableMapping[str, bytes] | None = None,
        on_failure: Callable[[Exception], None] = lambda _: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        rng: int | np.random.Generator | None = None,
    ) -> None:
        self._node, self._policy, self._log, self._clock = node, policy, log, clock
        self._on_failure, self._ledger = on_failure, ledger
        self._rows = packed(counts)
        if len(ids) != self._rows.n_clients:
            raise InputError(f"expected {self._rows.n_clients} ids, got {len(ids)}")
        self._buckets, self._rng = keyed_buckets(ids, key), np.random.default_rng(rng)
        self._secure = None
        if signer is not None and roster is not None:
            from polyurn.client.secure_rounds import SecureRounds

            self._secure = SecureRounds(
                node, signer=signer, roster=roster, policy=policy,
                memory={} if memory is None else memory,
            )  # fmt: skip

    def answer(self, stage: str, message: bytes) -> bytes:
        """The reply to a message. It raises nothing: what goes wrong is in the log, as a code.

        Parameters
        ----------
        stage : str
            "plain", or one of a secure sum: "advertise", "share", "mask", "confirm" and "reveal".
        message : bytes
            An `Ask`.

        Returns
        -------
        bytes
            A `Reply`.
        """
        tag = bytes(N_TAG_BYTES)
        try:
            with self._log.turn():
                said = _Said()
                try:
                    ask = self._read(stage, message)
                    tag = ask.tag
                    self._answer(stage, ask, said)
                    reply = Reply(tag, self._node, said.body)
                except _DeclinedError as declined:
                    reply = Reply(
                        tag, self._node, refusal=declined.refusal, suspect=declined.suspect
                    )
                except Exception as error:
                    # Whatever it is, a bug or no memory: its text may hold a client's numbers.
                    self._tell(error)
                    reply = Reply(tag, self._node, refusal=Refusal.FAILED)
                n_numbers = said.n_numbers if reply.refusal is None else 0
                name = stage if stage in STAGES else "unknown"
                self._log.append(
                    LogEntry(
                        self._clock(), name, said.kind, n_numbers, reply.refusal, said.round_name
                    )
                )
        except Exception as error:
            # No line in the log, no answer.
            self._tell(error)
            reply = Reply(tag, self._node, refusal=Refusal.FAILED)
        return reply.encode()

    def __repr__(self) -> str:
        return f"Node({self._node}, {counted(self._rows.n_clients, 'client')})"

    def _tell(self, error: Exception) -> None:
        """The owner; if that fails, nobody: an error that leaves here is told to the server."""
        with contextlib.suppress(Exception):
            self._on_failure(error)

    def _read(self, stage: str, message: bytes) -> Ask:
        try:
            ask = Ask.decode(message)
        except InputError as error:
            raise _DeclinedError(Refusal.UNREADABLE) from error
        if stage not in STAGES or ask.node != self._node:
            raise _DeclinedError(Refusal.UNREADABLE)
        return ask

    def _answer(self, stage: str, ask: Ask, said: _Said) -> None:
        if stage == "plain":
            query = self._question(ask)
            self._agree(query, ask, said, secure=False)
            said.n_numbers = query.n_numbers
            said.body = encode_statistics(self._statistics(query, ask.clients_per_node), query)
            return
        if self._secure is None:
            raise _DeclinedError(Refusal.NOT_SECURE)
        try:
            self._take_part(self._secure, stage, ask, said)
        except SecureSumError as error:
            suspect = None if error.node == self._node else error.node
            raise _DeclinedError(Refusal.OFF_PROTOCOL, suspect) from error

    def _take_part(self, rounds: "SecureRounds", stage: str, ask: Ask, said: _Said) -> None:
        """One stage of a secure sum: the question comes in the first, clients answer in the third.

        Each stage of a round once, whatever the memory says: who answers a message may die after its
        reply has left and before what it keeps is kept. Asked again, it would sign a second set of
        survivors, and both secrets of a node could be had.
        """
        said.round_name = rounds.name(ask)
        if self._log.has_answered(stage, said.round_name, since=self._clock() - _DAY):
            rounds.forget(ask)
            raise RefusedError("a stage that was answered before")
        if stage == "advertise":
            query = self._question(ask)
            self._agree(query, ask, said, secure=True)
            said.body = rounds.begin(ask, query)
            return
        try:
            with rounds.opened(ask) as round_:
                said.kind = round_.query.text
                if stage == "mask":
                    said.body = self._masked(round_, ask, said)
                else:
                    said.body = getattr(round_.participant, stage)(ask.body)
        except _DeclinedError:
            rounds.forget(ask)
            raise

    def _masked(self, round_: "OpenRound", ask: Ask, said: _Said) -> bytes:
        """The node's numbers behind its masks."""
        query, n_clients = round_.query, round_.begun.clients_per_node
        self._agree(query, round_.begun, said, secure=True)
        values = self._statistics(query, n_clients).to_vector()
        said.n_numbers = query.n_numbers
        # Shares of noise protect an exact sum: a node's numbers may not be rounded on the way.
        digits = GRID_DIGITS if isinstance(query, Noised) else None
        bounds = node_bounds(query, n_clients)
        return round_.participant.mask(ask.body, values, bounds=bounds, digits=digits)

    def _question(self, ask: Ask) -> Query[Any]:
        try:
            return decode_query(ask.query)
        except InputError as error:
            raise _DeclinedError(Refusal.UNREADABLE) from error

    def _agree(self, query: Query[Any], ask: Ask, said: _Said, *, secure: bool) -> None:
        """Whether the owner agrees to the question, and has what it is about."""
        said.kind = query.text
        if self._ledger is not None and not isinstance(query, Noised):
            raise _DeclinedError(Refusal.PRIVATE_ONLY)
        objection = self._policy.objection(query, secure=secure) or self._lacks(query)
        if objection is not None:
            raise _DeclinedError(objection)
        if self._rows.n_clients > ask.clients_per_node:
            raise _DeclinedError(Refusal.TOO_MANY_CLIENTS)
        if self._log.n_rounds_since(self._clock() - _DAY) >= self._policy.rounds_per_day:
            raise _DeclinedError(Refusal.TOO_OFTEN)

    def _lacks(self, query: Query[Any]) -> Refusal | None:
        for leaf, _, _ in query.leaves():
            if leaf.style_space is None:
                continue
            if self._rows.records is None:
                return Refusal.NO_RECORDS
            if self._rows.records.n_features != leaf.style_space.n_features:
                return Refusal.OTHER_FEATURES
        return None if query.n_categories == self._rows.n_categories else Refusal.OTHER_CATEGORIES

    def _statistics(self, query: Query[Any], clients_per_node: int) -> Statistics:
        """The clients' sum, within its bounds; one code for all that depends on the data."""
        inner = query
        if isinstance(query, Noised):
            self._charge(query)
            inner = query.query
        try:
            sums: Statistics = answer_rows(inner, self._rows, buckets=self._buckets, rng=self._rng)
            check_answer(inner, sums, inner.bounds() * clients_per_node)
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

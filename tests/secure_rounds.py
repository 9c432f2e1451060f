"""Whole secure sums in this process, for the tests: with nodes that fail, or a server that lies."""

from functools import cache

import numpy as np

from polyurn.errors import SecureSumError
from polyurn.federation.keys import Roster, SigningKey
from polyurn.federation.participant import Participant
from polyurn.federation.round import SecureSum

STAGES = ("advertise", "share", "mask", "confirm", "reveal")
TAKES = ("advertised", "shared", "masked", "confirmed", "revealed")


class CrashedError(Exception):
    """A node that was told to crash."""


@cache
def signing_keys(n_nodes):
    """Keys of nodes whose ids are as large as Flower's."""
    return {2**64 - 1 - 977 * i * i: SigningKey.generate() for i in range(n_nodes)}


def secrets_of(participant):
    """What a participant would carry to its next process: (seed and private keys, {owner: share})."""
    m = participant._memory
    return [m.seed, m.mask_private, m.seal_private], dict(m.shares)


class Federation:
    """Nodes with random numbers, and one sum over them.

    `fault(stage, node)` may return "silent" or "crash"; `forge(stage, node, reply)` is a node that
    answers something else; `lie(stage, node, request)` is a server that asks something else.
    `rates` are the declared ones, `policy` is the nodes' own.
    `restarts` makes every stage a new process, which knows only what the last one saved.
    """

    def __init__(self, n_nodes, *, n_numbers=10, rng=0, restarts=False, rates=None, **policy):
        self.keys = signing_keys(n_nodes)
        self.roster = Roster({node: key.public for node, key in self.keys.items()})
        self.nodes = sorted(self.keys)
        rng = np.random.default_rng(rng)
        self.bounds = 10.0 ** rng.integers(-3, 6, n_numbers)
        shares = rng.uniform(-1, 1, (n_nodes, n_numbers))
        self.values = dict(zip(self.nodes, shares * self.bounds, strict=True))
        self.policy, self.restarts = policy, restarts
        self.participants = {node: self.participant(node) for node in self.nodes}
        self.round = SecureSum(
            self.nodes,
            roster=self.roster,
            bounds=self.bounds,
            rng=1,
            **{"dropout": 0.3, **(rates or {})},
        )
        self.received, self.requests, self.errors = [], {}, {}

    def participant(self, node):
        return Participant(node, signer=self.keys[node], roster=self.roster, **self.policy)

    def resumed(self, node, saved):
        participant = self.participant(node)
        participant.load(saved)
        return participant

    def answer(self, stage, node, request):
        """What a node makes of a request: its reply, or an error."""
        if self.restarts:
            self.participants[node] = self.resumed(node, self.participants[node].save())
        act = getattr(self.participants[node], stage)
        if stage == "mask":
            return act(request, self.values[node], bounds=self.bounds)
        return act(request)

    def run(self, fault=None, forge=None, lie=None, until=None):
        """The sum, or the requests of the stage `until`, which are not put to anybody."""
        requests = self.round.invite()
        for stage, takes in zip(STAGES, TAKES, strict=True):
            if lie:
                requests = {node: lie(stage, node, r) for node, r in requests.items()}
            if stage == until:
                return requests
            replies = {}
            for node, request in requests.items():
                try:
                    replies[node] = self._reply(stage, node, request, fault, forge)
                except (SecureSumError, CrashedError) as error:
                    self.errors[node] = error
            replies = {node: reply for node, reply in replies.items() if reply is not None}
            self.requests[stage] = requests
            self.received.append(replies)
            requests = getattr(self.round, takes)(replies)
        return requests

    def _reply(self, stage, node, request, fault, forge):
        what = fault(stage, node) if fault else None
        if what == "silent":
            return None
        if what == "crash":
            raise CrashedError
        reply = self.answer(stage, node, request)
        return forge(stage, node, reply) if forge else reply

    def error_of(self, total, nodes=None):
        """The largest error of a sum, as a share of its bound; over all nodes unless said otherwise."""
        nodes = self.nodes if nodes is None else nodes
        true = np.sum([self.values[node] for node in nodes], axis=0)
        return float(np.max(np.abs(total - true) / self.bounds))

"""Federations with folders and without processes: nodes are played, each from its own folder."""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from federation_jobs import job_of, style_job_of
from polyurn import Records
from polyurn.client.counting import Histograms
from polyurn.federation.folder import read_node, set_up
from polyurn.federation.jobs import JobFolder
from polyurn.federation.owned_node import open_node
from polyurn.model.paper_truths import truth
from style_cases import drawn_world

ALLOWED = (
    "allow_exact = true", "fewest_clients = 1", "most_epsilon = 0.0", "least_noise = 0.0",
    "narrowest_part = 0.02",
)  # fmt: skip


class Clock:
    """In place of the module `time`: a pause passes at once."""

    def __init__(self):
        self.now = 1000.0
        self.on_sleep = lambda: None

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        self.on_sleep()


@dataclass
class Played:
    """A node: what it answers; None never answers. One that `fails` has gone, as its transport knows."""

    answer: object = None
    fails: bool = False
    is_there: bool = True


@dataclass
class PlayedExchange:
    """Nodes by their numbers; `before` is called before each stage, `sent` has who was asked."""

    played: dict
    clock: Clock
    before: object = lambda: None
    sent: list = field(default_factory=list)

    def nodes(self):
        return [number for number, node in self.played.items() if node.is_there]

    def ask(self, stage, messages, *, timeout):
        self.before()
        self.sent += messages
        hangs = False
        for number, message in messages.items():
            node = self.played[number]
            if node.fails:
                yield number, b""
            elif node.answer is None:
                hangs = True
            else:
                yield number, node.answer(stage, message)
        self.clock.now += timeout if hangs else 0.0


class OnDisk:
    """A federation with folders, whose nodes are played, with policies that allow much.

    `policy` has lines of TOML in place of these.

    `held` is what each node has, 10 categories and 20 points a client at most; histograms by default.
    """

    def __init__(self, folder, clock, n_nodes=3, n_clients=20, policy="", held=None, features=None):
        held = [histograms_of(n_clients, i + 1) for i in range(n_nodes)] if held is None else held
        self.made = set_up(
            folder / "fed", address="localhost:8000", categories=10, max_size=20,
            clients_per_node=n_clients, n_nodes=len(held), features=features,
        )  # fmt: skip
        self.nodes = {}
        for i, clients in enumerate(held, start=1):
            folder = self.made.node(f"node-{i}")
            allowed = [line for line in ALLOWED if line.split()[0] not in policy]
            (folder / "policy.toml").write_text("\n".join([policy, *allowed, ""]))
            self.nodes[i] = Played(open_node(read_node(folder), clients).answer)
        self.exchange = PlayedExchange(self.nodes, clock)

    def job(self, **settings):
        return JobFolder.make(self.made.runs, job_of(self.made.path, **settings))

    def style_job(self, **settings):
        return JobFolder.make(self.made.runs, style_job_of(self.made.path, **settings))


def histograms_of(n_clients, seed):
    counts = sparse.csr_array(truth("medium/2").sample(n_clients, rng=seed))
    return Histograms(counts, np.arange(n_clients), tuple(map(str, range(10))))


def records_of(n_nodes, n_clients=20):
    """The records of clients with styles of two directions, and the same, node by node."""
    whole = drawn_world(n_nodes * n_clients, sizes=(10, 20), n_directions=2, seed=3).records
    parts = []
    for members in np.split(np.arange(whole.n_clients), n_nodes):
        held = whole.of(members)
        parts.append(Records(held.features, held.labels, members[held.owner], n_labels=10))
    return whole, parts

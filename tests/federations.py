"""Whole federations in this process, for the tests: nodes on real files, some of which misbehave."""

from dataclasses import fields, replace
from functools import cache

import numpy as np

from polyurn import Records, answer
from polyurn.client.cohort import keyed_buckets
from polyurn.federation.aggregator import FederatedAggregator, Terms
from polyurn.federation.exchange import InProcessExchange
from polyurn.federation.keys import Roster, SigningKey
from polyurn.federation.messages import Ask, Reply, tag_of
from polyurn.federation.node import Node
from polyurn.federation.node_log import NodeLogFile
from polyurn.federation.policy import NodePolicy
from polyurn.model.paper_truths import truth
from polyurn.wire import encode_statistics
from polyurn.wire.codec import decode_query

STAGES = ("advertise", "share", "mask", "confirm", "reveal")
ALL_METHODS = (
    "fit", "fit_private", "fit_style", "fit_paper", "feature_differences", "describe",
    "describe_column", "score",
)  # fmt: skip
# Policies that allow more than an owner's does, for what is not about policies.
EXACT = NodePolicy(
    questions=ALL_METHODS, allow_exact=True, fewest_clients=1, most_epsilon=0.0, least_noise=0.0
)
OPEN = replace(EXACT, secure_only=False)


@cache
def signing_keys(n_nodes):
    """Keys of nodes whose ids are as large as Flower's."""
    return {2**64 - 1 - 977 * i * i: SigningKey.generate() for i in range(n_nodes)}


class Federation:
    """Nodes with clients of a known mixture.

    `faults` are {node's place: function of (stage, message, honest)} with `honest` the node's own
    answer to a message; None leaves the node as it is.
    """

    def __init__(
        self,
        folder,
        n_nodes,
        n_clients=25,
        *,
        policy=OPEN,
        faults=None,
        name="medium/2",
        max_size=20,
    ):
        self.keys = signing_keys(n_nodes)
        self.ids = sorted(self.keys)
        self.roster = Roster({node: key.public for node, key in self.keys.items()})
        self.counts = truth(name).sample(n_nodes * n_clients, rng=5)
        self.names = [f"client {i}" for i in range(len(self.counts))]
        self.n_clients, self.folder, self.policy, self.max_size = (
            n_clients,
            folder,
            policy,
            max_size,
        )
        self.memories = {node: {} for node in self.ids}
        self.nodes = {node: self.node(place) for place, node in enumerate(self.ids)}
        self.exchange = Recording(
            {
                node: played(self.nodes[node], (faults or {}).get(place))
                for place, node in enumerate(self.ids)
            }
        )

    def rows(self, place):
        return slice(place * self.n_clients, (place + 1) * self.n_clients)

    def key(self, place):
        return bytes([place]) * 32

    def log(self, place):
        return self.folder / f"{place}.log"

    def node(self, place, **options):
        """A process of a node; it finds what an earlier one has kept."""
        number = self.ids[place]
        settings = {
            "policy": self.policy,
            "log": NodeLogFile(self.log(place)),
            "signer": self.keys[number],
            "roster": self.roster,
            "memory": self.memories[number],
            "max_size": self.max_size,
            "clients_per_node": self.n_clients,
            "rng": place,
        }
        rows = self.rows(place)
        return Node(
            number,
            self.counts[rows],
            ids=self.names[rows],
            key=self.key(place),
            **{**settings, **options},
        )

    def answer_once(self, place, stage, message):
        """The reply of a process that ends afterwards."""
        node = self.node(place)
        reply = node.answer(stage, message)
        self.memories[self.ids[place]] = node.memory()
        return reply

    def aggregator(self, **options):
        settings = {"secure": False, "roster": self.roster, "clients_per_node": self.n_clients}
        return aggregator_of(self.exchange, **{**settings, **options})

    def buckets(self, places):
        return np.concatenate(
            [keyed_buckets(self.names[self.rows(p)], self.key(p)) for p in places]
        )

    def local(self, places=None):
        """An aggregator that sums the same clients without any bytes."""
        places = range(len(self.ids)) if places is None else places
        return Local(np.vstack([self.counts[self.rows(p)] for p in places]), self.buckets(places))


class Recording(InProcessExchange):
    """Keeps what was asked of whom, and counts how often a transport would have waited in vain."""

    def __init__(self, nodes):
        super().__init__(nodes)
        self.asked, self.n_timeouts = [], 0

    def ask(self, stage, messages, *, timeout):
        self.asked.append((stage, tuple(messages)))
        n_silent = len(messages)
        for reply in super().ask(stage, messages, timeout=timeout):
            n_silent -= 1
            yield reply
        self.n_timeouts += n_silent > 0


def aggregator_of(exchange, **options):
    """An aggregator with some terms, and the rest of its arguments."""
    names = {field.name for field in fields(Terms)}
    terms = {name: value for name, value in options.items() if name in names}
    others = {name: value for name, value in options.items() if name not in names}
    return FederatedAggregator(exchange, Terms(**terms), **others)


class RecordFederation(Federation):
    """Nodes whose clients have records, of a `style_cases.World`."""

    def __init__(self, folder, world, n_nodes, **options):
        self.records = world.records
        largest = int(world.records.sizes.max())
        n_clients = world.records.n_clients // n_nodes
        super().__init__(folder, n_nodes, n_clients, max_size=largest, **options)

    def node(self, place, **options):
        rows = self.rows(place)
        held = self.records.of(np.arange(rows.start, rows.stop))
        mine = Records(held.features, held.labels, held.owner, n_labels=self.records.n_labels)
        return Node(
            self.ids[place], mine, ids=self.names[rows], key=self.key(place), policy=self.policy,
            log=NodeLogFile(self.log(place)), signer=self.keys[self.ids[place]], roster=self.roster,
            memory=self.memories[self.ids[place]], max_size=self.max_size,
            clients_per_node=self.n_clients,
        )  # fmt: skip


class Local:
    """The answers of clients with given buckets."""

    def __init__(self, counts, buckets):
        self.counts, self.buckets = counts, buckets

    def aggregate(self, query, cohort_size):
        return answer(query, self.counts, buckets=self.buckets)


def played(node, fault):
    if fault is None:
        return node.answer
    return lambda stage, message: fault(stage, message, node.answer)


def node_of(message):
    """Whom a message is to or from."""
    return int.from_bytes(message[22:30], "little")


def opened(reply):
    """What a node replied."""
    return Reply.decode(reply, tag=None, node=node_of(reply))


def question_of(message):
    """What a node is asked."""
    return Ask.decode(message, tag=None, node=node_of(message))


def rewrapped(reply, body):
    """The reply with something else in it."""
    return Reply(body=body).encode(tag=tag_of(reply), node=node_of(reply))


# ------------------------------------------------------------------------------------- faults


def silent(stage, message, honest):
    """Hangs, or has left: a transport waits for it until the timeout."""


def crash(stage, message, honest):
    """The transport says that it failed."""
    return b""


def garbage(stage, message, honest):
    return b"\x00\xffgarbage" * 9


def text(stage, message, honest):
    return "an answer"


def at(stage_of_fault, fault):
    """A fault in one stage only."""
    return lambda stage, message, honest: (
        fault(stage, message, honest) if stage == stage_of_fault else honest(stage, message)
    )


def replay():
    """Replies to the first message of each stage, for ever."""
    first = {}

    def fault(stage, message, honest):
        return first.setdefault(stage, honest(stage, message))

    return fault


def impostor(number):
    """Replies as another node."""

    def fault(stage, message, honest):
        data = honest(stage, message)
        return data[:22] + number.to_bytes(8, "little") + data[30:]

    return fault


def numbers(value):
    """Plain answers with one number replaced, which an honest encoder would not write."""

    def fault(stage, message, honest):
        return honest(stage, message)[:-8] + np.array([value], "<f8").tobytes()

    return fault


def short(stage, message, honest):
    """A well-formed answer to another question of the same kind, with one number less."""
    ask = question_of(message)
    query = decode_query(ask.query)
    whole = encode_statistics(query.read(np.zeros(query.n_numbers)), query)
    old, new = (f'"n_numbers":{n}'.encode() for n in (query.n_numbers, query.n_numbers - 1))
    body = whole[:-8].replace(old, new + b" " * (len(old) - len(new)))
    return rewrapped(message, body)

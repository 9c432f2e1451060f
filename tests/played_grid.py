"""A Grid of Flower that plays its nodes in this process, by a clock that nobody waits for."""

from dataclasses import dataclass, field

from flwr.app import ConfigRecord, Error, Message, RecordDict
from flwr.serverapp import Grid

from polyurn.federation.flower.public_grid import RECORD


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
    """A node of a grid: a function of a message, and how long that takes; None never answers.

    A node with `error` has failed, and Flower says so with that text.
    """

    answer: object = None
    after: float = 0.0
    error: str | None = None
    refuses_messages: bool = False
    is_there: bool = True

    def reply(self, message):
        if self.error is not None:
            return Message(Error(2, self.error), reply_to=message)
        return self.answer(message)


@dataclass
class PlayedGrid(Grid):
    """Nodes by Flower's ids. As in Flower, a reply is pulled once; later pulls of it are errors."""

    nodes: dict
    clock: Clock
    sending_takes: float = 0.0
    takes_nothing: bool = False
    sent: list = field(default_factory=list)
    pulled: list = field(default_factory=list)
    _due: dict = field(default_factory=dict)

    def set_run(self, run):
        raise NotImplementedError

    @property
    def run(self):
        raise NotImplementedError

    def create_message(self, *_, **__):
        raise NotImplementedError

    def send_and_receive(self, messages, *, timeout=None):
        raise NotImplementedError

    def get_node_ids(self):
        return [key for key, node in self.nodes.items() if node.is_there]

    def push_messages(self, messages):
        self.clock.now += self.sending_takes
        if self.takes_nothing:
            return []
        return [self._push(message) for message in messages]

    def pull_messages(self, message_ids):
        replies = []
        for key in message_ids:
            self.pulled.append(key)
            when, message, node = self._due[key]
            if when <= self.clock.now:
                self._due[key] = (0.0, message, Played(error="Message Unavailable"))
                replies.append(node.reply(message))
        return replies

    def _push(self, message):
        node = self.nodes[message.metadata.dst_node_id]
        if node.refuses_messages:
            return None
        key = f"message {len(self.sent)}"
        message.metadata.__dict__["_message_id"] = key
        self.sent.append(message)
        hangs = node.answer is None and node.error is None
        when = float("inf") if hangs else self.clock.now + node.after
        self._due[key] = (when, message, node)
        return key


def message_of(stage, body, *, node=5):
    """A message as a node gets it."""
    content = RecordDict({RECORD: ConfigRecord({"stage": stage, "message": body})})
    message = Message(content, dst_node_id=node, message_type="query.polyurn")
    message.metadata.__dict__["_message_id"] = "a message"
    return message

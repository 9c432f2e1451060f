"""A node's folder as `init` makes it, for attacks on files."""

import secrets

import pytest

from federations import opened
from played_federations import histograms_of
from polyurn import SizeBins
from polyurn.federation.folder import read_node, set_up
from polyurn.federation.messages import Ask
from polyurn.wire import BoundedSurvey, Noised, encode_query


@pytest.fixture
def node_folder(tmp_path):
    """That of the first of three nodes, which answers plainly, too."""
    made = set_up(
        tmp_path / "fed", address="localhost:8000", categories=10, max_size=20,
        clients_per_node=25, n_nodes=3,
    )  # fmt: skip
    policy = made.node("node-1") / "policy.toml"
    policy.write_text(policy.read_text().replace("secure_only = true", "secure_only = false"))
    return read_node(made.node("node-1"))


@pytest.fixture
def clients():
    return histograms_of(25, 1)


@pytest.fixture
def noised_answer():
    """A node's answer to a question with noise, which its ledger is charged for."""

    def ask(node):
        query = encode_query(Noised(BoundedSurvey(10, SizeBins.exact(20)), 20.0, "local"))
        message = Ask(25, query).encode(tag=secrets.token_bytes(16), node=1)
        reply = opened(node.answer("plain", message))
        assert reply.refusal is None
        return reply

    return ask

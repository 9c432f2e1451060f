"""A server that lies, to nodes as `polyurn federation join` runs them, which differ in clients."""

import numpy as np
import pytest

from hostile_server import attack
from polyurn.federation.one_machine import federation_here
from polyurn.model.paper_truths import truth


@pytest.mark.slow
def test_no_question_of_a_lying_server_is_answered_by_any_real_node(tmp_path):
    """Whatever a node holds, 25 clients, 24, or one of them the largest: the refusals are the same."""
    clients = [truth("medium/2").sample(n, rng=n) for n in (25, 24, 1)]
    clients[1] = np.vstack([clients[1], [[0] * 9 + [20]]])[1:]
    with federation_here(tmp_path / "fed", clients, max_size=20) as made:
        seen = attack(made)
        spent = [
            (made.node(node.name) / "privacy.ledger").read_text().count('"charge": {')
            for node in made.read().nodes
        ]
    assert all(set(replies) == {1, 2, 3} for replies in seen.values())
    assert {name: set(replies.values()) for name, replies in seen.items()} == {
        "x1: noise in 2**31 parts": {"UNREADABLE"},
        "x4: sixty thousand components": {"TOO_MANY_NUMBERS"},
        "x5: a group of one client": {"PRIVATE_ONLY"},
        "x6: an exact sum": {"PRIVATE_ONLY"},
        "another size": {"OTHER_SIZE"},
        **{f"x2: {n} clients": {"OTHER_CLIENTS"} for n in (1, 24, 26, 2**16)},
    }
    assert spent == [0, 0, 0]

"""A server that lies, to nodes as `polyurn federation join` runs them, which differ in clients."""

import json
from pathlib import Path

import numpy as np
import pytest

from federation_jobs import job_of
from hostile_server import APP
from live_federations import wait_until
from polyurn.federation.flower import superlink
from polyurn.federation.jobs import JobFolder
from polyurn.federation.one_machine import federation_here
from polyurn.model.paper_truths import truth

TESTS = Path(__file__).parents[1]


@pytest.mark.slow
def test_no_question_of_a_lying_server_is_answered_by_any_real_node(tmp_path, monkeypatch):
    """Whatever a node holds, 25 clients, 24, or one of them the largest: the refusals are the same."""
    monkeypatch.setenv("PYTHONPATH", str(TESTS), prepend=":")
    clients = [truth("medium/2").sample(n, rng=n) for n in (25, 24, 1)]
    clients[1] = np.vstack([clients[1], [[0] * 9 + [20]]])[1:]
    with federation_here(tmp_path / "fed", clients, max_size=20) as made:
        (made.app / "polyurn_app" / "server_app.py").write_text(APP)
        folder = JobFolder.make(made.runs, job_of(made.path))
        superlink.submit(made, folder.path)
        wait_until(lambda: folder.failure is not None)
        assert folder.failure == "the attack is over"
        seen = json.loads((folder.path / "seen.json").read_text())
        spent = [
            (made.node(node.name) / "privacy.ledger").read_text().count('"charge": {')
            for node in made.read().nodes
        ]
    assert all(set(replies) == {"1", "2", "3"} for replies in seen.values())
    assert {name: set(replies.values()) for name, replies in seen.items()} == {
        "x1: noise in 2**31 parts": {"UNREADABLE"},
        "x4: sixty thousand components": {"TOO_MANY_NUMBERS"},
        "x5: a group of one client": {"PRIVATE_ONLY"},
        "x6: an exact sum": {"PRIVATE_ONLY"},
        "another size": {"OTHER_SIZE"},
        **{f"x2: {n} clients": {"OTHER_CLIENTS"} for n in (1, 24, 26, 2**16)},
    }
    assert spent == [0, 0, 0]

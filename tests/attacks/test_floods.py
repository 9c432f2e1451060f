"""Messages without end: they fill neither a node's log nor the server's."""

import logging
import secrets

import pytest

from federations import Federation, opened
from polyurn.federation.https.server import Switchboard
from polyurn.federation.messages import Ask, Refusal
from polyurn.federation.node import FEWEST_LINES


@pytest.mark.parametrize("stage", ["plain", "advertise", "nonsense"])
def test_no_flood_of_messages_grows_the_log_of_a_node_beyond_a_days_lines(
    tmp_path, monkeypatch, stage
):
    monkeypatch.setattr("polyurn.federation.node.LINES_PER_ROUND", 0)
    federation = Federation(tmp_path, 1)
    node, refusals = federation.node(0), []
    for _ in range(FEWEST_LINES + 20):
        message = Ask(25, b"no question").encode(
            tag=secrets.token_bytes(16), node=federation.ids[0]
        )
        refusals.append(opened(node.answer(stage, message)).refusal)
    assert Refusal.TOO_OFTEN not in refusals[:FEWEST_LINES]
    assert None not in refusals
    assert set(refusals[FEWEST_LINES:]) == {Refusal.TOO_OFTEN}
    lines = federation.log(0).read_text().splitlines()
    assert len(lines) == FEWEST_LINES + 1
    assert lines[-1].endswith("refused: it was asked too often in a day")


def test_no_crowd_of_strangers_fills_the_log_of_the_server(caplog):
    caplog.set_level(logging.INFO)
    board = Switchboard({}, {})
    for _ in range(1000):
        board.seldom("refused a stranger")
    assert caplog.text.count("refused a stranger") == 1

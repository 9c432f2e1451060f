"""Nodes that were told different matters are in no sum together."""

import pytest

from polyurn.errors import InputError, LostRoundError
from polyurn.federation.round import Round
from secure_rounds import Federation


def test_a_node_with_another_matter_is_left_out_by_the_server():
    federation = Federation(4, matter=bytes(32))
    federation.round = Round(
        federation.nodes, roster=federation.roster, bounds=federation.bounds, dropout=0.0,
        matter=bytes(32),
    )  # fmt: skip
    odd = federation.nodes[0]
    federation.policy = {"matter": b"x" * 32}
    federation.participants[odd] = federation.participant(odd)
    assert federation.error_of(federation.run(), federation.nodes[1:]) < 1e-9
    assert list(federation.round.refused) == [odd]


def test_nodes_refuse_a_server_that_forwards_keys_of_another_matter():
    class Gullible(type(Federation(3).roster)):
        def verify(self, node, message, signature):
            pass

    federation = Federation(3, matter=bytes(32))
    odd = federation.nodes[0]
    federation.policy = {"matter": b"x" * 32}
    federation.participants[odd] = federation.participant(odd)
    keys = {node: key.public for node, key in federation.keys.items()}
    federation.round = Round(
        federation.nodes, roster=Gullible(keys), bounds=federation.bounds, dropout=0.0
    )
    with pytest.raises(LostRoundError):
        federation.run()
    assert all(federation.errors[node].node == odd for node in federation.nodes[1:])


@pytest.mark.parametrize("matter", [b"x", bytes(31), bytes(33)])
def test_a_matter_of_another_length_is_refused(matter):
    with pytest.raises(InputError, match="a digest of 32 bytes"):
        Federation(3, matter=matter)

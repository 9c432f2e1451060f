"""The ClientApp: a new process for every message, and no word of what fails there."""

import json
import shutil

import pytest
from flwr.app import ConfigRecord, Context, RecordDict

from flower_grids import Played, PlayedGrid, message_of
from polyurn import SizeBins
from polyurn.federation.aggregator import FederatedAggregator, Terms
from polyurn.federation.flower.client_app import answer
from polyurn.federation.flower.grid_exchange import RECORD, FlowerExchange, reply_bytes
from polyurn.federation.messages import Ask, Refusal, Reply
from polyurn.wire import (
    StyleMoments,
    Survey,
    decode_query,
    decode_statistics,
    encode_query,
)
from style_cases import whole_space

TABLE = "who,what\n" + "".join(f"{who},{what}\n" for who in ("x", "y", "z") for what in "aabc")
LAX = "secure_only = false\nallow_exact = true\nfewest_clients = 1\n"
QUERY = encode_query(Survey(3, SizeBins.exact(20), pairs=False))


@pytest.fixture
def context(node_folder):
    (node_folder / "policy.toml").write_text(LAX)
    (node_folder / "clients.csv").write_text(TABLE)
    return context_of(node_folder)


def context_of(folder):
    config = {
        "node": str(folder),
        "table": str(folder / "clients.csv"),
        "client": "who",
        "category": "what",
    }
    return Context(run_id=7, node_id=5, node_config=config, state=RecordDict(), run_config={})


def ask(stage="plain", tag=bytes(16)):
    return message_of(stage, Ask(50, QUERY).encode(tag=tag, node=2))


def test_a_message_is_answered_for_the_table_of_the_nodes_configuration(context, node_folder):
    reply = Reply.decode(reply_bytes(answer(ask(), context)), tag=bytes(16), node=2)
    assert reply.refusal is None
    assert "plain | survey" in (node_folder / "questions.log").read_text()


@pytest.mark.parametrize("has_features", [True, False])
def test_a_question_about_style_is_answered_where_features_are_named(
    context, node_folder, has_features
):
    header, *rows = TABLE.splitlines()
    points = [f"{header},width"] + [f"{row},{i % 5}.5" for i, row in enumerate(rows)]
    (node_folder / "clients.csv").write_text("\n".join(points) + "\n")
    if has_features:
        context.node_config["features"] = "width"
    query = StyleMoments(whole_space(1, 3))
    asked = message_of("plain", Ask(50, encode_query(query)).encode(tag=bytes(16), node=2))
    reply = Reply.decode(reply_bytes(answer(asked, context)), tag=bytes(16), node=2)
    assert reply.refusal is (None if has_features else Refusal.NO_RECORDS)
    if has_features:
        assert decode_statistics(reply.body, query).n_clients == 3


def test_what_a_secure_sum_needs_later_is_kept_in_the_supernodes_memory(
    federation, tmp_path, clock
):
    contexts = {}
    for i in range(1, 5):
        folder = shutil.copytree(federation.node(f"node-{i}"), tmp_path / f"node-{i}")
        (folder / "clients.csv").write_text(TABLE)
        (folder / "policy.toml").write_text("allow_exact = true\nfewest_clients = 1\n")
        contexts[100 + i] = context_of(folder)
    grid = PlayedGrid({key: ThroughTheApp(context) for key, context in contexts.items()}, clock)
    clients = FederatedAggregator(
        FlowerExchange(grid, {100 + i: i for i in range(1, 5)}), Terms(),
        roster=federation.read().roster, clients_per_node=50,
    )  # fmt: skip
    assert clients.aggregate(decode_query(QUERY), None).n_clients == pytest.approx(12)
    assert clients.traffic.n_attempts == 1
    assert clients.refused == {}
    for context in contexts.values():
        assert isinstance(context.state[RECORD], ConfigRecord)


class ThroughTheApp(Played):
    """A node whose replies the ClientApp makes, knowing what is in its context only."""

    def __init__(self, context):
        super().__init__(answer=context)

    def reply(self, message):
        return answer(message, self.answer)


def damage_table(context, folder):
    (folder / "clients.csv").write_text(TABLE + "mallory,secret-category\n")


def lose_table(context, folder):
    (folder / "clients.csv").unlink()


def name_no_table(context, folder):
    del context.node_config["table"]


def name_no_node(context, folder):
    del context.node_config["node"]


def damage_node(context, folder):
    (folder / "federation.json").write_text("{")


def name_no_such_column(context, folder):
    context.node_config["client"] = "nobody"


def name_other_features_than_declared(context, folder):
    document = json.loads((folder / "federation.json").read_text())
    (folder / "federation.json").write_text(json.dumps({**document, "features": ["width"]}))
    context.node_config["features"] = "height"


def exceed_the_declared_size(context, folder):
    (folder / "clients.csv").write_text("who,what\n" + "mallory,a\n" * 21)


@pytest.mark.parametrize(
    "fault",
    [
        damage_table,
        lose_table,
        name_no_table,
        name_no_node,
        damage_node,
        name_no_such_column,
        name_other_features_than_declared,
        exceed_the_declared_size,
    ],
)
def test_no_word_of_what_fails_reaches_the_server_and_the_owner_is_told(
    context, node_folder, fault, caplog
):
    fault(context, node_folder)
    reply = answer(ask(), context)
    assert not reply.has_error()
    assert reply_bytes(reply) == b""
    assert len(caplog.records) == 1

"""The public door: bytes over Flower's Grid, to nodes that prove who they are."""

import shutil

import pytest
from flwr.app import ConfigRecord, Context, RecordDict

from played_grid import Clock, Played, PlayedGrid, message_of
from polyurn import SizeBins
from polyurn.errors import ParameterError
from polyurn.federation import aggregator
from polyurn.federation.aggregator import FederatedAggregator, Terms
from polyurn.federation.flower import public_grid
from polyurn.federation.flower.learning_app import learn_mixture
from polyurn.federation.flower.node_app import client_app
from polyurn.federation.flower.public_grid import RECORD, WHO, GridExchange, claim
from polyurn.federation.folder import SIGNING_KEY
from polyurn.federation.keys import SigningKey
from polyurn.storage.models import load_saved
from polyurn.wire import Survey

TABLE = "client,category\n" + "".join(f"{who},{what}\n" for who in "xyz" for what in "aabc")
POLICY = "allow_exact = true\nfewest_clients = 1\n"
QUERY = Survey(3, SizeBins.exact(20), pairs=False)


class OnSuperNode(Played):
    """A node whose replies the ClientApp makes, from what its owner configured."""

    def __init__(self, folder, flower_id, **settings):
        config = {"node": str(folder), "table": str(folder / "clients.csv"), **settings}
        context = Context(
            run_id=7, node_id=flower_id, node_config=config, state=RecordDict(), run_config={}
        )
        super().__init__(answer=lambda message: client_app()(message, context))
        self.context = context


@pytest.fixture(autouse=True)
def identity(monkeypatch):
    """Flower makes messages in its own processes only, which know who they are."""
    identities = pytest.importorskip("flwr.supercore.task_identity")
    for name, value in {"_run_id": 7, "_task_id": 7, "_node_id": 1}.items():
        monkeypatch.setattr(identities.TaskIdentity, name, value)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(public_grid, "time", clock)
    monkeypatch.setattr(aggregator, "time", clock)
    return clock


@pytest.fixture
def played(federation, tmp_path, clock):
    """Four SuperNodes with Flower's ids 101 to 104."""
    nodes = {}
    for i in range(1, 5):
        folder = shutil.copytree(federation.node(f"node-{i}"), tmp_path / f"node-{i}")
        (folder / "clients.csv").write_text(TABLE)
        (folder / "policy.toml").write_text(POLICY)
        nodes[100 + i] = OnSuperNode(folder, 100 + i)
    return PlayedGrid(nodes, clock)


@pytest.fixture
def roster(federation):
    return federation.read().roster


def clients_of(played, roster):
    exchange = GridExchange(played, roster)
    terms = Terms(timeout=60.0, settling=10.0)
    return FederatedAggregator(exchange, terms, roster=roster, clients_per_node=50, expected=4)


def test_nodes_are_known_once_they_have_proved_who_they_are(played, roster):
    exchange = GridExchange(played, roster)
    assert exchange.nodes() == []  # they are asked, and nobody waits
    assert exchange.nodes() == [1, 2, 3, 4]
    assert len(played.sent) == 4
    played.nodes[102].is_there = False
    assert exchange.nodes() == [1, 3, 4]


def test_a_secure_sum_goes_over_stock_supernodes(played, roster):
    clients = clients_of(played, roster)
    assert clients.aggregate(QUERY, None).n_clients == pytest.approx(12)
    assert (clients.traffic.n_attempts, clients.refused) == (1, {})
    for node in played.nodes.values():
        assert isinstance(node.context.state[RECORD], ConfigRecord)


def test_a_node_in_anothers_name_is_not_asked(played, roster, tmp_path, federation):
    stolen = tmp_path / "node-4" / "federation.json"
    shutil.copy(federation.node("node-3") / "federation.json", stolen)  # claims to be node 3
    exchange = GridExchange(played, roster)
    exchange.nodes()
    assert exchange.nodes() == [1, 2, 3]
    assert list(dict(exchange.ask("plain", {3: b"?"}, timeout=1.0))) == [3]
    assert played.sent[-1].metadata.dst_node_id == 103


def test_a_proof_is_of_one_node_of_flowers_and_of_one_question(federation, roster):
    key = SigningKey((federation.node("node-1") / SIGNING_KEY).read_bytes())
    signature = key.sign(claim(b"nonce", 101))
    roster.verify(1, claim(b"nonce", 101), signature)
    for other in (claim(b"nonce", 102), claim(b"other", 101)):
        with pytest.raises(Exception, match="not node 1's"):
            roster.verify(1, other, signature)


def test_a_node_that_does_not_say_who_it_is_is_asked_again_after_a_minute(played, roster, clock):
    played.nodes[104].error = "boom"
    exchange = GridExchange(played, roster)
    for _ in range(5):
        exchange.nodes()
    assert (exchange.nodes(), len(played.sent)) == ([1, 2, 3], 4)
    played.nodes[104].error = None
    clock.sleep(61)
    exchange.nodes()
    assert (exchange.nodes(), len(played.sent)) == ([1, 2, 3, 4], 5)


def test_a_supernode_that_begins_anew_is_the_same_node(played, roster, tmp_path):
    exchange = GridExchange(played, roster)
    exchange.nodes()
    assert exchange.nodes() == [1, 2, 3, 4]
    del played.nodes[101]
    played.nodes[999] = OnSuperNode(tmp_path / "node-1", 999)
    assert exchange.nodes() == [2, 3, 4]
    assert exchange.nodes() == [1, 2, 3, 4]
    assert dict(exchange.ask("plain", {1: b"?"}, timeout=1.0))[1]
    assert played.sent[-1].metadata.dst_node_id == 999


def test_failed_refused_and_silent_nodes_cost_at_most_one_wait_and_late_replies_are_told(
    played, roster, clock
):
    exchange = GridExchange(played, roster)
    exchange.nodes()
    exchange.nodes()
    played.nodes[101].error = "secret text"
    played.nodes[102].refuses_messages = True
    played.nodes[103].after = 90.0
    begun = clock.now
    replies = dict(exchange.ask("plain", dict.fromkeys((1, 2, 3, 4), b"?"), timeout=60.0))
    assert {node: bool(reply) for node, reply in replies.items()} == {1: False, 2: False, 4: True}
    assert 60 <= clock.now - begun < 62
    played.nodes[104].after = 40.0
    assert list(dict(exchange.ask("plain", {4: b"?"}, timeout=60.0))) == [3, 4]


def test_no_word_of_what_fails_reaches_the_server_and_the_owner_is_told(
    federation, tmp_path, caplog
):
    folder = shutil.copytree(federation.node("node-2"), tmp_path / "node-2")
    (folder / "clients.csv").write_text(TABLE + "mallory,secret-category\n")
    message = message_of("plain", b"?")
    reply = OnSuperNode(folder, 5).reply(message)
    assert reply.content[RECORD] == ConfigRecord({"reply": b""})
    assert len(caplog.records) == 1
    (folder / SIGNING_KEY).unlink()
    reply = OnSuperNode(folder, 5).reply(message_of(WHO, b"nonce"))
    assert reply.content[RECORD] == ConfigRecord({"reply": b""})


def test_the_server_cannot_say_which_table_a_node_reads(federation, tmp_path):
    node = OnSuperNode(federation.node("node-2"), 5)
    node.context.node_config.clear()
    node.context.run_config = {"node": str(federation.node("node-2")), "table": "/etc/passwd"}
    assert node.reply(message_of(WHO, b"nonce")).content[RECORD] == ConfigRecord({"reply": b""})


def test_a_mixture_is_learned_and_written_where_the_settings_say(played, federation, tmp_path):
    whole = shutil.copytree(federation.path, tmp_path / "fed")
    output = tmp_path / "mdm.json"
    settings = {"federation": str(whole), "output": str(output), "components": "1", "seed": 3}
    learn_mixture(played, {**settings, "checkpoint": ""})
    saved = load_saved(output)
    assert saved.model.n_components == 1
    assert saved.provenance.fit.n_clients == 12
    assert saved.provenance.traffic.secure
    assert [node.name for node in saved.provenance.traffic.nodes] == [
        "node-1", "node-2", "node-3", "node-4",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"output": ""}, "output is not given"),
        ({"rounds": 3}, "there is no setting rounds; expected checkpoint"),
        ({"components": "two"}, 'components as 3 or "1,2,3"'),
    ],
)
def test_settings_that_are_wrong_are_one_line_and_ask_nobody(played, federation, wrong, said):
    settings = {"federation": str(federation.path), "output": "mdm.json", **wrong}
    with pytest.raises(ParameterError, match=said):
        learn_mixture(played, settings)
    assert played.sent == []

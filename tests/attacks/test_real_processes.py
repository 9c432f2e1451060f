"""A server that lies, to nodes as `polyurn federation join` runs them, over HTTPS."""

import os
import secrets
import signal

import numpy as np
import pytest

from federations import ALL_METHODS, opened
from hostile_server import attack
from live_federations import Run, kill_node, polyurn, rejoin
from polyurn import SizeBins
from polyurn.federation.https.asking import HttpsExchange
from polyurn.federation.messages import Ask, Refusal
from polyurn.federation.one_machine import federation_here
from polyurn.federation.policy import NodePolicy
from polyurn.federation.processes import alive
from polyurn.federation.round import SecureSum
from polyurn.model.paper_truths import truth
from polyurn.model.scores import Mixture
from polyurn.wire import (
    BoundedSurvey,
    Noised,
    WhitenedScore,
    decode_statistics,
    encode_query,
)

# It allows more than an owner's policy does, so that more can be seen.
LAX = NodePolicy(questions=ALL_METHODS, secure_only=False, allow_exact=True, fewest_clients=1)
N_CLIENTS = 1001  # where a product of BLAS with one row less takes another kernel


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """Whatever a node holds, 25 clients, 24, or one of them the largest."""
    clients = [truth("medium/2").sample(n, rng=n) for n in (25, 24, 1, 25)]
    clients[1] = np.vstack([clients[1], [[0] * 9 + [20]]])[1:]
    place = tmp_path_factory.mktemp("strict") / "fed"
    with federation_here(place, clients, max_size=20, n_processes=2) as made:
        yield made


def test_no_question_of_a_lying_server_is_answered_by_any_real_node(strict):
    seen = attack(strict)
    spent = [
        (strict.node(node.name) / "privacy.ledger").read_text().count('"charge": {')
        for node in strict.read().nodes
    ]
    assert all(set(replies) == {1, 2, 3, 4} for replies in seen.values())
    assert {name: set(replies.values()) for name, replies in seen.items()} == {
        "x1: noise in 2**31 parts": {"UNREADABLE"},
        "x4: sixty thousand components": {"TOO_MANY_NUMBERS"},
        "x5: a group of one client": {"PRIVATE_ONLY"},
        "x6: an exact sum": {"PRIVATE_ONLY"},
        "another size": {"OTHER_SIZE"},
        **{f"x2: {n} clients": {"OTHER_CLIENTS"} for n in (1, 24, 26, 2**16)},
    }
    assert spent == [0, 0, 0, 0]


def asked(made, stage, asks):
    """What nodes reply to a stage, opened."""
    messages = {
        node: ask.encode(tag=secrets.token_bytes(16), node=node) for node, ask in asks.items()
    }
    replies = dict(HttpsExchange(made).ask(stage, messages, timeout=60.0))
    return {node: opened(reply) for node, reply in replies.items()}


def test_no_round_of_four_real_nodes_is_cut_into_a_sum_of_three(strict):
    """x7: the first three are told of a round of three, after four have advertised their keys."""
    federation = strict.read()
    query = encode_query(Noised(BoundedSurvey(10, SizeBins.exact(20)), 100.0, "distributed", 3))
    first = Ask(federation.clients_per_node, query)
    for n_near, refused in ((3, True), (4, False)):
        whole = SecureSum(
            range(1, 5), roster=federation.roster, bounds=np.ones(9), dropout=0.0,
            matter=first.digest,
        )  # fmt: skip
        invited = {
            n: Ask(first.clients_per_node, query, body) for n, body in whole.invite().items()
        }
        bodies = {n: reply.body for n, reply in asked(strict, "advertise", invited).items()}
        near = dict(sorted(bodies.items())[:n_near])
        told = {n: Ask(0, b"", body) for n, body in small_round(whole, near, bodies).items()}
        replies = asked(strict, "share", told)
        whys = {reply.refusal for reply in replies.values()}
        assert whys == ({Refusal.OFF_PROTOCOL} if refused else {None})


def small_round(round_, near, everybody):
    """The messages of a server that leaves some nodes out of all neighbourhoods."""
    whole = round_.advertised(everybody)
    if near == everybody:
        return whole
    from polyurn.federation.messages import Neighbourhood, tag_of

    told = {}
    for node in near:
        tag = tag_of(whole[node])
        one = Neighbourhood.decode(whole[node], tag=tag, node=node)
        ads = {n: ad for n, ad in one.neighbours.items() if n in near}
        cut = Neighbourhood(2, one.quorum, one.cohort, ads)
        told[node] = cut.encode(tag=tag, node=node)
    return told


# ------------------------------------------------------------- nodes that allow more than they should


@pytest.fixture(scope="module")
def lax(tmp_path_factory):
    """All clients, all but the first, and the first alone; a fourth node has others."""
    whole = truth("medium/2").sample(N_CLIENTS, rng=1)
    clients = [whole, whole[1:], whole[:1], truth("medium/2").sample(25, rng=4)]
    place = tmp_path_factory.mktemp("lax") / "fed"
    with federation_here(place, clients, max_size=20, policy=LAX) as made:
        yield made


def hostile(seed):
    """A whitener whose directions cancel but for rounding, with a clip that blows rounding up."""
    rng = np.random.default_rng(seed)
    alphas = np.repeat(rng.uniform(0.5, 4, (5, 10)), 2, axis=0)
    one = rng.normal(size=(5, 11, 10)) * 10.0 ** rng.uniform(-6, 6, (5, 11, 1))
    both = np.empty((10, 11, 10))
    both[0::2], both[1::2] = one, -one
    return WhitenedScore(Mixture(np.full(10, 0.1), alphas), both.reshape(-1, 10), 1e-100, 20)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_no_client_of_a_real_node_changes_a_sum_by_more_than_its_own_vector(lax, seed):
    """x3: bit for bit, over three processes."""
    query = hostile(seed)
    ask = Ask(N_CLIENTS, encode_query(query))
    replies = asked(lax, "plain", dict.fromkeys((1, 2, 3), ask))
    assert {reply.refusal for reply in replies.values()} == {None}
    vectors = {
        node: decode_statistics(reply.body, query).to_vector() for node, reply in replies.items()
    }
    np.testing.assert_array_equal(vectors[1], vectors[2] + vectors[3])
    assert np.linalg.norm(vectors[3]) <= 1 + 1e-9


@pytest.mark.slow
def test_no_real_node_joins_again_with_a_ledger_that_was_emptied(lax):
    """x8: after a kill -9, too."""
    query = Noised(BoundedSurvey(10, SizeBins.exact(20)), 20.0, "local")
    reply = asked(lax, "plain", {4: Ask(N_CLIENTS, encode_query(query))})[4]
    assert reply.refusal is None
    kill_node(lax, 4)
    ledger = lax.node("node-4") / "privacy.ledger"
    kept = ledger.read_bytes()
    ledger.write_bytes(b"")
    ran = polyurn("join", lax.node("node-4"), "--allow-exact")
    assert ran.returncode == 2
    assert "take its budget as used up" in " ".join(ran.stderr.split())
    ledger.write_bytes(kept)
    again = rejoin(lax, 4)
    assert alive(lax.node("node-4") / "node.pid") == again.pid
    again.terminate()
    again.wait()


@pytest.mark.slow
def test_a_node_that_was_killed_and_returns_is_named_as_it_happens(lax, tmp_path):
    """The run is stopped meanwhile, so that it is not over before the node is back."""
    run = Run(
        lax, tmp_path / "mdm.json", "--plain", "--terms", "min_fraction=0.5,timeout=60,min_nodes=2",
        "--search", "tol=1e-14,patience=20", rounds=16,
    )  # fmt: skip
    run.wait_for_round(2)
    kill_node(lax, 2)
    run.wait_for_round(5)
    os.kill(run.process.pid, signal.SIGSTOP)
    again = rejoin(lax, 2)
    os.kill(run.process.pid, signal.SIGCONT)
    code, noted = run.end()
    again.terminate()
    again.wait()
    assert code == 0, noted
    lines = noted.splitlines()
    (left,) = [line for line in lines if "without node-2 (" in line and line.startswith("from")]
    (back,) = [line for line in lines if "with node-2" in line and line.startswith("from")]
    assert lines.index(left) < lines.index(back)

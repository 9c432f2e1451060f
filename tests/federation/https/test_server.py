"""What reaches whom through the server, and what it refuses: strangers, too much, too slow."""

import http.client
import logging
import socket
import ssl
import time

import pytest

from https_servers import Serving, wait_until
from polyurn.federation.folder import set_up
from polyurn.federation.https import server
from polyurn.federation.https.asking import HttpsExchange
from polyurn.federation.https.protocol import (
    MESSAGE,
    MOST_REPLY,
    N_HEAD,
    RUN,
    SESSION,
    STAGE,
    TIMEOUT,
)
from polyurn.federation.keys import Certified, certify, make_authority, make_node_keys
from polyurn.federation.one_machine import free_port
from polyurn.storage.files import write_secret

PATIENCE = 240.0  # seconds that anything may take on a machine that does other things, too


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return set_up(
        tmp_path_factory.mktemp("https") / "fed", address=f"localhost:{free_port()}", categories=3,
        max_size=9, clients_per_node=20, n_nodes=3,
    )  # fmt: skip


@pytest.fixture
def serving(files):
    made = Serving(files)
    yield made
    made.close()


@pytest.fixture
def quick(monkeypatch):
    """Seconds that are short, for tests that wait for their end."""
    for name, value in {
        "_BODY": 0.5,
        "_GRACE": 0.2,
        "_SILENT": 0.5,
        "POLL": 1.0,
        "_HANDSHAKE": 0.5,
    }.items():
        monkeypatch.setattr(server, name, value)


def there(serving, *numbers):
    """Nodes that have said hello."""
    nodes = [serving.node(number) for number in numbers]
    for node in nodes:
        assert node.send("GET", "/hello")[0] == 204
    return nodes


# ------------------------------------------------------------------------------- messages and replies


def test_each_node_gets_its_own_message_and_the_server_its_reply(serving):
    one, two = there(serving, 1, 2)
    assert serving.exchange.nodes() == [1, 2]
    asking = serving.ask("plain", {1: b"for one", 2: b"for two"})
    for node, number, body in ((two, 2, b"for two"), (one, 1, b"for one")):
        stage, name, message = node.next()
        assert (stage, message) == ("plain", body)
        node.reply_and_leave(b"reply %d" % number, name)
    assert sorted(asking.end()) == [(1, b"reply 1"), (2, b"reply 2")]


@pytest.mark.parametrize(
    "bodies",
    [
        [b"", b"x"], [b"same" * 99] * 3, [b"a" * N_HEAD + b"common" + bytes([i]) for i in range(3)],
        [b"h" * N_HEAD + b"long and common", b"h" * N_HEAD + b"long", b"h" * N_HEAD],
        [b"1" * 300, b"2" * 500, b"1" * 200],
    ],
    ids=["short", "the same", "another end", "one in the other", "others"],
)  # fmt: skip
def test_messages_arrive_as_they_are_whatever_they_have_in_common(serving, bodies):
    messages = dict(enumerate(bodies, start=1))
    nodes = there(serving, *messages)
    asking = serving.ask("plain", messages)
    for node, body in zip(nodes, bodies, strict=True):
        _, name, message = node.next()
        assert message == body
        node.reply_and_leave(message, name)
    assert dict(asking.end()) == messages


def test_what_all_messages_share_goes_to_the_server_once():
    from polyurn.federation.https.asking import _written

    shared = b"question" * 10_000
    messages = {i: bytes([i]) * N_HEAD + shared for i in range(50)}
    assert sum(map(len, _written(messages))) < 1.1 * len(shared)


def test_several_runs_ask_a_node_one_after_the_other(serving):
    (node,) = there(serving, 1)
    first = serving.ask("plain", {1: b"first"})
    wait_until(first.is_alive)
    _, name, message = node.next()
    second = HttpsExchange(serving.files)
    asking = type(first)(second, "plain", {1: b"second"}, 20.0)
    _, other, later = node.next(b"reply to the first", to=name)
    assert (message, later) == (b"first", b"second")
    node.reply_and_leave(b"reply to the second", other)
    assert (first.end(), asking.end()) == (
        [(1, b"reply to the first")], [(1, b"reply to the second")],
    )  # fmt: skip


def test_a_message_that_did_not_arrive_is_sent_again_to_the_same_process_only(serving, quick):
    node = serving.node(1, session="a process")
    node.send("GET", "/hello")
    asking = serving.ask("plain", {1: b"question"})
    assert node.next()[2] == b"question"
    again = serving.node(1, session="a process")
    assert again.next()[2] == b"question"
    for one in (node, again):
        one.close()
    other = serving.node(1, session="another process")
    wait_until(lambda: other.send("GET", "/hello")[0] == 204)
    assert asking.end() == [(1, b"")]
    assert other.send("POST", "/next")[0] == 204


def test_a_node_that_has_gone_is_not_waited_for(serving, quick):
    one, two = there(serving, 1, 2)
    begin = time.monotonic()
    asking = serving.ask("plain", {1: b"question", 2: b"question"})
    one.next()
    one.close()  # as the kernel does when the process is killed
    _, name, _ = two.next()
    two.reply_and_leave(b"reply", name)
    assert sorted(asking.end()) == [(1, b""), (2, b"reply")]
    assert time.monotonic() - begin < 10.0
    assert serving.exchange.nodes() == [2]


def test_a_late_reply_is_named_in_the_log_and_a_sign_of_life(serving, caplog):
    caplog.set_level(logging.INFO)
    one, two = there(serving, 1, 2)
    asking = serving.ask("share", {1: b"question"}, timeout=0.3)
    _, name, _ = one.next()
    assert asking.end() == []
    assert "node-1 did not reply in time, to the stage share" in caplog.text
    one.reply_and_leave(b"late", name)
    wait_until(lambda: "node-1 replied too late, to the stage share" in caplog.text)
    asking = serving.ask("plain", {2: b"question"})
    _, name, _ = two.next()
    two.reply_and_leave(b"reply", name)
    assert asking.end() == [(1, b""), (2, b"reply")]


def test_nobody_is_asked_any_more_for_a_run_that_was_interrupted(serving):
    (node,) = there(serving, 1)
    begin = time.monotonic()
    replies = serving.exchange.ask("plain", {1: b"question", 2: b"question"}, timeout=PATIENCE)
    asking = serving.ask("plain", {1: b"first"})
    _, name, _ = node.next()
    node.reply_and_leave(b"reply", name)
    asking.end()
    assert next(replies) == (2, b"")  # it is not there, which is said at once
    assert time.monotonic() - begin < PATIENCE / 4
    replies.close()
    asking = serving.ask("plain", {1: b"second"})
    node = serving.node(1, session=node.session)
    wait_until(lambda: node.next()[2] == b"second")
    node.close()
    assert asking.end() == [(1, b"")]


# --------------------------------------------------------------------------------------- strangers


def port_of(files):
    return int(files.read().address.rpartition(":")[2])


def test_a_connection_without_a_certificate_of_the_federation_ends_in_the_handshake(
    serving, tmp_path, caplog
):
    caplog.set_level(logging.INFO)
    context = ssl.create_default_context(cafile=serving.files.ca_certificate)
    nobody = serving.node(1)
    nobody.link = http.client.HTTPSConnection("localhost", port_of(serving.files), context=context)
    with pytest.raises(OSError, match=r"alert|reset|closed"):
        nobody.send("GET", "/hello")
    keys = make_node_keys()
    (tmp_path / "crt").write_bytes(certify(make_authority("x"), "node-1", keys.transport_public))
    write_secret(tmp_path / "key", keys.transport)
    stranger = serving.node(1, certificate=tmp_path / "crt", key=tmp_path / "key")
    with pytest.raises(OSError, match=r"alert|reset|closed"):
        stranger.send("GET", "/hello")
    assert "refused a connection without a certificate of this federation" in caplog.text
    assert serving.exchange.nodes() == []


def test_a_certificate_of_the_authority_that_is_not_in_the_roster_is_refused(serving, tmp_path):
    place = serving.files.authority
    authority = Certified(*((place / name).read_bytes() for name in ("ca.key", "ca.crt")))
    keys = make_node_keys()
    (tmp_path / "crt").write_bytes(certify(authority, "node-1", keys.transport_public))
    write_secret(tmp_path / "key", keys.transport)
    stranger = serving.node(1, certificate=tmp_path / "crt", key=tmp_path / "key")
    with pytest.raises((OSError, http.client.HTTPException)):
        stranger.send("GET", "/hello")


def test_older_tls_is_refused(serving):
    home = serving.files.node("node-1")
    context = ssl.create_default_context(cafile=home / "ca.crt")
    context.load_cert_chain(home / "node.crt", home / "transport.key")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    link = http.client.HTTPSConnection("localhost", port_of(serving.files), context=context)
    with pytest.raises(OSError, match=r"version|alert|EOF"):
        link.request("GET", "/hello")


def test_no_node_can_ask_others_and_the_operator_is_no_node(serving):
    (node,) = there(serving, 1)
    asked = {STAGE: "plain", RUN: "mine", TIMEOUT: "1"}
    assert node.send("POST", "/ask", b"", **asked)[0] == 403
    assert node.send("GET", "/status")[0] == 403
    files = serving.files
    operator = serving.node(1, certificate=files.operators_certificate, key=files.operators_key)
    assert operator.send("POST", "/next")[0] == 403
    assert operator.send("GET", "/status")[0] == 200


def test_the_operator_is_heard_from_this_machine_only(serving, monkeypatch):
    """Elsewhere a connection has two addresses: another one of this machine stands for it."""
    files = serving.files
    operator = serving.node(1, certificate=files.operators_certificate, key=files.operators_key)
    operator.link.source_address = ("127.0.0.2", 0)
    operator.link.host = "127.0.0.1"
    assert operator.send("GET", "/status")[0] == 403


def test_a_reply_is_taken_once_and_from_its_own_node_only(serving, caplog):
    caplog.set_level(logging.INFO)
    one, two = there(serving, 1, 2)
    asking = serving.ask("plain", {1: b"for one", 2: b"for two"})
    (_, name, _), (_, other, _) = one.next(), two.next()
    liar = serving.node(2, session=two.session)
    liar.reply_and_leave(b"in the name of one", name)
    wait_until(lambda: "node-2 replied to a message that it does not have" in caplog.text)
    one.reply_and_leave(b"one", name)
    again = serving.node(1, session=one.session)
    again.reply_and_leave(b"replayed", name)
    wait_until(lambda: "node-1 replied to a message that it does not have" in caplog.text)
    last = serving.node(2, session=two.session)
    last.reply_and_leave(b"two", other)
    assert sorted(asking.end()) == [(1, b"one"), (2, b"two")]


def test_a_second_process_of_a_node_waits_until_the_first_one_has_gone(serving, quick):
    first, second = serving.node(1, session="a"), serving.node(1, session="b")
    assert first.send("GET", "/hello")[0] == 204
    assert second.send("GET", "/hello")[0] == 409
    first.close()
    wait_until(lambda: second.send("GET", "/hello")[0] == 204)


# ------------------------------------------------------------------------------ too much, too slowly


def test_a_reply_that_is_too_large_is_refused_and_its_node_counts_as_failed(serving):
    (node,) = there(serving, 1)
    asking = serving.ask("plain", {1: b"question"})
    _, name, _ = node.next()
    node.link.putrequest("POST", "/next")
    for header, value in {SESSION: node.session, MESSAGE: name, "Content-Length": 10**12}.items():
        node.link.putheader(header, str(value))
    node.link.endheaders(b"x" * 1000)
    assert node.link.getresponse().status == 413
    assert asking.end() == [(1, b"")]


def test_a_reply_without_end_is_refused_when_it_is_too_large(serving):
    (node,) = there(serving, 1)

    def endless():
        for _ in range(MOST_REPLY // 2**16 + 9):
            yield bytes(2**16)

    try:
        node.link.request("POST", "/next", endless(), {SESSION: node.session}, encode_chunked=True)
        assert node.link.getresponse().status == 413
    except OSError:  # it has hung up before all of it was sent
        pass
    assert serving.exchange.nodes() is not None


def test_a_reply_that_comes_byte_by_byte_is_given_up(serving, quick):
    (node,) = there(serving, 1)
    asking = serving.ask("plain", {1: b"question"})
    _, name, _ = node.next()
    node.link.putrequest("POST", "/next")
    for header, value in {SESSION: node.session, MESSAGE: name, "Content-Length": 9}.items():
        node.link.putheader(header, str(value))
    node.link.endheaders(b"x")
    assert node.link.getresponse().status == 408
    assert asking.end() == [(1, b"")]


def test_a_node_has_a_few_connections_and_no_more(serving):
    nodes = [serving.node(1, session="one") for _ in range(9)]
    for node in nodes:
        assert node.send("GET", "/hello")[0] == 204
    open_ = 0
    for node in nodes:
        try:
            open_ += node.link.sock.send(b"") == 0 and node.send("GET", "/hello")[0] == 204
        except (OSError, http.client.HTTPException):
            continue
    assert 1 <= open_ <= 4


@pytest.mark.parametrize("n_idle", [10_000])
def test_ten_thousand_connections_that_say_nothing_are_outlived(serving, n_idle):
    """Half of what this process may open are theirs, so that fewer are tried where less is allowed."""
    resource = pytest.importorskip("resource")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    n_idle = min(n_idle, most - 500)
    idle, port = [], port_of(serving.files)
    (node,) = there(serving, 1)
    node.link.sock.settimeout(PATIENCE)

    def another_comes():
        try:
            return serving.node(2).send("GET", "/hello")[0] == 204
        except (OSError, http.client.HTTPException):  # it lost its place in the crowd
            return False

    try:
        for _ in range(n_idle):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
            idle.append(one)
        asking = serving.ask("plain", {1: b"question"}, timeout=PATIENCE)
        _, name, _ = node.next()
        node.reply_and_leave(b"reply", name)
        assert asking.end() == [(1, b"reply")]
        wait_until(another_comes, within=PATIENCE)
    finally:
        for one in idle:
            one.close()


def test_a_handshake_that_does_not_go_on_is_given_up(serving, quick):
    with socket.create_connection(("127.0.0.1", port_of(serving.files)), timeout=10.0) as idle:
        idle.sendall(b"\x16\x03\x01")
        assert idle.recv(10) == b""

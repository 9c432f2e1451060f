"""A node's side: behind a proxy, several in one process, and while its server is gone."""

import http.server
import select
import socket
import threading

import pytest

from https_servers import Serving, wait_until
from polyurn.errors import FederationError
from polyurn.federation.folder import read_node, set_up
from polyurn.federation.https import link
from polyurn.federation.https.link import Link, knock, serve
from polyurn.federation.one_machine import free_port


@pytest.fixture
def files(tmp_path):
    return set_up(
        tmp_path / "fed", address=f"localhost:{free_port()}", categories=3, max_size=9,
        clients_per_node=20, n_nodes=3,
    )  # fmt: skip


@pytest.fixture
def serving(files):
    made = Serving(files)
    yield made
    made.close()


class Answering(threading.Thread):
    """Nodes that answer in a thread, until they are asked to end."""

    def __init__(self, files, *numbers):
        super().__init__()
        self.asked, self.remarks, self.ended = [], [], None
        nodes = [read_node(files.node(f"node-{number}")) for number in numbers]
        self.links = [Link(node, self.answering(node), say=self.remarks.append) for node in nodes]
        self.start()

    def answering(self, node):
        def answer(stage, message):
            if stage == "end":
                raise FederationError("it was asked to end")
            self.asked.append((node.number, stage, message))
            return message[::-1]

        return answer

    def run(self):
        try:
            serve(self.links)
        except FederationError as error:
            self.ended = str(error)

    def end(self, exchange):
        list(exchange.ask("end", {self.links[0].folder.number: b""}, timeout=20.0))
        self.join()


def replies(serving, numbers, message=b"abc"):
    wait_until(lambda: set(numbers) <= set(serving.exchange.nodes()))
    asked = serving.exchange.ask("plain", dict.fromkeys(numbers, message), timeout=60.0)
    return dict(asked)


def test_several_nodes_of_one_process_answer_each_for_itself(files, serving):
    nodes = Answering(files, 1, 2, 3)
    assert replies(serving, (1, 2, 3)) == dict.fromkeys((1, 2, 3), b"cba")
    assert sorted(nodes.asked) == [(n, "plain", b"abc") for n in (1, 2, 3)]
    nodes.end(serving.exchange)
    assert nodes.ended == "it was asked to end"


def test_a_node_comes_back_by_itself_after_its_server_was_gone(files, monkeypatch):
    monkeypatch.setattr(link, "_LONGEST_PAUSE", 0.4)
    serving = Serving(files)
    nodes = Answering(files, 1)
    assert replies(serving, (1,)) == {1: b"cba"}
    serving.close()
    wait_until(lambda: nodes.remarks)
    (lost,) = nodes.remarks
    assert lost.startswith("no server at localhost:")
    assert lost.endswith("trying again")
    serving = Serving(files)
    try:
        assert replies(serving, (1,), b"again") == {1: b"niaga"}
        assert nodes.remarks == [lost, "the server is back"]
    finally:
        nodes.end(serving.exchange)
        serving.close()


# ------------------------------------------------------------------------------------------- proxies


class Proxy(http.server.BaseHTTPRequestHandler):
    """Takes CONNECT and passes bytes on."""

    places = None

    def do_CONNECT(self):
        self.places.append(self.path)
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port))) as there:
            self.send_response(200)
            self.end_headers()
            pair = {self.connection: there, there: self.connection}
            while True:
                for one in select.select(list(pair), [], [], 60.0)[0]:
                    data = one.recv(2**16)
                    if not data:
                        return
                    pair[one].sendall(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def proxy(monkeypatch):
    """A proxy in HTTPS_PROXY, and where it was asked to connect to."""
    Proxy.places = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{server.server_address[1]}")
        yield Proxy.places
        server.shutdown()
        thread.join()


def test_a_node_joins_and_answers_through_a_proxy(files, serving, proxy):
    nodes = Answering(files, 1)
    assert replies(serving, (1,)) == {1: b"cba"}
    assert set(proxy) == {files.read().address}
    nodes.end(serving.exchange)


def test_a_proxy_that_is_not_there_is_one_line(files, monkeypatch):
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{free_port()}")
    with pytest.raises(FederationError, match="no server at localhost"):
        knock([Link(read_node(files.node("node-1")), lambda *_: b"")])


def test_a_certificate_that_is_not_of_the_key_is_one_line(files):
    folder = files.node("node-1")
    (folder / "node.crt").write_bytes((files.node("node-2") / "node.crt").read_bytes())
    with pytest.raises(FederationError, match=r"node\.crt is not the certificate of .*transport"):
        knock([Link(read_node(folder), lambda *_: b"")])

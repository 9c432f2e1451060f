"""Downloads, from a server in this process that cuts, refuses and lies."""

import hashlib
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from polyurn.datasets.download import Progress, RemoteFile, fetch
from polyurn.datasets.local import Layout, Source, locate
from polyurn.errors import FileError, InputError

CONTENT = bytes(range(256)) * 20_000  # five pieces


@dataclass
class Server:
    """What it serves, how it behaves, and which ranges it was asked for."""

    url: str = ""
    content: bytes = CONTENT
    with_ranges: bool = True
    with_length: bool = True
    cut_after: int | None = None
    status: int = 200
    asked: list = field(default_factory=list)

    def remote(self, checksum=None):
        return RemoteFile(self.url, checksum or f"sha256:{hashlib.sha256(CONTENT).hexdigest()}")


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked = self.headers.get("Range")
            state.asked.append(asked)
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
            if state.status != 200:
                self.send_error(state.status)
                return
            if state.with_ranges and asked and start >= len(state.content):
                self.send_error(416)
                return
            start = start if state.with_ranges else 0
            body = state.content[start:]
            self.send_response(206 if start else 200)
            if start:
                end = len(state.content) - 1
                self.send_header("Content-Range", f"bytes {start}-{end}/{len(state.content)}")
            if state.with_length:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: state.cut_after])

        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = False
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    state.url = f"http://127.0.0.1:{http.server_port}/some/data.bin"
    yield state
    http.shutdown()
    http.server_close()
    thread.join()


def test_a_file_arrives_whole_and_its_progress_is_told(server, tmp_path):
    told = []
    path = fetch(server.remote(), tmp_path / "new", on_progress=told.append)
    assert path == tmp_path / "new" / "data.bin"
    assert path.read_bytes() == CONTENT
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["data.bin"]
    assert told[-1] == Progress("data.bin", len(CONTENT), len(CONTENT))
    assert [p.n_bytes for p in told] == sorted({p.n_bytes for p in told})


def test_what_is_there_is_not_fetched_again(server, tmp_path):
    (tmp_path / "data.bin").write_bytes(b"mine")
    assert fetch(server.remote(), tmp_path).read_bytes() == b"mine"
    assert server.asked == []


def test_a_cut_connection_is_resumed_where_it_ended(server, tmp_path):
    server.cut_after = 3_000_000
    with pytest.raises(FileError, match=r"cut after 3000000 of 5120000 bytes; call again"):
        fetch(server.remote(), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["data.bin.part"]
    server.cut_after = None
    told = []
    assert fetch(server.remote(), tmp_path, on_progress=told.append).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=3000000-"]
    assert told[0].n_bytes > 3_000_000
    assert told[0].total == len(CONTENT)
    assert [p.name for p in tmp_path.iterdir()] == ["data.bin"]


def test_a_server_without_ranges_starts_again(server, tmp_path):
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:1000])
    server.with_ranges = False
    assert fetch(server.remote(), tmp_path).read_bytes() == CONTENT


def test_a_part_that_was_whole_is_only_checked(server, tmp_path):
    (tmp_path / "data.bin.part").write_bytes(CONTENT)
    assert fetch(server.remote(), tmp_path).read_bytes() == CONTENT


def test_a_part_of_something_else_is_deleted_and_fetched_anew(server, tmp_path):
    (tmp_path / "data.bin.part").write_bytes(b"something else")
    with pytest.raises(FileError, match="not the expected file"):
        fetch(server.remote(), tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert fetch(server.remote(), tmp_path).read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing_behind(server, tmp_path):
    with pytest.raises(FileError, match=r"expected sha256:0000, got sha256:[0-9a-f]{64}"):
        fetch(server.remote("sha256:0000"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_cut_that_no_length_betrays_is_found_by_the_checksum(server, tmp_path):
    server.with_length, server.cut_after = False, 1000
    with pytest.raises(FileError, match="not the expected file"):
        fetch(server.remote(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_md5_is_checked_where_there_is_nothing_better(server, tmp_path):
    right = f"md5:{hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()}"
    assert fetch(server.remote(right), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("status", [403, 404, 500])
def test_what_the_server_refuses_is_said_with_the_place_for_the_file(server, tmp_path, status):
    server.status = status
    with pytest.raises(FileError, match=rf"{status}.*put the file at .*data\.bin yourself"):
        fetch(server.remote(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_not_there_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    closed = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    port = closed.server_port
    closed.server_close()
    with pytest.raises(FileError, match="cannot download"):
        fetch(RemoteFile(f"http://127.0.0.1:{port}/data.bin", "sha256:00"), tmp_path)


# -------------------------------------------------------------------------------- locate


LAYOUT = Layout("only", ("data.bin",), "data.bin")


def find(source, root, *, download=False):
    return locate(source, root=root, download=download, on_progress=None)


def test_missing_files_are_downloaded_when_asked_for(server, tmp_path):
    source = Source("mine", (LAYOUT,), remote=(server.remote(),))
    with pytest.raises(FileError, match=r"put data\.bin into .*mine, or pass download=True"):
        find(source, tmp_path)
    assert server.asked == []
    found = find(source, tmp_path, download=True)
    assert found.one_each() == (tmp_path / "mine" / "data.bin",)
    assert find(source, tmp_path).one_each() == found.one_each()


def test_what_has_no_address_says_what_to_put_where(tmp_path):
    with pytest.raises(InputError, match=r"mine cannot be downloaded; put data\.bin into"):
        find(Source("mine", (LAYOUT,)), tmp_path, download=True)


def test_files_are_found_in_the_folder_below_it_and_by_the_variable(tmp_path, monkeypatch):
    source = Source("mine", (LAYOUT,), also_in=("ours",))
    for folder in ("ours", "mine", "."):  # each goes before the one that was made earlier
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "data.bin").touch()
        assert find(source, tmp_path).one_each() == (tmp_path / folder / "data.bin",)
    monkeypatch.setenv("POLYURN_DATA", str(tmp_path))
    assert find(source, None).one_each() == (tmp_path / "data.bin",)
    assert find(source, tmp_path / "data.bin").one_each() == (tmp_path / "data.bin",)


def test_neither_root_nor_variable_is_said(monkeypatch):
    monkeypatch.delenv("POLYURN_DATA", raising=False)
    with pytest.raises(InputError, match=r"root= or the environment variable POLYURN_DATA"):
        find(Source("mine", (LAYOUT,)), None)


def test_a_layout_counts_only_when_it_is_whole(tmp_path):
    layouts = (Layout("two", ("a", "b"), "a and b"), Layout("one", ("c*",), "c"))
    (tmp_path / "a").touch()
    (tmp_path / "c1").touch()
    (tmp_path / "c2").touch()
    found = find(Source("mine", layouts), tmp_path)
    assert found.layout == "one"
    assert found.paths == ((tmp_path / "c1", tmp_path / "c2"),)
    (tmp_path / "b").touch()
    assert find(Source("mine", layouts), tmp_path).layout == "two"

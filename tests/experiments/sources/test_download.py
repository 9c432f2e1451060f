"""Downloads, from a server in this process that cuts, refuses and lies."""

import hashlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from sources.download import Progress, RemoteFile, fetch

from dataset_files import CONTENT
from polyurn.errors import FileError


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
    with pytest.raises(FileError, match=r"cut after 3000000 of 5120000 bytes"):
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

"""`polyurn datasets`: what is there, and downloads from a server in this process."""

import dataclasses
import hashlib
import io
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from rich.console import Console
from sources.download import RemoteFile

from cli_walk import assert_refused
from polyurn.commands import datasets as command
from polyurn.datasets import cifar
from sources import Progress


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def served(monkeypatch, tmp_path):
    """CIFAR-10 as a small file of pictures, with its address at a server in this process."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    folder = tmp_path / "served"
    folder.mkdir()
    pictures = np.zeros((7, 32, 32, 3), np.uint8)
    labels = np.arange(7)
    np.savez(
        folder / "images.npz", train_x=pictures, train_y=labels, test_x=pictures, test_y=labels
    )
    checksum = hashlib.sha256((folder / "images.npz").read_bytes()).hexdigest()
    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    remote = RemoteFile(f"http://127.0.0.1:{http.server_port}/images.npz", f"sha256:{checksum}")
    monkeypatch.setattr(cifar, "_SOURCE", dataclasses.replace(cifar._SOURCE, remote=(remote,)))
    yield len((folder / "images.npz").read_bytes())
    http.shutdown()
    http.server_close()
    thread.join()


def test_a_dataset_is_downloaded_with_its_progress_and_told(run, served, tmp_path):
    ran = run("datasets", "cifar10", "--root", "data", "--download", "--json")
    assert f"downloading images.npz, {served:,} bytes" in ran.err
    assert ran.json()["train"] == {"n_records": 7, "n_clients": 0, "features": [32, 32, 3]}
    assert (tmp_path / "data" / "cifar10" / "images.npz").stat().st_size == served
    again = run("datasets", "cifar10", "--root", "data")
    assert "downloading" not in again.err
    assert "cifar10: 10 categories" in again.out
    assert "32 x 32 x 3" in again.out


def test_what_is_not_there_is_said_in_one_line(run, served):
    assert_refused(run("datasets", "cifar10", "--root", "data"), "found no cifar10", "put the")
    assert run("datasets", "nothing").code == 2


def test_an_embedded_dataset_needs_no_folder(run):
    told = run("datasets", "digits", "--json").json()
    assert told["train"]["n_records"] == 1797
    assert told["test"] is None
    assert len(told["categories"]) == 10


def test_a_terminal_has_a_bar_for_each_file():
    screen = io.StringIO()
    with command.download_progress(Console(file=screen, force_terminal=True, width=120)) as tell:
        tell(Progress("a.bin", 1_000_000, 2_000_000))
        tell(Progress("b.bin", 10, None))
        tell(Progress("a.bin", 2_000_000, 2_000_000))
    assert "a.bin" in screen.getvalue()
    assert "2.0/2.0 MB" in screen.getvalue()
    assert "b.bin" in screen.getvalue()


@pytest.mark.parametrize(
    ("name", "option"),
    [("digits", "--root=x"), ("digits", "--download"), ("flights", "--download")],
)
def test_an_option_that_a_source_does_not_need_is_refused(run, name, option):
    assert_refused(run("datasets", name, option), f"{option[:6]}", f"has no effect on {name}")

"""What may be read: files, and nothing that never ends."""

import os
import socket

import pytest

from cli_walk import EXAMPLE, assert_refused
from polyurn.errors import FileError
from polyurn.storage.files import check_regular, read_regular
from polyurn.storage.models import load, save
from polyurn.storage.partitions import load_partition
from polyurn.storage.run_log import read_runs
from polyurn.sweeps.config import read_config


def test_an_endless_device_as_input_is_refused(tmp_path):
    for device in ("/dev/zero", "/dev/urandom"):
        for read in (
            check_regular,
            read_regular,
            load,
            load_link(tmp_path),
            read_config_at(device),
        ):
            with pytest.raises(FileError, match="expected a file, got a device"):
                read(device)


def load_link(folder):
    """A reader of a partition, through a link, which has the suffix that is asked for."""

    def read(device):
        link = folder / "p.json"
        link.unlink(missing_ok=True)
        link.symlink_to(device)
        return load_partition(link)

    return read


def read_config_at(device):
    from pathlib import Path

    return lambda _: read_config(Path(device))


def test_a_pipe_that_nobody_writes_to_is_refused_and_not_waited_for(run, tmp_path):
    os.mkfifo("pipe")
    os.mkfifo("runs.jsonl")
    assert_refused(run("show", "pipe"), "expected a file, got a pipe; write it to a file first")
    assert_refused(run("report", "pipe"), "expected a file, got a pipe")
    with pytest.raises(FileError, match="expected a file, got a pipe"):
        read_runs(tmp_path)


def test_a_socket_a_folder_and_nothing_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as here:
        here.bind("socket")
        with pytest.raises(FileError, match="expected a file, got a socket"):
            check_regular("socket")
    with pytest.raises(FileError, match="Is a directory"):
        check_regular(tmp_path)
    with pytest.raises(FileError, match="No such file"):
        check_regular("nothing")
    with pytest.raises(FileError, match="a name that a file can have"):
        check_regular("a\0b")


def test_a_link_to_a_file_is_a_file(tmp_path):
    save(EXAMPLE, tmp_path / "mdm.json")
    (tmp_path / "link.json").symlink_to("mdm.json")
    assert load(tmp_path / "link.json") == EXAMPLE

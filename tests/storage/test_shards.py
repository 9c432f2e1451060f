import json
import os
import shutil

import numpy as np
import pytest

from polyurn.errors import FileError
from polyurn.storage.shards import draw_clients, is_packed, is_shard_folder, open_shards
from shard_cases import COUNTS, packed, unpacked


@pytest.fixture
def folder(tmp_path):
    packed(tmp_path)
    return tmp_path / "packed"


def test_what_was_packed_is_read_back(folder):
    np.testing.assert_array_equal(unpacked(open_shards(folder)), COUNTS)


def test_a_folder_may_be_copied(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy", copy_function=shutil.copy)  # with other times
    assert open_shards(tmp_path / "copy").digest == open_shards(folder).digest


def change(folder, number, **values):
    """Write other values into a line of the log, counted from 0."""
    lines = (folder / "shards.jsonl").read_text().splitlines()
    lines[number] = json.dumps({**json.loads(lines[number]), **values})
    (folder / "shards.jsonl").write_text("\n".join(lines) + "\n")


def without_last_line(folder):
    log = folder / "shards.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))


def cut_off(folder):
    os.truncate(folder / "shard-000001.rows", 5_000)


def alter(folder):
    shard = folder / "shard-000001.rows"
    data = bytearray(shard.read_bytes())
    data[-100] ^= 1
    shard.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (cut_off, "shard-000001.rows is cut off or damaged: expected .* bytes, got 5,000; pack"),
        (alter, "shard-000001.rows is not the file that was packed: its checksum"),
        (lambda folder: os.unlink(folder / "shard-000002.rows"), "cannot read .*No such file"),
        (
            lambda folder: change(folder, 0, version=4),
            "version 4, newer than 3: upgrade polyurn",
        ),
        (
            lambda folder: change(folder, 3, step=None),
            r"shards.jsonl, line 4, is damaged: .*repeat",
        ),
        (lambda folder: change(folder, -1, whole=None), r"shards.jsonl, line 25, is damaged"),
        (without_last_line, "was not packed to its end; repeat"),
        (lambda folder: os.truncate(folder / "shards.jsonl", 0), "was not packed to its end"),
        (
            lambda folder: os.unlink(folder / "shards.jsonl"),
            "holds no packed clients; make it with",
        ),
    ],
    ids=[
        "cut off",
        "altered",
        "missing",
        "of another version",
        "damaged",
        "last line damaged",
        "without its last line",
        "log is empty",
        "not packed",
    ],
)
def test_a_folder_that_is_not_whole_is_one_clear_line(folder, damage, words):
    damage(folder)
    with pytest.raises(FileError, match=words) as caught:
        open_shards(folder)
    assert "\n" not in str(caught.value)


def test_clients_are_drawn_from_all_shards_without_replacement(folder):
    counts, positions = draw_clients(open_shards(folder), 1_500, rng=0)
    assert len(set(positions.tolist())) == 1_500
    np.testing.assert_array_equal(counts.toarray(), COUNTS[positions])


def test_a_folder_of_something_else_is_none_of_shards(tmp_path):
    assert not is_shard_folder(tmp_path)
    assert not is_shard_folder(tmp_path / "nowhere")


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_whoever_may_read_the_shards_may_read_their_log(folder):
    log, shard = (os.stat(folder / name) for name in ("shards.jsonl", "shard-000000.rows"))
    assert log.st_mode == shard.st_mode


def test_a_whole_folder_is_read_and_not_written_to(folder):
    before = (folder / "shards.jsonl").read_bytes()
    open_shards(folder)
    assert is_packed(folder)
    assert (folder / "shards.jsonl").read_bytes() == before
    without_last_line(folder)
    assert not is_packed(folder)


def test_the_log_does_not_name_the_tables(folder, tmp_path):
    assert str(tmp_path) not in (folder / "shards.jsonl").read_text()

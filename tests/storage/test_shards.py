import json
import os
import shutil

import numpy as np
import pytest

from polyurn.errors import FileError
from polyurn.storage.shards import draw_clients, is_shard_folder, open_shards
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


def change(folder, **values):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, **values}))


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
            lambda folder: change(folder, version=4),
            "version 4, newer than 3: upgrade polyurn",
        ),
        (lambda folder: change(folder, shards=3), r"manifest.json.*shards: expected"),
        (
            lambda folder: os.unlink(folder / "manifest.json"),
            "holds no packed clients; make it with",
        ),
    ],
    ids=["cut off", "altered", "missing", "of another version", "damaged", "not packed"],
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

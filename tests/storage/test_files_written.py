"""Whatever is written is there whole, or not at all."""

import os

import numpy as np
import pytest

from full_disk import full_disk
from polyurn import MDM, SizeBins, Sizes
from polyurn.errors import FileError
from polyurn.storage.files import check_writable
from polyurn.storage.models import load, save
from polyurn.storage.table_files import check_table_writable, read_table, write_histograms

BINNED = MDM([0.6, 0.4], [[1.0, 2.0], [3.0, 0.1]], Sizes(SizeBins([1, 3, 9]), [[0.5, 0.5]] * 2))
TABLE = np.array([[3, 0, 1], [0, 2, 0]])
not_for_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write anything")


@pytest.mark.parametrize("reader", [load, read_table])
@pytest.mark.parametrize("place", ["missing.csv", "folder.csv", "file.csv/below.csv"])
def test_a_path_that_cannot_be_read_is_refused_by_its_name(tmp_path, reader, place):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file.csv").write_text("a\n1\n")
    with pytest.raises(FileError, match=place):
        reader(tmp_path / place)


WRITERS = {
    "mdm.json": lambda path: save(BINNED, path),
    "clients.parquet": lambda path: write_histograms(TABLE, path),
    "clients.csv": lambda path: write_histograms(TABLE, path),
}
each_writer = pytest.mark.parametrize(("name", "write"), WRITERS.items(), ids=WRITERS)


@each_writer
def test_a_full_disk_leaves_nothing_behind_and_loses_no_earlier_file(tmp_path, name, write):
    for earlier in (None, b"what was there"):
        if earlier is not None:
            (tmp_path / name).write_bytes(earlier)
        before = os.listdir(tmp_path)
        with full_disk(10), pytest.raises(FileError, match=f"cannot write .*{name}"):
            write(tmp_path / name)
        assert os.listdir(tmp_path) == before
    assert (tmp_path / name).read_bytes() == earlier


@each_writer
def test_a_place_that_cannot_be_written_is_refused_and_left_alone(tmp_path, name, write):
    (tmp_path / name).mkdir()
    for place in (tmp_path / name, tmp_path / "nowhere" / name, tmp_path / name / "no" / name):
        with pytest.raises(FileError, match=f"cannot write {place}"):
            write(place)
    assert os.listdir(tmp_path) == [name]
    assert os.listdir(tmp_path / name) == []


@not_for_root
@each_writer
def test_a_folder_without_permission_loses_no_earlier_file(tmp_path, name, write):
    (tmp_path / name).write_bytes(b"what was there")
    tmp_path.chmod(0o500)
    with pytest.raises(FileError, match="cannot write"):
        write(tmp_path / name)
    tmp_path.chmod(0o700)
    assert os.listdir(tmp_path) == [name]
    assert (tmp_path / name).read_bytes() == b"what was there"


@each_writer
def test_a_pipe_is_written_to_and_not_replaced_by_a_file(tmp_path, name, write):
    write(tmp_path / f"whole.{name}")
    os.mkfifo(tmp_path / name)
    reader = os.open(tmp_path / name, os.O_RDONLY | os.O_NONBLOCK)  # a writer need not wait
    try:
        write(tmp_path / name)
        assert os.read(reader, 100_000) == (tmp_path / f"whole.{name}").read_bytes()
        assert (tmp_path / name).is_fifo()
    finally:
        os.close(reader)


@each_writer
def test_a_link_stays_a_link_and_its_file_keeps_its_permissions(tmp_path, name, write):
    (tmp_path / "folder").mkdir()
    (tmp_path / name).symlink_to(tmp_path / "folder" / "file")
    for mode in (0o600, 0o640):
        write(tmp_path / name)  # the first time there is no file yet
        (tmp_path / "folder" / "file").chmod(mode)
        written = (tmp_path / "folder" / "file").read_bytes()
    write(tmp_path / name)
    assert (tmp_path / name).is_symlink()
    assert (tmp_path / "folder" / "file").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "folder" / "file").read_bytes() == written
    assert os.listdir(tmp_path / "folder") == ["file"]


@pytest.mark.parametrize("place", ["", "nowhere/clients.csv", "file/clients.csv"])
def test_a_place_can_be_checked_before_there_is_anything_to_write(tmp_path, place):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot write"):
        check_writable(tmp_path / place)
    check_writable(tmp_path / "file")
    check_table_writable(tmp_path / "clients.csv")
    with pytest.raises(FileError, match=r"expected a \.parquet, \.csv or \.tsv file"):
        check_table_writable(tmp_path / "clients.txt")
    assert os.listdir(tmp_path) == ["file"]

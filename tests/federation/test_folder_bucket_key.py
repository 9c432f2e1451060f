"""The key of a node's buckets: made once, kept, and nobody else's to read."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from polyurn.errors import FileError
from polyurn.federation.folder import bucket_key

posix = pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")


def test_a_key_is_made_once_and_is_the_same_afterwards(tmp_path):
    key = bucket_key(tmp_path / "bucket.key")
    assert len(key) == 32
    assert bucket_key(tmp_path / "bucket.key") == key
    assert bucket_key(tmp_path / "other.key") != key
    assert sorted(os.listdir(tmp_path)) == ["bucket.key", "other.key"]


@posix
def test_only_its_owner_can_read_it_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        bucket_key(tmp_path / "bucket.key")
    finally:
        os.umask(before)
    assert (tmp_path / "bucket.key").stat().st_mode & 0o777 == 0o600


@posix
def test_a_key_that_others_may_read_is_refused(tmp_path):
    bucket_key(tmp_path / "bucket.key")
    (tmp_path / "bucket.key").chmod(0o644)
    with pytest.raises(FileError, match="run chmod 600"):
        bucket_key(tmp_path / "bucket.key")


def test_processes_that_begin_at_once_have_one_key(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(lambda _: bucket_key(tmp_path / "bucket.key"), range(32)))
    assert len(set(keys)) == 1


def test_a_damaged_key_is_refused_and_not_overwritten(tmp_path):
    place = tmp_path / "bucket.key"
    place.write_bytes(b"short")
    place.chmod(0o600)
    with pytest.raises(FileError, match="is not a bucket key"):
        bucket_key(place)
    assert place.read_bytes() == b"short"


def test_a_link_to_nowhere_is_not_replaced(tmp_path):
    (tmp_path / "bucket.key").symlink_to(tmp_path / "gone")
    with pytest.raises(FileError, match="cannot read"):
        bucket_key(tmp_path / "bucket.key")
    assert not (tmp_path / "gone").exists()


def test_a_folder_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(FileError, match="cannot write") as error:
        bucket_key(tmp_path / "none" / "bucket.key")
    assert "\n" not in str(error.value)


def test_a_key_of_another_kind_is_refused(tmp_path):
    from polyurn.federation.keys import make_node_keys

    (tmp_path / "bucket.key").write_bytes(make_node_keys().transport)
    (tmp_path / "bucket.key").chmod(0o600)
    with pytest.raises(FileError, match="is not a bucket key"):
        bucket_key(tmp_path / "bucket.key")

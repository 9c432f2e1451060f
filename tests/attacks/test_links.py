"""Symbolic links where a file or folder is expected: nothing is made, changed or removed elsewhere.

What is written to a link goes to its file, which keeps its permissions: tests/storage/
test_files_written.py. Links to devices and a bucket key that leads nowhere: tests/storage/
test_files_read.py and tests/federation/test_folder_bucket_key.py.
"""

import hashlib
import json
import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from federation_jobs import job_of
from federations import OPEN, Federation, opened
from played_federations import histograms_of
from polyurn import SizeBins
from polyurn.errors import BudgetError, FileError
from polyurn.federation.folder import make_keys, read_node, set_up
from polyurn.federation.jobs import JobFolder
from polyurn.federation.messages import Ask, Refusal
from polyurn.federation.node_log import NodeLogFile
from polyurn.federation.owned_node import open_node
from polyurn.federation.policy import read_policy
from polyurn.storage.files import read_secret, write_secret
from polyurn.storage.journal import Journal
from polyurn.storage.ledger_file import open_ledger
from polyurn.storage.packing import pack_shards
from polyurn.storage.shards import open_shards
from polyurn.storage.table_files import write_histograms
from polyurn.wire import Survey, encode_query

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and modes are POSIX")

NOWHERE = {
    "ledger": lambda place: open_ledger(place, epsilon=1.0, delta=1e-6),
    "log": NodeLogFile,
    "policy": read_policy,
    "secret": read_secret,
    "checkpoint": lambda place: Journal(place, {}),
    "runs": lambda place: JobFolder.make(place, job_of(place)),
    "keys": lambda place: make_keys(place, "ward"),
    "federation": lambda place: set_up(
        place, address="localhost:8000", categories=3, max_size=9, clients_per_node=9, n_nodes=2
    ),
}


@pytest.fixture
def outside(tmp_path):
    """A folder that nobody named."""
    (tmp_path / "outside").mkdir()
    return tmp_path / "outside"


@pytest.mark.parametrize("what", NOWHERE)
def test_nothing_is_made_where_a_link_leads_that_leads_nowhere(tmp_path, outside, what):
    place = tmp_path / what
    place.symlink_to(outside / "nothing")
    with pytest.raises(FileError, match=str(place)) as error:
        NOWHERE[what](place)
    assert "\n" not in str(error.value)
    assert os.listdir(outside) == []
    assert place.is_symlink()


def test_a_secret_behind_a_link_is_not_used_if_others_may_read_it(tmp_path, outside):
    (outside / "key").write_bytes(b"secret")
    (tmp_path / "key").symlink_to(outside / "key")
    for mode, is_private in ((0o644, False), (0o640, False), (0o600, True)):
        (outside / "key").chmod(mode)
        if is_private:
            assert read_secret(tmp_path / "key") == b"secret"
        else:
            with pytest.raises(FileError, match=r"other than its owner may read .*chmod 600"):
                read_secret(tmp_path / "key")


@pytest.mark.parametrize("there", [True, False], ids=["a file", "nothing"])
def test_a_secret_is_not_written_to_where_a_link_leads(tmp_path, outside, there):
    if there:
        (outside / "file").write_bytes(b"theirs")
    (tmp_path / "key").symlink_to(outside / "file")
    write_secret(tmp_path / "key", b"secret")
    assert not (tmp_path / "key").is_symlink()
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert [path.read_bytes() for path in outside.iterdir()] == [b"theirs"] * there


def test_a_budget_is_not_spent_twice_under_two_names_of_its_ledger(tmp_path, outside):
    (tmp_path / "link").symlink_to(outside / "ledger")
    ledgers = [
        open_ledger(place, epsilon=1.0, delta=1e-6)
        for place in (outside / "ledger", tmp_path / "link")
    ]

    def spend(ledger):
        n_charged = 0
        for _ in range(20):
            try:
                ledger.charge("score", 13.4, 32)
            except BudgetError:
                continue
            n_charged += 1
        return n_charged

    with ThreadPoolExecutor(2) as threads:
        counts = list(threads.map(spend, ledgers))
    assert sum(counts) == 10  # 13.4 / sigma_for(1, 1e-6) squared is 10.06
    assert len(ledgers[0].charges) == len(ledgers[1].charges) == 10
    assert os.listdir(outside) == ["ledger"]


def test_rounds_of_a_day_do_not_begin_anew_under_another_name_of_the_log(tmp_path, outside):
    federation = Federation(outside, 1, policy=replace(OPEN, rounds_per_day=1))
    (tmp_path / "here").symlink_to(outside)
    refusals = []
    for federation.folder in (outside, tmp_path / "here"):
        ask = Ask(25, encode_query(Survey(10, SizeBins.exact(20), pairs=False)), b"")
        message = ask.encode(tag=bytes(16), node=federation.ids[0])
        refusals.append(opened(federation.node(0).answer("plain", message)).refusal)
    assert refusals == [None, Refusal.TOO_OFTEN]


def test_no_file_of_others_is_removed_that_a_link_of_our_own_name_leads_to(tmp_path, outside):
    """Half-written files of ours that are old are removed; a link of such a name is one."""
    (outside / "file").write_bytes(b"theirs")
    os.utime(outside / "file", (0, 0))
    (tmp_path / "rounds").mkdir()
    left = tmp_path / "rounds" / f".polyurn-{0:016x}"
    left.symlink_to(outside / "file")
    os.utime(left, (0, 0), follow_symlinks=False)
    Journal(tmp_path / "rounds", {})
    assert not left.is_symlink()
    assert (outside / "file").read_bytes() == b"theirs"


@pytest.mark.parametrize("name", ["policy.toml", "signing.key", "questions.log", "privacy.ledger"])
def test_a_node_does_not_begin_anew_what_a_link_of_its_folder_does_not_lead_to(
    tmp_path, outside, name
):
    """An unmounted disk is no fresh log, no fresh budget and no lenient policy."""
    made = set_up(
        tmp_path / "fed", address="localhost:8000", categories=10, max_size=20,
        clients_per_node=9, n_nodes=2,
    )  # fmt: skip
    home = made.node("node-1")
    (home / "policy.toml").write_text("most_epsilon = 4.0\n")
    clients = histograms_of(9, 1)
    open_node(read_node(home), clients)
    shutil.move(home / name, outside / name)
    (home / name).symlink_to(outside / name)
    open_node(read_node(home), clients)  # over the link
    (outside / name).rename(tmp_path / "unmounted")
    with pytest.raises(FileError, match=f"cannot read .*{name}: No such file"):
        open_node(read_node(home), clients)
    assert os.listdir(outside) == []


def chained(head, entries):
    """The lines of a log whose checksums are right: nothing secret is in them."""
    before = hashlib.blake2b(head.encode(), digest_size=16).hexdigest()
    for entry in entries:
        del entry["check"]
        body = before + json.dumps(entry, allow_nan=False)
        before = entry["check"] = hashlib.blake2b(body.encode(), digest_size=16).hexdigest()
        yield json.dumps(entry)


@pytest.mark.parametrize("name", ["../outside/0.rows", "/outside/0.rows", "..", "0.rows/../0.rows"])
def test_no_shard_is_read_from_outside_of_its_folder(tmp_path, outside, name):
    write_histograms(np.ones((4, 3), dtype=int), tmp_path / "clients.csv")
    folder = tmp_path / "packed"
    pack_shards([tmp_path / "clients.csv"], folder)
    log = folder / "shards.jsonl"
    head, *lines = log.read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    shutil.copy2(folder / entries[0]["step"]["shard"]["name"], outside / "0.rows")
    entries[0]["step"]["shard"]["name"] = (
        name.replace("/outside", str(outside)) if name[0] == "/" else name
    )
    log.write_text("\n".join([head, *chained(head, entries), ""]))
    with pytest.raises(FileError, match=r"is damaged: expected names of files|expected a file"):
        open_shards(folder)

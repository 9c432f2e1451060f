"""A full disk at each stage: no answer without its line, nothing charged twice, one clear line.

A disk is full for every file that would become larger than so many bytes (`full_disk`). Checkpoints
are in tests/storage/test_journal.py, models and tables in tests/storage/test_files_written.py, packed
folders in tests/storage/test_packing.py.
"""

import os
import re
from dataclasses import replace

import numpy as np
import pytest

from federation_jobs import job_of
from federations import OPEN, STAGES, Federation, Recording, at, opened
from full_disk import full_disk
from played_federations import histograms_of
from polyurn import SizeBins
from polyurn.errors import FileError
from polyurn.federation.folder import read_node, set_up
from polyurn.federation.jobs import JobFolder
from polyurn.federation.messages import Ask, Refusal
from polyurn.federation.owned_node import open_node
from polyurn.federation.processes import alive, keep_pid
from polyurn.federation.server_process import perform
from polyurn.privacy.ledger import Charge
from polyurn.privacy.private_aggregator import PrivateAggregator
from polyurn.storage.files import read_secret, write_secret
from polyurn.storage.ledger_file import LedgerFile, open_ledger
from polyurn.storage.models import load_saved
from polyurn.wire import BoundedSurvey, Noised, Survey, encode_query

QUERY = Survey(10, SizeBins.exact(20), pairs=False)
FULL = "(No space left on device|File too large)"
PRIVATE = BoundedSurvey(10, SizeBins.exact(20))


def question(federation, query=QUERY):
    return Ask(federation.n_clients, encode_query(query), b"").encode(
        tag=os.urandom(16), node=federation.ids[0]
    )


def charges(place):
    return [entry for entry in LedgerFile(place).read() if isinstance(entry, Charge)]


# ------------------------------------------------------------------------------------ at a node


def test_no_plain_answer_leaves_without_its_line(tmp_path):
    federation, told = Federation(tmp_path, 1), []
    node = federation.node(0, on_failure=told.append)
    assert opened(node.answer("plain", question(federation))).refusal is None
    before = federation.log(0).read_bytes()
    with full_disk(len(before)):
        reply = opened(node.answer("plain", question(federation)))
    assert (reply.refusal, reply.body) == (Refusal.FAILED, b"")
    assert federation.log(0).read_bytes() == before
    assert [str(error) for error in told] == [f"cannot write {federation.log(0)}: File too large"]
    assert opened(node.answer("plain", question(federation))).refusal is None
    assert federation.log(0).read_text().count("answered") == 2


@pytest.mark.parametrize("stage", STAGES)
def test_no_stage_of_a_secure_sum_is_answered_without_its_line(tmp_path, stage):
    replies = []

    def full(stage, message, honest):
        with full_disk(federation.log(2).stat().st_size):
            replies.append(honest(stage, message))
        return replies[-1]

    federation = Federation(tmp_path, 6, 2, faults={2: at(stage, full)})
    got = federation.aggregator(secure=True).aggregate(QUERY, None)
    (reply,) = replies
    assert (opened(reply).refusal, opened(reply).body) == (Refusal.FAILED, b"")
    stages = [
        line.split(" | ")[1].split()[0] for line in federation.log(2).read_text().splitlines()
    ]
    assert stages == list(STAGES[: STAGES.index(stage)])
    # The numbers of a node that had sent them are in the sum: the others can take its mask away.
    n_summed = 12 if STAGES.index(stage) > STAGES.index("mask") else 10
    assert got.n_clients == pytest.approx(n_summed, abs=1e-9)


def test_no_question_is_charged_whose_answer_could_not_be_written_down(tmp_path):
    """Else a server that asks again and again uses the owner's budget up, and gets nothing for it."""
    federation, told = Federation(tmp_path, 1), []
    ledger = open_ledger(tmp_path / "ledger", epsilon=4.0, delta=1e-6)
    node = federation.node(0, ledger=ledger, on_failure=told.append)
    for _ in range(20):  # the log is longer than the ledger
        node.answer("plain", question(federation))
    asked = question(federation, Noised(PRIVATE, 9.0))
    with full_disk(federation.log(0).stat().st_size):
        for _ in range(3):
            assert opened(node.answer("plain", asked)).refusal is Refusal.FAILED
    assert charges(tmp_path / "ledger") == []
    assert {str(error) for error in told} == {f"cannot write {federation.log(0)}: File too large"}
    assert opened(node.answer("plain", asked)).refusal is None
    assert len(charges(tmp_path / "ledger")) == 1


def test_no_answer_leaves_that_could_not_be_charged_and_none_is_charged_twice(tmp_path):
    federation, told = Federation(tmp_path, 1), []
    policy = replace(OPEN, least_noise=0.5)
    path = tmp_path / "ledger"
    ledger = open_ledger(path, epsilon=4.0, delta=1e-6)
    for _ in range(6):  # the ledger is longer than the log, and has room for no line more
        ledger.charge("survey", 50.0, 31)
    before = path.read_bytes()
    node = federation.node(0, ledger=ledger, policy=policy, on_failure=told.append)
    asked = question(federation, Noised(PRIVATE, 9.0))
    with full_disk(len(before) + 20):
        reply = opened(node.answer("plain", asked))
    assert (reply.refusal, reply.body) == (Refusal.FAILED, b"")
    assert path.read_bytes() == before.removesuffix(b"\n")
    (error,) = told
    assert re.fullmatch(f"cannot write {path}: {FULL}; nothing was asked", str(error))
    assert "refused: it failed" in federation.log(0).read_text()
    assert opened(node.answer("plain", asked)).refusal is None
    assert len(charges(path)) == 7


def test_no_key_is_lost_to_a_disk_that_is_too_full_for_another_one(tmp_path):
    write_secret(tmp_path / "server.key", b"the key that there is")
    with full_disk(5), pytest.raises(FileError, match=r"cannot write .*key: File too large"):
        write_secret(tmp_path / "server.key", b"another one")
    assert read_secret(tmp_path / "server.key") == b"the key that there is"
    assert os.listdir(tmp_path) == ["server.key"]


# -------------------------------------------------------------------------------- at the server


def test_no_node_is_asked_for_what_could_not_be_charged(tmp_path):
    federation = Federation(tmp_path, 3, 5)
    path = tmp_path / "ledger"
    asked = PrivateAggregator(
        federation.aggregator(), ledger=open_ledger(path, epsilon=4.0, delta=1e-6), trust="local"
    )
    with (
        full_disk(path.stat().st_size),
        pytest.raises(FileError, match=f"cannot write .*ledger: {FULL}; nothing was asked"),
    ):
        asked.aggregate(Noised(PRIVATE, 9.0), None)
    assert federation.exchange.asked == []
    assert charges(path) == []


def test_no_half_event_of_a_job_is_ever_read(tmp_path):
    folder = JobFolder.make(tmp_path / "runs", job_of(tmp_path))
    log = folder.path / "job.jsonl"
    folder.tell({"number": 1})
    assert folder.events() == [{"number": 1}]
    before = log.read_bytes()
    with (
        full_disk(len(before) + 10),
        pytest.raises(FileError, match=rf"cannot write .*job\.jsonl: {FULL}"),
    ):
        folder.tell({"number": 2, "n_clients": 100})
    assert log.read_bytes() == before
    with log.open("ab") as file:  # a process that was killed in the middle of a line
        file.write(b'{"number": 2, "n_cl')
    assert folder.events() == [{"number": 1}]
    folder.tell({"failed": "there is no room"})
    assert folder.events() == [{"number": 1}, {"failed": "there is no room"}]
    assert folder.state == "failed: there is no room"


def test_no_process_is_waited_for_that_could_not_write_down_which_it_is(tmp_path):
    """An empty file would be that of a process that has just begun."""
    with full_disk(3), pytest.raises(FileError, match=r"cannot write .*node\.pid: File too large"):
        keep_pid(tmp_path / "node.pid", os.getpid())
    assert os.listdir(tmp_path) == []
    keep_pid(tmp_path / "node.pid", os.getpid())
    assert alive(tmp_path / "node.pid") == os.getpid()


class OnDisk:
    """A federation with folders, whose nodes are played in this process."""

    def __init__(self, folder, n_nodes=3, n_clients=20):
        self.made = set_up(
            folder / "fed", address="localhost:8000", categories=10, max_size=20,
            clients_per_node=n_clients, n_nodes=n_nodes,
        )  # fmt: skip
        nodes = {}
        for i in range(1, n_nodes + 1):
            node = read_node(self.made.node(f"node-{i}"))
            nodes[i] = open_node(node, histograms_of(n_clients, i)).answer
        self.exchange = Recording(nodes)

    def job(self, checkpoint):
        job = job_of(
            self.made.path, components=(1,), epsilon=3.0, delta=1e-6, trust="distributed",
            checkpoint=str(checkpoint),
        )  # fmt: skip
        return JobFolder.make(self.made.runs, job)


def test_no_round_is_asked_or_charged_twice_because_its_model_could_not_be_written(tmp_path):
    here = OnDisk(tmp_path)
    first = here.job(tmp_path / "rounds")
    perform(here.exchange, first)
    n_asked, spent = len(here.exchange.asked), charges(here.made.ledger)
    assert len(spent) == load_saved(first.result).provenance.privacy.guarantee.n_rounds
    second = here.job(tmp_path / "rounds")
    with (
        full_disk(first.result.stat().st_size // 2),
        pytest.raises(FileError, match=r"cannot write .*result\.json: File too large"),
    ):
        perform(here.exchange, second)
    assert not second.result.exists()
    third = here.job(tmp_path / "rounds")
    perform(here.exchange, third)
    assert len(here.exchange.asked) == n_asked
    assert charges(here.made.ledger) == spent
    alphas = [load_saved(folder.result).model.alphas for folder in (first, third)]
    np.testing.assert_array_equal(*alphas)

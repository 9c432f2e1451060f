"""What does not fit into memory is refused before it is made. Nothing large is made here."""

import os

import numpy as np
import pytest

from polyurn import IID, MDM, Dirichlet, Oracle, Sizes, memory, partition
from polyurn.errors import MemoryLimitError

MIB = 2**20


@pytest.fixture
def little(monkeypatch):
    """100 MiB of memory."""
    monkeypatch.setattr(memory, "available_memory", lambda: 100 * MIB)


@pytest.mark.parametrize(
    "call",
    [
        lambda n: MDM([1.0], [[1.0] * 8], Sizes.constant(3)).sample(n, rng=0),
        lambda n: IID([1] * 8, sizes=[3]).sample(n, rng=0),
        lambda n: Dirichlet([1.0] * 8, sizes=[3]).sample(n, rng=0),
        lambda n: Oracle([[1] * 8]).sample(n, rng=0),
        lambda n: partition(np.arange(8), [[n] * 8], rng=0),
    ],
    ids=["sample", "iid", "dirichlet", "oracle", "partition"],
)
def test_what_needs_more_than_is_available_is_refused_in_one_line(little, call):
    with pytest.raises(
        MemoryLimitError, match=r"do not fit into memory, of which 0\.0977 GiB"
    ) as no:
        call(2_000_000)
    assert "\n" not in str(no.value)
    call(2_000)


def test_a_machine_that_says_nothing_is_trusted(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    memory.check_memory(2**60, "a thing", "do nothing")


def test_the_least_of_machine_container_and_process_counts(monkeypatch, tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    4096 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_CONTAINER_ROOT", tmp_path)
    monkeypatch.setattr(memory, "_process", lambda: None)
    assert memory.available_memory() == 4 * MIB
    (tmp_path / "memory.current").write_text(f"{3 * MIB}\n")
    (tmp_path / "memory.stat").write_text(f"anon 5\ninactive_file {MIB}\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available_memory() == 4 * MIB
    (tmp_path / "memory.max").write_text(f"{5 * MIB}\n")
    assert memory.available_memory() == 3 * MIB
    monkeypatch.setattr(memory, "_process", lambda: MIB)
    assert memory.available_memory() == MIB


def test_this_machine_says_something():
    assert memory.available_memory() is None or memory.available_memory() >= 0


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system cannot bind a process")
def test_a_process_that_is_bound_to_one_core_has_one():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert memory.n_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert memory.n_cores() == len(allowed)

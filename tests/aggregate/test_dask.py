import gc
import os
import signal
import threading
import time

import pytest

import polyurn as pu
from polyurn import DaskAggregator, ShardAggregator
from polyurn.errors import FileError, ParameterError
from polyurn.wire import Batch, Part, Update
from shard_cases import COUNTS, MDM, packed

distributed = pytest.importorskip("distributed", reason="the extra cluster is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return packed(tmp_path_factory.mktemp("shards"), clients_per_shard=20)


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes on this machine."""
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "host": "127.0.0.1",
        "dashboard_address": "127.0.0.1:0",  # any port that is free
        "memory_limit": 0,
    }
    with distributed.LocalCluster(**options) as workers:
        yield workers


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster) as one:
        yield one


QUERIES = {
    "all": (Update(MDM), None),
    "a cohort": (Update(MDM), 300),
    "a small cohort": (Update(MDM), 25),  # of which some shards have nobody
    "parts": (Batch((Part(Update(MDM), 0.0, 0.1), Update(MDM))), None),
    "those at hand": (Part(Update(MDM), 0.0, 0.1), None),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_cluster_gets_the_bits_that_one_machine_gets(client, folder, name):
    here, there = ShardAggregator(folder, rng=3), DaskAggregator(client, folder, rng=3)
    for _ in range(2):
        one, other = (clients.aggregate(*QUERIES[name]).to_vector() for clients in (here, there))
        assert one.tobytes() == other.tobytes()


def test_a_fit_on_a_cluster_is_the_fit_on_one_machine(client, folder):
    settings = {"n_components": 2, "n_categories": 10, "max_size": 20, "max_rounds": 4, "rng": 2}
    here, there = ShardAggregator(folder, rng=0), DaskAggregator(client, folder, rng=0)
    assert pu.fit(here, **settings).mdm == pu.fit(there, **settings).mdm


def test_a_worker_that_is_killed_in_the_middle_of_a_round_changes_no_bit(client, cluster, folder):
    clients = DaskAggregator(client, folder, rng=3)
    query = Batch((Update(MDM),) * 50)
    known = clients.aggregate(query, None).to_vector()
    victim = next(iter(client.run(os.getpid).values()))

    def kill():
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not any(client.processing().values()):
            time.sleep(0.001)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    again = clients.aggregate(query, None).to_vector()
    killer.join()
    fresh = ShardAggregator(folder, rng=3).aggregate(query, None).to_vector()
    assert known.tobytes() == again.tobytes() == fresh.tobytes()
    assert victim not in client.run(os.getpid).values()


def test_a_shard_that_changes_is_the_same_clear_line_as_on_one_machine(client, tmp_path):
    clients = DaskAggregator(client, packed(tmp_path))
    clients.aggregate(Update(MDM), None)
    os.utime(tmp_path / "packed" / "shard-000003.rows", ns=(1, 1))
    with pytest.raises(FileError, match=r"shard-000003.rows changed while it was used"):
        clients.aggregate(Update(MDM), None)


def test_the_command_asks_the_cluster_of_a_scheduler(run, cluster, folder):
    fit = ["fit", folder.path, "--components", 2, "--rounds", 4, "--json", "-q"]
    there = run(*fit, "--scheduler", cluster.scheduler_address)
    assert there.code == 0
    assert there.json() == run(*fit).json()
    gc.collect()  # the command's connection ends: its thread draws from `random`, under later tests
    assert sum(thread.name == "IO loop" for thread in threading.enumerate()) <= 1  # the cluster's


def test_what_is_no_client_of_a_cluster_is_refused(folder):
    with pytest.raises(ParameterError, match=r"expected a distributed.Client, got 3"):
        DaskAggregator(3, folder)
    assert len(COUNTS) == folder.n_clients

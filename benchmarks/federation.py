"""What a federation of real processes costs: seconds per exchange, processor time and memory.

    python benchmarks/federation.py                  # all cases (about ten minutes on two idle cores)
    python benchmarks/federation.py --case 8 secure  # one
    python benchmarks/federation.py --stock          # eight nodes that are Flower's own SuperNodes

SuperLink, ServerApp and nodes are processes of this machine that talk over TLS on the loopback. A round
is a fit's, of 100 clients a node, ten categories and K = 3; an exchange is one message to every node and
its reply: a plain round has one, a secure one five. Wall times are of this machine only, and include
what everything else on it does; processor times are counted for each process.
"""

import argparse
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from polyurn.federation.flower import superlink
from polyurn.federation.flower.processes import alive, end_processes, keep_pid
from polyurn.federation.folder import FederationFolder, set_up
from polyurn.federation.jobs import JobFolder, MixtureJob
from polyurn.federation.one_machine import federation_here, free_port
from polyurn.federation.owned_node import warm_up
from polyurn.federation.policy import NodePolicy
from polyurn.model.paper_truths import truth
from polyurn.storage.models import load_saved
from polyurn.storage.table_files import write_histograms
from polyurn.wire.traffic import Traffic

N_CLIENTS, N_ROUNDS = 100, 6
CASES = tuple((n, kind) for n in (4, 8, 16) for kind in ("plain", "secure"))
IDLE = 30.0  # seconds that the idle SuperLink is watched

OPEN = NodePolicy(secure_only=False, allow_exact=True)


def main() -> None:
    """Measure and print one row of a table per case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", nargs=2, metavar=("NODES", "KIND"))
    parser.add_argument("--stock", action="store_true")
    options = parser.parse_args()
    print(
        "| nodes | sums | exchange, s (median; slowest) | round, s | processor s an exchange: SuperLink "
        "| a node | processor s a second: idle SuperLink | MB: SuperLink, a node |"
    )
    print("|---|---|---|---|---|---|---|---|")
    warm_up()
    if options.stock:
        with stock(8) as place:
            print(row(place, "8 (flower-supernode)", "plain"), flush=True)
        return
    for n_nodes, kind in [tuple(options.case)] if options.case else CASES:
        with ours(int(n_nodes)) as place:
            print(row(place, str(n_nodes), kind), flush=True)


def row(place: FederationFolder, name: str, kind: str) -> str:
    """A short fit, measured."""
    link = psutil.Process(alive(place.pid) or 0)
    nodes = [psutil.Process(pid) for pid in map(alive, place.nodes.glob("*/node.pid")) if pid]
    time.sleep(10.0)  # nodes look less often after a while
    before = spent([link])
    time.sleep(IDLE)
    idle = (spent([link]) - before) / IDLE
    before, nodes_before = spent([link]), spent(nodes)
    traffic = fitted(place, secure=kind == "secure")
    per_round = 5 if kind == "secure" else 1
    waits = [one.seconds / per_round for one in traffic.rounds]
    n_asks = traffic.n_asks
    memory = [one.memory_info().rss / 1e6 for one in (link, nodes[0])]
    return (
        f"| {name} | {kind} | {statistics.median(waits):.2f}; {max(waits):.2f} | "
        f"{statistics.median(one.seconds for one in traffic.rounds):.2f} | "
        f"{(spent([link]) - before) / n_asks:.2f} | "
        f"{(spent(nodes) - nodes_before) / n_asks / len(nodes):.3f} | {idle:.3f} | "
        f"{memory[0]:.0f}, {memory[1]:.0f} |"
    )


def spent(processes: list[psutil.Process]) -> float:
    """Processor seconds of some processes, and of all that they started and waited for."""
    times = [one.cpu_times() for one in processes]
    return sum(t.user + t.system + t.children_user + t.children_system for t in times)


def fitted(place: FederationFolder, *, secure: bool) -> Traffic:
    """The traffic of a short fit."""
    job = MixtureJob(
        federation=str(place.path), command=None, selects=False, components=(3,), max_size=20,
        max_rounds=N_ROUNDS, secure=secure, timeout=120.0,
    )  # fmt: skip
    folder = JobFolder.make(place.runs, job)
    superlink.submit(place, folder.path)
    while not folder.result.exists():
        if folder.failure is not None:
            raise SystemExit(folder.failure)
        time.sleep(0.3)
    traffic = load_saved(folder.result).provenance.traffic
    assert traffic is not None
    return traffic


@contextmanager
def ours(n_nodes: int) -> Iterator[FederationFolder]:
    """Nodes as `polyurn federation join` runs them."""
    counts = truth("medium/3").sample(n_nodes * N_CLIENTS, rng=1)
    with TemporaryDirectory() as folder:
        parts = [counts[i::n_nodes] for i in range(n_nodes)]
        with federation_here(Path(folder) / "f", parts, max_size=20, policy=OPEN) as place:
            yield place


@contextmanager
def stock(n_nodes: int) -> Iterator[FederationFolder]:
    """Flower's own SuperNodes, which start a process for each message."""
    counts = truth("medium/3").sample(n_nodes * N_CLIENTS, rng=1)
    with TemporaryDirectory() as folder:
        place = set_up(
            Path(folder) / "f", address=f"localhost:{free_port()}", categories=10, max_size=20,
            clients_per_node=N_CLIENTS, n_nodes=n_nodes, policy=OPEN,
        )  # fmt: skip
        pids = [place.node(node.name) / "node.pid" for node in place.read().nodes]
        try:
            superlink.start(place, host="127.0.0.1")
            superlink.register(place)
            for i, pid in enumerate(pids):
                write_histograms(counts[i::n_nodes], pid.parent / "clients.csv")
                keep_pid(pid, supernode(place, pid.parent).pid)
            while sum(node["status"] == "online" for node in superlink.nodes(place)) < n_nodes:
                time.sleep(1.0)
            yield place
        finally:
            end_processes([*pids, place.pid], within=15.0)


def supernode(place: FederationFolder, node: Path) -> subprocess.Popen[bytes]:
    """One of Flower's SuperNodes, on a port of its own."""
    command = [
        superlink.program("flower-supernode"),
        "--root-certificates", str(place.ca_certificate),
        "--superlink", place.read().address,
        "--auth-supernode-private-key", str(node / "transport.key"),
        "--ssl-ca-certfile", str(place.ca_certificate),
        "--ssl-certfile", str(place.certificate),
        "--ssl-keyfile", str(place.key),
        "--host", "127.0.0.1",
        "--port", str(free_port()),
        "--node-config", f'node="{node}" table="{node / "clients.csv"}"',
    ]  # fmt: skip
    with open(node / "node.log", "ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env=superlink.environment(place), start_new_session=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()

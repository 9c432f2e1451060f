"""What a federation of real processes costs: seconds per round, processor time, memory, and crashes.

    python benchmarks/federation.py                    # all cases (twenty minutes on two idle cores)
    python benchmarks/federation.py rounds idle        # some of them
    python benchmarks/federation.py flower             # the same rounds through Flower's simulation

Server and nodes are processes of this machine that talk over TLS on the loopback. A round is a fit's, of
100 clients a node, ten categories and K = 3. Wall times are of this machine only, and include what
everything else on it does: the load when a case began is beside its figures.
"""

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psutil

from polyurn.federation.aggregator import FederatedAggregator, Terms
from polyurn.federation.folder import FederationFolder, read_node, set_up
from polyurn.federation.https.asking import HttpsExchange, start
from polyurn.federation.jobs import JobFolder, LookJob, MixtureJob, runs_of
from polyurn.federation.one_machine import federation_here, free_port, running, start_nodes
from polyurn.federation.owned_node import warm_up
from polyurn.federation.policy import NodePolicy
from polyurn.federation.processes import alive
from polyurn.federation.server_process import perform
from polyurn.model.mdm import MDM
from polyurn.model.paper_truths import truth
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.storage.documents import load_document
from polyurn.storage.ledger_file import LedgerFile
from polyurn.storage.models import load_saved, save
from polyurn.storage.table_files import write_histograms
from polyurn.wire import Group, RecordColumn
from polyurn.wire.traffic import Traffic
from polyurn.wording import counted

N_CLIENTS, N_ROUNDS, N_KILLS = 100, 6, 30
IDLE = 60.0  # seconds that the idle server is watched
OPEN = NodePolicy(
    secure_only=False, allow_exact=True, rounds_per_day=10_000, most_epsilon=0.0, fewest_clients=1,
)  # fmt: skip


def main() -> None:
    """Measure the cases and print what they come to."""
    cases = {
        "rounds": rounds, "looks": looks, "hundred": hundred, "thousand": thousand, "idle": idle,
        "choice": choice, "kills": kills, "flower": flower,
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    names = parser.parse_args().cases or [name for name in cases if name != "flower"]
    warm_up()
    for name in names:
        say(f"{name} (load {os.getloadavg()[0]:.1f})")
        cases[name]()


def say(text: str) -> None:
    """A line, at once."""
    print(text, flush=True)


# ------------------------------------------------------------------------------------------- cases


def rounds() -> None:
    """Eight nodes as processes: plain and secure rounds, and the memory of a node."""
    with ours(8) as place:
        for secure in (False, True):
            say(f"  8 nodes, {kind(secure)}: {seconds(fitted(place, secure=secure))}")
        say(f"  {memory(place, 1)}")


def looks() -> None:
    """Eight nodes with records: the exchanges of each look, beside the rounds of a fit."""
    mdm = truth("medium/3")
    even = MDM(mdm.weights, mdm.alphas, Sizes(SizeBins([1, 21]), [[1.0]] * mdm.n_components))
    columns = {"hour": RecordColumn(0, 2, [6.0, 12.0, 18.0]), "wind": RecordColumn(1, 2, [0.0])}
    with recorded(8) as place, TemporaryDirectory() as folder:
        save(even, f"{folder}/mdm.json")
        asked: dict[str, dict[str, Any]] = {
            "describe": {}, "describe --column": {"column": "hour"},
            "features": {"columns": columns, "label": "category"},
            "score": {"mdm": f"{folder}/mdm.json"},
        }  # fmt: skip
        noise = {"epsilon": 8.0, "delta": 1e-6, "trust": "distributed", "ledger_epsilon": 10_000.0}
        for secure, more in ((False, {}), (True, {}), (True, noise)):
            text = f"{kind(secure)}{', noise in shares' if more else ''}"
            if not more:
                say(f"  8 nodes, {text}, fit: {seconds(fitted(place, secure=secure))}")
            for name, look in asked.items():
                say(f"  8 nodes, {text}, {name}: {looked(place, secure=secure, **look, **more)}")


def hundred() -> None:
    """A hundred nodes in four processes."""
    with ours(100, n_processes=4) as place:
        for secure in (False, True):
            say(f"  100 nodes, {kind(secure)}: {seconds(fitted(place, secure=secure))}")
        say(f"  {memory(place, 1)}")


def thousand() -> None:
    """A thousand nodes in eight processes: one secure sum of 1,000 numbers on a sparse graph."""
    with ours(1000, n_processes=8, n_clients=20) as place:
        terms = Terms(timeout=600.0, settling=600.0, retries=0)
        clients = aggregator(place, terms)
        bins = SizeBins([1, 21])
        rng = np.random.default_rng(0)
        query = Group(rng.random((83, 12)), rng.random(83), bins)
        for _ in range(2):
            begin = time.monotonic()
            total = clients.aggregate(query, None)
            took = time.monotonic() - begin
            n_nodes = clients.traffic.rounds[-1].n_nodes
            say(f"  {query.n_numbers} numbers, {n_nodes} nodes, {total.n_clients:.0f} clients: "
                f"{took:.0f} s; {memory(place, 1)}")  # fmt: skip


def idle() -> None:
    """What a hundred nodes that are asked nothing cost the server."""
    with ours(100, n_processes=4) as place:
        server = psutil.Process(alive(place.pid) or 0)
        time.sleep(10.0)
        before, begin = spent(server), time.monotonic()
        time.sleep(IDLE)
        share = (spent(server) - before) / (time.monotonic() - begin)
        say(f"  100 idle nodes: {share:.2%} of a core")


def choice() -> None:
    """A fit with K chosen among 1 to 4, over four nodes, as `polyurn federation run` does it."""
    with ours(4) as place, TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "polyurn.cli", "federation", "run", str(place.path), "--no-privacy",
            "--components", "1:4", "--rounds", "13", "-o", f"{folder}/mdm.json",
        ]  # fmt: skip
        begin = time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        took = time.monotonic() - begin
        saved = load_saved(f"{folder}/mdm.json")
        assert saved.provenance.fit is not None
        n_rounds, n_components = saved.provenance.fit.n_rounds, len(saved.model.weights)
        say(f"  {n_rounds} rounds, K = {n_components}: {took:.1f} s")


def kills() -> None:
    """Thirty kill -9 of nodes, the server and the run itself, in fits that have a checkpoint."""
    rng, counts = random.Random(0), {"node": 0, "server": 0, "run": 0}
    with ours(5) as place, TemporaryDirectory() as folder:
        n_runs = n_done = 0
        while sum(counts.values()) < N_KILLS:
            done = Path(folder) / f"{n_done}.json"
            n_runs += 1
            process = run_in_background(place, done, Path(folder) / f"rounds-{n_done}")
            events = place.runs / f"{n_runs:04d}" / "job.jsonl"
            n_rounds = rng.randint(1, 4)
            while process.poll() is None and (
                not events.exists() or events.read_text().count('"number"') < n_rounds
            ):
                time.sleep(0.05)
            victim = rng.choice(["node", "node", "server", "run"])
            if process.poll() is None:
                counts[victim] += 1
                kill(place, victim, process, rng)
            process.wait()
            recover(place)
            n_done += done.exists()
            if sum(counts.values()) % 10 == 0:
                say(f"  {counts} in {n_runs} runs of {n_done} fits; {charged_twice(place)}")


def flower() -> None:
    """The same rounds through Flower's documented API, in its simulation, where processes stay."""
    from polyurn.sweeps.flower_run import simulate

    counts = truth("medium/3").sample(8 * N_CLIENTS, rng=1)
    for secure in (False, True):
        with TemporaryDirectory() as folder:
            place = set_up(
                Path(folder) / "f", address="localhost:8000", categories=10, max_size=20,
                clients_per_node=N_CLIENTS, n_nodes=8, policy=OPEN,
            )  # fmt: skip
            for i in range(8):
                write_histograms(counts[i::8], place.node(f"node-{i + 1}") / "clients.csv")
            settings = {
                "federation": str(place.path), "output": f"{folder}/mdm.json", "components": "3",
                "max_rounds": N_ROUNDS, "secure": secure, "timeout": 600.0,
            }  # fmt: skip
            nodes = {"POLYURN_NODES": str(place.nodes)}
            app = Path(__file__).parents[1] / "examples" / "flower_federation"
            simulate(app, settings, n_nodes=8, environment=nodes, n_cpus=2)
            traffic = load_saved(f"{folder}/mdm.json").provenance.traffic
            assert traffic is not None
            say(f"  8 nodes, {kind(secure)}: {seconds(traffic)}")


# ----------------------------------------------------------------------------------------- crashes


def run_in_background(
    place: FederationFolder, output: Path, rounds: Path
) -> subprocess.Popen[bytes]:
    """`polyurn federation run` with a checkpoint, which goes on where an earlier one was cut off."""
    command = [
        sys.executable, "-m", "polyurn.cli", "federation", "run", str(place.path), "--no-privacy",
        "--components", "3", "--rounds", "8", "--search", "tol=1e-14,patience=20", "-o", str(output),
        "--checkpoint", str(rounds), "--terms", "timeout=20,min_fraction=0.6",
    ]  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kill(
    place: FederationFolder, victim: str, run: subprocess.Popen[bytes], rng: random.Random
) -> None:
    """Kill -9 one of them."""
    number = rng.randint(1, 5)
    pids = {
        "node": alive(place.node(f"node-{number}") / "node.pid"), "server": alive(place.pid),
        "run": run.pid,
    }  # fmt: skip
    if (pid := pids[victim]) is not None:
        os.kill(pid, signal.SIGKILL)


def recover(place: FederationFolder) -> None:
    """Start again whatever has died."""
    if alive(place.pid) is None:
        start(place, host="127.0.0.1")
    for entry in place.read().nodes:
        node = read_node(place.node(entry.name))
        if alive(node.pid) is None:
            start_nodes([node], [str(node.path)]).wait()


def charged_twice(place: FederationFolder) -> str:
    """Releases in the ledger, and rounds with a sum; the others were begun and lost in a crash."""
    n_releases = len(LedgerFile(place.ledger).read())
    summed = set()
    for run in runs_of(place.runs):
        job = run.read()
        assert isinstance(job, MixtureJob)
        numbers = (event["number"] for event in run.events() if "number" in event)
        summed |= {(job.checkpoint, number) for number in numbers}
    return f"{n_releases} releases in the ledger for {len(summed)} rounds with a sum"


# -------------------------------------------------------------------------------------- federations


@contextmanager
def ours(
    n_nodes: int, *, n_processes: int | None = None, n_clients: int = N_CLIENTS
) -> Iterator[FederationFolder]:
    """Nodes as `polyurn federation join` runs them."""
    counts = truth("medium/3").sample(n_nodes * n_clients, rng=1)
    parts = [counts[i::n_nodes] for i in range(n_nodes)]
    with TemporaryDirectory() as folder:
        begin = time.monotonic()
        with federation_here(
            Path(folder) / "f", parts, max_size=20, policy=OPEN, n_processes=n_processes
        ) as place:
            say(f"  {n_nodes} nodes are up after {time.monotonic() - begin:.1f} s")
            yield place


@contextmanager
def recorded(n_nodes: int) -> Iterator[FederationFolder]:
    """The same clients with two columns of numbers, one row for each point."""
    counts, rng = truth("medium/3").sample(n_nodes * N_CLIENTS, rng=1), np.random.default_rng(1)
    with TemporaryDirectory() as folder:
        place = set_up(
            Path(folder) / "f", address=f"localhost:{free_port()}", categories=10, max_size=20,
            clients_per_node=N_CLIENTS, n_nodes=n_nodes, policy=OPEN, features=("hour", "wind"),
        )  # fmt: skip
        for i in range(n_nodes):
            owner, held = counts[i::n_nodes].nonzero()
            times = counts[i::n_nodes][owner, held]
            owner, held = owner.repeat(times), held.repeat(times)
            hours, winds = rng.uniform(0, 24, len(owner)), rng.normal(size=len(owner))
            rows = zip(owner, held, hours, winds, strict=True)
            lines = [f"{who},{what},{hour:.2f},{wind:.2f}" for who, what, hour, wind in rows]
            table = place.node(f"node-{i + 1}") / "clients.csv"
            table.write_text("\n".join(["client,category,hour,wind", *lines]))
        options = ("--features", "hour,wind", "--allow-exact")
        with running(place, [((i,), options) for i in range(1, n_nodes + 1)]):
            yield place


def aggregator(place: FederationFolder, terms: Terms) -> FederatedAggregator:
    """An aggregator over a federation's server."""
    declared = place.read()
    return FederatedAggregator(
        HttpsExchange(place), terms, roster=declared.roster, expected=len(declared.nodes),
        clients_per_node=declared.clients_per_node,
    )  # fmt: skip


def fitted(place: FederationFolder, *, secure: bool) -> Traffic:
    """The traffic of a short fit."""
    job = MixtureJob(
        federation=str(place.path), command=None, selects=False, components=(3,), max_size=20,
        max_rounds=N_ROUNDS, secure=secure, timeout=600.0,
    )  # fmt: skip
    folder = JobFolder.make(place.runs, job)
    perform(HttpsExchange(place), folder)
    traffic = load_saved(folder.result).provenance.traffic
    assert traffic is not None
    return traffic


def looked(place: FederationFolder, *, secure: bool, **look: Any) -> str:
    """The exchanges of a look that is taken three times, and how long one of them takes in all."""
    took, whole = [], []
    for _ in range(3):
        job = LookJob(
            federation=str(place.path), command=None, secure=secure, timeout=600.0, **look
        )
        folder, begin = JobFolder.make(place.runs, job), time.monotonic()
        perform(HttpsExchange(place), folder)
        whole.append(time.monotonic() - begin)
        traffic = load_document(folder.result, kind="look")["provenance"]["traffic"]
        took += [one["seconds"] for one in traffic["rounds"]]
    each, n = statistics.median(took), counted(len(took) // 3, "exchange")
    return f"{n} of {each:.2f} s, {statistics.median(whole):.2f} s in all"


def kind(secure: bool) -> str:
    """The kind of sums."""
    return "secure" if secure else "plain"


def seconds(traffic: Traffic) -> str:
    """A round in seconds."""
    took: Sequence[float] = [one.seconds for one in traffic.rounds]
    return f"{statistics.median(took):.2f} s a round (slowest {max(took):.2f})"


def spent(process: psutil.Process) -> float:
    """Processor seconds."""
    times = process.cpu_times()
    return times.user + times.system


def memory(place: FederationFolder, number: int) -> str:
    """What the server and a node's process hold: resident, their part of it, and theirs alone.

    Files in memory, LLVM's library above all, are shared by all processes: in their part each counts for
    as many of them as there are.
    """
    pids = {"server": place.pid, "a node's process": place.node(f"node-{number}") / "node.pid"}
    held = {name: psutil.Process(alive(pid) or 0).memory_full_info() for name, pid in pids.items()}
    return ", ".join(
        f"{name}: {one.rss / 1e6:.0f} MB (its part {one.pss / 1e6:.0f}, its own {one.uss / 1e6:.0f})"
        for name, one in held.items()
    )


if __name__ == "__main__":
    main()

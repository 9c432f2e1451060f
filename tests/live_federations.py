"""Federations of real processes, for the tests: what they hold, how they are asked, what is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil

from federations import Local
from polyurn import fit
from polyurn.client.cohort import keyed_buckets
from polyurn.client.tables import table_histograms
from polyurn.federation.folder import bucket_key, read_node
from polyurn.federation.one_machine import start_nodes
from polyurn.federation.processes import alive, end_processes
from polyurn.model.paper_truths import truth
from polyurn.storage.models import load_saved
from polyurn.storage.table_files import read_table

PATIENCE = 600.0  # seconds that anything may take on a machine that does other things, too
HOSTILE = Path(__file__).with_name("hostile_node.py")


def histograms(n_nodes, n_clients=15):
    """What each node holds: clients of a known mixture, 10 categories, 20 points at most."""
    return [truth("medium/2").sample(n_clients, rng=i) for i in range(n_nodes)]


def local(made, numbers):
    """An aggregator over the clients of some nodes, with the buckets that the nodes give them."""
    counts, buckets = [], []
    for number in numbers:
        folder = made.node(f"node-{number}")
        table = read_table(folder / "clients.csv")
        clients = table_histograms(table, categories=made.read().declared)
        counts.append(clients.counts.toarray())
        buckets.append(keyed_buckets(list(clients.clients), bucket_key(folder / "bucket.key")))
    return Local(np.vstack(counts), np.concatenate(buckets))


def local_fit(made, numbers, rounds):
    """What `run` would find if all clients were in one table; and these clients."""
    clients = local(made, numbers)
    federation = made.read()
    done = fit(
        clients, n_components=2, n_categories=federation.n_categories,
        max_size=federation.max_size, max_rounds=rounds, tol=1e-3,
        patience=3, sizes="binned", max_upload=50_000, rng=0,
    )  # fmt: skip
    return done.mdm, clients.counts


def distance(one, other, counts):
    """Between two mixtures, in nats over all clients."""
    return abs(float(one.logpmf(counts).sum()) - float(other.logpmf(counts).sum()))


def polyurn(*arguments):
    """The command in a process of its own, as it has ended."""
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def command(*arguments):
    return [sys.executable, "-m", "polyurn.cli", "federation", *map(str, arguments)]


class Run:
    """`polyurn federation run` in the background."""

    def __init__(self, made, output, *options, rounds=4):
        self.made, self.output = made, Path(output)
        before = set(made.runs.iterdir())
        words = command(
            "run", made.path, "--no-privacy", "--components", 2, "--rounds", rounds, "-o", output,
            *options,
        )  # fmt: skip
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: set(made.runs.iterdir()) - before or self.process.poll() is not None)
        (self.folder,) = set(made.runs.iterdir()) - before

    def wait_for_round(self, number):
        """Until so many rounds are there; the run goes on then."""
        events = self.folder / "job.jsonl"
        wait_until(
            lambda: (
                (events.exists() and events.read_text().count('"number"') >= number)
                or self.process.poll() is not None
            )
        )
        assert self.process.poll() is None, self.process.communicate()[1]

    def end(self):
        """(exit code, what was said)."""
        _, said = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, said

    def result(self):
        code, said = self.end()
        assert code == 0, said
        return load_saved(self.output)


def wait_until(condition, *, within=PATIENCE):
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def kill_node(made, number):
    """kill -9, and the parent that started it (this process) knows."""
    pid = alive(made.node(f"node-{number}") / "node.pid")
    os.kill(pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=PATIENCE)


def leave(made, number):
    """SIGTERM: the node says good-bye."""
    end_processes([made.node(f"node-{number}") / "node.pid"], within=PATIENCE)


def rejoin(made, number):
    """The process that joins again; whoever asked waits for its end."""
    node = read_node(made.node(f"node-{number}"))
    starting = start_nodes([node], [str(node.path)])
    starting.wait()
    return starting.process


def stages_of(made, number):
    """What a node was asked so far."""
    log = made.node(f"node-{number}") / "questions.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.split(" | ")[1].split(" of round ")[0] for line in lines]


def processes_of(folder):
    """Those that have anything of a folder in their words."""
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
        except (psutil.Error, OSError):
            continue
        if any(str(folder) in word for word in words) and process.pid != os.getpid():
            found.append((process.pid, words))
    return found

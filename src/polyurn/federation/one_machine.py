"""Nodes as background processes, and a whole federation on this machine: for demos, tests, benchmarks.

Real processes over real TLS. All files are in one folder, and each process is ended by its own pid.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from polyurn.errors import FederationError
from polyurn.federation.folder import (
    OWNERS_POLICY,
    FederationFolder,
    NodeFolder,
    read_node,
    set_up,
)
from polyurn.federation.https.asking import start
from polyurn.federation.policy import NodePolicy
from polyurn.federation.processes import alive, end_processes, ended_like_ctrl_c
from polyurn.storage.table_files import write_histograms

# Seconds: on a new machine answers have to be compiled, and several nodes compile them at once; a busy
# machine has needed more than five minutes.
_JOINS_WITHIN = 600.0


@dataclass(frozen=True)
class Starting:
    """A process of nodes that has been started, and may not have joined yet."""

    nodes: Sequence[NodeFolder]
    process: subprocess.Popen[bytes]
    log: Path
    begin: int  # where its part of the log begins

    def wait(self) -> int:
        """Wait until all have joined; return the pid. If it ends or takes too long, raise its error."""
        end = time.monotonic() + _JOINS_WITHIN
        while any(alive(node.pid) != self.process.pid for node in self.nodes):
            if self.process.poll() is not None or time.monotonic() > end:
                self.process.kill()
                self.process.wait()
                text = self.log.read_bytes()[self.begin :].decode(errors="replace").strip()
                reason = text.rpartition("error: ")[2] if "error: " in text else ""
                names = ", ".join(node.name for node in self.nodes)
                raise FederationError(reason or f"{names} did not join: see {self.log}")
            time.sleep(0.1)
        return self.process.pid


def start_nodes(nodes: Sequence[NodeFolder], arguments: Sequence[str]) -> Starting:
    """Start nodes in one background process, with the arguments of `polyurn federation join`.

    The folder of the first one gets the log, for its owner alone.
    """
    log = nodes[0].path / "node.log"
    with open(log, "ab", opener=partial(os.open, mode=0o600)) as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "polyurn.cli", "federation", "join", *arguments],
            stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True,
        )  # fmt: skip
        return Starting(nodes, process, log, file.tell())


@contextmanager
def federation_here(
    folder: Path,
    clients: Sequence[object],
    *,
    max_size: int,
    categories: int | Sequence[str] | None = None,
    policy: NodePolicy = OWNERS_POLICY,
    n_processes: int | None = None,
) -> Iterator[FederationFolder]:
    """A federation of processes on this machine, which the end of the context ends.

    `clients` is what each node holds, arrays of shape (n_clients, n_categories); all files go into the
    folder. `policy` is every node's. The nodes share `n_processes`; by default each has its own.
    """
    shapes = [getattr(counts, "shape", (0, 0)) for counts in clients]
    files = set_up(
        folder, address=f"localhost:{free_port()}", max_size=max_size, n_nodes=len(clients),
        categories=shapes[0][1] if categories is None else categories, policy=policy,
        clients_per_node=max(shape[0] for shape in shapes),
    )  # fmt: skip
    federation = files.read()
    for entry, counts in zip(federation.nodes, clients, strict=True):
        table = files.node(entry.name) / "clients.csv"
        write_histograms(counts, table, categories=federation.categories)
    n_processes = n_processes or len(clients)
    together = [range(i + 1, len(clients) + 1, n_processes) for i in range(n_processes)]
    with running(files, [(numbers, ()) for numbers in together]):
        yield files


@contextmanager
def running(
    files: FederationFolder, processes: Sequence[tuple[Sequence[int], Sequence[str]]]
) -> Iterator[None]:
    """The server, unless it runs already, and processes of nodes, until the context ends.

    For each process, the numbers of its nodes, whose tables are `clients.csv` in their folders, and the
    options of `join`.
    """
    names = [entry.name for entry in files.read().nodes]
    pids, starting = [], []
    try:
        with ended_like_ctrl_c():
            if alive(files.pid) is None:
                start(files, host="127.0.0.1")
            for numbers, options in processes:
                nodes = [read_node(files.node(names[number - 1])) for number in numbers]
                pids += [node.pid for node in nodes]
                starting.append(start_nodes(nodes, [*(str(n.path) for n in nodes), *options]))
            for one in starting:
                one.wait()
            yield
    finally:
        end_processes(pids)
        for one in starting:
            one.process.kill()  # one that had not joined yet has no file
            one.process.wait()
        end_processes([files.pid])


def free_port() -> int:
    """A port of this machine that is free now."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])

"""Nodes as background processes, and a whole federation on this machine: for demos, tests, benchmarks.

Real processes over real TLS. All files are in one folder, and each process is ended by its own pid.
"""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from polyurn.errors import FederationError
from polyurn.federation.flower import superlink
from polyurn.federation.flower.processes import alive, end_processes, ended_like_ctrl_c
from polyurn.federation.folder import (
    OWNERS_POLICY,
    FederationFolder,
    NodeFolder,
    read_node,
    set_up,
)
from polyurn.federation.policy import NodePolicy
from polyurn.storage.table_files import write_histograms

# Seconds: on a new machine answers have to be compiled, and the SuperLink has to notice a node's crash.
_JOINS_WITHIN = 300.0
_ENDS_WITHIN = 10.0


@dataclass(frozen=True)
class Starting:
    """A node that has been started, and may not have joined yet."""

    node: NodeFolder
    process: subprocess.Popen[bytes]
    log: Path
    begin: int  # where its part of the log begins

    def wait(self) -> int:
        """Wait until it has joined, and return its pid; raise its error if it ends or takes too long."""
        end = time.monotonic() + _JOINS_WITHIN
        while alive(self.node.pid) != self.process.pid:
            if self.process.poll() is not None or time.monotonic() > end:
                self.process.kill()
                self.process.wait()
                text = self.log.read_bytes()[self.begin :].decode(errors="replace").strip()
                reason = text.rpartition("error: ")[2] if "error: " in text else ""
                raise FederationError(reason or f"{self.node.name} did not join: see {self.log}")
            time.sleep(0.1)
        return self.process.pid


def start_node(node: NodeFolder, arguments: Sequence[str]) -> Starting:
    """Start a node in the background, with the arguments of `polyurn federation join`."""
    log = node.path / "node.log"
    with open(log, "ab") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "polyurn.cli", "federation", "join", *arguments],
            stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True,
        )  # fmt: skip
        return Starting(node, process, log, file.tell())


@contextmanager
def federation_here(
    folder: Path,
    clients: Sequence[object],
    *,
    max_size: int,
    categories: int | Sequence[str] | None = None,
    policy: NodePolicy = OWNERS_POLICY,
    durable: bool = True,
) -> Iterator[FederationFolder]:
    """A federation of processes on this machine, which the end of the context ends.

    `clients` is what each node holds, arrays of shape (n_clients, n_categories); all files go into the
    folder. `policy` is every node's; `durable` is as in `superlink.start`.
    """
    shapes = [getattr(counts, "shape", (0, 0)) for counts in clients]
    files = set_up(
        folder,
        address=f"localhost:{free_port()}",
        categories=shapes[0][1] if categories is None else categories,
        max_size=max_size,
        clients_per_node=max(shape[0] for shape in shapes),
        n_nodes=len(clients),
        policy=policy,
    )
    federation = files.read()
    for entry, counts in zip(federation.nodes, clients, strict=True):
        table = files.node(entry.name) / "clients.csv"
        write_histograms(counts, table, categories=federation.categories)
    with running(files, [["clients.csv"]] * len(clients), durable=durable):
        yield files


@contextmanager
def running(
    files: FederationFolder, arguments: Sequence[Sequence[str]], *, durable: bool = True
) -> Iterator[None]:
    """The SuperLink, unless it runs already, and all nodes as processes, until the context ends.

    `arguments` are those of each node's `join`: the table, in the node's folder, and options.
    """
    nodes = [read_node(files.node(entry.name)) for entry in files.read().nodes]
    starting = []
    try:
        with ended_like_ctrl_c():
            if alive(files.pid) is None:
                superlink.start(files, host="127.0.0.1", durable=durable)
                superlink.register(files)
            for node, (table, *options) in zip(nodes, arguments, strict=True):
                words = [str(node.path), str(node.path / table), *options]
                starting.append(start_node(node, words))
            for one in starting:
                one.wait()
            yield
    finally:
        end_processes([node.pid for node in nodes], within=_ENDS_WITHIN)
        for one in starting:
            one.process.kill()  # one that had not joined yet has no file
            one.process.wait()
        superlink.stop(files)


def free_port() -> int:
    """A port of this machine that is free now."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])

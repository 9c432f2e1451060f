"""`polyurn federation join`: nodes that answer for the clients of tables.

`federation/node.py` makes the answers; `federation/https/link.py` carries the messages.
"""

import os
import shlex
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import typer

import polyurn as pu
from polyurn.commands.console import say
from polyurn.commands.declare import argument, option, refuse_options
from polyurn.commands.options import JudgedOptions
from polyurn.errors import FederationError, ParameterError
from polyurn.wording import counted, listed

if TYPE_CHECKING:
    from polyurn.federation.folder import NodeFolder
    from polyurn.federation.https.link import Link


def join_command(
    *,
    context: typer.Context,
    places: list[Path] = argument(
        "NODE_DIR [TABLE] ...",
        "Folder of a node, as `init` made it, and the table of its clients, NODE_DIR/clients.csv by "
        "default: CSV, Parquet, or a folder that `pack` wrote. Several nodes share the process.",
    ),
    columns: JudgedOptions,
    features: str | None = option(
        None,
        "Columns of numbers, comma-separated, or one with lists, of a table of records: "
        "questions about style are answered too.",
    ),
    allow_exact: bool = option(
        False,
        "Answer sums without noise, too. A server that lies can word such a question so that the sum is "
        "about one client: say yes only to a server that you trust.",
        "--allow-exact",
    ),
    background: bool = option(
        False, "Leave the node running, with its log in NODE_DIR.", "--background"
    ),
) -> None:
    """Join a federation with the clients of a table, and answer until Ctrl-C.

    NODE_DIR/policy.toml limits what it may be asked; NODE_DIR/questions.log has what it was asked.
    `HTTPS_PROXY` is honoured: a node opens connections, and accepts none.

    Example: `polyurn federation join fed/nodes/node-1 clients.csv`
    """
    from polyurn.federation.https.link import knock, serve
    from polyurn.federation.owned_node import warm_up
    from polyurn.federation.processes import alive, ended_like_ctrl_c

    if features is not None:
        unheard = ["count", "drop_empty", "drop_missing", "renamed"]
        refuse_options(context, unheard, "with --features, a row for each point")
    pairs = _pairs(places)
    for node, _ in pairs:
        if (pid := alive(node.pid)) is not None:
            raise FederationError(f"{node.name} is running already (process {pid})")
    # What is needed once, to read tables and to compile, is loaded by a process that ends.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
        clients = []
        for node, table in pairs:
            read, remarks = apart.submit(_read, node, table, columns, features).result()
            clients.append(read)
            for remark in remarks:
                say(remark)
        both = zip(pairs, clients, strict=True)
        links = [_link(node, read, allow_exact=allow_exact) for (node, _), read in both]
        knock(links)
        if background:
            _start(context, [node for node, _ in pairs])
            return
        if allow_exact:
            say(
                "sums without noise are allowed: a server that lies can make one about a single client"
            )
        say("getting ready to answer")
        apart.submit(warm_up).result()
    try:
        with ended_like_ctrl_c():
            serve(links)
    finally:
        for node, _ in pairs:
            if alive(node.pid) == os.getpid():
                node.pid.unlink()


def _start(context: typer.Context, nodes: Sequence["NodeFolder"]) -> None:
    """The same command in the background."""
    from polyurn.federation.one_machine import start_nodes

    words = shlex.split(context.obj)
    arguments = [word for word in words[words.index("join") + 1 :] if word != "--background"]
    started = start_nodes(nodes, arguments)
    who = f"{listed([n.name for n in nodes])} {'has' if len(nodes) == 1 else 'have'}"
    say(f"{who} joined (process {started.wait()}, log {started.log})")


def _pairs(places: Sequence[Path]) -> list[tuple["NodeFolder", Path]]:
    """The folders of nodes, and the table of each."""
    from polyurn.federation.folder import FEDERATION, read_node

    pairs: list[tuple[Path, Path | None]] = []
    for place in places:
        if not pairs or (place / FEDERATION).exists():
            pairs.append((place, None))
        elif pairs[-1][1] is None:
            pairs[-1] = (pairs[-1][0], place)
        else:
            raise ParameterError(
                f"expected the folder of a node and its table, got {place} besides"
            )
    if len({os.path.realpath(folder) for folder, _ in pairs}) < len(pairs):
        raise ParameterError("expected each node once")
    nodes = [read_node(folder) for folder, _ in pairs]
    first = nodes[0].federation
    return [
        # One roster of a thousand keys is enough for a hundred nodes.
        (replace(node, federation=first) if node.federation == first else node,
         node.path / "clients.csv" if table is None else table)
        for node, (_, table) in zip(nodes, pairs, strict=True)
    ]  # fmt: skip


def _read(
    node: "NodeFolder", table: Path, columns: JudgedOptions, features: str | None
) -> tuple["pu.Histograms | pu.Records", list[str]]:
    """The clients in a table, and remarks about it."""
    from polyurn.federation.owned_node import records_of
    from polyurn.sources.clients import read_clients
    from polyurn.storage.table_files import naming

    remarks = list[str]()
    if features is None:
        reading = replace(columns.reading(over=True), say=remarks.append)
        read = read_clients(table, reading, node.federation.declared)
        return pu.Histograms(read.counts, read.clients, read.categories), remarks
    with naming(table):
        rows = pu.read_table(table, on_remark=remarks.append)
        named = {"client": columns.client, "category": columns.category}
        return records_of(node, rows, features, **named), remarks


def _link(
    node: "NodeFolder", clients: "pu.Histograms | pu.Records", *, allow_exact: bool
) -> "Link":
    """A node, ready to answer."""
    from polyurn.federation.https.link import Link
    from polyurn.federation.owned_node import open_node
    from polyurn.federation.processes import keep_pid

    def tell(error: Exception) -> None:
        say(f"an answer failed: {type(error).__name__}: {error}")

    def joined() -> None:
        keep_pid(node.pid, os.getpid())
        say(f"{node.name} has joined with {counted(n_clients, 'client')}; Ctrl-C leaves")

    n_clients = clients.n_clients if isinstance(clients, pu.Records) else clients.shape[0]
    opened = open_node(node, clients, allow_exact=allow_exact, on_failure=tell)
    return Link(node, opened.answer, on_joined=joined, say=say)

"""`polyurn federation join`: a node that answers for the clients of a table.

`federation/node.py` makes the answers; `federation/flower/supernode.py` carries the messages.
"""

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from polyurn.commands.console import say
from polyurn.commands.declare import argument, option, refuse_options
from polyurn.commands.options import TABLE, JudgedOptions
from polyurn.errors import FederationError
from polyurn.wording import counted

if TYPE_CHECKING:
    from polyurn.client.counting import Histograms


def join_command(
    *,
    context: typer.Context,
    folder: Path = argument("NODE_DIR", "Folder of the node, as `init` made it."),
    table: Path = TABLE,
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

    Example: `polyurn federation join fed/nodes/node-1 clients.csv`
    """
    from polyurn.client.records import Records
    from polyurn.federation.flower.processes import alive, ended_like_ctrl_c, keep_pid
    from polyurn.federation.flower.supernode import Connection, knock, serve
    from polyurn.federation.folder import TRANSPORT_KEY, read_node
    from polyurn.federation.one_machine import start_node
    from polyurn.federation.owned_node import open_node, records_of, warm_up
    from polyurn.sources.clients import naming, read_clients
    from polyurn.storage.files import write_whole
    from polyurn.storage.table_files import read_table

    node_folder = read_node(folder)
    if (pid := alive(node_folder.pid)) is not None:
        raise FederationError(f"{node_folder.name} is running already (process {pid})")
    read: Histograms | Records
    if features is None:
        read = read_clients(table, columns.reading(), node_folder.federation.declared)
    else:
        unheard = ["count", "drop_empty", "drop_missing", "renamed"]
        refuse_options(context, unheard, "with --features, a row for each point")
        with naming(table):
            rows = read_table(table, on_remark=say)
            read = records_of(
                node_folder, rows, features, client=columns.client, category=columns.category
            )
    n_clients = read.n_clients if isinstance(read, Records) else read.shape[0]
    node = open_node(
        node_folder,
        read,
        allow_exact=allow_exact,
        on_failure=lambda error: _say_failure("an answer", error),
    )
    connection = Connection(
        node_folder.federation.address,
        node_folder.ca_certificate,
        node_folder.secret(TRANSPORT_KEY),
    )
    knock(connection.address, connection.certificate)
    if background:
        words = shlex.split(context.obj)
        arguments = [word for word in words[words.index("join") + 1 :] if word != "--background"]
        started = start_node(node_folder, arguments)
        say(f"{node_folder.name} has joined (process {started.wait()}, log {started.log})")
        return
    if allow_exact:
        say("sums without noise are allowed: a server that lies can make one about a single client")
    say("getting ready to answer")
    warm_up()

    def joined(flower_id: int) -> None:
        write_whole(node_folder.flower_id, lambda file: file.write(f"{flower_id}\n".encode()))
        keep_pid(node_folder.pid, os.getpid())
        say(f"{node_folder.name} has joined with {counted(n_clients, 'client')}; Ctrl-C leaves")

    try:
        with ended_like_ctrl_c():
            serve(
                connection, node.answer, was_there=node_folder.flower_id.exists(), on_joined=joined,
                on_failure=lambda error: _say_failure("link", error),
            )  # fmt: skip
    finally:
        node_folder.pid.unlink(missing_ok=True)


def _say_failure(where: str, error: Exception) -> None:
    """Tell the owner, and nobody else, what failed."""
    say(f"{where} failed: {type(error).__name__}: {error}")

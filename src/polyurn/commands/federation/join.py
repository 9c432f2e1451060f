"""`polyurn federation join`: a node that answers for the clients of a table.

What it answers is `client/node.py`; how messages reach it is `integrations/flower/supernode.py`.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyurn.commands._shared.console import say
from polyurn.commands._shared.options import Category, Client, Count, DropEmpty, TableArgument
from polyurn.errors import FederationError
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    from polyurn.storage.federation_folder import NodeFolder

_JOINS_WITHIN = 120.0  # seconds; the first time on a machine, answers have to be compiled


def join_command(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Argument(metavar="NODE_DIR", help="Folder of the node, as `init` made it.")
    ],
    table: TableArgument,
    client: Client = None,
    category: Category = None,
    count: Count = None,
    drop_empty: DropEmpty = False,
    background: Annotated[
        bool, typer.Option("--background", help="Leave the node running, with its log in NODE_DIR.")
    ] = False,
) -> None:
    """Join a federation with the clients of a table, and answer until Ctrl-C.

    What it may be asked stands in NODE_DIR/policy.toml, and what it was asked in NODE_DIR/questions.log.

    Example: `polyurn federation join fed/nodes/node-1 clients.csv`
    """
    from polyurn.client.layout import Columns
    from polyurn.commands._shared.client_tables import Reading, read_clients
    from polyurn.integrations.flower.owned_node import open_node, warm_up
    from polyurn.integrations.flower.processes import alive, keep_pid
    from polyurn.integrations.flower.setting_up import TRANSPORT_KEY
    from polyurn.integrations.flower.supernode import Connection, knock, serve
    from polyurn.storage.federation_folder import read_node

    place = read_node(folder)
    if (pid := alive(place.pid)) is not None:
        raise FederationError(f"{place.name} is running already (process {pid})")
    reading = Reading(say, Columns(client, category, count), drop_empty=drop_empty)
    read = read_clients(table, reading, place.federation.declared)
    node = open_node(
        place, read, on_failure=lambda error: say(f"failed: {type(error).__name__}: {error}")
    )
    connection = Connection(
        place.federation.address, place.ca_certificate, place.secret(TRANSPORT_KEY)
    )
    knock(connection.address, connection.certificate)
    if background:
        _leave_running(place, context.obj)
        return
    say("getting ready to answer")
    warm_up()
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def joined(_: int) -> None:
        keep_pid(place.pid, os.getpid())
        say(f"{place.name} has joined with {counted(read.shape[0], 'client')}; Ctrl-C leaves")

    try:
        serve(
            connection, node.answer, on_joined=joined,
            on_failure=lambda error: say(f"connection: {type(error).__name__}: {error}"),
        )  # fmt: skip
    finally:
        place.pid.unlink(missing_ok=True)


def _leave_running(place: "NodeFolder", command: str) -> None:
    """The same command in a process of its own; its error, if it ends before it has joined."""
    from polyurn.integrations.flower.processes import alive

    log = place.path / "node.log"
    arguments = [word for word in shlex.split(command)[1:] if word != "--background"]
    with open(log, "ab") as file:
        begin = file.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "polyurn.cli", *arguments], stdin=subprocess.DEVNULL,
            stdout=file, stderr=file, start_new_session=True,
        )  # fmt: skip
    end = time.monotonic() + _JOINS_WITHIN
    while alive(place.pid) != process.pid:
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            said = log.read_bytes()[begin:].decode(errors="replace").strip()
            raise FederationError(
                said.rpartition("error: ")[2] or f"{place.name} did not join: see {log}"
            )
        time.sleep(0.2)
    say(f"{place.name} has joined (process {process.pid}, log {log})")

"""`polyurn federation up`, `status` and `down`: the server's process.

`federation/https/starting.py` starts and ends it.
"""

from pathlib import Path

from polyurn.commands.console import print_json, say, show
from polyurn.commands.declare import option
from polyurn.commands.options import AS_JSON, FEDERATION
from polyurn.wording import counted

_ENDS_WITHIN = 10.0  # seconds


def up_command(
    *,
    folder: Path = FEDERATION,
    listen: str = option(
        "127.0.0.1", "Address of this machine to listen on; 0.0.0.0 for all of them."
    ),
    renew: bool = option(False, "Make a new certificate of the server first.", "--renew"),
) -> None:
    """Start the server of a federation, one process, to which nodes connect over HTTPS.

    It runs until `polyurn federation down`. Nodes on other machines reach it with --listen 0.0.0.0.

    Example: `polyurn federation up fed`
    """
    from polyurn.federation.folder import FederationFolder
    from polyurn.federation.https.asking import start

    files = FederationFolder(folder)
    federation = files.read()
    if renew:
        files.renew_certificate()
    pid = start(files, host=listen)
    say(f"the server listens on {listen}, port {federation.address.rpartition(':')[2]} "
        f"(process {pid}, log {files.log})")  # fmt: skip
    n_nodes = counted(len(federation.nodes), "node")
    say(f"{n_nodes} may join: polyurn federation join NODE_DIR clients.csv")


def status_command(*, folder: Path = FEDERATION, as_json: bool = AS_JSON) -> None:
    """Show whether the server runs, which nodes are connected, and which runs there were.

    Example: `polyurn federation status fed`
    """
    from rich.table import Table

    from polyurn.federation.folder import FederationFolder
    from polyurn.federation.https.asking import HttpsExchange
    from polyurn.federation.jobs import runs_of
    from polyurn.federation.processes import alive

    files = FederationFolder(folder)
    federation = files.read()
    pid = alive(files.pid)
    there = set() if pid is None else set(HttpsExchange(files).nodes())
    nodes = [
        {"number": node.number, "name": node.name,
         "status": "online" if node.number in there else "offline"}
        for node in federation.nodes
    ]  # fmt: skip
    runs = [{"id": run.path.name, "status": run.state} for run in runs_of(files.runs)]
    if as_json:
        print_json({"address": federation.address, "server": pid, "nodes": nodes, "runs": runs})
        return
    if pid is None:
        say(f"the server is down: polyurn federation up {folder}")
    else:
        say(f"the server runs (process {pid}); {len(there)} of {len(nodes)} nodes are connected")
        table = Table(title=f"the federation at {federation.address}")
        for heading in ("node", "name", "state"):
            table.add_column(heading)
        for node in nodes:
            table.add_row(str(node["number"]), str(node["name"]), str(node["status"]))
        show(table)
    for run in runs:
        say(f"run {run['id']}: {run['status']}")


def down_command(*, folder: Path = FEDERATION) -> None:
    """End the server, its runs, and the nodes that joined in the background from DIR/nodes.

    Example: `polyurn federation down fed`
    """
    from polyurn.federation.folder import FederationFolder
    from polyurn.federation.https.asking import stop
    from polyurn.federation.jobs import runs_of
    from polyurn.federation.processes import end_processes

    files = FederationFolder(folder)
    federation = files.read()
    pids = [files.node(node.name) / "node.pid" for node in federation.nodes]
    n_ended = end_processes(pids, within=_ENDS_WITHIN)
    end_processes([run.pid for run in runs_of(files.runs)], within=_ENDS_WITHIN)
    was_up = stop(files)
    say(
        f"ended {'the server' if was_up else 'nothing of the server, which was down,'} and "
        f"{counted(n_ended, 'node')}"
    )

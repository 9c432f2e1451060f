"""`polyurn federation up`, `status` and `down`: the server's processes.

`federation/flower/superlink.py` starts and ends them.
"""

from pathlib import Path
from typing import Any

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
    """Start the server of a federation, a Flower SuperLink, and register the nodes.

    It runs until `polyurn federation down`. Nodes on other machines reach it with --listen 0.0.0.0.

    Example: `polyurn federation up fed`
    """
    from polyurn.federation.flower import superlink
    from polyurn.federation.folder import FederationFolder

    files = FederationFolder(folder)
    federation = files.read()
    if renew:
        files.renew_certificate()
    pid = superlink.start(files, host=listen)
    say(f"the SuperLink listens on {listen}, port {federation.address.rpartition(':')[2]} "
        f"(process {pid}, log {files.log})")  # fmt: skip
    ids = superlink.register(files)
    say(f"{counted(len(ids), 'node')} may join: polyurn federation join NODE_DIR clients.csv")


def status_command(*, folder: Path = FEDERATION, as_json: bool = AS_JSON) -> None:
    """Show whether the server runs, which nodes are connected, and which runs there were.

    Example: `polyurn federation status fed`
    """
    from rich.table import Table

    from polyurn.federation.flower import superlink
    from polyurn.federation.flower.processes import alive
    from polyurn.federation.folder import FederationFolder

    files = FederationFolder(folder)
    federation = files.read()
    pid = alive(files.pid)
    state: dict[str, Any] = {
        "address": federation.address,
        "superlink": pid,
        "nodes": [],
        "runs": [],
    }
    if pid is not None:
        known = {int(node["node-id"]): node for node in superlink.nodes(files)}
        numbers = {number: key for key, number in files.flower_ids().items()}
        for node in federation.nodes:
            about = known.get(numbers.get(node.number, -1), {})
            state["nodes"].append(
                {"number": node.number, "name": node.name,
                 "status": about.get("status", "not registered")}
            )  # fmt: skip
        state["runs"] = [
            {"id": run["run-id"], "status": run["status"]} for run in superlink.runs(files)
        ]
    if as_json:
        print_json(state)
        return
    if pid is None:
        say(f"the server is down: polyurn federation up {folder}")
        return
    online = sum(node["status"] == "online" for node in state["nodes"])
    say(
        f"the SuperLink runs (process {pid}); {online} of {len(federation.nodes)} nodes are connected"
    )
    table = Table(title=f"the federation at {federation.address}")
    for heading in ("node", "name", "state"):
        table.add_column(heading)
    for node in state["nodes"]:
        table.add_row(str(node["number"]), node["name"], node["status"])
    show(table)
    for run in state["runs"]:
        say(f"run {run['id']}: {run['status']}")


def down_command(*, folder: Path = FEDERATION) -> None:
    """End the server, its runs, and the nodes that joined in the background from DIR/nodes.

    Example: `polyurn federation down fed`
    """
    from polyurn.federation.flower import superlink
    from polyurn.federation.flower.processes import end_processes
    from polyurn.federation.folder import FederationFolder

    files = FederationFolder(folder)
    federation = files.read()
    pids = [files.node(node.name) / "node.pid" for node in federation.nodes]
    n_ended = end_processes(pids, within=_ENDS_WITHIN)
    was_up = superlink.stop(files)
    say(
        f"ended {'the SuperLink' if was_up else 'nothing of the server, which was down,'} and "
        f"{counted(n_ended, 'node')}"
    )

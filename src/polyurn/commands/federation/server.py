"""`polyurn federation init`, `keys`, `up`, `status` and `down`: the files and the process of a server.

`federation/https/asking.py` starts and ends the process.
"""

from pathlib import Path

from polyurn.commands.console import print_json, say, show
from polyurn.commands.declare import Needs, also, argument, option
from polyurn.commands.options import (
    AS_JSON,
    FEDERATION,
    VALUES,
    declared_categories,
    declared_values,
    listed_names,
)
from polyurn.errors import ParameterError
from polyurn.wording import counted


def init_command(
    *,
    folder: Path = argument("DIR", "Folder to make."),
    categories: str = option(..., "Categories: a number C (0 to C-1) or names, comma-separated."),
    max_size: int = option(..., "Declared maximum number of points per client."),
    nodes: int = option(0, "Number of nodes whose keys are made here."),
    node: list[Path] | None = option(
        None, "Public keys of a node, from `polyurn federation keys`; repeat it."
    ),
    address: str = option("localhost:8000", "Address at which nodes find the server, host:port."),
    host: list[str] | None = option(
        None, "Another name or address of the server, for its certificate; repeat it."
    ),
    clients_per_node: int = option(1000, "Declared maximum number of clients per node."),
    features: str | None = option(
        None, "Columns of records, comma-separated, in the order of all questions about them."
    ),
    values: list[str] | None = also(VALUES, Needs("features")),
) -> None:
    """Make the folder of a federation: certificates, keys, roster, policies, and the Flower app.

    Give each node's folder, DIR/nodes/NAME, to its owner; it goes to the node's machine as it is.

    Example: `polyurn federation init fed --nodes 8 --categories 10 --max-size 60`
    """
    from polyurn.federation.folder import FEWEST_NODES, load_public_keys, set_up

    keys = node or []
    if nodes < 0 or nodes + len(keys) < 1:
        raise ParameterError("expected nodes: --nodes 8, or --node NAME.pub for each of them")
    public = [load_public_keys(file, number=nodes + i) for i, file in enumerate(keys, start=1)]
    declared = declared_categories(categories)
    assert declared is not None
    files = set_up(
        folder, address=address, categories=declared, max_size=max_size,
        clients_per_node=clients_per_node, n_nodes=nodes, public=public, hosts=host or [],
        features=listed_names(features), values=declared_values(values),
    )  # fmt: skip
    n_nodes = nodes + len(keys)
    say(f"made {folder} for {counted(n_nodes, 'node')} at {address}")
    say(
        f"declared for good: {counted(files.read().n_categories, 'category')}, at most {max_size:,} "
        f"points a client, at most {clients_per_node:,} clients a node (--clients-per-node)"
    )
    if n_nodes < FEWEST_NODES:
        say(
            f"no question will be answered: policy.toml wants secure sums over {FEWEST_NODES} nodes; "
            "make more, or have owners lower `fewest`, or `secure_only = false` and `run --plain`"
        )
    if nodes:
        say(
            f"private keys of {counted(nodes, 'node')} were made here: whoever has this folder can "
            "speak for them; let owners make their own with `polyurn federation keys`"
        )
    say(f"next: polyurn federation up {folder}; the folders for the nodes are in {files.nodes}")


def keys_command(
    *,
    folder: Path = argument("NODE_DIR", "Folder to make."),
    name: str = option(..., "Name of the node in the federation."),
) -> None:
    """Make the keys of a node on its own machine; the private ones never leave it.

    Send the public keys, NODE_DIR/NAME.pub, to the operator of the federation. You get back
    `federation.json`, `policy.toml` and `ca.crt`: put them into NODE_DIR.

    Example: `polyurn federation keys my-node --name hospital-a`
    """
    from polyurn.federation.folder import make_keys

    public = make_keys(folder, name)
    say(f"wrote {public}: send it to the operator of the federation; the other files stay here")


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
    first = files.node(federation.nodes[0].name)
    say(f"{n_nodes} may join: polyurn federation join {first} clients.csv")


def status_command(*, folder: Path = FEDERATION, as_json: bool = AS_JSON) -> None:
    """Show whether the server runs, which nodes are connected, and which runs there were.

    Example: `polyurn federation status fed`
    """
    from polyurn.commands.views import table_of
    from polyurn.federation.folder import FederationFolder
    from polyurn.federation.https.asking import HttpsExchange
    from polyurn.federation.jobs import runs_of
    from polyurn.federation.processes import alive
    from polyurn.privacy.ledger import last_budget
    from polyurn.storage.ledger_file import LedgerFile, open_ledger

    files = FederationFolder(folder)
    federation = files.read()
    pid = alive(files.pid)
    there = set() if pid is None else set(HttpsExchange(files).nodes())
    nodes = [
        {"number": node.number, "name": node.name,
         "status": "online" if node.number in there else "offline"}
        for node in federation.nodes
    ]  # fmt: skip
    runs = [
        {"id": run.path.name, "asks": job.asks, "epsilon": job.epsilon, "status": run.state}
        for run in runs_of(files.runs) for job in [run.read()]
    ]  # fmt: skip
    entries = LedgerFile(files.ledger).read() if files.ledger.exists() else []
    budget = last_budget(entries)
    ledger = budget and open_ledger(files.ledger, epsilon=budget.epsilon, delta=budget.delta)
    if as_json:
        state = {"address": federation.address, "server": pid, "nodes": nodes, "runs": runs}
        print_json({**state, "epsilon_spent": ledger.epsilon_spent if ledger else 0.0})
        return
    if pid is None:
        say(f"the server is down: polyurn federation up {folder}")
    else:
        say(f"the server runs (process {pid}); {len(there)} of {len(nodes)} nodes are connected")
        rows = [[str(value) for value in node.values()] for node in nodes]
        title, heads = f"the federation at {federation.address}", ("node", "name", "state")
        show(table_of(title, heads, rows, left=(1, 2)))
    for run in runs:
        how = f", epsilon {run['epsilon']:g}" if run["epsilon"] else ""
        say(f"run {run['id']}, {run['asks']}{how}: {run['status']}")
    if ledger:
        say(f"ledger: epsilon {ledger.epsilon_spent:.4g} of {ledger.budget.epsilon:g} is spent")


def down_command(*, folder: Path = FEDERATION) -> None:
    """End the server, its runs, and the nodes that joined in the background from DIR/nodes.

    Example: `polyurn federation down fed`
    """
    from polyurn.federation.folder import FederationFolder
    from polyurn.federation.jobs import runs_of
    from polyurn.federation.processes import end_processes

    files = FederationFolder(folder)
    federation = files.read()
    pids = [files.node(node.name) / "node.pid" for node in federation.nodes]
    n_ended = end_processes(pids)
    end_processes([run.pid for run in runs_of(files.runs)])
    was_up = end_processes([files.pid]) > 0
    ended = f"ended {counted(n_ended, 'node')}" if n_ended else "no node was running"
    say(f"{'ended the server' if was_up else 'the server was down already'}; {ended}")

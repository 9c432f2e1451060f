"""`polyurn federation init` and `keys`: the files of a federation, and the keys of a node.

Nothing is started.
"""

from pathlib import Path

from polyurn.commands.console import say
from polyurn.commands.declare import argument, option
from polyurn.commands.options import declared_categories, listed_names
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
        None, "Columns of records, comma-separated, in the order of all questions about style."
    ),
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
        folder,
        address=address,
        categories=declared,
        max_size=max_size,
        clients_per_node=clients_per_node,
        n_nodes=nodes,
        public=public,
        hosts=host or [],
        features=listed_names(features),
    )
    n_nodes = nodes + len(keys)
    say(f"made {folder} for {counted(n_nodes, 'node')} at {address}")
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

"""polyurn's ClientApp, for federations whose nodes are Flower's own SuperNodes.

Each message is answered by a new process. What it needs is in the SuperNode's `--node-config`:

    node="/path/of/the/node's/folder" table="/path/of/clients.csv"

and client="...", category="..." and count="..." if the table's columns have other names. With
features="...", comma-separated columns of numbers, the table has a row for each point, and questions
about style are answered too. `polyurn federation init` makes the folder. `polyurn federation join` needs
none of this: see `supernode.py`.
"""

import logging

from polyurn.client.counting import Histograms
from polyurn.client.records import Records
from polyurn.client.tables import table_histograms
from polyurn.errors import MissingDependencyError, ParameterError
from polyurn.federation.flower.grid_exchange import RECORD, answered
from polyurn.federation.folder import NodeFolder, read_node
from polyurn.federation.owned_node import open_node, records_of
from polyurn.storage.table_files import read_table

try:
    from flwr.app import ConfigRecord, Context, Message
    from flwr.clientapp import ClientApp
except ImportError as error:
    raise MissingDependencyError("flwr", "flower", "a ClientApp") from error

app = ClientApp()
_LOG = logging.getLogger(__name__)


@app.query("polyurn")
def answer(message: Message, context: Context) -> Message:
    """The node's reply; the SuperNode's memory keeps the state of a secure sum."""
    kept = context.state.get(RECORD)
    try:
        folder = read_node(str(context.node_config.get("node", "")))
        clients = _clients(folder, context)
        memory = dict(kept) if isinstance(kept, ConfigRecord) else {}
        node = open_node(folder, clients, memory=memory, on_failure=_tell)  # type: ignore[arg-type]
        reply = answered(message, node.answer)
    except Exception as error:
        # Flower would send the error's text to the server: it says what is wrong in which row.
        _tell(error)
        return answered(message, lambda *_: b"")
    context.state[RECORD] = ConfigRecord(node.memory())  # type: ignore[arg-type]
    return reply


def _tell(error: Exception) -> None:
    """Write into the SuperNode's log, for the owner, what failed."""
    _LOG.error("a message was not answered: %s: %s", type(error).__name__, error)


def _clients(folder: NodeFolder, context: Context) -> Histograms | Records:
    """The clients of the table that the node's configuration names."""
    names = ("table", "features", "client", "category", "count")
    given = {name: context.node_config.get(name) for name in names}
    table, features, client, category, count = (
        None if value is None else str(value) for value in given.values()
    )
    if table is None:
        raise ParameterError('expected table="..." in the node\'s configuration')
    if features is None:
        return table_histograms(
            read_table(table), categories=folder.federation.declared, client=client,
            category=category, count=count,
        )  # fmt: skip
    if count is not None:
        raise ParameterError("expected no count with features: the table has a row for each point")
    return records_of(folder, read_table(table), features, client=client, category=category)

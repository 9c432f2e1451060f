"""polyurn's ClientApp: a node on any SuperNode of Flower's, or in its simulation.

Flower answers each message in a new process, or in one of a simulation's. What a node is comes from its
SuperNode's `--node-config`, which its owner writes:

    node="/path/of/the/node's/folder" table="/path/of/clients.csv"

and client="...", category="..." and count="..." if the table's columns have other names. With
features="...", comma-separated columns of numbers, the table has a row for each point, and questions
about style are answered too. `polyurn federation init` makes the folder.
"""

import logging
from collections.abc import Callable, Mapping

from polyurn.client.counting import Histograms
from polyurn.client.records import Records
from polyurn.client.tables import table_histograms
from polyurn.errors import MissingDependencyError, ParameterError
from polyurn.federation.flower.public_grid import RECORD, WHO, asked_in, claim, reply_to
from polyurn.federation.folder import SIGNING_KEY, NodeFolder, read_node
from polyurn.federation.keys import SigningKey
from polyurn.federation.owned_node import open_node, records_of
from polyurn.storage.table_files import read_table

try:
    from flwr.app import ConfigRecord, Context, Message
    from flwr.clientapp import ClientApp
except ImportError as error:
    raise MissingDependencyError("flwr", "flower", "a ClientApp") from error

_LOG = logging.getLogger(__name__)


def client_app(
    settings: Callable[[Context], Mapping[str, object]] = lambda context: context.node_config,
) -> ClientApp:
    """The app; `settings` says what a SuperNode's configuration would, where there is none to write.

    Settings must not come from `run_config`: that is the server's.
    """
    app = ClientApp()

    @app.query("polyurn")
    def answer(message: Message, context: Context) -> Message:
        try:
            return _answered(message, context, settings(context))
        except Exception as error:
            # Flower would send the error's text to the server: it says what is wrong in which row.
            _tell(error)
            return reply_to(message, {"reply": b""})

    return app


def _answered(message: Message, context: Context, settings: Mapping[str, object]) -> Message:
    """The node's reply; the SuperNode's memory keeps the state of a secure sum."""
    folder = read_node(str(settings.get("node", "")))
    stage, body = asked_in(message)
    if stage == WHO:
        signer = SigningKey(folder.secret(SIGNING_KEY))
        signature = signer.sign(claim(body, context.node_id))
        return reply_to(message, {"node": folder.number, "signature": signature})
    kept = context.state.get(RECORD)
    memory = dict(kept) if isinstance(kept, ConfigRecord) else {}
    node = open_node(folder, _clients(folder, settings), memory=memory, on_failure=_tell)  # type: ignore[arg-type]
    reply = node.answer(stage, body)
    context.state[RECORD] = ConfigRecord(node.memory())  # type: ignore[arg-type]
    return reply_to(message, {"reply": reply})


def _tell(error: Exception) -> None:
    """Write into the SuperNode's log, for the owner, what failed."""
    _LOG.error("a message was not answered: %s: %s", type(error).__name__, error)


def _clients(folder: NodeFolder, settings: Mapping[str, object]) -> Histograms | Records:
    """The clients of the table that the settings name."""
    names = ("table", "features", "client", "category", "count")
    table, features, client, category, count = (
        None if (value := settings.get(name)) is None else str(value) for name in names
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

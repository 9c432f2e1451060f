"""The nodes' side: a SuperNode's --node-config says whose clients it has."""

import os
from collections.abc import Mapping
from pathlib import Path

from flwr.app import Context

from polyurn.federation.flower.node_app import client_app


def settings(context: Context) -> Mapping[str, object]:
    """The SuperNode's configuration; in a simulation, the folders of all nodes stand side by side."""
    nodes, partition = os.environ.get("POLYURN_NODES"), context.node_config.get("partition-id")
    if nodes is None or partition is None:
        return context.node_config
    folder = Path(nodes) / f"node-{int(partition) + 1}"
    return {"node": str(folder), "table": str(folder / "clients.csv")}


app = client_app(settings)

"""Setting a federation up: keys, certificates, roster, policies and the Flower app, in one folder.

Nothing is started here. What the files are is `storage/federation_folder.py`.
"""

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from polyurn.errors import FederationError, ParameterError
from polyurn.integrations.flower.certificates import (
    Certified,
    expiry,
    make_authority,
    make_node_keys,
    make_server,
)
from polyurn.secure.roster import Roster
from polyurn.storage.federation_folder import (
    MOST_NODES,
    Federation,
    FederationFolder,
    NodeEntry,
    make_federation,
    make_node_folder,
    renew_server,
)
from polyurn.storage.files import read_regular

TRANSPORT_KEY, SIGNING_KEY = "transport.key", "signing.key"
# Whoever runs all of a federation on one machine reaches it under these.
_OWN_NAMES = ("localhost", "127.0.0.1")

_POLICY = """\
# What this node lets a server ask. It is yours: no message from the server changes it.
# docs/guides/federation.md says what each line means.
secure_only = {secure_only:11}# answer in secure sums only: the server never sees your numbers alone
largest_max_size = {max_size}
most_numbers = 50000       # in one answer
narrowest_part = 0.02      # of all clients; 0.001 serves from 20,000 clients on
fewest = 3                 # nodes in a secure sum, yours included
majority = 0.5             # which thresholds of a secure sum have to exceed
rounds_per_day = 200       # questions put to your clients in any 24 hours
least_noise = 0.0          # above 0: answer only with noise that you add, of at least this multiplier
most_epsilon = 0.0         # above 0: your privacy budget for all time, kept in privacy.ledger
delta = 1e-6               # of that budget
"""

_APP = {
    "pyproject.toml": """\
[project]
name = "polyurn-app"
version = "1.0.0"
description = "Learn what this federation looks like"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "polyurn"

[tool.flwr.app.components]
serverapp = "polyurn_app.server_app:app"
clientapp = "polyurn_app.client_app:app"

[tool.flwr.app.config]
job = ""
""",
    "polyurn_app/__init__.py": '"""A Flower app that is polyurn\'s."""\n',
    "polyurn_app/server_app.py": (
        '"""The server\'s side."""\n\n'
        "from polyurn.integrations.flower import server_app\n\napp = server_app.app\n"
    ),
    "polyurn_app/client_app.py": (
        '"""The nodes\' side, for nodes that are Flower\'s own SuperNodes."""\n\n'
        "from polyurn.integrations.flower import client_app\n\napp = client_app.app\n"
    ),
}


def set_up(
    path: str | os.PathLike[str],
    *,
    address: str,
    categories: int | Sequence[str],
    max_size: int,
    clients_per_node: int,
    n_nodes: int | None = None,
    public: Sequence[NodeEntry] = (),
    hosts: Sequence[str] = (),
    features: Sequence[str] | None = None,
    secure_only: bool = True,
) -> FederationFolder:
    """Make the folder of a federation.

    Parameters
    ----------
    path : path
        A folder that is not there yet, or is empty.
    address : str
        Where nodes find the SuperLink: host:port.
    categories : int or sequence of str
    max_size, clients_per_node : int
        Declared: the most points of a client, and the most clients of a node.
    n_nodes : int, optional
        How many nodes get keys that are made here. Whoever makes them could speak for the nodes.
    public : sequence of NodeEntry
        Nodes whose owners made their keys.
    hosts : sequence of str
        Further names under which the SuperLink is reached.
    features : sequence of str, optional
        Declared: the columns of records, for questions about style.
    secure_only : bool
        What the nodes' policies begin with.

    Returns
    -------
    FederationFolder
    """
    if (n_nodes or 0) > MOST_NODES:  # before keys are made for all of them
        raise ParameterError(f"expected 1 to {MOST_NODES:,} nodes, got {n_nodes:,}")
    keys = {i: make_node_keys() for i in range(1, 1 + (n_nodes or 0))}
    entries = [
        NodeEntry(
            number=i,
            name=f"node-{i}",
            transport=key.transport_public.decode(),
            signing=key.signing_public.decode(),
        )
        for i, key in keys.items()
    ]
    names = None if isinstance(categories, int) else tuple(categories)
    federation = Federation(
        address=address,
        n_categories=categories if isinstance(categories, int) else len(categories),
        categories=names,
        max_size=max_size,
        clients_per_node=clients_per_node,
        nodes=(*entries, *public),
        hosts=tuple(hosts),
        features=None if features is None else tuple(features),
    )
    roster_of(federation)
    authority = make_authority("polyurn federation")
    server = make_server(authority, _names(federation))
    secrets: Mapping[int, Mapping[str, bytes]] = {
        i: {TRANSPORT_KEY: key.transport, SIGNING_KEY: key.signing} for i, key in keys.items()
    }
    return make_federation(
        path,
        federation,
        authority=(authority.key, authority.certificate),
        server=(server.key, server.certificate),
        secrets=secrets,
        policy=_POLICY.format(max_size=max_size, secure_only=str(secure_only).lower()),
        app=_APP,
    )


def make_keys(path: str | os.PathLike[str], name: str) -> Path:
    """Make the keys of a node in a folder of its own; the file with the public ones.

    Parameters
    ----------
    path : path
        A folder that is not there yet, or is empty.
    name : str
        What the node is called in the federation.
    """
    keys = make_node_keys()
    return make_node_folder(
        path, name, secrets={TRANSPORT_KEY: keys.transport, SIGNING_KEY: keys.signing},
        transport=keys.transport_public, signing=keys.signing_public,
    )  # fmt: skip


def renew(folder: FederationFolder) -> None:
    """A new certificate for the SuperLink, signed by the federation's authority."""
    key, certificate = (read_regular(folder.authority / name) for name in ("ca.key", "ca.crt"))
    server = make_server(Certified(key, certificate), _names(folder.read()))
    renew_server(folder, (server.key, server.certificate))


def check_certificate(folder: FederationFolder) -> None:
    """Nothing, if the SuperLink's certificate is valid; else `FederationError`."""
    ends = expiry(read_regular(folder.certificate))
    if ends <= datetime.now(UTC):
        raise FederationError(
            f"the certificate of the SuperLink has expired ({ends:%Y-%m-%d}): make a new one with "
            "`polyurn federation up --renew`"
        )


def _names(federation: Federation) -> list[str]:
    """Whatever the SuperLink's machine is called."""
    host = federation.address.rpartition(":")[0].strip("[]")
    return [host, *federation.hosts, *_OWN_NAMES]


def roster_of(federation: Federation) -> Roster:
    """The nodes' public keys, as secure sums go by them."""
    return Roster({node.number: node.signing.encode() for node in federation.nodes})

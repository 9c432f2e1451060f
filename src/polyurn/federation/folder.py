"""A federation on disk: the server's folder, and the folder that each node's owner gets.

    DIR/federation.json            what all agree on: address, categories, largest size, public keys
    DIR/authority/                 ca.key, ca.crt; needed again only to renew the server's certificate
    DIR/server/                    the SuperLink's key, certificate, database, log, app and runs
    DIR/nodes/NAME/                federation.json, policy.toml, ca.crt, and keys that were made here

A node's folder later holds its owner's bucket key and log of questions. `certificates.py` makes the
keys; no process is started here.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp

from polyurn.counts import check_names
from polyurn.errors import FederationError, FileError, ParameterError
from polyurn.federation.certificates import (
    Certified,
    expiry,
    make_authority,
    make_node_keys,
    make_secret,
    make_server,
    raw_secret,
)
from polyurn.federation.policy import NodePolicy
from polyurn.federation.roster import Roster
from polyurn.storage.documents import load_document, read_document, save_document
from polyurn.storage.files import read_regular, read_secret, write_secret, write_whole
from polyurn.typed.json_form import Count, shown, to_json

MOST_NODES = 100_000
FEDERATION = "federation.json"
TRANSPORT_KEY, SIGNING_KEY = "transport.key", "signing.key"
# What `init` writes for every owner; few federations have clients enough for narrower parts.
OWNERS_POLICY = NodePolicy(narrowest_part=0.02)
FEWEST_NODES = OWNERS_POLICY.fewest  # in a secure sum, unless an owner says otherwise

_POLICY = """\
# What this node lets a server ask. It is yours: no message from the server changes it.
# docs/guides/federation.md says what each line means.
questions = {questions}  # of these methods
secure_only = {secure_only:11}# answer in secure sums only: the server never sees your numbers alone
allow_exact = {allow_exact:11}# true: also without noise; a server that lies can ask about one client
fewest_clients = {fewest_clients:<8}# that this node must hold with allow_exact
most_numbers = {most_numbers:<10}# in one answer
most_bytes = {most_bytes:<12}# in one question
most_parameters = {most_parameters:<7}# of mixtures in one question
most_components = {most_components:<7}# of a mixture
narrowest_part = {narrowest_part:<8}# of all clients; 0.001 serves from 20,000 clients on
fewest = {fewest:<16}# nodes in a secure sum, yours included
majority = {majority:<14}# which thresholds of a secure sum have to exceed
neighbours = {neighbours:<12}# at least, in a sum over more than 100 nodes
rounds_per_day = {rounds_per_day:<8}# questions put to your clients in any 24 hours
least_noise = {least_noise:<11}# the least noise multiplier of a question
most_epsilon = {most_epsilon:<10}# your privacy budget for all time, kept in privacy.ledger; 0: no limit
delta = {delta:<17}# of that budget
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
        "from polyurn.federation.flower import server_app\n\napp = server_app.app\n"
    ),
    "polyurn_app/client_app.py": (
        '"""The nodes\' side, for nodes that are Flower\'s own SuperNodes."""\n\n'
        "from polyurn.federation.flower import client_app\n\napp = client_app.app\n"
    ),
}


@dataclass(frozen=True, kw_only=True)
class NodeEntry:
    """The public facts of a node: its number (from 1), its name and its public OpenSSH keys.

    `flower_id` is Flower's id of the node, which the server adds when it registers the node.
    """

    number: Count
    name: str
    transport: str
    signing: str
    flower_id: Count | None = None


@dataclass(frozen=True, kw_only=True)
class Federation:
    """What the nodes and the server of a federation have agreed on.

    `features` are the columns of records, in the order of all questions about style. If they were not
    declared (None), nobody checks that nodes use the same columns.
    """

    address: str  # of the SuperLink, for nodes: host:port
    n_categories: Count
    categories: tuple[str, ...] | None  # their names; None if they are called 0, 1, 2, ...
    max_size: Count  # declared largest number of points of a client
    clients_per_node: Count  # declared largest number of clients of a node
    nodes: tuple[NodeEntry, ...]
    hosts: tuple[str, ...] = ()  # further names of the SuperLink's machine, for its certificate
    features: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        host, _, port = self.address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
            raise ParameterError(
                f"expected an address such as example.org:8000, got {self.address}"
            )
        check_names(self.categories, self.n_categories)
        given = self.features
        if given is not None and (not 0 < len(given) == len(set(given)) or "" in given):
            raise ParameterError(
                "expected features with different names, at least one, none of them empty, got "
                f"{','.join(given)!r}"
            )
        if min(self.n_categories, self.max_size, self.clients_per_node) < 1:
            raise ParameterError(
                "expected at least 1 category, and max_size and clients_per_node of at least 1"
            )
        names = [node.name for node in self.nodes]
        if not 1 <= len(names) <= MOST_NODES or len(set(names)) < len(names):
            raise ParameterError(f"expected 1 to {MOST_NODES:,} nodes with names of their own")
        for name in names:
            _check_name(name)
        if [node.number for node in self.nodes] != list(range(1, len(names) + 1)):
            raise ParameterError("expected nodes with the numbers 1, 2, 3, ...")

    @property
    def declared(self) -> int | tuple[str, ...]:
        """The categories in the form that reading a table takes."""
        return self.n_categories if self.categories is None else self.categories

    @property
    def roster(self) -> Roster:
        """The nodes' public keys, by which secure sums verify signatures."""
        return Roster({node.number: node.signing.encode() for node in self.nodes})

    @property
    def server_names(self) -> list[str]:
        """All names of the SuperLink's machine; federations on one machine need the last two."""
        host = self.address.rpartition(":")[0].strip("[]")
        return [host, *self.hosts, "localhost", "127.0.0.1"]

    def check_features(self, names: Sequence[str]) -> None:
        """Refuse columns that are not the declared ones, if any were declared."""
        if self.features is not None and tuple(names) != self.features:
            raise ParameterError(
                f"expected the features that the federation has declared, {','.join(self.features)}, in "
                f"this order, got {','.join(names)}"
            )


class FederationFolder:
    """The folder of a federation's server."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))
        self.authority, self.server = self.path / "authority", self.path / "server"
        self.nodes, self.runs = self.path / "nodes", self.path / "server" / "runs"
        self.flower_home, self.app = self.server / "flower", self.server / "app"
        self.certificate, self.key = self.server / "server.crt", self.server / "server.key"
        self.ca_certificate = self.server / "ca.crt"
        self.database, self.log = self.server / "superlink.db", self.server / "superlink.log"
        self.pid, self.ledger = self.server / "superlink.pid", self.server / "privacy.ledger"

    def read(self) -> Federation:
        """The contents of federation.json."""
        return _read_federation(self.path)

    def node(self, name: str) -> Path:
        """The folder for the owner of a node."""
        return self.nodes / name

    def renew_certificate(self) -> None:
        """A new certificate for the SuperLink, signed by the federation's authority."""
        key, certificate = (read_regular(self.authority / name) for name in ("ca.key", "ca.crt"))
        self.take_certificate(make_server(Certified(key, certificate), self.read().server_names))

    def take_certificate(self, server: Certified) -> None:
        """Replace the SuperLink's key and certificate."""
        write_secret(self.key, server.key)
        write_secret(self.certificate, server.certificate)

    def check_certificate(self) -> None:
        """Refuse a certificate of the SuperLink that has expired."""
        ends = expiry(read_regular(self.certificate))
        if ends <= datetime.now(UTC):
            raise FederationError(
                f"the certificate of the SuperLink has expired ({ends:%Y-%m-%d}): make a new one with "
                "`polyurn federation up --renew`"
            )

    def flower_ids(self) -> dict[int, int]:
        """The numbers of the registered nodes, by Flower's ids; empty before `up`."""
        nodes = self.read().nodes
        return {node.flower_id: node.number for node in nodes if node.flower_id is not None}

    def register(self, flower_ids: Mapping[int, int]) -> None:
        """Write Flower's ids of the nodes, a mapping to their numbers, into federation.json."""
        ids, federation = {number: key for key, number in flower_ids.items()}, self.read()
        nodes = (replace(node, flower_id=ids.get(node.number)) for node in federation.nodes)
        _save_federation(replace(federation, nodes=tuple(nodes)), self.path)


@dataclass(frozen=True)
class NodeFolder:
    """The folder of a node's owner.

    Once the node has joined, the file `flower_id` has the id that Flower gave it.
    """

    path: Path
    number: int
    federation: Federation = field(repr=False)

    @property
    def name(self) -> str:
        return self.federation.nodes[self.number - 1].name

    @property
    def ca_certificate(self) -> Path:
        return self.path / "ca.crt"

    @property
    def pid(self) -> Path:
        return self.path / "node.pid"

    @property
    def flower_id(self) -> Path:
        return self.path / "flower.id"

    def secret(self, name: str) -> bytes:
        """Read a private key from the folder."""
        return read_secret(self.path / name)


def read_node(path: str | os.PathLike[str]) -> NodeFolder:
    """The folder of a node, as `init` made it; its federation.json says which node it is."""
    folder = Path(os.path.abspath(path))
    federation = _read_federation(folder)
    number = load_document(folder / FEDERATION, kind="federation").get("node")
    if number is None:
        raise FileError(
            f"{folder} is not the folder of a node: there is one for each in {folder}/nodes"
        )
    if type(number) is not int or not 1 <= number <= len(federation.nodes):
        raise FileError(f"{folder / FEDERATION} is damaged: there is no node {shown(number)}")
    return NodeFolder(folder, number, federation)


def set_up(
    path: str | os.PathLike[str],
    *,
    address: str,
    categories: int | Sequence[str],
    max_size: int,
    clients_per_node: int,
    n_nodes: int = 0,
    public: Sequence[NodeEntry] = (),
    hosts: Sequence[str] = (),
    features: Sequence[str] | None = None,
    policy: NodePolicy = OWNERS_POLICY,
) -> FederationFolder:
    """Make the folder of a federation, whole or not at all, where there is nothing yet.

    The declarations are as in `Federation`; each node's folder begins with the policy. The keys of
    `n_nodes` nodes are made here, and whoever makes them could speak for these nodes; the owners of the
    `public` nodes made their own.
    """
    if n_nodes > MOST_NODES:  # before keys are made for all of them
        raise ParameterError(f"expected 1 to {MOST_NODES:,} nodes, got {n_nodes:,}")
    keys = {i: make_node_keys() for i in range(1, 1 + n_nodes)}
    entries = [
        NodeEntry(
            number=i,
            name=f"node-{i}",
            transport=key.transport_public.decode(),
            signing=key.signing_public.decode(),
        )
        for i, key in keys.items()
    ]
    federation = Federation(
        address=address,
        n_categories=categories if isinstance(categories, int) else len(categories),
        categories=None if isinstance(categories, int) else tuple(categories),
        max_size=max_size,
        clients_per_node=clients_per_node,
        nodes=(*entries, *public),
        hosts=tuple(hosts),
        features=None if features is None else tuple(features),
    )
    _ = federation.roster  # refuses invalid public keys before anything is written
    authority = make_authority("polyurn federation")
    server = make_server(authority, federation.server_names)
    limits = {name: json.dumps(value) for name, value in vars(policy).items()}  # TOML, too
    target = FederationFolder(path)
    with _whole(target.path) as beside:
        files = FederationFolder(beside)
        for inner in (files.authority, files.runs, files.flower_home, files.nodes):
            inner.mkdir(parents=True)
        _save_federation(federation, files.path)
        write_secret(files.authority / "ca.key", authority.key)
        for copy in (files.authority / "ca.crt", files.ca_certificate):
            copy.write_bytes(authority.certificate)
        files.take_certificate(server)
        for name, text in _APP.items():
            (files.app / name).parent.mkdir(parents=True, exist_ok=True)
            (files.app / name).write_text(text)
        for node in federation.nodes:
            home = files.node(node.name)
            home.mkdir(mode=0o700)
            _save_federation(federation, home, node=node.number)
            (home / "ca.crt").write_bytes(authority.certificate)
            (home / "policy.toml").write_text(_POLICY.format(**limits))
            if (own := keys.get(node.number)) is not None:
                write_secret(home / TRANSPORT_KEY, own.transport)
                write_secret(home / SIGNING_KEY, own.signing)
    return target


def make_keys(path: str | os.PathLike[str], name: str) -> Path:
    """Make a node's keys in a new or empty folder; return the file with the public keys."""
    _check_name(name)
    folder, keys = Path(path), make_node_keys()
    _check_empty(folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot write {folder}: {error.strerror}") from error
    write_secret(folder / TRANSPORT_KEY, keys.transport)
    write_secret(folder / SIGNING_KEY, keys.signing)
    public = (keys.transport_public, keys.signing_public)
    text = "".join(f"{key.decode()} {name}\n" for key in public)
    write_whole(folder / f"{name}.pub", lambda file: file.write(text.encode()))
    return folder / f"{name}.pub"


def load_public_keys(path: str | os.PathLike[str], *, number: int) -> NodeEntry:
    """Read the public keys that `make_keys` wrote, for a node with this number."""
    try:
        lines = read_regular(path).decode().splitlines()
        (*transport, name), (*signing, same) = (line.split() for line in lines)
        if not len(transport) == len(signing) == 2 or name != same:
            raise ValueError("expected two keys of one node")
    except ValueError as error:
        raise FileError(
            f"{path} has no public keys of a node: expected a file that `polyurn federation keys` made"
        ) from error
    return NodeEntry(
        number=number, name=name, transport=" ".join(transport), signing=" ".join(signing)
    )


def bucket_key(path: str | os.PathLike[str]) -> bytes:
    """A node's secret key for its clients' buckets (`client/buckets.py`): 32 bytes, drawn once.

    The file is an OpenSSH key like the node's others and is never overwritten. Keep a copy: another key
    changes the clients' buckets.
    """
    path = Path(path)
    if not os.path.lexists(path):
        _draw_bucket_key(path)
    try:
        return raw_secret(read_secret(path))
    except ValueError as error:
        raise FileError(
            f"{path} is not a bucket key: expected an Ed25519 key of OpenSSH; restore your copy"
        ) from error


def _draw_bucket_key(path: Path) -> None:
    """Write a file whole or not at all; if several processes do, the first one wins."""
    neighbour = path.with_name(f".polyurn-{secrets.token_hex(8)}")
    try:
        write_secret(neighbour, make_secret())
        with contextlib.suppress(FileExistsError):
            os.link(neighbour, path)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        neighbour.unlink(missing_ok=True)


@contextlib.contextmanager
def _whole(target: Path) -> Iterator[Path]:
    """A temporary folder beside the target: renamed to it if nothing fails, else removed."""
    _check_empty(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(mkdtemp(prefix=".polyurn-", dir=target.parent))
        try:
            yield beside
            if target.exists():
                target.rmdir()
            beside.rename(target)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"cannot write {target}: {error.strerror or error}") from error


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[\w][\w.-]{0,63}", name):
        raise ParameterError(
            f"expected a name of letters, digits, dots and dashes, 64 at most, got {name!r}"
        )


def _check_empty(folder: Path) -> None:
    try:
        if os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir())):
            raise FileError(f"{folder} exists already: take another folder")
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"cannot use {folder}: {error.strerror}") from error


def _read_federation(folder: Path) -> Federation:
    if not os.path.lexists(folder / FEDERATION):
        raise FileError(
            f"there is no {FEDERATION} in {folder}: expected a folder that `polyurn federation init` "
            "made"
        )
    return read_document(Federation, folder / FEDERATION, kind="federation")


def _save_federation(federation: Federation, folder: Path, *, node: int | None = None) -> None:
    """With `node`, in the folder of that node."""
    document = {**to_json(federation), **({} if node is None else {"node": node})}
    save_document(document, folder / FEDERATION, kind="federation")

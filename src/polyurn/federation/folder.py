"""A federation on disk: the server's folder, and the folder that each node's owner gets.

    DIR/federation.json            what all agree on: address, categories, largest size, public keys
    DIR/authority/                 ca.key, ca.crt; needed again only to renew the server's certificate
    DIR/server/                    keys and certificates of server and operator, log, ledger, runs
    DIR/nodes/NAME/                federation.json, policy.toml, ca.crt, node.crt; keys made here

A node's folder later holds its owner's bucket key and log of questions. `keys.py` makes the
keys; no process is started here.
"""

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated, Any

from polyurn.client.bins import Bins
from polyurn.client.record_tables import check_values, record_columns
from polyurn.errors import FederationError, FileError, ParameterError
from polyurn.federation.keys import (
    Certified,
    NodeKeys,
    Roster,
    certify,
    expiry,
    make_authority,
    make_node_keys,
    make_operator,
    make_server,
)
from polyurn.federation.policy import NodePolicy, policy_file
from polyurn.model.names import check_names
from polyurn.storage.documents import load_document, read_document, save_document
from polyurn.storage.files import read_regular, read_secret, refused, write_secret, write_whole
from polyurn.typed.declared import AtLeast, check_declared
from polyurn.typed.json_form import Count, shown, to_json
from polyurn.wire import RecordColumn

MOST_NODES = 100_000
FEDERATION = "federation.json"
TRANSPORT_KEY, SIGNING_KEY = "transport.key", "signing.key"
# What `init` writes for every owner; few federations have clients enough for narrower parts.
OWNERS_POLICY = NodePolicy(narrowest_part=0.02)
FEWEST_NODES = OWNERS_POLICY.fewest  # in a secure sum, unless an owner says otherwise


@dataclass(frozen=True, kw_only=True)
class NodeEntry:
    """The public facts of a node: its number (from 1), its name and its public OpenSSH keys."""

    number: Count
    name: str
    transport: str
    signing: str


@dataclass(frozen=True, kw_only=True)
class Federation:
    """What the nodes and the server of a federation have agreed on.

    `features` are the columns of records, in the order of all questions about style. If they were not
    declared (None), nobody checks that nodes use the same columns.
    """

    address: str  # of the server, for nodes: host:port
    n_categories: Annotated[int, AtLeast(1)]
    categories: tuple[str, ...] | None  # their names; None if they are called 0, 1, 2, ...
    max_size: Annotated[int, AtLeast(1)]  # declared largest number of points of a client
    clients_per_node: Annotated[int, AtLeast(1)]  # declared largest number of clients of a node
    nodes: tuple[NodeEntry, ...]
    hosts: tuple[str, ...] = ()  # further names of the server's machine, for its certificate
    features: tuple[str, ...] | None = None
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of features of texts

    def __post_init__(self) -> None:
        check_declared(self)
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
        check_values(self.values, given or ())
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
    def names(self) -> dict[int, str]:
        """The nodes' names, by their numbers."""
        return {node.number: node.name for node in self.nodes}

    @cached_property
    def roster(self) -> Roster:
        """The nodes' public keys, by which secure sums verify signatures."""
        return Roster({node.number: node.signing.encode() for node in self.nodes})

    @property
    def server_names(self) -> list[str]:
        """All names of the server's machine; federations on one machine need the last two."""
        host = self.address.rpartition(":")[0].strip("[]")
        return [host, *self.hosts, "localhost", "127.0.0.1"]

    def columns(self, names: Sequence[str], bins: Mapping[str, Bins]) -> dict[str, RecordColumn]:
        """Declared columns of records, cut into these bins; those of texts at their values.

        The index in all questions is that of the declaration: without it, none can be asked.
        """
        for name in names:
            self.check_column(name)
        return record_columns(names, self.features or (), values=self.values, bins=bins)

    def check_column(self, name: str) -> None:
        """Refuse a column of records that was not declared."""
        if name not in (declared := self.features or ()):
            of = ", ".join(declared) or "none (`polyurn federation init --features`)"
            raise ParameterError(
                f"expected a column that the federation has declared, {of}; got {name!r}"
            )

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
        self.certificate, self.key = self.server / "server.crt", self.server / "server.key"
        self.operators_certificate = self.server / "operator.crt"
        self.operators_key, self.listens = self.server / "operator.key", self.server / "listens"
        self.ca_certificate, self.log = self.server / "ca.crt", self.server / "server.log"
        self.pid, self.ledger = self.server / "server.pid", self.server / "privacy.ledger"

    def read(self) -> Federation:
        """The contents of federation.json."""
        return _read_federation(self.path)

    def node(self, name: str) -> Path:
        """The folder for the owner of a node."""
        return self.nodes / name

    def renew_certificate(self) -> None:
        """A new certificate for the server, signed by the federation's authority."""
        key, certificate = (read_regular(self.authority / name) for name in ("ca.key", "ca.crt"))
        self.take_certificate(make_server(Certified(key, certificate), self.read().server_names))

    def take_certificate(self, server: Certified) -> None:
        """Replace the server's key and certificate."""
        write_secret(self.key, server.key)
        write_secret(self.certificate, server.certificate)

    def check_certificate(self) -> None:
        """Refuse a certificate of the server that has expired."""
        ends = expiry(read_regular(self.certificate))
        if ends <= datetime.now(UTC):
            raise FederationError(
                f"the certificate of the server has expired ({ends:%Y-%m-%d}): make a new one with "
                "`polyurn federation up --renew`"
            )


@dataclass(frozen=True)
class NodeFolder:
    """The folder of a node's owner."""

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
    def certificate(self) -> Path:
        return self.path / "node.crt"

    @property
    def pid(self) -> Path:
        return self.path / "node.pid"

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
    values: Mapping[str, tuple[str, ...]] | None = None,
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
        NodeEntry(number=i, name=f"node-{i}", transport=key.transport_public.decode(),
                  signing=key.signing_public.decode())
        for i, key in keys.items()
    ]  # fmt: skip
    federation = Federation(
        address=address, max_size=max_size, clients_per_node=clients_per_node,
        n_categories=categories if isinstance(categories, int) else len(categories),
        categories=None if isinstance(categories, int) else tuple(categories),
        nodes=(*entries, *public), hosts=tuple(hosts),
        features=None if features is None else tuple(features),
        values=values or {},
    )  # fmt: skip
    _ = federation.roster  # refuses invalid public keys before anything is written
    authority = make_authority("polyurn federation")
    server, operator = make_server(authority, federation.server_names), make_operator(authority)
    target = FederationFolder(path)
    with _whole(target.path) as beside:
        files = FederationFolder(beside)
        for inner in (files.authority, files.runs, files.nodes):
            inner.mkdir(parents=True)
        document = to_json(federation)
        _save_federation(document, files.path)
        write_secret(files.authority / "ca.key", authority.key)
        for copy in (files.authority / "ca.crt", files.ca_certificate):
            copy.write_bytes(authority.certificate)
        files.take_certificate(server)
        write_secret(files.operators_key, operator.key)
        files.operators_certificate.write_bytes(operator.certificate)
        for node in federation.nodes:
            home = files.node(node.name)
            home.mkdir(mode=0o700)
            _save_federation(document, home, node=node.number)
            (home / "ca.crt").write_bytes(authority.certificate)
            certificate = certify(authority, node.name, node.transport.encode())
            (home / "node.crt").write_bytes(certificate)
            (home / "policy.toml").write_text(policy_file(policy))
            if (own := keys.get(node.number)) is not None:
                _write_keys(home, own)
    return target


def make_keys(path: str | os.PathLike[str], name: str) -> Path:
    """Make a node's keys in a new or empty folder; return the file with the public keys."""
    _check_name(name)
    folder, keys = Path(path), make_node_keys()
    _check_empty(folder)
    with refused(f"cannot write {folder}"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write_keys(folder, keys)
    public = (keys.transport_public, keys.signing_public)
    text = "".join(f"{key.decode()} {name}\n" for key in public)
    write_whole(folder / f"{name}.pub", lambda file: file.write(text.encode()))
    return folder / f"{name}.pub"


def _write_keys(folder: Path, keys: NodeKeys) -> None:
    write_secret(folder / TRANSPORT_KEY, keys.transport)
    write_secret(folder / SIGNING_KEY, keys.signing)


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
    both = {"transport": " ".join(transport), "signing": " ".join(signing)}
    return NodeEntry(number=number, name=name, **both)


def bucket_key(path: str | os.PathLike[str]) -> bytes:
    """A node's secret key for its clients' buckets (`client/cohort.py`): 32 bytes, drawn once.

    The file has them as 64 hexadecimal digits and is never overwritten. Keep a copy: another key changes
    the clients' buckets.
    """
    path = Path(path)
    if not os.path.lexists(path):
        neighbour = path.with_name(f".polyurn-{secrets.token_hex(8)}")
        with refused(f"cannot write {path}"):
            try:
                write_secret(neighbour, secrets.token_hex(32).encode())
                with contextlib.suppress(FileExistsError):  # the first of several processes wins
                    os.link(neighbour, path)
            finally:
                neighbour.unlink(missing_ok=True)
    text = read_secret(path).strip()
    if not re.fullmatch(b"[0-9a-f]{64}", text):
        raise FileError(
            f"{path} is not a bucket key: expected 64 hexadecimal digits; restore your copy"
        )
    return bytes.fromhex(text.decode())


@contextlib.contextmanager
def _whole(target: Path) -> Iterator[Path]:
    """A temporary folder beside the target: renamed to it if nothing fails, else removed."""
    _check_empty(target)
    with refused(f"cannot write {target}"):
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(mkdtemp(prefix=".polyurn-", dir=target.parent))
        try:
            yield beside
            if target.exists():
                target.rmdir()
            beside.rename(target)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[\w][\w.-]{0,63}", name):
        raise ParameterError(
            f"expected a name of letters, digits, dots and dashes, 64 at most, got {name!r}"
        )


def _check_empty(folder: Path) -> None:
    with refused(f"cannot use {folder}"):
        if os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir())):
            raise FileError(f"{folder} exists already: take another folder")


def _read_federation(folder: Path) -> Federation:
    if not os.path.lexists(folder / FEDERATION):
        raise FileError(
            f"there is no {FEDERATION} in {folder}: expected a folder that `polyurn federation init` "
            "made"
        )
    return read_document(Federation, folder / FEDERATION, kind="federation")


def _save_federation(document: Mapping[str, Any], folder: Path, **node: int) -> None:
    """With `node`, in the folder of that node."""
    save_document({**document, **node}, folder / FEDERATION, kind="federation")

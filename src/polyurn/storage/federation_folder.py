"""A federation on disk: what its server keeps, and the folder that each node takes home.

    DIR/federation.json            what all agree on: address, categories, largest size, public keys
    DIR/authority/                 ca.key, ca.crt; wanted again only to renew the server's certificate
    DIR/server/                    the SuperLink's key, certificate, database, log, app and runs
    DIR/nodes/NAME/                what the owner of a node gets: node.json, policy.toml, ca.crt, keys

A node's folder later holds what is only its owner's: the key of its buckets, its log of questions.
Which keys these are is `integrations/flower/certificates.py`; processes are started elsewhere.
"""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import TypeVar

from polyurn.counts import check_names
from polyurn.errors import FileError, ParameterError
from polyurn.storage.documents import load_document, read_document, save_document
from polyurn.storage.files import read_secret, write_secret
from polyurn.typed.records import UNKEPT, Count

MOST_NODES = 100_000

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class NodeEntry:
    """What everybody knows of a node.

    Attributes
    ----------
    number : int
        From 1 on.
    name : str
    transport, signing : str
        Its public keys, as OpenSSH writes them.
    """

    number: Count
    name: str
    transport: str
    signing: str


@dataclass(frozen=True, kw_only=True)
class Federation:
    """What the nodes and the server of a federation have agreed on.

    Attributes
    ----------
    address : str
        Where nodes find the SuperLink: host:port.
    hosts : tuple of str
        Further names of its machine, which its certificate has.
    n_categories : int
    categories : tuple of str, or None
        Their names; None if they are called 0, 1, 2, ...
    max_size, clients_per_node : int
        Declared: the most points of a client, and the most clients of a node.
    nodes : tuple of NodeEntry
    features : tuple of str, or None
        The columns of records, in the order in which questions about style take them; None if they were
        not declared, and nobody but their owners knows that nodes mean the same.
    """

    address: str
    n_categories: Count
    categories: tuple[str, ...] | None
    max_size: Count
    clients_per_node: Count
    nodes: tuple[NodeEntry, ...]
    hosts: tuple[str, ...] = ()
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
        """The categories as tables are read with them."""
        return self.n_categories if self.categories is None else self.categories

    def check_features(self, names: Sequence[str]) -> None:
        """Nothing, if these columns are the declared ones, or none were; else `ParameterError`."""
        if self.features is not None and tuple(names) != self.features:
            raise ParameterError(
                f"expected the features that the federation has declared, {','.join(self.features)}, in "
                f"this order, got {','.join(names)}"
            )


class FederationFolder:
    """The folder of a federation's server.

    Parameters
    ----------
    path : path
    """

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
        """What stands in federation.json."""
        return _read(self.path / "federation.json", Federation, "federation", "init")

    def node(self, name: str) -> Path:
        """The folder that a node takes home."""
        return self.nodes / name

    def flower_ids(self) -> dict[int, int]:
        """For each of Flower's ids of registered nodes, the node's number; empty before `up`."""
        place = self.server / "registered.json"
        if not place.exists():
            return {}
        record = load_document(place, kind="registered")
        try:
            return {int(key): int(number) for key, number in record["nodes"].items()}
        except (KeyError, ValueError, AttributeError, TypeError) as error:
            raise FileError(f"{place} is damaged: delete it, and run `up` again") from error

    def register(self, flower_ids: Mapping[int, int]) -> None:
        """Keep which of Flower's ids is which node."""
        nodes = {str(key): number for key, number in flower_ids.items()}
        save_document({"nodes": nodes}, self.server / "registered.json", kind="registered")


@dataclass(frozen=True)
class NodeFolder:
    """What the owner of a node has: but for its `path`, what stands in node.json.

    Once the node has joined, the file `flower_id` has the id that Flower gave it.
    """

    path: Path = field(metadata=UNKEPT)
    number: Count
    federation: Federation = field(repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.number <= len(self.federation.nodes):
            raise ParameterError(f"there is no node {self.number}")

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
        """A private key of the folder: "transport.key" or "signing.key"."""
        return read_secret(self.path / name)


def read_node(path: str | os.PathLike[str]) -> NodeFolder:
    """The folder of a node, as `init` made it."""
    place = Path(os.path.abspath(path))
    return replace(_read(place / "node.json", NodeFolder, "node", "init"), path=place)


def make_federation(
    path: str | os.PathLike[str],
    federation: Federation,
    *,
    authority: tuple[bytes, bytes],
    server: tuple[bytes, bytes],
    secrets: Mapping[int, Mapping[str, bytes]],
    policy: str,
    app: Mapping[str, str],
) -> FederationFolder:
    """Write the folder of a federation, whole or not at all.

    Parameters
    ----------
    path : path
        A folder that is not there yet, or is empty.
    federation : Federation
    authority, server : tuple of bytes
        Key and certificate of each.
    secrets : mapping of int to mapping of str to bytes
        The private keys of each node, by the names of their files; none of a node whose owner has them.
    policy : str
        The policy file that each node begins with.
    app : mapping of str to str
        The files of the Flower app, by their paths.
    """
    folder = FederationFolder(path)
    target = folder.path
    _check_empty(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        made = FederationFolder(mkdtemp(prefix=".polyurn-", dir=target.parent))
        try:
            for inner in (made.authority, made.runs, made.flower_home, made.nodes):
                inner.mkdir(parents=True)
            save_document(federation, made.path / "federation.json", kind="federation")
            write_secret(made.authority / "ca.key", authority[0])
            for place in (made.authority / "ca.crt", made.ca_certificate):
                place.write_bytes(authority[1])
            renew_server(made, server)
            for name, text in app.items():
                (made.app / name).parent.mkdir(parents=True, exist_ok=True)
                (made.app / name).write_text(text)
            for node in federation.nodes:
                place = made.node(node.name)
                place.mkdir(mode=0o700)
                save_document(
                    NodeFolder(place, node.number, federation), place / "node.json", kind="node"
                )
                (place / "ca.crt").write_bytes(authority[1])
                (place / "policy.toml").write_text(policy)
                for name, key in secrets.get(node.number, {}).items():
                    write_secret(place / name, key)
            if target.exists():
                target.rmdir()
            made.path.rename(target)
        finally:
            shutil.rmtree(made.path, ignore_errors=True)
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"cannot write {target}: {error.strerror or error}") from error
    return folder


def renew_server(folder: FederationFolder, server: tuple[bytes, bytes]) -> None:
    """Put a new key and certificate of the SuperLink in the place of the old ones."""
    write_secret(folder.key, server[0])
    write_secret(folder.certificate, server[1])


def make_node_folder(
    path: str | os.PathLike[str],
    name: str,
    *,
    secrets: Mapping[str, bytes],
    transport: bytes,
    signing: bytes,
) -> Path:
    """A folder with the keys of a node whose owner makes them; the file with the public ones.

    Parameters
    ----------
    path : path
        A folder that is not there yet, or is empty.
    name : str
    secrets : mapping of str to bytes
        The private keys, by the names of their files.
    transport, signing : bytes
        The public ones.
    """
    _check_name(name)
    folder = Path(path)
    _check_empty(folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot write {folder}: {error.strerror}") from error
    for file, key in secrets.items():
        write_secret(folder / file, key)
    entry = NodeEntry(number=1, name=name, transport=transport.decode(), signing=signing.decode())
    place = folder / f"{name}.json"
    save_document(entry, place, kind="node-keys")
    return place


def load_public_keys(path: str | os.PathLike[str], *, number: int) -> NodeEntry:
    """What `make_node_folder` wrote, with the number that the node gets."""
    return replace(_read(Path(path), NodeEntry, "node-keys", "keys"), number=number)


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[\w][\w.-]{0,63}", name):
        raise ParameterError(
            f"expected a name of letters, digits, dots and dashes, 64 at most, got {name!r}"
        )


def _check_empty(folder: Path) -> None:
    try:
        if os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir())):
            raise FileError(f"{folder} is there already: take another folder")
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"cannot use {folder}: {error.strerror}") from error


def _read(place: Path, kind: type[Value], name: str, made_by: str) -> Value:
    if not os.path.lexists(place):
        raise FileError(
            f"there is no {place.name} in {place.parent}: expected a folder, or a file, that "
            f"`polyurn federation {made_by}` made"
        )
    return read_document(kind, place, kind=name)

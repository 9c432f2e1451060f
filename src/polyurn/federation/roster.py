"""Nodes' long-lived signing keys, and the roster, which verifies their signatures.

ECDSA on P-384 (what Flower's nodes have) and Ed25519. Files are read elsewhere: keys arrive as bytes.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from polyurn.errors import InputError, MissingDependencyError, RefusedError

try:
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )
    from cryptography.hazmat.primitives.hashes import SHA384
except ImportError as error:
    raise MissingDependencyError("cryptography", "federation", "a secure sum") from error

PublicKey: TypeAlias = Ed25519PublicKey | ec.EllipticCurvePublicKey


class Signer(Protocol):
    """Signs for a node: a key in memory, or a device that keeps one."""

    def sign(self, message: bytes) -> bytes: ...


class SigningKey:
    """A node's long-lived key: Ed25519 or ECDSA P-384, without a passphrase, as OpenSSH or PEM.

    >>> key = SigningKey.generate()
    >>> Roster({7: key.public}).verify(7, b"text", key.sign(b"text"))
    >>> Roster({7: key.public}).verify(7, b"another", key.sign(b"text"))
    Traceback (most recent call last):
    ...
    polyurn.errors.RefusedError: a signature that is not node 7's
    """

    def __init__(self, private: bytes) -> None:
        load: Callable[..., Any] = serialization.load_pem_private_key
        if b"OPENSSH" in private[:40]:
            load = serialization.load_ssh_private_key
        self._key = _of_our_kinds(lambda: load(private, password=None), "private")

    @classmethod
    def generate(cls) -> "SigningKey":
        """A fresh Ed25519 key."""
        encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        key = Ed25519PrivateKey.generate()
        return cls(key.private_bytes(encoding, form, serialization.NoEncryption()))

    @property
    def public(self) -> bytes:
        """The public key as OpenSSH writes it, for a roster."""
        return openssh(self._key.public_key())

    def sign(self, message: bytes) -> bytes:
        """The signature of a message."""
        if isinstance(self._key, Ed25519PrivateKey):
            return self._key.sign(message)
        return bytes(self._key.sign(message, ec.ECDSA(SHA384())))


class Roster:
    """The public keys of all nodes of a federation, by their ids, which are below 2**64.

    Keys are as OpenSSH or PEM writes them; no two nodes have the same.
    """

    def __init__(self, keys: Mapping[int, bytes]) -> None:
        self._keys = {node: _public_key(key) for node, key in keys.items()}
        if any(not 0 <= node < 2**64 for node in keys):
            raise InputError("expected ids of nodes from 0 to 2**64 - 1")
        raw = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        if len({key.public_bytes(*raw) for key in self._keys.values()}) < len(keys):
            raise InputError("expected one key for each node, and two nodes have the same")

    def __contains__(self, node: object) -> bool:
        return node in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def verify(self, node: int, message: bytes, signature: bytes) -> None:
        """Raise `RefusedError`, which names the node, unless the node signed the message."""
        key = self._keys.get(node)
        if key is None:
            raise RefusedError(f"node {node} is not in the roster", node)
        try:
            if isinstance(key, Ed25519PublicKey):
                key.verify(signature, message)
            else:
                key.verify(signature, message, ec.ECDSA(SHA384()))
        except InvalidSignature as error:
            raise RefusedError(f"a signature that is not node {node}'s", node) from error


def openssh(key: Any) -> bytes:
    """A public key as OpenSSH writes it."""
    encoding, form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    return bytes(key.public_bytes(encoding, form))


def _public_key(text: bytes) -> PublicKey:
    load: Callable[[bytes], Any] = serialization.load_ssh_public_key
    if text.startswith(b"-----BEGIN"):
        load = serialization.load_pem_public_key
    key: PublicKey = _of_our_kinds(lambda: load(text), "public")
    return key


def _of_our_kinds(load: Callable[[], Any], which: str) -> Any:
    """Parse a key of one of the two kinds; an error has no byte of it."""
    try:
        key = load()
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InputError(f"a {which} key that cannot be read as OpenSSH or PEM") from error
    is_p384 = isinstance(getattr(key, "curve", None), ec.SECP384R1)
    if not is_p384 and not isinstance(key, Ed25519PrivateKey | Ed25519PublicKey):
        raise InputError(f"expected an Ed25519 or ECDSA P-384 {which} key, got another kind")
    return key

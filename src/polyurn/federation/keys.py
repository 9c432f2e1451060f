"""Keys and certificates of a federation, and the roster, by which signatures of its nodes are verified.

The authority, the server and its operator have certificates; a node has one, too, and a signing key:
Ed25519, or ECDSA on P-384. Keys are bytes here; `folder.py` keeps them in files.
"""

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeAlias

from polyurn.errors import InputError, MissingDependencyError, ParameterError, RefusedError

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )
    from cryptography.hazmat.primitives.hashes import SHA256, SHA384
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as error:
    raise MissingDependencyError("cryptography", "federation", "a federation") from error

PublicKey: TypeAlias = Ed25519PublicKey | ec.EllipticCurvePublicKey
_AUTHORITY_LASTS, _SERVER_LASTS = timedelta(days=3650), timedelta(days=825)
_CLOCKS_DIFFER = timedelta(minutes=5)


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
        return cls(_secret(Ed25519PrivateKey.generate()))

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


# --------------------------------------------------------------------------------------- certificates


@dataclass(frozen=True)
class Certified:
    """A secret key and its certificate, both as PEM."""

    key: bytes = field(repr=False)
    certificate: bytes


@dataclass(frozen=True)
class NodeKeys:
    """The two long-lived keys of a node; public ones as OpenSSH writes them.

    `transport`, ECDSA P-384 as PEM, identifies the node to the server, in TLS. `signing`, Ed25519 as
    OpenSSH writes it, identifies it to other nodes in a secure sum, and is verified six times as fast.
    """

    transport: bytes = field(repr=False)
    transport_public: bytes
    signing: bytes = field(repr=False)
    signing_public: bytes


def make_authority(name: str, *, now: datetime | None = None) -> Certified:
    """A certificate authority of one federation, for ten years."""
    key = ec.generate_private_key(ec.SECP256R1())
    itself, subject = Certified(_secret(key), b""), f"{name} certificate authority"
    return replace(itself, certificate=_signed(itself, subject, key.public_key(), now=now))


def make_server(
    authority: Certified, hosts: Sequence[str], *, now: datetime | None = None
) -> Certified:
    """The server's key and certificate for some hosts, DNS names or IP addresses, for 825 days."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([_host(host) for host in dict.fromkeys(hosts)])
    purpose = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    extensions, lasts = (purpose, names), _SERVER_LASTS
    signed = _signed(authority, hosts[0], key.public_key(), *extensions, lasts=lasts, now=now)
    return Certified(_secret(key), signed)


def make_operator(authority: Certified) -> Certified:
    """The key and certificate with which commands on the server's machine identify themselves to it."""
    key = ec.generate_private_key(ec.SECP256R1())
    return Certified(_secret(key), certify(authority, "operator", openssh(key.public_key())))


def certify(authority: Certified, name: str, public: bytes) -> bytes:
    """The certificate, as PEM, of a client of the server that has this OpenSSH public key."""
    key: Any = serialization.load_ssh_public_key(public)
    purpose = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    return _signed(authority, name, key, purpose)


def public_key_of(certificate: bytes) -> str:
    """The OpenSSH public key in a certificate, which is PEM or, as TLS has it, DER."""
    is_pem = certificate.startswith(b"-----BEGIN")
    load = x509.load_pem_x509_certificate if is_pem else x509.load_der_x509_certificate
    return openssh(load(certificate).public_key()).decode()


def make_node_keys() -> NodeKeys:
    """Fresh keys for a node."""
    transport, signing = ec.generate_private_key(ec.SECP384R1()), Ed25519PrivateKey.generate()
    return NodeKeys(
        transport=_secret(transport), transport_public=openssh(transport.public_key()),
        signing=_secret(signing), signing_public=openssh(signing.public_key()),
    )  # fmt: skip


def expiry(certificate: bytes) -> datetime:
    """When a certificate, as PEM, ceases to be valid."""
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc


def _signed(
    authority: Certified,
    name: str,
    key: ec.EllipticCurvePublicKey,
    *purposes: x509.ExtensionType,
    lasts: timedelta = _AUTHORITY_LASTS,
    now: datetime | None = None,
) -> bytes:
    """A certificate as PEM, with purposes; or without them, of the authority itself."""
    now, is_ca = now or datetime.now(UTC), not purposes
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
    issuer = subject
    if not is_ca:
        issuer = x509.load_pem_x509_certificate(authority.certificate).subject
    signer: Any = serialization.load_pem_private_key(authority.key, password=None)
    usage = x509.KeyUsage(
        digital_signature=not is_ca, key_cert_sign=is_ca, crl_sign=is_ca, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False,
        decipher_only=False,
    )  # fmt: skip
    begun = (
        x509.CertificateBuilder(issuer, subject, key, x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER)
        .not_valid_after(now + lasts)
        .add_extension(x509.BasicConstraints(is_ca, 0 if is_ca else None), critical=True)
        .add_extension(usage, critical=True)
    )
    # RFC 5280 requires both identifiers, and Python refuses certificates without them from 3.13 on.
    subjects = x509.SubjectKeyIdentifier.from_public_key(key)
    issuers = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    for extension in (subjects, issuers, *purposes):
        begun = begun.add_extension(extension, critical=False)
    return begun.sign(signer, SHA256()).public_bytes(serialization.Encoding.PEM)


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        pass
    try:
        return x509.DNSName(text.encode("idna").decode())
    except UnicodeError as error:
        raise ParameterError(f"expected a host name or an IP address, got {text!r}") from error


def _secret(key: ec.EllipticCurvePrivateKey | Ed25519PrivateKey) -> bytes:
    """A private key as PEM, or one of Ed25519 as OpenSSH writes it."""
    form = serialization.PrivateFormat.PKCS8
    if isinstance(key, Ed25519PrivateKey):
        form = serialization.PrivateFormat.OpenSSH
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


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

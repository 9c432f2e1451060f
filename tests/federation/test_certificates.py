"""Certificates that verify, and keys of which only the public half is shown."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    load_pem_private_key,
    load_ssh_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from polyurn.errors import ParameterError
from polyurn.federation.keys import (
    certify,
    expiry,
    make_authority,
    make_node_keys,
    make_operator,
    make_server,
    public_key_of,
)


@pytest.fixture(scope="module")
def authority():
    return make_authority("a federation")


def verify(authority, server, name, now=None):
    root = x509.load_pem_x509_certificate(authority.certificate)
    builder = PolicyBuilder().store(Store([root])).time(now or datetime.now(UTC))
    verifier = builder.build_server_verifier(name)
    verifier.verify(x509.load_pem_x509_certificate(server.certificate), [])


def test_a_server_is_trusted_under_each_of_its_names(authority):
    server = make_server(authority, ["fed.example.org", "localhost", "127.0.0.1", "::1"])
    verify(authority, server, x509.DNSName("fed.example.org"))
    names = x509.load_pem_x509_certificate(server.certificate).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert names.value.get_values_for_type(x509.DNSName) == ["fed.example.org", "localhost"]
    addresses = names.value.get_values_for_type(x509.IPAddress)
    assert [str(address) for address in addresses] == ["127.0.0.1", "::1"]
    with pytest.raises(VerificationError):
        verify(authority, server, x509.DNSName("example.org"))


def test_a_server_of_another_authority_is_not_trusted(authority):
    server = make_server(make_authority("a federation"), ["localhost"])
    with pytest.raises(VerificationError):
        verify(authority, server, x509.DNSName("localhost"))


def test_a_server_cannot_sign_for_others(authority):
    server = make_server(authority, ["localhost"])
    other = make_server(server, ["elsewhere"])
    root = x509.load_pem_x509_certificate(authority.certificate)
    verifier = PolicyBuilder().store(Store([root])).build_server_verifier(x509.DNSName("elsewhere"))
    chain = [x509.load_pem_x509_certificate(c.certificate) for c in (other, server)]
    with pytest.raises(VerificationError):
        verifier.verify(chain[0], chain[1:])


def test_certificates_are_valid_from_a_little_before_now_until_they_expire(authority):
    now = datetime.now(UTC)
    server = make_server(authority, ["localhost"], now=now)
    ends = expiry(server.certificate)
    assert abs(ends - now - timedelta(days=825)) < timedelta(seconds=2)
    verify(authority, server, x509.DNSName("localhost"), now)
    with pytest.raises(VerificationError):
        verify(authority, server, x509.DNSName("localhost"), ends + timedelta(seconds=2))
    assert expiry(authority.certificate) - now > timedelta(days=3649)


@pytest.mark.parametrize("host", ["a..b", "x" * 64, "\udcff"])
def test_a_host_that_cannot_be_named_is_refused(authority, host):
    with pytest.raises(ParameterError, match="expected a host name or an IP address"):
        make_server(authority, [host])


def test_private_keys_are_not_shown(authority):
    keys = make_node_keys()
    for secret in (authority.key, keys.transport, keys.signing):
        for shown in (repr(authority), repr(keys)):
            assert repr(secret)[2:-1] not in shown
            assert "PRIVATE" not in shown


def test_the_keys_of_a_node_are_the_kinds_that_tls_and_secure_sums_take():
    keys, others = make_node_keys(), make_node_keys()
    transport = load_pem_private_key(keys.transport, password=None)
    assert isinstance(transport, ec.EllipticCurvePrivateKey)
    assert transport.curve.name == "secp384r1"
    assert isinstance(load_ssh_private_key(keys.signing, password=None), Ed25519PrivateKey)
    assert keys.transport_public.startswith(b"ecdsa-sha2-nistp384 ")
    assert keys.signing_public.startswith(b"ssh-ed25519 ")
    assert keys.transport != others.transport
    assert keys.signing != others.signing


def test_a_certificate_of_a_node_has_its_key_and_is_no_servers(authority):
    keys = make_node_keys()
    certificate = certify(authority, "node-1", keys.transport_public)
    assert public_key_of(certificate) == keys.transport_public.decode()
    der = x509.load_pem_x509_certificate(certificate).public_bytes(Encoding.DER)
    assert public_key_of(der) == keys.transport_public.decode()
    purposes = x509.load_pem_x509_certificate(certificate).extensions.get_extension_for_class(
        x509.ExtendedKeyUsage
    )
    assert list(purposes.value) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert public_key_of(make_operator(authority).certificate) != public_key_of(certificate)

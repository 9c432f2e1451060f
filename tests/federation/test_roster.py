import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from polyurn.errors import InputError, RefusedError
from polyurn.federation.keys import Roster, SigningKey

PEM, SSH = serialization.Encoding.PEM, serialization.Encoding.OpenSSH
PLAIN = serialization.NoEncryption()


def written(key, form):
    return key.private_bytes(PEM, form, PLAIN)


P384 = ec.generate_private_key(ec.SECP384R1())


@pytest.mark.parametrize(
    "key",
    [
        SigningKey.generate(),
        SigningKey(written(P384, serialization.PrivateFormat.OpenSSH)),
        SigningKey(written(P384, serialization.PrivateFormat.PKCS8)),
    ],
    ids=["Ed25519", "P-384 as ssh-keygen writes it", "P-384 in PEM"],
)
def test_a_signature_is_verified_for_its_node_and_message_only(key):
    roster = Roster({1: key.public, 2: SigningKey.generate().public})
    signature = key.sign(b"text")
    roster.verify(1, b"text", signature)
    for node, message, signed in [
        (1, b"else", signature),
        (2, b"text", signature),
        (1, b"text", b"x"),
    ]:
        with pytest.raises(RefusedError, match=f"not node {node}'s") as refused:
            roster.verify(node, message, signed)
        assert refused.value.node == node


def test_a_stranger_has_no_signature():
    with pytest.raises(RefusedError, match="node 3 is not in the roster"):
        Roster({1: SigningKey.generate().public}).verify(3, b"text", b"signature")


def test_public_keys_are_read_as_openssh_and_as_pem():
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    roster = Roster({1: P384.public_key().public_bytes(PEM, info), 2: SigningKey.generate().public})
    roster.verify(
        1, b"text", SigningKey(written(P384, serialization.PrivateFormat.PKCS8)).sign(b"text")
    )
    assert 1 in roster
    assert len(roster) == 2


def test_two_nodes_with_the_same_key_are_refused():
    key = SigningKey.generate().public
    with pytest.raises(InputError, match="two nodes have the same"):
        Roster({1: key, 2: key})


@pytest.mark.parametrize("node", [-1, 2**64])
def test_an_id_that_no_message_can_hold_is_refused(node):
    with pytest.raises(InputError, match="ids of nodes"):
        Roster({node: SigningKey.generate().public})


def test_keys_of_other_kinds_and_damaged_ones_are_refused_in_one_line():
    p256 = ec.generate_private_key(ec.SECP256R1())
    other = rsa.generate_private_key(65537, 2048)
    locked = P384.private_bytes(
        PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"word")
    )
    for key in (p256, other):
        with pytest.raises(InputError, match="an Ed25519 or ECDSA P-384 private key"):
            SigningKey(written(key, serialization.PrivateFormat.PKCS8))
        public = key.public_key().public_bytes(SSH, serialization.PublicFormat.OpenSSH)
        with pytest.raises(InputError, match="expected an Ed25519 or ECDSA P-384 public key"):
            Roster({1: public})
    for text in (b"", b"nonsense", locked, b"-----BEGIN OPENSSH PRIVATE KEY-----"):
        with pytest.raises(InputError, match="cannot be read"):
            SigningKey(text)
    with pytest.raises(InputError, match="cannot be read"):
        Roster({1: b"nonsense"})

"""Keys that pairs of nodes agree on, the masks that follow from them, and sealed shares.

Every primitive is `cryptography`'s: X25519, HKDF-SHA256, AES-256-CTR, ChaCha20-Poly1305. Which keys
are used when is `participant.py` and `round.py`.
"""

import os
import struct

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import MissingDependencyError, RefusedError

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.hashes import SHA256, Hash
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
except ImportError as error:
    raise MissingDependencyError("cryptography", "flower", "a secure sum") from error

CONTEXT = b"polyurn secure sum 1|"  # in every key, digest and signature: none is another protocol's
N_KEY_BYTES, N_NONCE_BYTES, N_SEAL_BYTES = 32, 12, 12 + 16
_PROBE = X25519PrivateKey.generate()  # keeps no secret: it tries other nodes' keys


def private_key() -> bytes:
    """A fresh X25519 private key, which is 32 random bytes."""
    return os.urandom(N_KEY_BYTES)


def public_key(private: bytes) -> bytes:
    """The X25519 public key of a private one; 32 bytes."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def is_public_key(public: bytes) -> bool:
    """Whether keys can be agreed on with it: a point of low order agrees with everybody on zero."""
    try:
        _PROBE.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        return False
    return True


class KeyPair:
    """A private key that agrees on keys with other nodes' public ones.

    Parameters
    ----------
    private : bytes
        32 of them.
    tag : bytes
        Of the round: keys of two rounds have nothing in common.

    Examples
    --------
    >>> a, b = KeyPair(private_key(), b"round 1"), KeyPair(private_key(), b"round 1")
    >>> a.agreed(b.public, b"mask", 1, 2) == b.agreed(a.public, b"mask", 1, 2)
    True
    """

    def __init__(self, private: bytes, tag: bytes) -> None:
        self._private, self._tag = X25519PrivateKey.from_private_bytes(private), tag
        self.public = self._private.public_key().public_bytes_raw()

    def agreed(self, public: bytes, purpose: bytes, first: int, second: int) -> bytes:
        """The 32 bytes that this node and the owner of `public` share for one purpose and pair."""
        try:
            secret = self._private.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError as error:  # a public key of low order agrees with everybody on zero
            raise RefusedError("a public key that is none") from error
        return derived(secret, purpose, self._tag, first, second)


def derived(secret: bytes, purpose: bytes, tag: bytes, *nodes: int) -> bytes:
    """32 bytes that follow from a secret, by HKDF-SHA256, for one purpose, round and node or pair."""
    info = CONTEXT + purpose + b"|" + struct.pack(f"<{len(nodes)}Q", *nodes)
    return HKDF(SHA256(), N_KEY_BYTES, salt=tag, info=info).derive(secret)


def digest(purpose: bytes, *parts: bytes) -> bytes:
    """SHA-256 of parts of fixed length, or of which only the last is not; 32 bytes."""
    result = Hash(SHA256())
    for part in (CONTEXT, purpose, b"|", *parts):
        result.update(part)
    return result.finalize()


class Words:
    """Whole numbers modulo 2**64 to which masks are added, and from which they are taken away.

    A mask is the AES-256-CTR key stream of a key that is used for nothing else.

    Parameters
    ----------
    words : uint64 array of shape (n_numbers,)
        Copied.

    Examples
    --------
    >>> vector = Words(np.arange(3, dtype=np.uint64))
    >>> vector.add_mask(bytes(32)); vector.values
    array([ 9910523521560253916,  9736928157321283758, 13345931270979981141],
          dtype=uint64)
    >>> vector.subtract_mask(bytes(32)); vector.values
    array([0, 1, 2], dtype=uint64)
    """

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self.values = words.copy()
        self._zeros = bytes(8 * len(words))
        self._buffer = bytearray(8 * len(words) + 16)  # update_into may ask for a block more

    def add_mask(self, key: bytes) -> None:
        self.values += self._mask(key)

    def subtract_mask(self, key: bytes) -> None:
        self.values -= self._mask(key)

    def _mask(self, key: bytes) -> NDArray[np.uint64]:
        stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        stream.update_into(self._zeros, self._buffer)
        return np.frombuffer(self._buffer, dtype="<u8", count=len(self.values))


def seal(key: bytes, text: bytes, *, about: bytes) -> bytes:
    """ChaCha20-Poly1305: a random nonce and the ciphertext, which opens only with the same `about`."""
    nonce = os.urandom(N_NONCE_BYTES)
    return nonce + ChaCha20Poly1305(key).encrypt(nonce, text, about)


def unseal(key: bytes, sealed: bytes, *, about: bytes) -> bytes:
    """What was sealed; `RefusedError` if it was not sealed with this key, or about something else."""
    try:
        nonce, rest = sealed[:N_NONCE_BYTES], sealed[N_NONCE_BYTES:]
        return ChaCha20Poly1305(key).decrypt(nonce, rest, about)
    except InvalidTag as error:
        raise RefusedError("sealed shares that do not open") from error

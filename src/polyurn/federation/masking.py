"""The tools of secure sums: keys and masks, Shamir's shares, fixed point, and signed statements.

Every primitive is `cryptography`'s: X25519, HKDF-SHA256, AES-256-CTR, ChaCha20-Poly1305. Shares are
Shamir's (1979) modulo the prime 2**521 - 1, on Python's integers, whose time depends on their size.
`participant.py` and `round.py` use them.
"""

import math
import os
import secrets
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.errors import InputError, MissingDependencyError, ParameterError, RefusedError
from polyurn.federation.messages import N_KEY_BYTES, N_SHARE_BYTES
from polyurn.typed.declared import Floats

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.hashes import SHA256, Hash
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
except ImportError as error:
    raise MissingDependencyError("cryptography", "federation", "a secure sum") from error

CONTEXT = b"polyurn secure sum 1|"  # in every key, digest and signature: no other protocol has it
N_NONCE_BYTES = 12
_PROBE = X25519PrivateKey.generate()  # keeps no secret: it tries other nodes' keys


def private_key() -> bytes:
    """A fresh X25519 private key, which is 32 random bytes."""
    return os.urandom(N_KEY_BYTES)


def public_key(private: bytes) -> bytes:
    """The X25519 public key of a private one; 32 bytes."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def is_public_key(public: bytes) -> bool:
    """Whether it is of use for key agreement: with a point of low order everybody agrees on zero."""
    try:
        _PROBE.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        return False
    return True


class KeyPair:
    """A private key that agrees on keys with other nodes' public ones; those of two rounds differ.

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
        except ValueError as error:  # with a public key of low order everybody agrees on zero
            raise RefusedError("an invalid public key") from error
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
    """Whole numbers modulo 2**64, of shape (n_numbers,), to which masks are added and subtracted.

    A mask is the AES-256-CTR key stream of a key that is used for nothing else.

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
        self._buffer = bytearray(8 * len(words) + 16)  # update_into may need one more block

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
    """Open what was sealed; `RefusedError` if the key or `about` is another one."""
    try:
        nonce, rest = sealed[:N_NONCE_BYTES], sealed[N_NONCE_BYTES:]
        return ChaCha20Poly1305(key).decrypt(nonce, rest, about)
    except InvalidTag as error:
        raise RefusedError("sealed shares that do not open") from error


# ------------------------------------------------------------------------------------------- shares


PRIME = 2**521 - 1
N_SECRET_BYTES = 32


def split(secret: bytes, *, threshold: int, indices: Iterable[int]) -> list[bytes]:
    """Shares of 32 bytes: the values at `indices`, from 1 on, of a random polynomial.

    `threshold` of them recover the secret; one fewer tells nothing about it.

    >>> shares = split(bytes(range(32)), threshold=2, indices=[1, 2, 3])
    >>> combine({1: shares[0], 3: shares[2]}) == bytes(range(32))
    True
    """
    polynomial = [secrets.randbelow(PRIME) for _ in range(threshold - 1)]
    polynomial.append(int.from_bytes(secret, "little"))  # the highest power first
    shares = []
    for index in indices:
        value = 0
        for coefficient in polynomial:
            # Indices are small: one remainder at the end is faster.
            value = value * index + coefficient
        shares.append((value % PRIME).to_bytes(N_SHARE_BYTES, "little"))
    return shares


def combine(shares: Mapping[int, bytes]) -> bytes:
    """The secret of {index: share}, with as many shares as the threshold.

    Mixed shares of several secrets are detected only by chance: compare the result with a commitment.
    """
    weights = _weights_at_zero(tuple(shares))
    values = (int.from_bytes(share, "little") for share in shares.values())
    secret = sum(w * y for w, y in zip(weights, values, strict=True)) % PRIME
    if secret >= 2 ** (8 * N_SECRET_BYTES):
        raise RefusedError("shares that do not belong together")
    return secret.to_bytes(N_SECRET_BYTES, "little")


@lru_cache(maxsize=1024)
def _weights_at_zero(indices: tuple[int, ...]) -> list[int]:
    """Lagrange's weights Π x_j / (x_j - x_i) over j ≠ i."""
    product = math.prod(indices)
    differences = [math.prod(y - x for y in indices if y != x) % PRIME for x in indices]
    inverses = _inverses(differences)
    return [product // x * inverse % PRIME for x, inverse in zip(indices, inverses, strict=True)]


def _inverses(numbers: Sequence[int]) -> list[int]:
    """1/x modulo the prime of each number, with one inversion for all (Montgomery, 1987)."""
    products = [1]
    for x in numbers:
        products.append(products[-1] * x % PRIME)
    inverse, inverses = pow(products[-1], -1, PRIME), []
    for x, before in zip(reversed(numbers), reversed(products[:-1]), strict=True):
        inverses.append(inverse * before % PRIME)
        inverse = inverse * x % PRIME
    return inverses[::-1]


# -------------------------------------------------------------------------------------- fixed point


# Answers are sums of floats: rounding may lift a value at its bound just above it.
ROUNDING = 1e-9
_SIGNED_BITS = 62  # one bit is for the sign, and one for halves that are rounded up


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """The scale of each element of a vector, chosen so that a sum of `n_summands` cannot overflow.

    Element j is multiplied by 2**f with f = 62 - e - h, where bound_j (1 + 1e-9) < 2**e and n_summands ≤
    2**h. Then |Σ| ≤ 2**h (2**(62 - h) + 1/2) < 2**63 for any h ≤ 61. The sum is off by at most
    n_summands / 2**(f + 1), 4.4e-13 of the bound at 1,000 summands, before it is a float again.
    Clips nothing: a number beyond its bound is an error at the node. `bounds` has shape (n_numbers,).

    >>> scale = FixedPoint(np.array([1.0, 1000.0]), n_summands=3)
    >>> words = scale.encode([0.25, -3.5]) + scale.encode([0.5, 1.0])
    >>> words.dtype, scale.decode(words)
    (dtype('uint64'), array([ 0.75, -2.5 ]))
    """

    bounds: Floats
    n_summands: int

    def __post_init__(self) -> None:
        bounds = np.asarray(self.bounds, dtype=np.float64)
        if bounds.ndim != 1 or not np.isfinite(bounds).all() or (bounds < 0).any():
            raise ParameterError(
                "expected bounds as one row of finite numbers, none of them negative"
            )
        if not 1 <= self.n_summands <= 2**32:
            raise ParameterError(f"expected 1 to 2**32 summands, got {self.n_summands}")
        object.__setattr__(self, "bounds", bounds)

    @property
    def exponents(self) -> NDArray[np.int32]:
        """The power of two that each element is multiplied by, which is exact; shape (n_numbers,)."""
        _, bits = np.frexp(self.bounds * (1 + ROUNDING))
        return np.asarray(_SIGNED_BITS - (self.n_summands - 1).bit_length() - bits, dtype=np.int32)

    def encode(self, values: ArrayLike) -> NDArray[np.uint64]:
        """One summand as words, of shape (n_numbers,); no error holds a value."""
        vector = np.asarray(values, dtype=np.float64)
        if vector.shape != self.bounds.shape:
            raise InputError(f"expected {len(self.bounds)} numbers, got an array of {vector.shape}")
        if not np.isfinite(vector).all():
            raise InputError("numbers of the answer are not finite; nothing is sent")
        n_over = int((np.abs(vector) > self.bounds * (1 + ROUNDING)).sum())
        if n_over:
            raise InputError(f"{n_over} numbers of the answer exceed their bounds; nothing is sent")
        return np.rint(np.ldexp(vector, self.exponents)).astype(np.int64).view(np.uint64)

    def decode(self, words: NDArray[np.uint64]) -> Floats:
        """The sum that the added words stand for, of shape (n_numbers,)."""
        return np.ldexp(words.view(np.int64).astype(np.float64), -self.exponents)


# --------------------------------------------------------------------- what nodes sign and agree on


# Both sides compute them from what they know; a signature shows that they are the same.


def checked_matter(matter: bytes) -> bytes:
    """A digest of what is being summed, or nothing; it is a prefix of everything signed in a round.

    Nodes that got different matters from the server refuse each other's keys.
    """
    # All have one length, so that no other pair of matter and statement has the same bytes.
    if len(matter) not in (0, 32):
        raise InputError(f"expected a digest of 32 bytes, got {len(matter)}")
    return matter


def keys_statement(tag: bytes, node: int, keys: bytes, matter: bytes = b"") -> bytes:
    """What a node signs when it advertises its keys of a round."""
    return matter + CONTEXT + b"keys|" + tag + struct.pack("<Q", node) + keys


def keys_digest(node: int, keys: bytes) -> bytes:
    """The digest of a node's keys in the cohort of a round; 32 bytes."""
    return digest(b"keys", struct.pack("<Q", node), keys)


def cohort_digest(tag: bytes, cohort: Mapping[int, bytes]) -> bytes:
    """All nodes of a round with their keys of this round; 32 bytes.

    Every sealed share and every confirmation has it. Nodes to which the server showed different cohorts
    therefore hold no shares of each other, and those of an earlier round are of no use.
    """
    rows = b"".join(struct.pack("<Q", node) + cohort[node] for node in sorted(cohort))
    return digest(b"cohort", tag, rows)


def survivors_statement(
    tag: bytes, cohort: bytes, survivors: Sequence[int], matter: bytes = b""
) -> bytes:
    """What a node signs when it confirms the survivors that it was shown."""
    rows = struct.pack(f"<{len(survivors)}Q", *survivors)
    return matter + CONTEXT + b"survivors|" + tag + cohort + digest(b"survivors", rows)


def share_commitment(tag: bytes, owner: int, holder: int, share: bytes) -> bytes:
    """A node's public commitment to a share that it seals for another node; 32 bytes.

    A share is a number of 521 random bits, and its digest tells nothing about it. A node that reveals a
    share which does not fit lies; if all fit and the secret is wrong, its owner dealt false shares.
    """
    return digest(b"share", tag, struct.pack("<QQ", owner, holder), share)


def seed_commitment(tag: bytes, node: int, seed: bytes) -> bytes:
    """A node's advertised commitment to its seed, which detects a wrong one; 32 bytes."""
    return derived(seed, b"commitment", tag, node)


def seed_mask(tag: bytes, node: int, seed: bytes) -> bytes:
    """The key of the mask that a node adds on its own (Bonawitz et al.'s b); 32 bytes."""
    return derived(seed, b"own mask", tag, node)


def bounds_digest(bounds: Floats) -> bytes:
    """The digest of the bounds, on which server and nodes agree before they scale numbers; 32 bytes."""
    return digest(b"bounds", bounds.astype("<f8", copy=False).tobytes())

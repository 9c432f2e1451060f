"""Shamir's secret sharing (1979) modulo the prime 2**521 - 1.

Arithmetic on Python's whole numbers, whose time depends on their size. Knows no holders of shares.
"""

import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from polyurn.errors import RefusedError

PRIME = 2**521 - 1
N_SECRET_BYTES, N_SHARE_BYTES = 32, 66


def split(secret: bytes, *, threshold: int, places: Iterable[int]) -> list[bytes]:
    """Shares of a secret: the values at `places` of a random polynomial of degree `threshold` - 1.

    Parameters
    ----------
    secret : bytes
        32 of them.
    threshold : int
        How many shares give the secret back; one fewer says nothing about it.
    places : iterable of int
        Where each share is taken; distinct, from 1 on.

    Examples
    --------
    >>> shares = split(bytes(range(32)), threshold=2, places=[1, 2, 3])
    >>> combine({1: shares[0], 3: shares[2]}) == bytes(range(32))
    True
    """
    polynomial = [secrets.randbelow(PRIME) for _ in range(threshold - 1)]
    polynomial.append(int.from_bytes(secret, "little"))  # the highest power first
    shares = []
    for place in places:
        value = 0
        for coefficient in polynomial:
            value = (
                value * place + coefficient
            )  # places are small: one remainder at the end is faster
        shares.append((value % PRIME).to_bytes(N_SHARE_BYTES, "little"))
    return shares


def combine(shares: Mapping[int, bytes]) -> bytes:
    """The secret of {place: share}, of as many shares as the threshold.

    Raises
    ------
    RefusedError
        If they are shares of nothing that is 32 bytes long. Shares of several secrets are noticed only
        by chance: compare the result with a commitment.
    """
    weights = _weights_at_zero(tuple(shares))
    values = (int.from_bytes(share, "little") for share in shares.values())
    secret = sum(w * y for w, y in zip(weights, values, strict=True)) % PRIME
    if secret >= 2 ** (8 * N_SECRET_BYTES):
        raise RefusedError("shares that do not belong together")
    return secret.to_bytes(N_SECRET_BYTES, "little")


@lru_cache(maxsize=1024)
def _weights_at_zero(places: tuple[int, ...]) -> list[int]:
    """Lagrange's weights Π x_j / (x_j - x_i) over j ≠ i."""
    product = math.prod(places)
    differences = [math.prod(y - x for y in places if y != x) % PRIME for x in places]
    inverses = _inverses(differences)
    return [product // x * inverse % PRIME for x, inverse in zip(places, inverses, strict=True)]


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

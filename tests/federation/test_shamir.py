import itertools
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyurn.errors import RefusedError
from polyurn.federation.masking import N_SHARE_BYTES, PRIME, combine, split


@given(
    st.binary(min_size=32, max_size=32),
    st.sets(st.integers(1, 10**5), min_size=1, max_size=20),
    st.data(),
)
def test_any_threshold_of_shares_gives_the_secret_back(secret, places, data):
    places = sorted(places)
    threshold = data.draw(st.integers(1, len(places)))
    shares = dict(zip(places, split(secret, threshold=threshold, places=places), strict=True))
    used = data.draw(st.permutations(places))[:threshold]
    assert combine({place: shares[place] for place in used}) == secret


def test_every_pair_of_three_shares_gives_the_same_and_one_gives_nothing():
    secret = os.urandom(32)
    shares = dict(enumerate(split(secret, threshold=2, places=[1, 2, 3]), start=1))
    for pair in itertools.combinations(shares, 2):
        assert combine({place: shares[place] for place in pair}) == secret
    # A single share is uniform modulo the prime, and 32 bytes long with a probability of 2**-265.
    for place, share in shares.items():
        with pytest.raises(RefusedError):
            combine({place: share})


def test_shares_of_two_secrets_do_not_belong_together():
    first, second = (split(os.urandom(32), threshold=2, places=[1, 2]) for _ in range(2))
    with pytest.raises(RefusedError, match="do not belong together"):
        combine({1: first[0], 2: second[1]})


def test_the_modulus_is_prime_and_a_share_holds_it():
    # Lucas and Lehmer: 2**p - 1 is prime if and only if p - 2 steps of s² - 2 from 4 end at 0.
    s = 4
    for _ in range(521 - 2):
        s = (s * s - 2) % PRIME
    assert s == 0
    assert PRIME < 2 ** (8 * N_SHARE_BYTES)


def test_the_weights_are_those_of_a_naive_lagrange_interpolation():
    places, threshold = [3, 7, 11, 40], 4
    secret = os.urandom(32)
    shares = dict(zip(places, split(secret, threshold=threshold, places=places), strict=True))
    total = 0
    for x, share in shares.items():
        weight = 1
        for y in places:
            if y != x:
                weight = weight * y * pow(y - x, -1, PRIME) % PRIME
        total += weight * int.from_bytes(share, "little")
    assert (total % PRIME).to_bytes(32, "little") == secret == combine(shares)

"""What secure sums are computed with: keys and masks, Shamir's shares, fixed point, statements."""

import itertools
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from polyurn.errors import InputError, LostRoundError, ParameterError, RefusedError
from polyurn.federation.masking import (
    N_SHARE_BYTES,
    PRIME,
    FixedPoint,
    KeyPair,
    Words,
    bounds_digest,
    cohort_digest,
    combine,
    derived,
    keys_digest,
    keys_statement,
    private_key,
    seal,
    seed_commitment,
    seed_mask,
    share_commitment,
    split,
    survivors_statement,
    unseal,
)
from polyurn.federation.round import SecureSum
from secure_rounds import Federation

TAG = bytes(16)


# ---------------------------------------------------------------------------------- keys and masks


def test_both_of_a_pair_agree_and_nobody_else_does():
    a, b, c = (KeyPair(private_key(), TAG) for _ in range(3))
    assert a.agreed(b.public, b"mask", 1, 2) == b.agreed(a.public, b"mask", 1, 2)
    assert a.agreed(b.public, b"mask", 1, 2) != c.agreed(b.public, b"mask", 1, 2)


def test_keys_differ_by_round_pair_and_purpose():
    private, other = private_key(), KeyPair(private_key(), TAG).public
    a, later = KeyPair(private, TAG), KeyPair(private, b"1" * 16)
    keys = {
        a.agreed(other, b"mask", 1, 2),
        a.agreed(other, b"mask", 2, 1),
        a.agreed(other, b"mask", 1, 3),
        a.agreed(other, b"seal", 1, 2),
        later.agreed(other, b"mask", 1, 2),
    }
    assert len(keys) == 5
    assert {len(key) for key in keys} == {32}  # 256 bits of seed for every mask


def test_a_key_of_low_order_is_refused():
    with pytest.raises(RefusedError, match="an invalid public key"):
        KeyPair(private_key(), TAG).agreed(bytes(32), b"mask", 1, 2)


def test_a_mask_is_the_key_stream_of_aes_256():
    # AES-256 of a block of zeros under a key of zeros: openssl enc -aes-256-ecb -nopad, 64 zeros as -K.
    words = Words(np.zeros(2, dtype=np.uint64))
    words.add_mask(bytes(32))
    assert words.values.astype("<u8").tobytes().hex() == "dc95c078a2408989ad48a21492842087"


def test_masks_that_are_added_and_subtracted_leave_nothing():
    start = np.random.default_rng(0).integers(0, 2**64, 1000, dtype=np.uint64)
    words, keys = Words(start), [os.urandom(32) for _ in range(5)]
    for key in keys:
        words.add_mask(key)
    assert not (words.values == start).any()
    for key in keys:
        words.subtract_mask(key)
    assert (words.values == start).all()


def test_what_is_sealed_opens_with_its_key_and_subject_only():
    key = os.urandom(32)
    sealed = seal(key, b"shares", about=b"round 1")
    assert unseal(key, sealed, about=b"round 1") == b"shares"
    assert sealed != seal(key, b"shares", about=b"round 1")
    damaged = sealed[:-1] + bytes([sealed[-1] ^ 1])
    for wrong in (
        (os.urandom(32), sealed, b"round 1"),
        (key, sealed, b"round 2"),
        (key, damaged, b"round 1"),
        (key, sealed[:12], b"round 1"),
    ):
        with pytest.raises(RefusedError, match="do not open"):
            unseal(wrong[0], wrong[1], about=wrong[2])


def test_derived_bytes_depend_on_every_node_that_is_named():
    assert len({derived(b"s" * 32, b"p", TAG, *nodes) for nodes in [(), (1,), (1, 2), (2, 1)]}) == 4


def distinct(keys):
    """In how many ways each byte comes, at its least varied place."""
    return min(len(set(column)) for column in zip(*keys, strict=True))


def test_every_byte_of_a_key_varies_so_that_no_seed_is_shorter_than_256_bits():
    # Of 200 random bytes 139 are distinct on average, and fewer than 100 never.
    private, other = private_key(), KeyPair(private_key(), TAG).public
    pair = KeyPair(private, TAG)
    assert distinct([private_key() for _ in range(200)]) > 100
    assert distinct([pair.agreed(other, b"mask", 1, i) for i in range(200)]) > 100
    assert distinct([derived(os.urandom(32), b"own mask", TAG, 1) for _ in range(200)]) > 100
    # And all of a secret goes in: any bit of it changes the key.
    flipped = [
        (int.from_bytes(private, "little") ^ (1 << i)).to_bytes(32, "little") for i in range(256)
    ]
    assert len({derived(one, b"own mask", TAG, 1) for one in (private, *flipped)}) == 257


# --------------------------------------------------------------------------------- Shamir's shares


@given(
    st.binary(min_size=32, max_size=32),
    st.sets(st.integers(1, 10**5), min_size=1, max_size=20),
    st.data(),
)
def test_any_threshold_of_shares_gives_the_secret_back(secret, indices, data):
    indices = sorted(indices)
    threshold = data.draw(st.integers(1, len(indices)))
    shares = dict(zip(indices, split(secret, threshold=threshold, indices=indices), strict=True))
    used = data.draw(st.permutations(indices))[:threshold]
    assert combine({place: shares[place] for place in used}) == secret


def test_every_pair_of_three_shares_gives_the_same_and_one_gives_nothing():
    secret = os.urandom(32)
    shares = dict(enumerate(split(secret, threshold=2, indices=[1, 2, 3]), start=1))
    for pair in itertools.combinations(shares, 2):
        assert combine({place: shares[place] for place in pair}) == secret
    # A single share is uniform modulo the prime, and 32 bytes long with a probability of 2**-265.
    for place, share in shares.items():
        with pytest.raises(RefusedError):
            combine({place: share})


def test_shares_of_two_secrets_do_not_belong_together():
    first, second = (split(os.urandom(32), threshold=2, indices=[1, 2]) for _ in range(2))
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
    indices, threshold = [3, 7, 11, 40], 4
    secret = os.urandom(32)
    shares = dict(zip(indices, split(secret, threshold=threshold, indices=indices), strict=True))
    total = 0
    for x, share in shares.items():
        weight = 1
        for y in indices:
            if y != x:
                weight = weight * y * pow(y - x, -1, PRIME) % PRIME
        total += weight * int.from_bytes(share, "little")
    assert (total % PRIME).to_bytes(32, "little") == secret == combine(shares)


# ------------------------------------------------------------------------------------- fixed point


BOUNDS = st.one_of(st.just(0.0), st.floats(1e-300, 1e300))
SHARES = arrays(np.float64, 5, elements=st.floats(-1, 1))


@given(arrays(np.float64, 5, elements=BOUNDS), st.lists(SHARES, min_size=1, max_size=20))
def test_a_sum_of_words_is_the_sum_of_the_numbers_whatever_the_bounds(bounds, shares):
    scale = FixedPoint(bounds, n_summands=len(shares))
    words = sum((scale.encode(share * bounds) for share in shares), np.zeros(5, np.uint64))
    error = np.abs(scale.decode(words) - np.sum([share * bounds for share in shares], axis=0))
    assert (error <= 1e-12 * bounds).all()


@pytest.mark.parametrize("n_summands", [1, 2, 3, 1000, 1023, 1024, 1025, 10**6, 2**32])
@pytest.mark.parametrize("bound", [1.0, np.nextafter(1, 0), np.nextafter(1, 2), 1e-300, 7e299])
def test_the_largest_sum_of_the_declared_summands_does_not_overflow(n_summands, bound):
    scale = FixedPoint(np.array([bound]), n_summands=n_summands)
    for sign in (1, -1):
        word = int(scale.encode([sign * bound * (1 + 0.9e-9)]).view(np.int64)[0])
        assert abs(n_summands * word) < 2**63  # Python's whole numbers do not wrap


def test_the_sum_of_a_thousand_nodes_is_off_by_less_than_1e_12_of_the_bound():
    rng = np.random.default_rng(3)
    bounds = 10.0 ** rng.integers(-6, 9, 200)
    scale = FixedPoint(bounds, n_summands=1000)
    values = bounds * np.concatenate(
        [rng.uniform(-1, 1, (500, 200)), rng.uniform(0.9, 1, (500, 200))]
    )
    words = np.sum([scale.encode(row) for row in values], axis=0, dtype=np.uint64)
    exact = np.array([float(sum(map(int, np.ldexp(c, 90)))) for c in values.T]) / 2.0**90
    assert (np.abs(scale.decode(words) - exact) <= 1e-12 * bounds).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.1, -1.1, 1e300, 1 + 2e-9])
def test_a_number_that_is_not_finite_or_beyond_its_bound_is_refused(value):
    scale = FixedPoint(np.array([5.0, 1.0]), n_summands=3)
    with pytest.raises(InputError, match=r"nothing is sent$") as refused:
        scale.encode([0.0, value])
    assert str(value) not in str(refused.value)


def test_a_bound_of_zero_lets_only_zero_through():
    scale = FixedPoint(np.zeros(1), n_summands=3)
    assert scale.decode(scale.encode([0.0])) == 0
    with pytest.raises(InputError, match="exceed"):
        scale.encode([1e-300])


def test_an_answer_of_another_length_is_refused():
    with pytest.raises(InputError, match="expected 2 numbers"):
        FixedPoint(np.ones(2), n_summands=3).encode([1.0])


@pytest.mark.parametrize(
    ("bounds", "n_summands"),
    [([-1.0], 3), ([np.nan], 3), ([[1.0]], 3), ([1.0], 0), ([1.0], 2**33)],
)
def test_bounds_and_summands_that_make_no_scale_are_refused(bounds, n_summands):
    with pytest.raises(ParameterError, match="expected"):
        FixedPoint(np.array(bounds), n_summands=n_summands)


# ------------------------------- statements: anything that one is about changed, and it is another


KEYS, SEED = bytes(96), bytes(32)
OTHER_TAG, OTHER_KEYS, OTHER_SEED = b"1" * 16, b"k" * 96, b"s" * 32
COHORT = {1: bytes(32), 2: bytes(32), 7: bytes(32)}
DIFFERENT = {
    "keys, signed": (
        keys_statement, (TAG, 1, KEYS), [(OTHER_TAG, 1, KEYS), (TAG, 2, KEYS), (TAG, 1, OTHER_KEYS)],
    ),
    "keys": (keys_digest, (1, KEYS), [(2, KEYS), (1, OTHER_KEYS)]),
    "cohort": (
        cohort_digest,
        (TAG, COHORT),
        [(OTHER_TAG, COHORT), (TAG, {**COHORT, 7: b"k" * 32}), (TAG, {1: bytes(32), 2: bytes(32)}),
         (TAG, {**COHORT, 8: bytes(32)})],
    ),
    "survivors": (
        survivors_statement,
        (TAG, bytes(32), [1, 2, 7]),
        [(OTHER_TAG, bytes(32), [1, 2, 7]), (TAG, b"c" * 32, [1, 2, 7]), (TAG, bytes(32), [1, 2]),
         (TAG, bytes(32), [1, 2, 8])],
    ),
    "share": (
        share_commitment,
        (TAG, 1, 2, bytes(66)),
        [(OTHER_TAG, 1, 2, bytes(66)), (TAG, 2, 1, bytes(66)), (TAG, 1, 3, bytes(66)),
         (TAG, 3, 2, bytes(66)), (TAG, 1, 2, b"1" + bytes(65))],
    ),
    "commitment": (
        seed_commitment, (TAG, 1, SEED), [(OTHER_TAG, 1, SEED), (TAG, 2, SEED), (TAG, 1, OTHER_SEED)],
    ),
    "own mask": (
        seed_mask, (TAG, 1, SEED), [(OTHER_TAG, 1, SEED), (TAG, 2, SEED), (TAG, 1, OTHER_SEED)],
    ),
    "bounds": (bounds_digest, (np.ones(2),), [(np.ones(3),), (np.array([1.0, 1.0 + 2**-52]),)]),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_statement_is_another_if_anything_it_is_about_is(name):
    state, given, others = DIFFERENT[name]
    assert state(*given) == state(*given)
    assert len({state(*one) for one in (given, *others)}) == 1 + len(others)


def test_what_is_public_about_a_seed_is_not_the_key_of_its_mask():
    assert seed_commitment(TAG, 1, SEED) != seed_mask(TAG, 1, SEED)


def test_no_statement_of_one_kind_is_one_of_another():
    """Else a signature under keys could be shown as one under survivors."""
    assert not keys_statement(TAG, 1, KEYS).startswith(survivors_statement(TAG, SEED, [1])[:35])
    assert keys_digest(1, KEYS) != share_commitment(TAG, 1, 2, bytes(66))


def test_a_cohort_is_the_same_in_any_order():
    assert cohort_digest(TAG, COHORT) == cohort_digest(TAG, dict(reversed(COHORT.items())))


# ------------------------------ matter: nodes that were told different ones are in no sum together


def test_a_node_with_another_matter_is_left_out_by_the_server():
    federation = Federation(4, matter=bytes(32))
    federation.round = SecureSum(
        federation.nodes, roster=federation.roster, bounds=federation.bounds, dropout=0.0,
        matter=bytes(32),
    )  # fmt: skip
    odd = federation.nodes[0]
    federation.policy = {"matter": b"x" * 32}
    federation.participants[odd] = federation.participant(odd)
    assert federation.error_of(federation.run(), federation.nodes[1:]) < 1e-9
    assert list(federation.round.refused) == [odd]


def test_nodes_refuse_a_server_that_forwards_keys_of_another_matter():
    class Gullible(type(Federation(3).roster)):
        def verify(self, node, message, signature):
            pass

    federation = Federation(3, matter=bytes(32))
    odd = federation.nodes[0]
    federation.policy = {"matter": b"x" * 32}
    federation.participants[odd] = federation.participant(odd)
    keys = {node: key.public for node, key in federation.keys.items()}
    federation.round = SecureSum(
        federation.nodes, roster=Gullible(keys), bounds=federation.bounds, dropout=0.0
    )
    with pytest.raises(LostRoundError):
        federation.run()
    assert all(federation.errors[node].node == odd for node in federation.nodes[1:])


@pytest.mark.parametrize("matter", [b"x", bytes(31), bytes(33)])
def test_a_matter_of_another_length_is_refused(matter):
    with pytest.raises(InputError, match="a digest of 32 bytes"):
        Federation(3, matter=matter)

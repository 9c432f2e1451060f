import os

import numpy as np
import pytest

from polyurn.errors import RefusedError
from polyurn.federation.masking import KeyPair, Words, derived, private_key, seal, unseal

TAG = bytes(16)


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
    with pytest.raises(RefusedError, match="a public key that is none"):
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

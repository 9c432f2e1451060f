"""Buckets follow from ids and the node's key, and from nothing else."""

from hashlib import blake2b

import numpy as np
import pytest
from scipy.stats import kstest

from polyurn.client.cohort import keyed_buckets
from polyurn.errors import InputError

KEY = bytes(range(32))
NAMES = [f"client {i}" for i in range(500)]


def test_a_bucket_is_the_top_53_bits_of_the_keyed_hash():
    digest = blake2b(b"alice", key=KEY, digest_size=8).hexdigest()
    expected = int(f"{int(digest, 16):064b}"[:53], 2) / 2**53
    assert keyed_buckets(["alice"], KEY)[0] == expected


def test_buckets_do_not_depend_on_the_order_or_on_who_else_is_in_the_table():
    whole = dict(zip(NAMES, keyed_buckets(NAMES, KEY), strict=True))
    some = NAMES[::-7]
    np.testing.assert_array_equal(keyed_buckets(some, KEY), [whole[name] for name in some])


def test_numbers_and_their_texts_are_the_same_ids():
    np.testing.assert_array_equal(keyed_buckets([7, 8], KEY), keyed_buckets(["7", "8"], KEY))


def test_buckets_are_uniform_and_another_key_gives_others():
    buckets, others = keyed_buckets(NAMES, KEY), keyed_buckets(NAMES, bytes(32))
    assert kstest(buckets, "uniform").pvalue > 1e-3  # fixed key: no chance of a false alarm
    assert abs(np.corrcoef(buckets, others)[0, 1]) < 0.2
    assert buckets.min() >= 0
    assert buckets.max() < 1


def test_ids_that_occur_twice_and_keys_of_another_length_are_refused():
    with pytest.raises(InputError, match="one of them twice"):
        keyed_buckets(["a", "b", "a"], KEY)
    with pytest.raises(InputError, match="32 bytes, got 5"):
        keyed_buckets(["a"], b"short")

"""What is signed and agreed on: anything that it is about changed, and it is another."""

import numpy as np
import pytest

from polyurn.federation.masking import (
    bounds_digest,
    cohort_digest,
    keys_digest,
    keys_statement,
    seed_commitment,
    seed_mask,
    share_commitment,
    survivors_statement,
)

TAG, KEYS, SEED = bytes(16), bytes(96), bytes(32)
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

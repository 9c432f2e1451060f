import numpy as np
import pytest

from polyurn.aggregate.shard_round import FAN_IN, add_group, tree_sum


def levels(vectors):
    """The same tree, level after level."""
    while len(vectors) > 1:
        groups = [vectors[i : i + FAN_IN] for i in range(0, len(vectors), FAN_IN)]
        vectors = [add_group(group) for group in groups]
    return vectors[0]


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 32, 255, 256, 257, 300])
def test_a_sum_of_vectors_that_come_has_the_bits_of_the_whole_tree(n):
    vectors = list(np.random.default_rng(n).lognormal(sigma=9, size=(n, 5)))
    np.testing.assert_array_equal(tree_sum(iter(vectors)), levels(vectors))


def test_no_summand_is_changed():
    vectors = [np.ones(2), np.ones(2)]
    assert tree_sum(vectors).tolist() == [2, 2]
    assert vectors[0].tolist() == [1, 1]

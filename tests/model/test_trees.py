"""Trees over categories: learned, declared, by share."""

import numpy as np
import pytest

from polyurn.errors import ParameterError
from polyurn.model.trees import Tree

NAMES = list("abcdef")


def test_totals_are_the_sums_over_the_categories_below_each_node():
    tree = Tree.declared([["a", "d"], [["b", "f"], ["c", "e"]]], NAMES)
    counts = np.random.default_rng(0).integers(0, 9, (20, 6))
    wanted = np.stack([counts[:, below].sum(axis=1) for below in tree.members()], axis=1)
    assert np.array_equal(tree.totals(counts), wanted)


def test_a_declared_tree_is_read_as_it_was_written():
    tree = Tree.by_share(np.random.default_rng(1).random(6))
    assert Tree.declared(tree.nested(NAMES), NAMES) == tree
    assert Tree(tree.children.astype(float)) == tree  # as numbers of a message


def test_a_list_of_several_is_halved():
    assert Tree.declared(["a", "b", "c", "d", "e"], NAMES[:5]).nested(NAMES) == [
        [["a", "b"], "c"],
        ["d", "e"],
    ]


@pytest.mark.parametrize(
    ("nested", "message"),
    [
        (["a", "b"], "'c' 0 times"),
        ([["a", "b"], ["b", "c"]], "got more"),
        (["a", "b", "x"], "got 'x'"),
        (["a", "b", []], "an empty list"),
        (["a", "b", 3], "got 3"),
        ({"a": "b"}, "lists of the categories' names"),
    ],
)
def test_a_tree_that_is_none_is_refused_in_one_line(nested, message):
    with pytest.raises(ParameterError, match="expected a tree") as refused:
        Tree.declared(nested, NAMES[:3])
    assert message in str(refused.value)


@pytest.mark.parametrize("children", [[[1, 2], [3, 4], [5, 6], [1, 2]], [[2, 3], [1, 4]], [[0, 1]]])
def test_children_that_are_no_tree_are_refused(children):
    with pytest.raises(ParameterError, match="child of one inner node before it"):
        Tree(children)


def test_the_learned_tree_joins_categories_that_go_together_first():
    rng = np.random.default_rng(2)
    pairs = rng.dirichlet([3.0, 1.0, 2.0], 500)
    within = rng.beta(40.0, 40.0, pairs.shape)
    roots = np.sqrt(np.stack([pairs * within, pairs * (1 - within)], axis=2).reshape(500, 6))
    tree = Tree.learned(500, roots.sum(axis=0), roots.T @ roots)
    below = [sorted(some) for some in tree.members()]
    assert all(pair in below for pair in ([0, 1], [2, 3], [4, 5]))


def test_a_category_that_nobody_has_is_no_twin_of_another_one():
    roots = np.sqrt([[0.5, 0.5, 0.0, 0.0], [0.2, 0.8, 0.0, 0.0], [0.9, 0.1, 0.0, 0.0]])
    tree = Tree.learned(3, roots.sum(axis=0), roots.T @ roots)
    assert tree.n_categories == 4


def test_frequent_categories_stand_high_in_a_tree_by_share():
    shares = 0.5 ** np.arange(1, 12)
    tree = Tree.by_share(shares)
    depth = np.zeros(21, int)
    for node, children in enumerate(tree.children):
        depth[children] = depth[node] + 1
    assert (np.diff(depth[10:]) >= 0).all()
    assert depth[10] == 1

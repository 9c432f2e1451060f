"""Stages after the choice: a tree and laws are learned where clients need them, and only there."""

import numpy as np
import pytest

from polyurn import MDM, LocalAggregator, Sizes, Tree, fit
from polyurn.errors import ParameterError
from polyurn.model.paper_truths import truth
from polyurn.model.splits import Splits

BOUNDS = {"n_categories": 4, "max_size": 40, "rng": 0}


def choose(counts, numbers=(1, 2), **more):
    more = {**BOUNDS, "shape": "auto", **more}
    return fit(LocalAggregator(counts, rng=0), n_components=numbers, **more)


@pytest.fixture(scope="module")
def together():
    """Clients who have categories 0 and 2 together, or neither."""
    tree = Tree.declared([["a", "c"], ["b", "d"]], list("abcd"))
    splits = Splits(tree, [[[0.6, 0.4], [30.0, 20.0], [4.0, 4.0]]])
    return MDM([1.0], None, Sizes.constant(40), splits=splits).sample(800, rng=1)


def test_a_tree_is_found_and_kept_where_categories_go_together(together):
    choice = choose(together)
    tree, *_ = choice.stages
    assert (tree.shape, tree.kept) == ("tree", True)
    assert tree.gain > 3 * tree.gain_error
    names = choice.mdm.splits.tree.nested(list("abcd"))
    assert sorted(sorted(pair) for pair in names) == [["a", "c"], ["b", "d"]]
    plain = choose(together, shape="dirichlet")
    assert plain.stages == ()
    assert plain.mdm.splits is None
    assert choice.mdm.logpmf(together).mean() > plain.mdm.logpmf(together).mean() + 0.1


def test_laws_are_kept_where_clients_are_more_even_than_chance():
    rng = np.random.default_rng(0)
    even = np.full((600, 4), 8) + rng.integers(0, 2, size=(600, 4))  # 8 or 9 of each
    choice = choose(even, shape="auto")
    assert choice.mdm.splits.laws is not None
    assert choice.stages[-1].gain > 3
    drawn = choice.mdm.sample(2_000, rng=1)
    assert drawn.std(axis=0).max() < 1.5  # a multinomial has 2.5
    assert choice.mdm.logpmf(even).mean() == pytest.approx(choice.joined[-1])


def test_dirichlet_multinomials_stay_as_they_are():
    counts = truth("medium/2").sample(1_000, rng=0)
    bounds = {"n_categories": 10, "max_size": 20}
    plain, choice = (choose(counts, shape=shape, **bounds) for shape in ("dirichlet", "auto"))
    assert not any(stage.kept for stage in choice.stages)
    assert choice.mdm.splits is None
    assert choice.mdm == plain.mdm


@pytest.mark.parametrize("shape", ["tree", "laws"])
def test_a_shape_that_is_asked_for_is_kept(shape):
    counts = truth("medium/2").sample(300, rng=0)
    choice = choose(counts, shape=shape, n_categories=10, max_size=20)
    assert (choice.mdm.splits.laws is not None) == (shape == "laws")
    assert choice.stages[-1].shape == shape


def test_all_stages_take_at_most_thirty_rounds_within_the_upload(together):
    sent = []
    plain = choose(together, shape="dirichlet", held_out=0.2)
    choice = choose(
        together, shape="laws", max_upload=9_000, on_round=lambda r: sent.append(r.n_numbers)
    )
    assert (
        choice.n_rounds - plain.n_rounds <= 30 + 12
    )  # the search may take longer with less upload
    assert max(sent) <= 9_000


def test_a_declared_tree_is_taken(together):
    declared = Tree.declared([["a", "b"], ["c", "d"]], list("abcd"))
    choice = choose(together, shape="tree", tree=declared)
    assert choice.mdm.splits.tree == declared
    assert choice.stages[0].tree == "declared"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"shape": "dirichlet"}, "no tree with shape='dirichlet'"),
        ({"numbers": 2}, "expected held_out, or several n_components, with a tree"),
        ({"cohort_size": 200}, "no cohort_size with a tree"),
        ({"tree": Tree.by_share(np.ones(5))}, "a tree of 4 categories, got 5"),
        ({"numbers": 2, "tree": None, "shape": "laws"}, "with shape='laws'"),
        ({"shape": "laws", "max_size": 9_000}, "max_size of at most 8,192 with shape='laws'"),
    ],
)
def test_a_tree_that_no_stage_would_take_is_refused_before_a_client_is_asked(more, message):
    with pytest.raises(ParameterError, match=message):
        choose(np.ones((50, 4), int), **{"tree": Tree.by_share(np.ones(4)), **more})


def test_the_tree_of_very_many_categories_is_one_by_share_and_that_is_said():
    counts = np.random.default_rng(0).poisson(0.05, (60, 301))
    counts[:, 0] += 25
    choice = choose(counts, n_categories=301, max_size=60, shape="tree", max_rounds=6)
    assert choice.stages[0].tree == "by share"
    assert choice.mdm.splits.tree.children[0, 0] == 300  # category 0, which has most points
    assert "the tree of more than 300 categories is not learned" in str(choice)
    assert "splits on a tree: " in str(choice)


def test_a_stage_begins_at_the_likelihood_of_the_mixture():
    mdm = truth("medium/2")
    split = MDM(
        mdm.weights, None, mdm.sizes, splits=Splits.of_alphas(Tree.by_share(mdm.mean()), mdm.alphas)
    )
    counts = mdm.sample(50, rng=0)
    assert split.logpmf(counts) == pytest.approx(mdm.logpmf(counts), rel=1e-12)


def test_sampled_cohorts_have_no_stages(together):
    choice = choose(together, cohort_size=200, max_rounds=8)
    assert choice.stages == ()

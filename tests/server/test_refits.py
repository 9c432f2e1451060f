"""A fit that begins at an earlier mixture: fewer rounds, the same optimum, the same numbers."""

import numpy as np
import pandas as pd
import pytest

import polyurn as pu
from polyurn.errors import InputError
from polyurn.model.paper_truths import truth


def moved(name, by=0.05):
    """The ground truth with some weight moved from its first component to its second."""
    known = truth(name)
    weights = known.weights + by * (np.eye(known.n_components)[1] - np.eye(known.n_components)[0])
    return pu.MDM(weights, known.alphas, known.sizes)


@pytest.fixture(scope="module")
def old():
    return pu.fit(truth("medium/3").sample(3000, rng=0), n_components=3, rng=0).mdm


@pytest.mark.parametrize("name", ["medium/2", "medium/3", "high/3"])
def test_after_a_small_change_half_the_rounds_find_the_same_optimum(name):
    k = truth(name).n_components
    start = pu.fit(truth(name).sample(3000, rng=0), n_components=k, rng=0).mdm
    counts = moved(name).sample(3000, rng=1)
    fresh, again = (pu.fit(counts, rng=2, **how) for how in ({"n_components": k}, {"start": start}))
    assert again.converged
    assert again.n_rounds <= fresh.n_rounds / 2
    assert abs(again.log_likelihoods[-1] - fresh.log_likelihoods[-1]) < 1e-3


def test_components_keep_their_numbers_when_weights_change_places(old, tmp_path):
    weights = old.weights[[2, 0, 1]]  # the lightest kind becomes the most frequent
    counts = pu.MDM(weights, old.alphas, old.sizes, as_given=True).sample(3000, rng=1)
    again = pu.fit(counts, start=old).mdm
    assert np.abs(again.shares - old.shares).max() < 0.05
    assert np.abs(again.weights - weights).max() < 0.05
    assert again.as_given
    pu.save(again, tmp_path / "again.json")
    assert pu.load(tmp_path / "again.json") == again
    third = pu.fit(counts, start=pu.load(tmp_path / "again.json")).mdm
    assert np.abs(third.weights - again.weights).max() < 1e-3


def test_a_component_without_clients_keeps_its_number(old):
    some = pu.MDM(old.weights[1:] / old.weights[1:].sum(), old.alphas[1:],
                  pu.Sizes(old.sizes.bins, old.sizes.masses[1:]))  # fmt: skip
    again = pu.fit(some.sample(2000, rng=0), start=old)
    assert again.mdm.n_components == 3
    assert again.n_dropped == 0
    assert again.mdm.weights[0] < 0.1


def test_categories_are_found_by_name(old):
    counts = old.sample(1000, rng=0)
    names = tuple("abcdefghij")
    start = pu.MDM(old.weights, old.alphas, old.sizes, categories=names)
    frame = pd.DataFrame(counts, columns=names)
    here, there = (pu.fit(frame[list(order)], start=start) for order in (names, names[::-1]))
    np.testing.assert_allclose(there.mdm.alphas, here.mdm.alphas[:, ::-1], rtol=1e-3)
    with pytest.raises(InputError, match="categories"):
        pu.fit(pd.DataFrame(counts, columns=list("klmnopqrst")), start=start)


def test_larger_clients_than_before_are_possible(old):
    counts = np.vstack([old.sample(500, rng=0), 3 * old.sample(20, rng=1)])
    again = pu.fit(counts, start=old)
    assert again.mdm.max_size == 60
    assert np.isfinite(again.log_likelihoods).all()


def test_samples_begin_at_it_too(old):
    clients = pu.LocalAggregator(old.sample(4000, rng=0), rng=0)
    again = pu.fit(
        clients, n_categories=10, max_size=20, start=old, cohort_size=1000, max_rounds=20, rng=0
    )
    assert again.mdm.as_given
    assert np.abs(again.mdm.weights - old.weights).max() < 0.05


def test_what_a_start_leaves_nothing_to_do_for_is_refused(old):
    counts, two = old.sample(300, rng=0), truth("low/2").sample(300, rng=0)
    for given, line in (
        ({"n_components": 2}, "no n_components"),
        ({"held_out": 0.2}, "no held_out"),
        ({"shape": "tree"}, "shape='tree'"),
        ({"start": truth("appendix-a")}, "categories"),
        ({"start": pu.fit(two, n_components=[1, 2], shape="tree", rng=0).mdm}, "with splits"),
    ):
        with pytest.raises(InputError, match=line):
            pu.fit(counts, **{"start": old, **given})

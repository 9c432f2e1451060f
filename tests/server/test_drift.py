"""When a look says that something has moved, and when it must not."""

import numpy as np
import pytest

import polyurn as pu
from polyurn.model.paper_truths import truth
from polyurn.server.drift import Drift, drift
from polyurn.typed.json_form import from_json, to_json

WAS = truth("medium/2")


def moved_by(part):
    weights = WAS.weights + np.array([-part, part])
    return pu.MDM(weights, WAS.alphas, WAS.sizes)


def look(counts, mdm=WAS, **options):
    return drift(pu.LocalAggregator(counts), mdm, **options)


def changes(found, block):
    return [one for one in found.changes if one.block == block]


@pytest.mark.parametrize("budget", [{}, {"epsilon": 1.0, "delta": 1e-5}], ids=["exact", "noised"])
def test_clients_of_the_mixture_have_not_moved(budget):
    """Of 20 looks at .05 at most 5 are false alarms (more: below .0004); experiments/drift.py: 200."""
    alarms = sum(look(WAS.sample(1500, rng=seed), rng=seed, **budget).moved for seed in range(20))
    assert alarms <= 5


@pytest.mark.parametrize("budget", [{}, {"epsilon": 1.0, "delta": 1e-5}], ids=["exact", "noised"])
def test_weights_that_moved_are_named_with_their_new_values(budget):
    found = look(moved_by(0.1).sample(5000, rng=1), **budget)
    assert found.moved
    first, second = changes(found, "component")
    assert first.moved
    assert second.was == pytest.approx(0.4, abs=0.005)
    assert second.now.low < 0.5 < second.now.high
    assert "component 2 grew from 40% to" in found.sentence


def test_sizes_that_moved_are_named():
    large = pu.MDM(WAS.weights, WAS.alphas, pu.Sizes.constant(40, n_components=2))
    sizes = pu.Sizes(large.sizes.bins, np.full((2, 40), 1 / 40))
    found = look(large.sample(500, rng=1), pu.MDM(WAS.weights, WAS.alphas, sizes))
    assert "clients of 32 to 40 points grew" in found.sentence


def test_clients_that_no_component_explains_are_counted():
    counts = WAS.sample(2000, rng=1)
    counts[:200] = 0
    counts[:200, 0], counts[:200, 9] = 10, 10
    found = look(counts)
    (unexplained,) = changes(found, "unexplained")
    assert unexplained.moved
    assert unexplained.now.value == pytest.approx(0.11, abs=0.02)


def test_an_impossible_client_is_unexplained_and_no_nan():
    mdm = pu.MDM([1.0], [[1.0, 2.0, 0.0]], pu.Sizes.constant(9))
    counts = np.vstack([mdm.sample(300, rng=0), np.full((30, 3), 3)])
    found = look(counts, mdm)
    assert np.isfinite(found.means).all()
    assert changes(found, "unexplained")[0].moved


def test_a_later_look_is_compared_with_the_first_whatever_the_mixture_says():
    wrong = pu.MDM([1.0], [[1.0] * 10], pu.Sizes.constant(20))
    first = look(WAS.sample(3000, rng=1), wrong)
    assert first.moved
    assert not look(WAS.sample(3000, rng=2), wrong, since=first).moved
    assert look(moved_by(0.3).sample(3000, rng=3), wrong, since=first).moved


def test_a_look_that_was_written_is_the_same_to_compare_with():
    first = look(WAS.sample(800, rng=1))
    again = from_json(Drift, to_json(first))
    assert again.sentence == first.sentence
    later = WAS.sample(800, rng=2)
    assert to_json(look(later, since=again)) == to_json(look(later, since=first))


def test_packed_clients_and_tables_are_seen_alike(tmp_path):
    from polyurn.aggregate.shard_aggregator import ShardAggregator
    from shard_cases import packed

    counts = WAS.sample(700, rng=1)
    folder = packed(tmp_path, counts)
    packed = drift(ShardAggregator(folder), WAS)
    np.testing.assert_allclose(packed.means, look(counts).means, atol=1e-12)

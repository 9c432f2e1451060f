"""Which federations clients resemble, and where they stand on the map."""

import numpy as np
import pytest

import polyurn as pu
from polyurn.model.sizes import Sizes
from polyurn.zoo.cards import profile

LABELS = np.random.default_rng(0).integers(0, 10, 20_000)


@pytest.mark.parametrize("match", ["rank", "marginal"])
@pytest.mark.parametrize("name", ["celeba_hair", "flights", "census_income", "movielens_rating"])
def test_a_cut_by_a_federation_is_nearest_to_it(name, match):
    mdm = pu.zoo.like(name, LABELS, match=match, mean_size=60, rng=1)
    found = pu.zoo.nearest(mdm.sample(500, rng=2), rng=3)
    at = {row.name: row.labels for row in found.rows}
    assert at[name].value <= found.rows[0].labels.value + 0.002  # mild skew is near other mild skew
    assert name in [row.name for row in found.rows[:6]]


def test_clients_of_a_federation_are_as_near_as_chance_and_have_its_sizes():
    found = pu.zoo.nearest(pu.zoo.load("lecturers"), rng=0)
    first = found.rows[0]
    assert first.name == "lecturers"
    assert first.labels.low < 0.002
    assert first.sizes < 0.3
    assert {row.name for row in found.rows} == set(pu.zoo.names())


def test_the_correlation_of_one_dirichlet_is_one_over_one_more_than_its_concentration():
    for alpha_0 in (0.5, 3.0, 40.0):
        mdm = pu.MDM([1.0], [[0.2 * alpha_0, 0.3 * alpha_0, 0.5 * alpha_0]], Sizes.constant(30))
        found = profile(mdm.sample(2_000, rng=0), rng=1)
        at = found.correlation
        assert abs(at.value - 1 / (1 + alpha_0)) < 4 * (at.high - at.low) / 3.92
        assert found.in_words == "more different than chance"
        assert found.size_variation.value == 0


def test_even_clients_have_a_negative_correlation_and_say_so():
    even = np.tile([[7, 6, 7], [6, 7, 7], [7, 7, 6]], (60, 1))
    found = profile(even, rng=0)
    assert found.correlation.high < 0
    assert found.in_words == "more even than chance"


def test_chance_is_neither():
    found = profile(np.random.default_rng(0).multinomial(20, [0.3, 0.7], size=500), rng=0)
    assert found.in_words == "as chance"
    assert found.correlation.low < 0 < found.correlation.high

"""What a survey says, and clients that are simulated from it."""

import numpy as np
import pytest

from polyurn import LocalAggregator
from polyurn.model.paper_truths import truth
from polyurn.model.scores import Mixture
from polyurn.model.sizes import SizeBins
from polyurn.server.private.steps import surveyed
from polyurn.wire import BoundedSurvey


@pytest.fixture(scope="module")
def population():
    query = BoundedSurvey(10, SizeBins.logarithmic(20))
    values = LocalAggregator(truth("medium/1").sample(50_000, rng=0)).aggregate(query, None).values
    return surveyed(query, values, 1e-6)


def test_a_survey_without_noise_has_the_moments_of_the_clients(population):
    known = truth("medium/1")
    assert population.n_clients == pytest.approx(50_000, rel=1e-6)
    alphas = population.single.alphas[0]
    np.testing.assert_allclose(
        alphas / alphas.sum(), known.alphas[0] / known.alphas.sum(), atol=0.01
    )
    assert alphas.sum() == pytest.approx(known.alphas.sum(), rel=0.05)
    assert population.sizes.masses[0, -1] == pytest.approx(1)


def test_simulated_clients_have_the_sizes_and_categories_of_the_population(population):
    counts = population.simulate(population.single, 1000, np.random.default_rng(0))
    assert counts.shape == (1000, 10)
    assert (
        population.sizes.bins.locate(counts.sum(axis=1)) == population.sizes.bins.n_bins - 1
    ).all()


def test_floors_and_caps_hold(population):
    extreme = Mixture(np.array([1 - 1e-9, 1e-9]), np.full((2, 10), [[1e-9], [1e9]]))
    tame = population.floored(population.capped(extreme), (0.03, 0.1))
    assert tame.weights.min() == pytest.approx(0.05 / 1.05, rel=1e-3)
    assert tame.concentrations.max() <= population.cap * 1.3
    shares = tame.alphas / tame.concentrations[:, None]
    assert (shares > 0.02 * population.proportions).all()


def test_noise_alone_is_no_reason_to_fail():
    query = BoundedSurvey(4, SizeBins.logarithmic(9))
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(scale=100.0, size=query.n_numbers)
        population = surveyed(query, noise, 100.0)
        assert population.n_clients >= 10
        assert (population.single.alphas > 0).all()
        population.simulate(population.single, 10, np.random.default_rng(0))

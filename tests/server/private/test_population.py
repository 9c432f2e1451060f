"""What a survey says, and clients that are simulated from it."""

import numpy as np
import pytest

from polyurn import LocalAggregator
from polyurn.model.paper_truths import truth
from polyurn.model.scores import Mixture
from polyurn.model.sizes import SizeBins
from polyurn.server.private.steps import size_masses, surveyed
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


def test_every_declared_size_keeps_mass_however_much_noise_there_is():
    bins = SizeBins.logarithmic(1000, per_doubling=2)
    rng = np.random.default_rng(0)
    for scale in (1e-6, 1.0, 1e3, 1e9):
        noised = np.append(np.full(bins.n_bins - 1, 0.0), 500.0) + scale * rng.normal(
            size=bins.n_bins
        )
        masses = size_masses(noised, scale, np.full(bins.n_bins, 500.0 / bins.n_bins))
        assert (masses > 0).all()
        assert masses.sum() == pytest.approx(1)


def test_sizes_without_noise_are_the_shares_of_the_clients():
    counts = np.array([10.0, 0.0, 50.0, 40.0, 100.0])
    masses = size_masses(counts, 1e-6, np.full(5, 40.0))
    np.testing.assert_allclose(masses, counts / 200, atol=1e-7)


def test_sizes_that_are_noise_only_are_spread_as_was_expected():
    """The largest of fifty draws was 0.01 away."""
    expected = np.array([5.0, 3.0, 2.0, 1.0])
    masses = size_masses(np.random.default_rng(0).normal(scale=1e4, size=4), 1e4, expected)
    np.testing.assert_allclose(masses, expected / expected.sum(), atol=0.02)


def test_sizes_are_means_of_the_posterior():
    """By quadrature: a normal likelihood, exponential priors, a block of both bins first."""

    def mean(value, noise, expected):
        x = np.linspace(0, value + 40 * noise, 400_001)
        weights = np.exp(-0.5 * ((x - value) / noise) ** 2 - x / expected)
        return (weights * x).sum() / weights.sum()

    block = mean(35.0, 10 * np.sqrt(2), 60.0)
    by_hand = np.array([mean(40.0, 10.0, block / 3), mean(-5.0, 10.0, 2 * block / 3)])
    masses = size_masses(np.array([40.0, -5.0]), 10.0, np.array([20.0, 40.0]))
    np.testing.assert_allclose(masses, by_hand / by_hand.sum(), rtol=1e-4)


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

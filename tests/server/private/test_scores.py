"""One score round: Fisher scoring from clipped, whitened sums."""

import numpy as np
import pytest

from polyurn import LocalAggregator
from polyurn.model.paper_truths import truth
from polyurn.model.scores import Mixture, log_likelihoods
from polyurn.model.sizes import SizeBins
from polyurn.server.private.plan import DEFAULT
from polyurn.server.private.steps import moved, prepare, surveyed
from polyurn.wire import BoundedSurvey

KNOWN = truth("medium/2")
COUNTS = KNOWN.sample(20_000, rng=0)


@pytest.fixture(scope="module")
def population():
    query = BoundedSurvey(10, SizeBins.logarithmic(20))
    return surveyed(query, LocalAggregator(COUNTS).aggregate(query, None).values, 1e-6)


@pytest.mark.parametrize("sigma", [1e-3, 60.0])
def test_a_step_from_nearby_parameters_goes_to_the_known_ones(population, sigma):
    """Clipped or not: with much noise the clip is tight, and what it distorts is put right."""
    rng = np.random.default_rng(1)
    known = Mixture(KNOWN.weights, KNOWN.alphas)
    start = moved(known, rng.normal(scale=0.2, size=known.n_coordinates), largest=1.0)
    asked = prepare(start, population, sigma, DEFAULT, 20_000, rng)
    values = LocalAggregator(COUNTS).aggregate(asked.query, None).values
    after = moved(start, asked.step(values, shrunk=False, largest_gain=20.0), largest=1.5)

    def behind(mixture):
        return (log_likelihoods(known, COUNTS) - log_likelihoods(mixture, COUNTS)).mean()

    assert behind(after) < 0.15 * behind(start)


def test_simulated_clients_send_vectors_of_mean_zero_but_for_the_bias_of_clipping(population):
    rng = np.random.default_rng(2)
    known = Mixture(KNOWN.weights, KNOWN.alphas)
    asked = prepare(known, population, 60.0, DEFAULT, 20_000, rng)
    fresh = population.simulate(known, 20_000, rng)
    values = LocalAggregator(fresh).aggregate(asked.query, None).values
    rest = values * asked.query.clip / len(fresh) - asked.bias
    assert np.abs(rest).max() < 5 / np.sqrt(len(fresh)) * 1.5


def test_a_step_that_noise_explains_is_shrunk_to_nothing(population):
    known = Mixture(KNOWN.weights, KNOWN.alphas)
    asked = prepare(known, population, 1e4, DEFAULT, 5_000, np.random.default_rng(3))
    noise = np.random.default_rng(4).normal(scale=1e4, size=len(asked.bias))
    plain = asked.step(noise, shrunk=False, largest_gain=1e9)
    shrunk = asked.step(noise, shrunk=True, largest_gain=1e9)
    assert np.linalg.norm(shrunk) < 0.7 * np.linalg.norm(plain)

"""The number of components under differential privacy."""

import numpy as np
import pytest

from polyurn import LocalAggregator, fit_private
from polyurn.errors import ParameterError
from polyurn.model.paper_truths import truth
from polyurn.model.scores import Mixture
from polyurn.server.fit_results import PrivateCandidate
from polyurn.server.private.private_fit import candidates_of, chosen_of
from polyurn.server.private.steps import Gains


def seeded(seed):
    rng = np.random.default_rng(seed)
    return lambda n, scale: np.rint(rng.standard_normal(n) * scale).astype(np.int64)


def test_the_right_number_is_chosen_and_fitted_in_twelve_rounds():
    known = truth("medium/2")
    choice = fit_private(
        LocalAggregator(known.sample(10_000, rng=0)), n_components=[1, 2, 3], epsilon=1.0, delta=1e-6,
        n_categories=10, max_size=20, noise=seeded(1), rng=2,
    )  # fmt: skip
    assert choice.n_components == choice.mdm.n_components == 2
    assert choice.n_rounds <= 12
    assert choice.guarantee.epsilon == pytest.approx(1.0, abs=1e-6)
    assert [c.n_components for c in choice.raced] == [1, 2, 3]
    fresh = known.sample(20_000, rng=3)
    gap = (known.logpmf_given_size(fresh) - choice.mdm.logpmf_given_size(fresh)).mean()
    assert gap < 0.02


def test_candidates_are_behind_the_best_by_their_gains_and_their_parameters():
    raced = [Mixture(np.full(k, 1 / k), np.ones((k, 4))) for k in (2, 1, 3)]
    gains = Gains(np.array([0.0, -0.2, 0.001]), np.array([0.0, 0.003, 0.004]))
    found = candidates_of(raced, gains, n_clients=1000.0)
    assert [c.n_components for c in found] == [1, 2, 3]
    # Five more parameters gain 5 / 2n by chance: more than the 0.001 by which K = 3 is ahead.
    assert [round(c.behind, 4) for c in found] == [0.1975, 0.0, 0.0015]
    assert [c.noise for c in found] == [0.003, 0.0, 0.004]


def chosen(*behind_and_noise):
    return chosen_of([PrivateCandidate(k, *one) for k, one in enumerate(behind_and_noise, 1)])


def test_a_smaller_number_that_noise_hides_is_not_taken_past_one_that_is_surely_behind():
    assert chosen((2.16, 1.08), (1.41, 0.33), (0.0, 0.0)) == 3


def test_the_smallest_number_is_taken_that_is_not_surely_behind():
    assert chosen((0.5, 0.2), (0.3, 0.2), (0.1, 0.2), (0.0, 0.0)) == 2
    assert chosen((0.0, 0.0), (0.1, 0.01), (0.01, 0.2)) == 1
    assert chosen((0.5, 0.2), (0.3, 0.1), (0.0, 0.0), (0.001, 0.2)) == 3


def test_a_number_whose_climb_failed_does_not_rule_out_smaller_ones_that_are_likelier():
    assert chosen((0.1, 0.2), (1.5, 0.1), (0.0, 0.0)) == 1


def test_one_component_alone_is_no_choice():
    with pytest.raises(ParameterError, match="above 1"):
        fit_private(
            LocalAggregator([[1, 1]]), n_components=[1], epsilon=1.0, delta=1e-6, n_categories=2,
            max_size=9,
        )  # fmt: skip

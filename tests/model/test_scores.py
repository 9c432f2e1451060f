"""Scores: the gradient of a client's log-likelihood, against differences of plain formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp

from polyurn.model.mdm import mixture_logpmf
from polyurn.model.paper_truths import truth
from polyurn.model.scores import Mixture, log_likelihoods, responsibilities, scores


def plain(mixture, counts):
    joint = np.log(mixture.weights) + mixture_logpmf(counts, mixture.alphas)
    n = counts.sum(axis=1)
    return logsumexp(joint, axis=1) - gammaln(n + 1) + gammaln(counts + 1).sum(axis=1)


def at(theta, k, c):
    table = theta.reshape(k, c + 1)
    logits = table[:, c]
    return Mixture(np.exp(logits - logsumexp(logits)), np.exp(table[:, :c]))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3), st.integers(2, 5), st.integers(0, 2**32))
def test_scores_are_the_derivatives_of_the_log_likelihood(k, c, seed):
    rng = np.random.default_rng(seed)
    theta = rng.normal(scale=1.5, size=k * (c + 1))
    counts = rng.multinomial(rng.integers(1, 60), rng.dirichlet(np.ones(c)), size=3)
    found, h = scores(at(theta, k, c), counts), 1e-6
    for i in range(len(theta)):
        step = h * np.eye(len(theta))[i]
        slope = (plain(at(theta + step, k, c), counts) - plain(at(theta - step, k, c), counts)) / (
            2 * h
        )
        np.testing.assert_allclose(found[:, i], slope, atol=1e-5 * (1 + np.abs(slope).max()))


def test_log_likelihoods_and_responsibilities_are_those_of_the_plain_formula():
    mdm = truth("high/3")
    mixture, counts = Mixture(mdm.weights, mdm.alphas), mdm.sample(50, rng=0)
    np.testing.assert_allclose(log_likelihoods(mixture, counts), plain(mixture, counts), rtol=1e-12)
    np.testing.assert_allclose(
        responsibilities(mixture, counts), mdm.responsibilities(counts), rtol=1e-9
    )


def test_scores_have_mean_zero_under_the_mixture_itself():
    """A false alarm of one in ten thousand for all coordinates together."""
    mdm = truth("medium/3")
    found = scores(Mixture(mdm.weights, mdm.alphas), mdm.sample(20_000, rng=1))
    z = found.mean(axis=0) / (found.std(axis=0) / np.sqrt(len(found)))
    assert np.abs(z).max() < 4.8


def test_a_million_concentration_keeps_its_digits():
    even = Mixture(np.ones(1), np.full((1, 2), 5e5))
    counts = np.array([[30, 10], [20, 20]])
    multinomial = -40 * np.log(2)
    assert log_likelihoods(even, counts) == pytest.approx(multinomial, abs=1e-3)


def test_counts_beyond_the_tables_lose_no_digits():
    """Four parameters are tabulated up to a count of 16,384; a series continues."""
    mixture = Mixture(np.array([0.4, 0.6]), np.array([[0.3, 40.0], [2e5, 3.0]]))
    counts = np.array([[300_000, 900_000], [1, 16_385], [900_000, 0]])
    np.testing.assert_allclose(log_likelihoods(mixture, counts), plain(mixture, counts), rtol=1e-9)
    alone = [scores(mixture, counts[[i]])[0] for i in range(3)]
    np.testing.assert_array_equal(scores(mixture, counts), alone)
    few = scores(mixture, counts, max_size=1_200_000)
    np.testing.assert_allclose(few, scores(mixture, counts), rtol=1e-9)

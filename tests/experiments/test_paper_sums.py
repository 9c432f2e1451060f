"""The paper's own route to privacy, which ours is compared with."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from polyurn import LocalAggregator, SizeBins, fit_paper
from polyurn.errors import ParameterError
from polyurn.model.paper_truths import truth
from polyurn.privacy.accounting import sigma_for
from polyurn.privacy.ledger import PrivacyLedger
from polyurn.privacy.private_aggregator import PrivateAggregator
from polyurn.wire import Initialise, Survey, Update

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from paper_sums import PaperSums

TRUTH = truth("medium/3")
BINS = SizeBins.logarithmic(20)
OPTIONS = {
    "n_components": 3, "n_categories": 10, "max_size": 20, "n_rounds": 12, "sizes": BINS,
    "size_prior": 1.0, "category_prior": 0.01, "moments": "pooled",
}  # fmt: skip


def layer(counts, *, epsilon, n_rounds, noise):
    ledger = PrivacyLedger(epsilon, 1e-6)
    private = PrivateAggregator(LocalAggregator(counts, rng=1), ledger=ledger, noise=noise)
    return PaperSums(private, sigma=sigma_for(epsilon, 1e-6) * math.sqrt(n_rounds)), ledger


def nothing(n, scale):
    return np.zeros(n, dtype=np.int64)


def seeded(n, scale, rng=np.random.default_rng(3)):  # noqa: B008
    return np.rint(rng.normal(0.0, scale, n)).astype(np.int64)


def test_without_noise_the_sums_are_the_papers():
    counts = TRUTH.sample(2000, rng=0)
    sums, _ = layer(counts, epsilon=1.0, n_rounds=1, noise=nothing)
    query = Update(TRUTH)
    ours = sums.aggregate(query, None)
    exact = LocalAggregator(counts).aggregate(query, None)
    np.testing.assert_allclose(ours.n_clients, 2000, rtol=1e-6)
    for name in ("responsibilities", "size_counts", "numerators", "denominators"):
        np.testing.assert_allclose(getattr(ours, name), getattr(exact, name), rtol=1e-4, atol=1e-3)
    assert math.isnan(ours.log_likelihood)


def test_a_private_fit_of_the_papers_spends_its_budget_and_no_more():
    counts = TRUTH.sample(10_000, rng=0)
    sums, ledger = layer(counts, epsilon=4.0, n_rounds=12, noise=seeded)
    done = fit_paper(sums, **OPTIONS)
    assert ledger.epsilon_spent == pytest.approx(4.0)
    assert [charge.what for charge in ledger.charges] == ["scaled"] * 12
    assert done.mdm.n_components == 3
    assert done.rounds[-1].n_clients == pytest.approx(10_000, rel=0.05)


def test_noise_that_leaves_less_than_nothing_is_no_error():
    def drowned(n, scale):
        return np.full(n, -int(40 * scale))

    sums, _ = layer(TRUTH.sample(50, rng=0), epsilon=1.0, n_rounds=1, noise=drowned)
    answer = sums.aggregate(Update(TRUTH), None)
    assert (answer.responsibilities == 1.0).all()
    assert (answer.denominators > 0).all()
    assert not answer.numerators.any()


def test_other_questions_are_refused():
    sums, _ = layer(TRUTH.sample(50, rng=0), epsilon=1.0, n_rounds=1, noise=nothing)
    with pytest.raises(ParameterError, match="query of the paper"):
        sums.aggregate(Survey(10, BINS, pairs=False), None)
    assert sums.aggregate(Initialise(2, 10, BINS), None).n_clients == pytest.approx(50)

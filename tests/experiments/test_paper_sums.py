"""The paper's own route to privacy, which ours is compared with."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyurn import MDM, LocalAggregator, SizeBins, Sizes, answer, fit_paper
from polyurn.errors import ParameterError
from polyurn.model.paper_truths import truth
from polyurn.privacy.accounting import sigma_for
from polyurn.privacy.ledger import PrivacyLedger
from polyurn.privacy.private_aggregator import PrivateAggregator
from polyurn.wire import Initialise, Survey, Update

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from paper_sums import PaperSums, ScaledPaper

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
    assert [charge.what for charge in ledger.charges] == [
        "scaled initialise",
        *["scaled update"] * 11,
    ]
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


# -------------------------------------------------------------------- the vectors of the clients

COUNTS = truth("medium/3").sample(3000, rng=1)


def mixture(seed, n_components=3, n_categories=10, low=-4.0, high=6.0):
    rng = np.random.default_rng(seed)
    sizes = Sizes(BINS, rng.dirichlet(np.ones(BINS.n_bins), n_components))
    alphas = 10 ** rng.uniform(low, high, (n_components, n_categories))
    return MDM(rng.dirichlet(np.ones(n_components)), alphas, sizes)


@pytest.mark.parametrize("query", [Update(mixture(0, low=-1, high=2)), Initialise(1, 10, BINS)])
def test_scaled_sums_are_the_plain_ones_times_their_scales_where_nothing_is_clipped(query):
    asked = ScaledPaper(query)
    plain = answer(query, COUNTS, rng=0).to_vector() * asked.scales
    np.testing.assert_allclose(answer(asked, COUNTS).to_vector(), plain, atol=len(COUNTS) * 4e-9)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 20))
def test_no_clients_vector_is_clipped_whatever_the_parameters(seed, size):
    """The scales are bounds: alphas from 1e-4 to 1e6, clients of all sizes, extreme ones among them."""
    rng = np.random.default_rng(seed)
    mdm = mixture(seed)
    asked = ScaledPaper(Update(mdm))
    one = np.zeros(10, dtype=int)
    one[mdm.alphas[0].argmin()] = size
    spread = rng.multinomial(size, np.full(10, 0.1))
    rare = np.bincount(np.argsort(mdm.alphas[-1])[: min(size, 10)], minlength=10)
    for client in (one, spread, rare):
        vector = answer(Update(mdm), client).to_vector() * asked.scales
        assert np.linalg.norm(vector) <= 1 + 1e-9
        np.testing.assert_allclose(answer(asked, client).to_vector(), vector, atol=1e-8)


def test_components_are_joined_at_random_whatever_the_seed():
    asked = ScaledPaper(Initialise(2, 10, BINS))
    first, again = (answer(asked, COUNTS, rng=0).to_vector() for _ in range(2))
    assert not np.array_equal(first, again)


def test_a_client_larger_than_declared_sends_zeros():
    asked = ScaledPaper(Initialise(1, 2, SizeBins.exact(5)))
    assert not answer(asked, [4, 4]).to_vector().any()
    assert answer(asked, [[4, 4], [1, 2]]).to_vector().sum() > 1


def test_a_client_of_probability_zero_sends_zeros():
    mdm = MDM([1.0], [[1.0, 0.0]], Sizes.constant(3))
    assert not answer(ScaledPaper(Update(mdm)), [1, 2]).to_vector().any()
    assert answer(ScaledPaper(Update(mdm)), [3, 0]).to_vector().any()

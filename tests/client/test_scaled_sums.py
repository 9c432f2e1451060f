import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyurn import MDM, SizeBins, Sizes, answer
from polyurn.model.paper_truths import truth
from polyurn.wire import Initialise, Scaled, Update

COUNTS = truth("medium/3").sample(3000, rng=1)
BINS = SizeBins.logarithmic(20)


def mixture(seed, n_components=3, n_categories=10, low=-4.0, high=6.0):
    rng = np.random.default_rng(seed)
    sizes = Sizes(BINS, rng.dirichlet(np.ones(BINS.n_bins), n_components))
    alphas = 10 ** rng.uniform(low, high, (n_components, n_categories))
    return MDM(rng.dirichlet(np.ones(n_components)), alphas, sizes)


@pytest.mark.parametrize("query", [Update(mixture(0, low=-1, high=2)), Initialise(1, 10, BINS)])
def test_scaled_sums_are_the_plain_ones_times_their_scales_where_nothing_is_clipped(query):
    asked = Scaled(query)
    plain = answer(query, COUNTS, rng=0).to_vector() * asked.scales
    np.testing.assert_allclose(answer(asked, COUNTS).to_vector(), plain, atol=len(COUNTS) * 4e-9)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 20))
def test_no_clients_vector_is_clipped_whatever_the_parameters(seed, size):
    """The scales are bounds: alphas from 1e-4 to 1e6, clients of all sizes, extreme ones among them."""
    rng = np.random.default_rng(seed)
    mdm = mixture(seed)
    asked = Scaled(Update(mdm))
    one = np.zeros(10, dtype=int)
    one[mdm.alphas[0].argmin()] = size
    spread = rng.multinomial(size, np.full(10, 0.1))
    rare = np.bincount(np.argsort(mdm.alphas[-1])[: min(size, 10)], minlength=10)
    for client in (one, spread, rare):
        vector = answer(Update(mdm), client).to_vector() * asked.scales
        assert np.linalg.norm(vector) <= 1 + 1e-9
        np.testing.assert_allclose(answer(asked, client).to_vector(), vector, atol=1e-8)


def test_components_are_joined_at_random_whatever_the_seed():
    asked = Scaled(Initialise(2, 10, BINS))
    first, again = (answer(asked, COUNTS, rng=0).to_vector() for _ in range(2))
    assert not np.array_equal(first, again)


def test_a_client_larger_than_declared_sends_zeros():
    asked = Scaled(Initialise(1, 2, SizeBins.exact(5)))
    assert not answer(asked, [4, 4]).to_vector().any()
    assert answer(asked, [[4, 4], [1, 2]]).to_vector().sum() > 1


def test_a_client_of_probability_zero_sends_zeros():
    mdm = MDM([1.0], [[1.0, 0.0]], Sizes.constant(3))
    assert not answer(Scaled(Update(mdm)), [1, 2]).to_vector().any()
    assert answer(Scaled(Update(mdm)), [3, 0]).to_vector().any()

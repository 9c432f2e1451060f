"""Pólya urns against the distribution that they stand for."""

import itertools

import numpy as np
import pytest
from scipy.stats import chisquare

from polyurn import MDM, Sizes, dirichlet_multinomial_logpmf
from polyurn.model.model_kernels import draw_counts


def drawn(alpha, n_clients, size, rng):
    counts = np.zeros((n_clients, len(alpha)), np.int64)
    components, sizes = np.zeros(n_clients, np.int64), np.full(n_clients, size)
    draw_counts(np.array([alpha]), components, sizes, counts, np.random.default_rng(rng))
    return counts


@pytest.mark.parametrize(
    "alpha", [[0.3, 0.3, 0.3], [0.05, 2.0, 0.7], [40.0, 1.0, 3.0], [0.5, 0.0, 1e-3]], ids=str
)
def test_an_urn_draws_every_histogram_as_often_as_equation_1_says(alpha):
    # False alarms: 1 in 10,000 for each alpha.
    size, n_clients = 4, 60_000
    every = [c for c in itertools.product(range(size + 1), repeat=3) if sum(c) == size]
    seen = drawn(alpha, n_clients, size, rng=1) @ [25, 5, 1]
    expected = n_clients * np.exp(dirichlet_multinomial_logpmf(every, alpha))
    observed = np.bincount(seen, minlength=126)[np.array(every) @ [25, 5, 1]]
    assert observed[expected == 0].sum() == 0
    enough = expected >= 5
    lumped = [np.append(x[enough], x[~enough].sum()) for x in (observed, expected)]
    if lumped[1][-1] < 5:
        lumped = [x[:-1] for x in lumped]
        lumped[1] *= lumped[0].sum() / lumped[1].sum()
    assert chisquare(*lumped).pvalue > 1e-4


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e9, 1e300])
def test_the_smallest_and_the_largest_alphas_give_one_category_or_a_multinomial(scale):
    counts = drawn([scale, 3 * scale], 20_000, 12, rng=2)
    assert (counts.sum(axis=1) == 12).all()
    assert counts[:, 1].mean() == pytest.approx(9, abs=0.2)
    variance = 12**2 * 0.1875 if scale < 1 else 12 * 0.1875
    assert counts[:, 1].var() == pytest.approx(variance, rel=0.05)


def test_many_clients_large_and_small_have_the_moments_of_their_component():
    # 60,000 x 10 cells are worth an urn; clients of 4 points are drawn from it, those of 500 are not.
    sizes = Sizes.from_table(np.eye(501)[[4, 500]])
    mdm = MDM([0.6, 0.4], [[0.2] * 9 + [0.0], [3.0] * 10], sizes)
    counts = mdm.sample(60_000, rng=3)
    small = counts.sum(axis=1) == 4
    assert small.mean() == pytest.approx(0.6, abs=0.01)
    assert not counts[small, 9].any()
    for part, n, alpha_0, p in ((counts[small], 4, 1.8, 1 / 9), (counts[~small], 500, 30.0, 0.1)):
        assert part[:, 0].mean() == pytest.approx(n * p, rel=0.05)
        variance = n * p * (1 - p) * (n + alpha_0) / (1 + alpha_0)
        assert part[:, 0].var() == pytest.approx(variance, rel=0.05)
    assert np.array_equal(counts, mdm.sample(60_000, rng=3))


def test_alphas_whose_sum_is_beyond_all_numbers_are_still_drawn():
    with np.errstate(over="ignore"):
        mdm = MDM([1.0], [[1e308] * 10], Sizes.constant(5))
        counts = mdm.sample(50_000, rng=0)
    assert (counts.sum(axis=1) == 5).all()
    assert counts.mean(axis=0) == pytest.approx(0.5, abs=0.02)


def test_a_seed_gives_the_same_urns_everywhere():
    assert drawn([0.5, 1.0, 2.0], 3, 6, rng=0).tolist() == [[2, 0, 4], [0, 0, 6], [2, 3, 1]]

"""Algorithms 1 and 2 on the server: start, update and fit."""

import numpy as np
import pytest

from polyurn import MDM, LocalAggregator, SizeBins, Sizes, answer, fit_paper, reference
from polyurn.errors import EmptyComponentError, FitError, ParameterError, ZeroLikelihoodError
from polyurn.model.paper_truths import truth
from polyurn.server.paper import initialise, update
from polyurn.wire import Initialise, StartStatistics, Update, UpdateStatistics


def start_from(counts, k, rng=0):
    query = Initialise(k, counts.shape[1], SizeBins.exact(int(counts.sum(axis=1).max())))
    return query, answer(query, counts, rng=rng)


def test_the_start_matches_the_first_two_moments_of_the_first_category():
    query, statistics = start_from(truth("medium/1").sample(500, rng=0), 2)
    mdm = initialise(query, statistics)
    joined = statistics.size_counts.sum(axis=1)
    order = [0, 1]  # both weights are 1/2, so the order is kept
    for k in order:
        p, q = statistics.first_moments[k] / joined[k], statistics.second_moments[k] / joined[k]
        alpha, alpha_0 = mdm.alphas[k], mdm.alphas[k].sum()
        np.testing.assert_allclose(alpha / alpha_0, p, rtol=1e-12)
        second = alpha[0] * (1 + alpha[0]) / (alpha_0 * (1 + alpha_0))
        assert second == pytest.approx(q[0], rel=1e-12)
    np.testing.assert_array_equal(mdm.weights, [0.5, 0.5])


def test_the_named_alternatives_match_other_categories():
    query, statistics = start_from(truth("medium/1").sample(500, rng=0), 1)
    p, q = statistics.first_moments[0] / 500, statistics.second_moments[0] / 500
    frequent = int(p.argmax())
    expected = {
        "first": (p[0] - q[0]) / (q[0] - p[0] ** 2),
        "most_frequent": (p[frequent] - q[frequent]) / (q[frequent] - p[frequent] ** 2),
        "pooled": (p - q).sum() / (q - p**2).sum(),
    }
    for moments, alpha_0 in expected.items():
        got = initialise(query, statistics, moments=moments).alphas.sum()
        assert got == pytest.approx(alpha_0, rel=1e-12)


def test_an_absent_first_category_is_an_error_that_names_the_alternative():
    counts = truth("medium/1").sample(100, rng=0)
    counts[:, 0] = 0
    query, statistics = start_from(counts, 1)
    with pytest.raises(FitError, match="pooled"):
        initialise(query, statistics)
    assert initialise(query, statistics, moments="pooled").alphas[0, 0] == 0
    assert initialise(query, statistics, moments="pooled", category_prior=0.1).alphas[0, 0] > 0


def test_a_component_without_clients_at_the_start_is_an_error():
    blocks = np.array([[2.0, 1.0], [0.0, 0.0]])
    statistics = StartStatistics(3.0, blocks, blocks, blocks)
    with pytest.raises(EmptyComponentError, match="1 of 2 components received no client"):
        initialise(Initialise(2, 2, SizeBins.exact(2)), statistics)


def test_more_components_than_clients_is_an_error():
    query, statistics = start_from(truth("medium/1").sample(3, rng=0), 4)
    with pytest.raises(ParameterError, match="4 components need at least as many clients"):
        initialise(query, statistics)


def test_a_component_without_clients_in_a_round_is_an_error():
    mdm = truth("medium/2")
    empty = UpdateStatistics(5.0, -9.0, np.array([5.0, 0.0]), np.ones((2, 20)), np.ones((2, 10)),
                             np.array([1.0, 0.0]))  # fmt: skip
    with pytest.raises(EmptyComponentError, match="1 of 2"):
        update(mdm, empty)


def test_an_impossible_client_is_an_error_that_names_the_remedies():
    mdm = MDM([1.0], [[1.0, 0.0]], Sizes.constant(2))
    with pytest.raises(ZeroLikelihoodError, match="category_prior"):
        update(mdm, answer(Update(mdm), [[1, 1], [2, 0]]))


def assert_same(got, expected, rtol):
    np.testing.assert_allclose(got.weights, expected.weights, rtol=rtol)
    np.testing.assert_allclose(got.alphas, expected.alphas, rtol=rtol)
    np.testing.assert_allclose(got.sizes.table(), expected.sizes.table(), rtol=rtol, atol=1e-13)


def random_table(seed, n_clients):
    """A number of components, and clients of 5 to 30 points with proportions of any kind."""
    rng = np.random.default_rng(seed)
    alpha = rng.uniform(0.3, 5.0, size=rng.integers(2, 8))
    sizes = rng.integers(5, 31, size=n_clients)
    return int(rng.integers(1, 5)), rng.multinomial(sizes, rng.dirichlet(alpha, size=n_clients))


@pytest.mark.parametrize("seed", range(20))
def test_a_fit_is_the_reference_to_ten_digits_on_random_tables(seed):
    k, counts = random_table(seed, n_clients=60)
    bounds = {"n_components": k, "max_size": 30, "n_rounds": 12}
    done = fit_paper(LocalAggregator(counts, rng=seed), n_categories=counts.shape[1], **bounds)
    _, joining = LocalAggregator(counts, rng=seed).skip()  # the stream of the first round's clients
    assert_same(done.mdm, MDM(*reference.fit(counts, rng=joining, **bounds)), rtol=1e-10)
    sent = done.rounds[-2].mdm
    plain = reference.log_likelihood(counts, sent.weights, sent.alphas, sent.sizes.table())
    assert done.log_likelihoods[-1] == pytest.approx(plain / 60, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_fit_to_sampled_cohorts_is_the_reference_on_the_same_cohorts(seed):
    counts = truth("medium/2").sample(400, rng=seed)
    clients = LocalAggregator(counts, rng=seed)
    done = fit_paper(clients, n_components=2, n_categories=10, max_size=20, cohort_size=100,
                     n_rounds=4)  # fmt: skip
    again = LocalAggregator(counts, rng=seed)

    def cohort():
        choose, answers = again.skip()
        return reference.draw_cohort(counts, 100, rng=choose), answers

    members, joining = cohort()
    plain = reference.initialise(members, n_components=2, max_size=20, rng=joining)
    for _ in range(3):
        plain = reference.update(cohort()[0], *plain)
    assert_same(done.mdm, MDM(*plain), rtol=1e-10)


@pytest.mark.parametrize("name", ["low/2", "medium/3", "high/3"])
def test_fifty_full_rounds_agree_with_the_reference_in_every_parameter(name):
    base = truth(name)
    masses = np.random.default_rng(1).dirichlet(np.ones(30), base.n_components)
    counts = MDM(base.weights, base.alphas, Sizes(SizeBins.exact(30), masses)).sample(300, rng=2)
    bounds = {"n_components": base.n_components, "max_size": 30, "n_rounds": 51}
    done = fit_paper(LocalAggregator(counts, rng=3), n_categories=10, **bounds)
    _, joining = LocalAggregator(counts, rng=3).skip()
    assert_same(done.mdm, MDM(*reference.fit(counts, rng=joining, **bounds)), rtol=1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["low/3", "medium/3", "high/2", "appendix-a"])
def test_every_round_on_the_full_cohort_raises_the_likelihood(name, seed):
    mdm = truth(name)
    clients = LocalAggregator(mdm.sample(500, rng=seed), rng=seed)
    done = fit_paper(clients, n_components=mdm.n_components, n_categories=mdm.n_categories,
               max_size=mdm.max_size, n_rounds=61)  # fmt: skip
    assert (np.diff(done.log_likelihoods) >= -1e-12).all()


def test_with_priors_the_penalised_likelihood_rises():
    counts = truth("high/2").sample(300, rng=0)
    size_prior, category_prior = 2.0, 0.3
    done = fit_paper(LocalAggregator(counts, rng=0), n_components=2, n_categories=10, max_size=25,
               sizes="binned", size_prior=size_prior, category_prior=category_prior,
               n_rounds=41)  # fmt: skip
    penalised = [
        r.mdm.logpmf(counts).sum()
        + category_prior * np.log(r.mdm.alphas).sum()
        + size_prior * np.log(r.mdm.sizes.masses).sum() / r.mdm.sizes.bins.n_bins
        for r in done.rounds
    ]
    assert (np.diff(penalised) >= -1e-9).all()


def test_a_fit_with_bins_and_priors_never_calls_a_held_out_client_impossible():
    bins = SizeBins.logarithmic(300)
    base = truth("high/1")
    mdm = MDM(base.weights, base.alphas, Sizes(bins, np.full((1, bins.n_bins), 1 / bins.n_bins)))
    done = fit_paper(LocalAggregator(mdm.sample(40, rng=0), rng=0), n_components=2, n_categories=10,
               max_size=300, sizes="binned", moments="pooled", size_prior=1.0, category_prior=0.01,
               n_rounds=31)  # fmt: skip
    assert np.isfinite(done.mdm.logpmf(mdm.sample(2_000, rng=1))).all()


def test_cohorts_reach_the_neighbourhood_of_the_full_fit():
    mdm = truth("medium/2")
    counts = mdm.sample(5_000, rng=0)
    done = fit_paper(LocalAggregator(counts, rng=0), n_components=2, n_categories=10, max_size=20,
               cohort_size=1_000, n_rounds=101)  # fmt: skip
    assert mdm.logpmf(counts).mean() - done.mdm.logpmf(counts).mean() < 0.02
    assert {r.n_clients for r in done.rounds} == {1_000}


def test_each_round_is_reported_as_it_ends():
    seen = []
    done = fit_paper(LocalAggregator(truth("low/1").sample(50, rng=0), rng=0), n_components=1,
               n_categories=10, max_size=20, n_rounds=5,
               on_round=seen.append)  # fmt: skip
    assert [r.number for r in seen] == [1, 2, 3, 4, 5]
    assert tuple(seen) == done.rounds
    assert done.n_rounds == 5
    assert len(done.log_likelihoods) == 4


@pytest.mark.parametrize(
    "settings",
    [
        {"n_components": 0},
        {"n_components": 51},
        {"n_rounds": 1},
        {"size_prior": -1.0},
        {"category_prior": float("nan")},
        {"sizes": "some"},
        {"sizes": "shared"},
        {"sizes": SizeBins.exact(3)},
        {"moments": "last"},
    ],
)
def test_settings_out_of_range_are_refused(settings):
    clients = LocalAggregator(truth("low/1").sample(50, rng=0), rng=0)
    usual = {"n_components": 1, "n_categories": 10, "max_size": 20, "n_rounds": 5}
    with pytest.raises(ParameterError):
        fit_paper(clients, **{**usual, **settings})

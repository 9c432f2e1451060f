"""The first round: the question that fits, and the profile of sizes inside a bin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polyurn as pu
from polyurn import SizeBins, answer
from polyurn.model.paper_truths import truth
from polyurn.server.starts import survey, with_profile

BINS = SizeBins.logarithmic(20)


def test_the_survey_asks_for_covariances_only_where_they_fit():
    assert survey(10, BINS, max_upload=50_000).pairs
    assert not survey(1_000, BINS, max_upload=50_000).pairs


def test_sizes_are_asked_for_one_by_one_where_a_client_may_send_so_many_numbers():
    assert survey(10, SizeBins.logarithmic(4_000), max_upload=50_000).size_bins.n_bins == 4_000
    wide = SizeBins.logarithmic(1_000_000)
    assert wide.n_bins < survey(10, wide, max_upload=50_000).size_bins.n_bins < 4_096
    assert survey(10, wide, max_upload=300).size_bins.n_bins < 300


@pytest.mark.parametrize("max_size", [7, 60, 5_000, 300_000])
@pytest.mark.parametrize("max_upload", [50, 1_000, 50_000])
def test_the_finer_bins_have_the_edges_of_the_components_bins(max_size, max_upload):
    bins = SizeBins.logarithmic(max_size)
    fine = survey(3, bins, max_upload=max_upload).size_bins
    assert np.isin(bins.edges, fine.edges).all()


@given(st.lists(st.integers(1, 90), min_size=1, max_size=60), st.floats(0.0, 5.0))
def test_a_profile_is_a_distribution_inside_every_bin_and_rules_nothing_out(sizes, size_prior):
    bins, fine = SizeBins.logarithmic(90), SizeBins.exact(90)
    counts = np.bincount(fine.locate(sizes), minlength=90).astype(float)
    found = with_profile(bins, fine, counts, size_prior=size_prior)
    every = np.arange(1, 91)
    inside = np.exp(found.log_inside(every))
    assert (inside > 0).all()
    np.testing.assert_allclose(np.bincount(bins.locate(every), inside), 1.0, rtol=1e-12)


def test_sizes_without_spikes_have_a_profile_that_is_nearly_even():
    bins, fine = SizeBins.logarithmic(200), SizeBins.exact(200)
    drawn = np.random.default_rng(0).integers(128, 201, 3_000)  # from one edge to another
    counts = np.bincount(fine.locate(drawn), minlength=200).astype(float)
    inside = np.exp(with_profile(bins, fine, counts, size_prior=1.0).log_inside(drawn))
    # 41 clients of each size: their own frequencies vary by 16 %.
    assert (inside * bins.widths[bins.locate(drawn)]).std() < 0.04


@pytest.mark.parametrize("size", [20, 50, 60])
def test_clients_of_one_size_are_simulated_with_that_size(size):
    clients = pu.LocalAggregator(truth("high/1", size=size).sample(400, rng=0), rng=1)
    choice = pu.fit(clients, n_components=[1, 2], n_categories=10, max_size=size, rng=2)
    drawn = choice.mdm.sample(2_000, rng=3).sum(axis=1)
    assert (drawn == size).mean() > 0.99


def test_two_sizes_of_one_bin_keep_their_shares():
    sizes = np.repeat([57, 60], [100, 300])
    counts = pu.IID([3, 2, 1], sizes=[60]).sample(400, rng=0)
    counts[:100, 0] += 57 - counts[:100].sum(axis=1)
    counts = np.maximum(counts, 0)
    seen = counts.sum(axis=1)
    assert set(seen.tolist()) == set(sizes.tolist())
    fit = pu.fit(pu.LocalAggregator(counts, rng=1), n_components=1, n_categories=3, max_size=80)
    marginal = fit.mdm.size_marginal()
    assert marginal[57] == pytest.approx(0.25, abs=0.01)
    assert marginal[60] == pytest.approx(0.75, abs=0.01)


def test_the_rounds_judge_the_model_that_comes_out_of_them():
    counts = truth("medium/2", size=30).sample(300, rng=0)
    fit = pu.fit(pu.LocalAggregator(counts, rng=1), n_components=2, n_categories=10, max_size=40)
    assert fit.log_likelihoods[-1] == pytest.approx(fit.mdm.logpmf(counts).mean(), abs=1e-2)


def test_a_survey_says_how_many_clients_have_each_size():
    query = survey(3, SizeBins.logarithmic(9), max_upload=50_000)
    said = answer(query, [[1, 0, 2], [3, 0, 0], [4, 4, 1]])
    assert said.size_counts.tolist() == [0, 0, 2, 0, 0, 0, 0, 0, 1]

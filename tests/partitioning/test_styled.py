"""Partitions with a style: which points suit which client."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from polyurn import Dirichlet, Partition, Styled, cover, partition
from polyurn.errors import ParameterError, StyleWarning
from polyurn.model.style import Style, StyleSpace
from strategies import counts as tables
from style_cases import centres

L, M = 3, 2


def space_of(n_labels, n_directions, radius=20.0):
    """The features themselves are the coordinates."""
    unit = np.eye(n_directions)
    centres = np.zeros((n_labels, n_directions))
    return StyleSpace(centres, unit, np.tile(unit, (n_labels, 1, 1)), radius)


def style_of(shared, by_label, n_labels=L, mean=None):
    """A style with diagonal covariances, that the pool can show: E = I - B - V."""
    shared, by_label = np.array(shared), np.array(by_label)
    return Style(
        space_of(n_labels, len(shared)),
        np.zeros(len(shared)) if mean is None else mean,
        np.diag(shared),
        np.diag(by_label),
        np.diag(1 - shared - by_label),
    )


def gaussian_pool(n_points, n_labels=L, n_directions=M, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, n_labels, n_points), rng.normal(size=(n_points, n_directions))


def rest(located, parts):
    """n |mean|² / tr Cov, averaged over clients: 1 if clients do not differ."""
    return np.mean([len(p) * np.square(located[p].mean(axis=0)).sum() for p in parts]) / len(
        located.T
    )


def rest_by_label(located, labels, parts):
    """The same for the points of one client and label."""
    cells = Partition.by_owner(parts.clients * (labels.max() + 1) + labels[parts.indices])
    return rest(located[parts.indices], cells)


def true_clients(style, counts, seed):
    """Clients of the model itself: their coordinates, labels and owners."""
    rng = np.random.default_rng(seed)
    drawn = centres(style, counts, rng=rng)
    owners, labels = (np.repeat(which, counts[counts > 0]) for which in np.nonzero(counts))
    noise = rng.normal(size=(len(owners), style.n_directions))
    located = drawn[owners, labels] + noise @ np.linalg.cholesky(style.within).T
    return located, labels, Partition.by_owner(owners)


# ------------------------------------------------------------------------------ identities


@given(tables(L, max_clients=5, max_size=60), st.booleans(), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_label_counts_stay_exact_whatever_the_style(counts, replace, seed):
    labels, features = gaussian_pool(60)
    style = style_of([0.4, 0.1], [0.2, 0.2], mean=[1.5, -0.3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StyleWarning)
        parts = partition(labels, counts, style=style, features=features, replace=replace, rng=seed)
    assert np.array_equal(parts.histograms(labels, L), counts)
    held = np.bincount(parts.clients * 60 + parts.indices)
    assert held.max() == 1 or (counts > np.bincount(labels, minlength=L)).any()


def test_the_same_seed_gives_the_same_points_from_a_sparse_table():
    labels, features = gaussian_pool(2_000)
    counts = np.random.default_rng(1).integers(1, 5, (30, L))
    style = style_of([0.4, 0.1], [0.2, 0.2])
    given = {"style": style, "features": features, "rng": 5}
    parts = partition(labels, counts, **given)
    assert parts == partition(labels, sparse.csr_array(counts), **given)
    assert parts != partition(labels, counts, rng=5)


def test_without_a_style_points_are_the_ones_of_version_before():
    # python -c "import polyurn as pu; print(pu.partition([0, 1] * 50, [[3, 2], [1, 4]], rng=0).indices)"
    parts = partition([0, 1] * 50, [[3, 2], [1, 4]], rng=0)
    assert parts.indices.tolist() == [28, 81, 6, 62, 91, 93, 61, 73, 62, 57]


def test_without_replacement_each_point_is_given_once():
    labels, features = gaussian_pool(300)
    style = style_of([0.5, 0.1], [0.2, 0.2])
    counts = np.bincount(labels, minlength=L)[None] // 3 * np.ones((3, 1), int)
    parts = partition(labels, counts, replace=False, style=style, features=features, rng=0)
    assert len(np.unique(parts.indices)) == len(parts.indices) == parts.report.n_used


def test_cover_uses_every_point_once_with_a_style():
    labels, features = gaussian_pool(3_000)
    style = style_of([0.5, 0.1], [0.2, 0.2])
    population = Dirichlet([20.0] * L, sizes=[20])
    parts = cover(labels, population, style=style, features=features, rng=0)
    assert np.array_equal(np.sort(parts.indices), np.arange(3_000))
    assert rest(features, parts) > 5


# ------------------------------------------------------------------------------ distributions


def test_a_style_of_no_difference_gives_each_client_a_uniform_choice():
    # As without style: any point, and any pair of points, is as likely as another. False alarm: 1 %.
    labels, features = np.zeros(8, int), gaussian_pool(8)[1]
    style = style_of([0.0, 0.0], [0.0, 0.0])
    pairs = np.zeros((8, 8))
    for seed in range(700):  # 25 times each pair
        drawn = partition(labels, [[2, 0, 0]], style=style, features=features, rng=seed)
        pairs[tuple(np.sort(drawn.indices))] += 1
    assert stats.chisquare(pairs[np.triu_indices(8, 1)]).pvalue > 0.01


def test_a_style_of_no_difference_gives_clients_that_differ_as_without_it():
    labels, features = gaussian_pool(20_000)
    counts = np.random.default_rng(1).integers(1, 20, (600, L))
    style = style_of([0.0, 0.0], [0.0, 0.0])
    plain = partition(labels, counts, rng=1)
    styled = partition(labels, counts, style=style, features=features, rng=2)
    means = [[features[p].mean() * np.sqrt(len(p)) for p in parts] for parts in (plain, styled)]
    assert stats.ks_2samp(*means).pvalue > 0.01
    assert styled.report.style.remark is None
    assert rest(features, styled) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("replace", [True, False])
def test_simulated_clients_differ_as_much_as_true_ones_when_the_pool_is_gaussian(replace):
    style = style_of([0.5, 0.3, 0.1], [0.25, 0.2, 0.3], n_labels=5)
    counts = np.random.default_rng(1).multinomial([50] * 1_000, [0.4, 0.3, 0.15, 0.1, 0.05])
    labels, features = gaussian_pool(100_000, n_labels=5, n_directions=3)
    parts = partition(labels, counts, style=style, features=features, replace=replace, rng=2)
    located, of_true, true = true_clients(style, counts, seed=3)
    assert rest(features, parts) == pytest.approx(rest(located, true), rel=0.15)
    expected = rest_by_label(located, of_true, true)
    assert rest_by_label(features, labels, parts) == pytest.approx(expected, rel=0.15)


def test_clients_together_are_like_the_pool():
    style = style_of([0.5, 0.3, 0.1], [0.25, 0.2, 0.3], n_labels=5)
    counts = np.random.default_rng(1).multinomial([50] * 2_000, [0.2] * 5)
    labels, features = gaussian_pool(100_000, n_labels=5, n_directions=3)
    parts = partition(labels, counts, style=style, features=features, rng=2)
    union = features[parts.indices]
    assert union.T @ union / len(union) == pytest.approx(features.T @ features / 1e5, abs=0.05)
    assert parts.report.n_used > 0.75 * len(parts.indices)


def test_the_mean_style_of_clients_need_not_be_the_pools():
    style = style_of([0.3, 0.2], [0.1, 0.1], mean=[0.8, -0.4])
    counts = np.random.default_rng(1).integers(1, 8, (1_000, L))
    labels, features = gaussian_pool(100_000)
    parts = partition(labels, counts, style=style, features=features, rng=2)
    means = np.array([features[p].mean(axis=0) for p in parts])
    # A little nearer to the pool, which is used evenly.
    assert means.mean(axis=0) == pytest.approx([0.8, -0.4], abs=0.1)


def test_labels_and_style_go_together_where_the_style_has_ties():
    space = space_of(2, 1)
    style = Style(
        space, [0.0], [[0.5]], [[0.0]], [[0.5]],
        label_shares=[0.5, 0.5], label_covariance=[[0.1, -0.1], [-0.1, 0.1]],
        label_effect=[[1.0], [-1.0]],
    )  # fmt: skip
    shares = np.random.default_rng(0).uniform(0.1, 0.9, 600)
    counts = np.stack([np.rint(40 * shares), 40 - np.rint(40 * shares)], axis=1).astype(int)
    labels, features = gaussian_pool(60_000, n_labels=2, n_directions=1)
    parts = partition(labels, counts, style=style, features=features, rng=2)
    means = np.array([features[p].mean() for p in parts])
    # u = 2 (h - 1/2) + N(0, 0.1), and points around it: Cov(h, u) = 2 Var(h).
    slope = np.cov(counts[:, 0] / 40, means)[0, 1] / np.var(counts[:, 0] / 40)
    assert slope == pytest.approx(2.0, rel=0.15)


def test_the_pool_may_be_centred_and_scaled_otherwise_than_the_space():
    # Clients differ as the style says; here the pool's points vary less. The middle is the pool's.
    style = style_of([0.1], [0.0], n_labels=2)
    labels, features = gaussian_pool(50_000, n_labels=2, n_directions=1)
    counts = np.full((800, 2), 10)
    parts = partition(labels, counts, style=style, features=0.6 * features + 0.1, rng=2)
    means = np.array([(0.6 * features + 0.1)[p].mean() for p in parts])
    assert means.mean() == pytest.approx(0.1, abs=0.05)
    # Var of the mean: B + E_l / n, where E_l is what is left of the pool's 0.36.
    assert means.var() == pytest.approx(0.1 + 0.26 / 20, rel=0.15)


# ------------------------------------------------------------------------------ what the pool can serve


def test_the_report_has_effective_sample_sizes_of_each_label():
    labels, features = gaussian_pool(6_000)
    labels = np.where(labels == 2, 1, labels)
    style = style_of([0.6, 0.2], [0.1, 0.1])
    parts = partition(labels, [[9, 9, 0], [1, 8, 0]] * 40, style=style, features=features, rng=0)
    report = parts.report.style
    assert report.n_directions == report.n_directions_used == 2
    assert report.effective_median.shape == report.effective_low.shape == (L,)
    assert np.isnan(report.effective_low[2])
    assert (report.effective_low[:2] < report.effective_median[:2]).all()
    assert 9 < report.effective_median[0] < report.effective_median[1] < 4_000
    assert report.served > 0.95
    assert report.remark is None


def test_no_difference_between_clients_leaves_all_points_to_choose_from():
    labels, features = np.zeros(900, int), gaussian_pool(900)[1]
    style = style_of([0.0, 0.0], [0.0, 0.0])
    report = partition(labels, [[5, 0, 0]] * 9, style=style, features=features, rng=0).report
    assert report.style.effective_low[0] == pytest.approx(900)


def test_directions_are_left_out_and_a_warning_says_so_when_the_pool_is_small():
    labels, features = gaussian_pool(900, n_labels=2, n_directions=4)
    style = style_of([0.7, 0.6, 0.4, 0.3], [0.1, 0.1, 0.1, 0.1], n_labels=2)
    counts = np.full((50, 2), 20)
    with pytest.warns(StyleWarning, match=r"serve \d of the style's 4 directions") as told:
        parts = partition(labels, counts, style=style, features=features, rng=0)
    assert told[0].filename == __file__
    report = parts.report.style
    assert 1 <= report.n_directions_used < 4
    assert report.served >= 0.95
    # What is left out is where clients differ least.
    means = np.array([features[p].mean(axis=0) for p in parts])
    assert means[:, 0].var() > 4 * means[:, 3].var()


def test_a_warning_says_when_the_pool_cannot_serve_even_one_direction():
    labels, features = gaussian_pool(100, n_labels=2, n_directions=1)
    style = style_of([0.75], [0.0], n_labels=2, mean=[3.0])
    with pytest.warns(StyleWarning, match="even along one direction"):
        partition(labels, [[20, 20]] * 30, style=style, features=features, rng=0)


# ------------------------------------------------------------------------------ errors


def test_a_style_and_features_go_together():
    labels, features = gaussian_pool(30)
    style = style_of([0.1, 0.1], [0.1, 0.1])
    with pytest.raises(ParameterError, match="features of the proxy points with a style"):
        partition(labels, [[1, 1, 1]], style=style, rng=0)
    with pytest.raises(ParameterError, match="features of the proxy points with a style"):
        cover(labels, Dirichlet([1.0] * L, sizes=[2]), features=features, rng=0)


def test_a_style_of_other_labels_is_refused():
    labels, features = gaussian_pool(30)
    style = style_of([0.1, 0.1], [0.1, 0.1], n_labels=2)
    with pytest.raises(ParameterError, match=r"a style of 3 labels, .*, got one of 2"):
        partition(labels, [[1, 1, 1]], style=style, features=features, rng=0)


def test_features_of_other_points_are_refused():
    labels, features = gaussian_pool(30)
    style = style_of([0.1, 0.1], [0.1, 0.1])
    with pytest.raises(ParameterError, match="expected a label for each of 29 points"):
        partition(labels, [[1, 1, 1]], style=style, features=features[1:], rng=0)


def test_a_styled_population_brings_its_style_along():
    labels, features = gaussian_pool(5_000)
    style = style_of([0.5, 0.2], [0.1, 0.1])
    population = Dirichlet([5.0] * L, sizes=[20])
    given = {"n_clients": 40, "rng": 3}
    parts = partition(labels, population, style=style, features=features, **given)
    assert parts == partition(labels, Styled(population, style), features=features, **given)
    assert parts == partition(labels, Styled(population, style, features), **given)
    assert rest(features, cover(labels, Styled(population, style, features), rng=0)) > 5
    counts = population.sample(40, rng=0)
    others = {"shortfall": "resample", "population": Styled(population, style, features)}
    assert partition(labels, counts, rng=0, **others).report.style is not None
    with pytest.raises(ParameterError, match="one style, got another"):
        partition(labels, Styled(population, style, features), style=style, **given)
    with pytest.raises(ParameterError, match="features of the proxy points"):
        partition(labels, Styled(population, style), **given)

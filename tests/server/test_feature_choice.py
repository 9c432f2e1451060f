"""How much clients differ, from sums: against all pairs of points, and against known populations."""

from itertools import combinations, product
from math import isnan

import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyurn import (
    FeatureDifference,
    LocalAggregator,
    Records,
    ShardAggregator,
    answer,
    feature_differences,
    recommend_feature,
)
from polyurn.comparison.estimates import Estimate
from polyurn.errors import ParameterError
from polyurn.server.feature_choice import choose_feature, concentration_of, thin_categories
from polyurn.wire import Batch, RecordColumn
from shard_cases import packed

N_LABELS, N_VALUES = 3, 4


def differences(counts, *, n_labels=N_LABELS, n_values=N_VALUES, rng=0):
    clients = LocalAggregator(np.asarray(counts).reshape(len(counts), -1), rng=rng)
    return feature_differences(clients, n_labels=n_labels, n_values=n_values)


def values(found):
    return [found.label.value, found.feature.value, found.joint.value, found.given_label.value]


# ------------------------------------------------------------------------------------- the oracle


def naive(counts):
    """The four correlations, by looking at every pair of points of one client and of two."""
    points = [[divmod(j, N_VALUES) for j, n in enumerate(row) for _ in range(n)] for row in counts]
    points = [mine for mine in points if len(mine) >= 2]

    def within(holds):
        return np.mean([np.mean([holds(a, b) for a, b in combinations(p, 2)]) for p in points])

    def between(holds):
        two = combinations(points, 2)
        return np.mean([np.mean([holds(a, b) for a, b in product(p, q)]) for p, q in two])

    def correlation(same):
        w, b = within(same), between(same)
        return (w - b) / (1 - b)

    excess = room = 0.0
    for y in range(N_LABELS):

        def both_y(a, b, y=y):
            return a[0] == b[0] == y

        def match_y(a, b, y=y):
            return a == b and a[0] == y

        if between(both_y) > 0:
            b = between(match_y) / between(both_y)
            excess += within(match_y) - within(both_y) * b
            room += within(both_y) * (1 - b)
    same = (lambda a, b: a[0] == b[0], lambda a, b: a[1] == b[1], lambda a, b: a == b)
    return [*map(correlation, same), excess / room]


@pytest.mark.parametrize("seed", range(3))
def test_the_correlations_are_those_of_a_loop_over_all_pairs_of_points(seed):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(12, 0.3), size=8)
    counts = [rng.multinomial(n, p) for n, p in zip(rng.integers(1, 9, 8), shares, strict=True)]
    assert_allclose(values(differences(counts)), naive(counts), atol=1e-12)


# --------------------------------------------------------------------------------- known populations


def drawn(shares, sizes, rng):
    return np.array([rng.multinomial(n, p) for n, p in zip(sizes, shares, strict=True)])


@pytest.mark.parametrize("concentration", [0.5, 3.0, 20.0])
@pytest.mark.parametrize("sizes", [(2, 4), (2, 200)], ids=["small", "mixed"])
def test_a_dirichlet_multinomial_has_correlation_1_over_1_plus_alpha_0_whatever_the_sizes(
    concentration, sizes
):
    rng = np.random.default_rng(1)
    mean = rng.dirichlet(np.ones(12))
    shares = rng.dirichlet(concentration * mean, size=4_000)
    found = differences(drawn(shares, rng.integers(*sizes, 4_000), rng))
    truth = 1 / (1 + concentration)
    # Parts of a Dirichlet are Dirichlet: all have α_0. The seed is fixed; without it each of the three
    # would be missed once in twenty times, so the intervals are taken at twice their width.
    for estimate in (found.label, found.feature, found.joint):
        assert abs(estimate.value - truth) < estimate.high - estimate.low
        assert estimate.high - estimate.low < 0.1
    assert concentration_of(truth) == pytest.approx(concentration)


def test_given_the_label_a_dirichlet_has_the_concentrations_of_the_labels():
    rng = np.random.default_rng(2)
    alphas = np.array([[1.0, 1.0, 1.0, 1.0], [0.5, 0.5, 0.5, 0.5], [2.0, 0.0, 1.0, 1.0]]) + 1e-9
    shares = rng.dirichlet(alphas.ravel(), size=4_000)
    found = differences(drawn(shares, np.full(4_000, 30), rng))
    # Given the label y, f is Dirichlet with α_0 = Σ α_y, so that ρ_y is 1/5, 1/3 and 1/5.
    assert 1 / 5 < found.given_label.value < 1 / 3


def test_iid_clients_differ_in_nothing():
    rng = np.random.default_rng(3)
    counts = rng.multinomial(25, rng.dirichlet(np.ones(12)), size=1_500)
    found = differences(counts)
    for estimate in (found.label, found.feature, found.joint, found.given_label):
        assert estimate.low < 0 < estimate.high
        assert abs(estimate.value) < 0.005


def test_clients_that_differ_in_labels_only_do_not_differ_in_the_feature_given_the_label():
    rng = np.random.default_rng(4)
    of_label = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7]])
    labels = rng.dirichlet(np.full(3, 0.4), size=1_500)
    counts = drawn((labels[:, :, None] * of_label).reshape(1_500, 12), np.full(1_500, 40), rng)
    found = differences(counts)
    assert found.label.value == pytest.approx(1 / (1 + 1.2), abs=0.03)
    assert found.feature.low > 0.05
    assert found.given_label.low < 0 < found.given_label.high
    assert abs(found.given_label.value) < 0.005
    advice = recommend_feature({"f": found}, label="y")
    assert advice.model == "label"
    assert advice.sentence.startswith("model y alone: clients differ in it (0.4")


def test_clients_that_differ_in_the_feature_only_are_found_out():
    rng = np.random.default_rng(5)
    features = rng.dirichlet(np.full(4, 0.5), size=1_000)
    shares = (np.full((1_000, 3, 1), 1 / 3) * features[:, None]).reshape(1_000, 12)
    found = differences(drawn(shares, np.full(1_000, 20), rng))
    assert abs(found.label.value) < 0.01
    assert found.given_label.value == pytest.approx(1 / 3, abs=0.03)
    assert recommend_feature({"f": found}).model == "label × feature"


def test_clients_of_one_category_each_have_correlation_one_and_even_ones_a_negative_one():
    one_each = np.repeat(np.eye(12, dtype=int) * 5, 4, axis=0)
    assert_allclose(values(differences(one_each)), 1)
    even = np.ones((30, 12), int)
    assert max(values(differences(even))) < 0


def test_the_intervals_cover_the_truth_about_as_often_as_they_say():
    covered = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        counts = drawn(rng.dirichlet(np.full(12, 0.25), size=120), np.full(120, 10), rng)
        label = differences(counts, rng=seed).label
        covered += label.low <= 1 / 4 <= label.high
    assert covered >= 88  # of 100; 95 are expected, and 87 or fewer would come once in 500 times


def test_the_answer_is_one_round_of_sums_with_each_client_in_one_group():
    asked = []

    class Watched(LocalAggregator):
        def aggregate(self, query, cohort_size):
            asked.append(query)
            return super().aggregate(query, cohort_size)

    counts = np.ones((50, 12), int)
    found = feature_differences(Watched(counts, rng=0), n_labels=3, n_values=4)
    assert [type(query) for query in asked] == [Batch]
    groups = answer(asked[0], counts, buckets=np.linspace(0, 0.999, 50)).answers
    assert sum(group.n_clients for group in groups) == found.n_clients == 50
    assert found.n_categories == 12


# ------------------------------------------------------------------------------------- few clients


def test_fewer_than_two_clients_with_two_points_are_refused():
    with pytest.raises(ParameterError, match="two clients with two points each, got 1"):
        differences(np.vstack([np.eye(12, dtype=int), np.full((1, 12), 3)]))


def test_nothing_can_be_said_about_a_feature_that_the_label_decides():
    counts = np.zeros((40, 3, 4), int)
    counts[np.arange(40), np.arange(40) % 3, np.arange(40) % 3] = 5
    counts[:, 0, 0] += 1
    found = differences(counts)
    assert isnan(found.given_label.value)
    assert found.label.value > 0.5
    assert recommend_feature({"f": found}).model == "label"


# ---------------------------------------------------------------------------------- recommendations


def difference(given, label=(0.0, -0.1, 0.1)):
    return FeatureDifference(
        Estimate(*label), Estimate(*given), Estimate(*given), Estimate(*given), 90, 12
    )


def test_the_feature_in_which_clients_differ_most_given_the_label_is_crossed():
    found = {"few": difference((0.3, 0.2, 0.4)), "most": difference((0.5, 0.4, 0.6))}
    found["noise"] = difference((0.9, -0.1, 1.9))
    advice = recommend_feature(found, label="y")
    assert (advice.model, advice.feature) == ("label × feature", "most")
    assert advice.sentence.startswith("model y × most: ")


HARDLY, MUCH = (0.0, -0.04, 0.04), (0.3, 0.2, 0.4)


@pytest.mark.parametrize("given", [(0.04, 0.03, 0.049), HARDLY, (np.nan,) * 3])
def test_a_feature_whose_interval_ends_below_the_threshold_is_not_crossed(given):
    assert recommend_feature({"f": difference(given, HARDLY)}).model == "IID"
    assert recommend_feature({"f": difference(given, MUCH)}).model == "label"


def test_iid_clients_are_recommended_only_if_every_interval_ends_below_the_threshold():
    """Of a review: 3 clients with 0.43 (-1.25 to 2.11) were told that IID clients will do."""
    few = difference((np.nan,) * 3, (0.43, -1.25, 2.11))
    advice = recommend_feature({"f": few}, label="y")
    assert (advice.model, advice.feature) == ("cannot tell", None)
    assert advice.sentence == (
        "cannot tell: 90 clients are too few; they may differ in y (0.43, -1.25 to 2.11); ask more "
        "clients"
    )
    unclear = difference((0.2, -0.01, 0.41), HARDLY)
    advice = recommend_feature({"f": unclear}, label="y")
    assert advice.model == "cannot tell"
    assert "they may differ given y in f (0.20, -0.01 to 0.41)" in advice.sentence


def test_the_label_alone_is_recommended_only_if_no_candidate_may_differ():
    found = {"g": difference(HARDLY, MUCH), "f": difference((0.2, -0.01, 0.41), MUCH)}
    advice = recommend_feature(found, label="y")
    assert (advice.model, advice.feature) == ("cannot tell", None)
    assert advice.sentence == (
        "cannot tell whether to cross y: 90 clients are too few; they differ in y (0.30, 0.20 to 0.40), "
        "and perhaps given y in f (0.20, -0.01 to 0.41); ask more clients"
    )
    assert recommend_feature({"g": found["g"]}).model == "label"


def test_of_several_unclear_candidates_the_one_that_may_differ_most_is_named():
    found = {"f": difference((0.1, -0.1, 0.3)), "g": difference((0.1, -0.2, 0.4))}
    said = recommend_feature(found, label="y").sentence
    assert "given y in g (0.10, -0.20 to 0.40) and 1 other candidate;" in said
    found["h"] = difference((0.1, np.nan, np.nan))  # two clients have no interval
    assert (
        "given y in h (0.10) and 2 other candidates;"
        in recommend_feature(found, label="y").sentence
    )


def test_two_clients_are_too_few_to_tell():
    found = differences(np.random.default_rng(0).multinomial(30, np.full(12, 1 / 12), size=2))
    assert isnan(found.label.low)
    assert recommend_feature({"f": found}).model == "cannot tell"


def test_nothing_to_recommend_from_is_an_error():
    with pytest.raises(ParameterError, match="at least one feature"):
        recommend_feature({})


def test_more_categories_than_ten_clients_hold_points_are_said():
    assert thin_categories(100, 10.0) is None
    assert "ten clients together hold less than a point of each" in thin_categories(101, 10.0)


# --------------------------------------------------------------------------- columns of records


def records_and_counts(n=300, *, alike=0.0, seed=7):
    """Clients of 12 points of three labels and a feature of four values, and their crossed counts.

    A client's points have the client's own value with probability `alike`.
    """
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n), 12)
    labels = rng.integers(N_LABELS, size=len(owner))
    own = rng.integers(N_VALUES, size=n)[owner]
    values = np.where(rng.random(len(owner)) < alike, own, rng.integers(N_VALUES, size=len(owner)))
    counts = np.zeros((n, N_LABELS * N_VALUES), int)
    np.add.at(counts, (owner, labels * N_VALUES + values), 1)
    return Records(values[:, None] * 10.0, labels, owner, n_labels=N_LABELS), counts


COLUMNS = {"f": RecordColumn(0, 1, np.array([5.0, 15.0, 25.0]))}


def test_a_column_of_records_is_what_the_crossed_table_says():
    records, counts = records_and_counts(alike=0.4)
    found = choose_feature(
        LocalAggregator(records, rng=0), COLUMNS, label="word", n_labels=N_LABELS
    )
    assert found.differences["f"] == differences(counts)
    assert found.recommendation.feature == "f"
    assert found.guarantee is None


@pytest.mark.parametrize("alike", [0.0, 0.5])
def test_with_noise_the_intervals_hold_what_exact_sums_say(alike):
    """Intervals of 95 %: of 40 at most 7 miss (more, if they cover as much: below .002)."""
    records, counts = records_and_counts(3_000, alike=alike)
    exact, misses, clients = differences(counts), 0, LocalAggregator(records)
    options = {"label": "word", "n_labels": N_LABELS, "epsilon": 2.0, "delta": 1e-6}
    for _ in range(10):
        found = choose_feature(clients, COLUMNS, **options).differences["f"]
        for name in ("label", "feature", "joint", "given_label"):
            one, own = getattr(found, name), getattr(exact, name)
            misses += not one.low <= own.value <= one.high
        assert found.given_label.high - found.given_label.low < 0.08
        assert found.n_categories == N_LABELS * N_VALUES
    assert misses <= 7


def test_with_noise_intervals_given_the_label_cover_clients_that_do_not_differ():
    """Intervals of 95 %: of 60 federations at most 9 miss (more, if they cover as much: below .002)."""
    misses = 0
    for seed in range(60):
        _, counts = records_and_counts(400, seed=seed)
        clients, noise = LocalAggregator(counts), {"epsilon": 8.0, "delta": 1e-6}
        found = feature_differences(clients, n_labels=N_LABELS, n_values=N_VALUES, **noise)
        misses += not found.given_label.low <= 0 <= found.given_label.high
    assert misses <= 9


def test_crossed_histograms_are_measured_with_noise_by_any_aggregator(tmp_path):
    _, counts = records_and_counts(3_000, alike=0.5)
    exact, options = differences(counts), {"n_labels": N_LABELS, "n_values": N_VALUES}
    noise = {"epsilon": 900.0, "delta": 1e-6}
    for clients in (LocalAggregator(counts), ShardAggregator(packed(tmp_path, counts))):
        found = feature_differences(clients, **options, **noise)
        for name in ("label", "feature", "joint", "given_label"):
            assert getattr(found, name).value == pytest.approx(getattr(exact, name).value, abs=0.01)
        with pytest.raises(ParameterError, match="expected cohort_size None, all clients, with"):
            feature_differences(clients, **options, **noise, cohort_size=30)


def test_several_columns_share_the_budget():
    records, _ = records_and_counts()
    two = COLUMNS | {"g": RecordColumn(0, 1, np.array([15.0]))}
    options = {"label": "word", "n_labels": N_LABELS, "epsilon": 2.0, "delta": 1e-6}
    found = choose_feature(LocalAggregator(records), two, **options)
    assert (found.guarantee.n_rounds, round(found.guarantee.epsilon, 6)) == (2, 2.0)
    with pytest.raises(ParameterError, match="at least one column"):
        choose_feature(LocalAggregator(records), {}, **options)

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from polyurn.client.bins import Bins
from polyurn.client.counting import cap_sizes, category_names, encode, histogram, histograms
from polyurn.counts import client_sizes
from polyurn.errors import CountsError, ParameterError
from strategies import counts

NAMES = ["bird", "cat", "a dog", ""]
SECRET = "classified"
POINTS = st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 3)), min_size=1, max_size=40)
few = settings(max_examples=30)  # examples that differ little


# ------------------------------------------------------------------------------- one client


@given(st.lists(st.integers(0, 3)))
def test_a_histogram_counts_what_a_counter_counts(values):
    seen = Counter(values)
    assert histogram(values, categories=4).tolist() == [seen[j] for j in range(4)]


@given(st.lists(st.integers(0, 3)))
def test_names_and_numbers_give_the_same_histogram(values):
    by_name = histogram([NAMES[j] for j in values], categories=NAMES)
    assert_array_equal(by_name, histogram(values, categories=4))


@given(st.lists(st.floats(0, 99, exclude_max=True)))
def test_a_continuous_feature_is_counted_in_its_bins(values):
    bins = Bins([0, 1, 10, 99])
    expected = [sum(low <= v < high for v in values) for low, high in [(0, 1), (1, 10), (10, 99)]]
    assert histogram(values, categories=bins).tolist() == expected


def test_a_client_without_points_has_a_histogram_of_zeros():
    for categories in (2, ["a", "b"], Bins([0, 1, 2])):
        assert histogram([], categories=categories).tolist() == [0, 0]


@pytest.mark.parametrize(
    "values",
    [np.array(["b", "a", "b"]), np.array(["b", "a", "b"], dtype=object), ("b", "a", "b")],
    ids=["text", "object", "tuple"],
)
def test_the_container_of_the_values_does_not_matter(values):
    assert histogram(values, categories=["a", "b"]).tolist() == [1, 2]


def test_whole_floats_are_category_numbers():
    assert histogram([0.0, 2.0, 2.0], categories=3).tolist() == [1, 0, 2]


# ------------------------------------------------------------------------------ many clients


@few
@given(POINTS)
def test_many_histograms_are_each_clients_own(points):
    made = histograms([c for c, _ in points], [v for _, v in points], categories=4)
    assert set(made.clients) == {c for c, _ in points}
    for row, client in zip(made.counts.toarray(), made.clients, strict=True):
        own = [v for c, v in points if c == client]
        assert_array_equal(row, histogram(own, categories=4))


@few
@given(POINTS, st.randoms(use_true_random=False))
def test_histograms_do_not_depend_on_the_order_of_the_points(points, random):
    shuffled = random.sample(points, len(points))
    one, other = (
        histograms([c for c, _ in some], [v for _, v in some], categories=4)
        for some in (points, shuffled)
    )
    assert_array_equal(one.clients, other.clients)
    assert_array_equal(one.counts.toarray(), other.counts.toarray())


def test_histograms_know_the_names_of_their_categories():
    assert histograms(["x"], [1], categories=3).categories == ("0", "1", "2")
    assert histograms(["x"], ["cat"], categories=NAMES).categories == tuple(NAMES)
    assert histograms(["x"], [1], categories=Bins([0, 1, 2])).categories == ("[0, 1)", "[1, 2)")


def test_a_repr_of_histograms_shows_no_client_category_or_count():
    shown = repr(histograms(["alice"], [SECRET], categories=[SECRET, "other"]))
    assert "alice" not in shown
    assert SECRET not in shown
    assert "1" not in shown


# --------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("values", "categories"),
    [
        (["cat", "cat", SECRET], NAMES),
        ([0, 1, 7919], 3),
        ([0, 1, -7919], 3),
        ([0, 1, 7919.5], 7920),
        ([0, 1, np.nan], 3),
        ([0, 1, 1e300], 3),
        ([0, 1, np.inf], 3),
        ([0.5, 0.5, 7919.0], Bins([0, 1, 2])),
        ([0.5, 0.5, np.nan], Bins([0, 1, np.inf])),
        (np.array([0, 1, 2**63 + 1], dtype=np.uint64), 3),
    ],
    ids=str,
)
def test_an_undeclared_value_is_refused_by_its_position_and_never_shown(values, categories):
    with pytest.raises(CountsError, match=r"1 of 3 values.* position 2; declare") as caught:
        histogram(values, categories=categories)
    for secret in (SECRET, "7919", "1e+300", "nan", "inf", str(2**63 + 1)):
        assert secret not in str(caught.value)


def test_text_is_refused_where_category_numbers_are_declared():
    with pytest.raises(CountsError, match="pass the category names instead") as caught:
        histogram([SECRET], categories=3)
    assert SECRET not in str(caught.value)


def test_text_is_refused_where_bins_are_declared_and_never_shown():
    with pytest.raises(CountsError, match="put into bins as numbers, got texts") as caught:
        histogram([SECRET], categories=Bins([0, 1, 2]))
    assert SECRET not in str(caught.value)


def test_values_in_more_than_one_dimension_are_refused():
    with pytest.raises(CountsError, match=r"got shape \(2, 2\)"):
        histogram([[0, 1], [1, 0]], categories=2)


def test_an_empty_list_of_categories_is_refused():
    with pytest.raises(CountsError, match="at least two categories, got 0"):
        histogram(["cat"], categories=[])


def test_category_names_that_repeat_are_refused():
    with pytest.raises(ParameterError, match="names that differ"):
        category_names(["a", "b", "a"])
    with pytest.raises(ParameterError, match="names that differ"):
        histogram(["a"], categories=["a", "b", "a"])


def test_more_categories_than_a_feature_can_have_are_refused_and_not_counted_out():
    with pytest.raises(CountsError, match="at most 1000000 categories"):
        histogram([0, 1], categories=10**12)


def test_one_category_is_nothing_to_model():
    with pytest.raises(CountsError, match="at least two categories, got 1"):
        histograms(["x", "y"], [0, 0], categories=1)


def test_no_points_at_all_are_refused():
    with pytest.raises(CountsError, match="at least one row"):
        histograms([], [], categories=3)


def test_clients_and_values_of_different_length_are_refused():
    with pytest.raises(CountsError, match="got 1 and 2"):
        histograms(["x"], [0, 1], categories=3)


@given(st.lists(st.integers(0, 3)))
def test_encoding_a_name_gives_its_place_in_the_list(codes):
    assert encode([NAMES[j] for j in codes], NAMES).tolist() == codes


# --------------------------------------------------------------------------------- capping


@few
@given(counts(n_categories=4), st.integers(1, 35), st.integers(0, 9))
def test_a_capped_client_keeps_cap_of_its_own_points_and_a_smaller_one_all(table, cap, seed):
    capped = cap_sizes(table, cap, rng=seed)
    assert_array_equal(client_sizes(capped), np.minimum(client_sizes(table), cap))
    assert (capped <= table).all()
    assert (capped >= 0).all()


@few
@given(counts(n_categories=4), st.integers(1, 35), st.integers(0, 9))
def test_capping_is_the_same_for_dense_and_sparse_and_leaves_its_input_alone(table, cap, seed):
    before = table.copy()
    capped = cap_sizes(table, cap, rng=seed)
    assert_array_equal(cap_sizes(sparse.csr_array(table), cap, rng=seed), capped)
    assert_array_equal(table, before)


def test_capping_draws_points_without_favour():
    # 20,000 draws of 6 of 12 points; the mean of each category is within 5 standard errors
    # (hypergeometric variance): false alarm in one run of 600,000.
    client, cap, n = np.array([6, 4, 2]), 6, 20_000
    capped = cap_sizes(np.tile(client, (n, 1)), cap, rng=0)
    share = client / 12
    error = np.sqrt(cap * share * (1 - share) * (12 - cap) / 11 / n)
    assert (abs(capped.mean(axis=0) - cap * share) < 5 * error).all()


def test_the_cap_of_a_histogram_keeps_that_many_points():
    assert histogram([0] * 10 + [1] * 10, categories=2, cap=7, rng=0).sum() == 7
    assert histogram([0, 1, 1], categories=2, cap=7, rng=0).tolist() == [1, 2]


@pytest.mark.parametrize("cap", [0, -1])
def test_a_cap_below_one_is_refused(cap):
    with pytest.raises(ParameterError, match=f"at least 1, got {cap}"):
        histogram([0, 1], categories=2, cap=cap, rng=0)

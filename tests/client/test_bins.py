import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from polyurn.client.bins import Bins
from polyurn.errors import ParameterError

FINITE = st.floats(-1e9, 1e9)
EDGES = st.sets(FINITE | st.sampled_from([-np.inf, np.inf]), min_size=3, max_size=8).map(sorted)
few = settings(max_examples=30)  # examples that differ little


def naive_bin(edges, value):
    """The definition: the j with edges[j] <= value < edges[j + 1]; inf belongs below an edge of inf."""
    for j in range(len(edges) - 1):
        if edges[j] <= value < edges[j + 1] or (value == np.inf == edges[j + 1]):
            return j
    return -1


@given(EDGES, st.lists(st.floats(allow_nan=True)))
def test_each_value_lies_in_the_bin_that_the_definition_says(edges, values):
    expected = [naive_bin(edges, value) for value in values]
    assert Bins(edges).locate(values).tolist() == expected


@few
@given(EDGES)
def test_each_edge_but_the_last_begins_its_own_bin(edges):
    assert Bins(edges).locate(edges[:-1]).tolist() == list(range(len(edges) - 1))


@few
@given(EDGES)
def test_there_is_one_label_per_bin(edges):
    bins = Bins(edges)
    assert len(bins.labels()) == bins.n_bins == len(edges) - 1


def test_labels_are_the_intervals():
    assert Bins([-np.inf, 0, 2.5, 5000]).labels() == ("[-inf, 0)", "[0, 2.5)", "[2.5, 5000)")


def test_a_missing_value_lies_in_no_bin():
    assert Bins([-np.inf, 0, np.inf]).locate([np.nan]).tolist() == [-1]


def test_a_single_value_has_a_single_bin():
    assert int(Bins([0, 1, 2]).locate(1.5)) == 1


def test_edges_cannot_be_changed_from_outside():
    given_edges = np.array([0.0, 1.0, 2.0])
    bins = Bins(given_edges)
    given_edges[0] = 9.0
    assert bins.edges.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        bins.edges[0] = 9.0


@pytest.mark.parametrize(
    "edges",
    [
        [],
        [0, 1],
        [0, 0, 1],
        [0, 2, 1],
        [0, np.nan, 1],
        [-np.inf, -np.inf, 0],
        [0, np.inf, np.inf],
        [[0, 1, 2]],
    ],
    ids=str,
)
def test_edges_that_are_too_few_or_do_not_increase_are_refused(edges):
    with pytest.raises(ParameterError, match="at least three increasing bin edges"):
        Bins(edges)


# --------------------------------------------------------------------------- of equal width


@given(st.integers(1, 1000), st.integers(-1000, 1000), st.integers(1, 60))
def test_bins_of_a_width_tile_the_range_and_one_more_holds_the_rest(width, start, n):
    bins = Bins.of_width(width, start=start, stop=start + n * width)
    assert bins.n_bins == n + 1
    assert (np.diff(bins.edges[:-1]) == width).all()
    assert bins.edges[0] == start
    assert bins.edges[-2] == start + n * width
    assert bins.edges[-1] == np.inf


@pytest.mark.parametrize(("width", "stop", "n"), [(0.1, 0.3, 3), (0.1, 0.7, 7), (0.7, 2.1, 3)])
def test_widths_that_are_not_binary_fractions_tile_the_range_too(width, stop, n):
    bins = Bins.of_width(width, stop=stop)
    assert bins.n_bins == n + 1
    assert bins.edges[-2] == stop


@pytest.mark.parametrize(
    ("width", "stop"),
    [(0, 3), (-1, 3), (2, 3), (4, 3), (1, 0), (np.nan, 3), (1, np.nan), (1, np.inf)],
)
def test_a_width_that_does_not_tile_the_range_is_refused(width, stop):
    with pytest.raises(ParameterError, match="whole number of bins"):
        Bins.of_width(width, stop=stop)


# ----------------------------------------------------------------------------- at quantiles


@given(st.sets(st.integers(-1000, 1000), min_size=2, max_size=60), st.integers(2, 8))
def test_bins_at_quantiles_hold_equal_shares_of_distinct_values(values, n_bins):
    assume(len(values) >= n_bins)
    bins = Bins.at_quantiles(sorted(values), n_bins=n_bins)
    shares = np.bincount(bins.locate(sorted(values)), minlength=n_bins)
    assert len(shares) == n_bins
    assert shares.max() - shares.min() <= 2  # a quantile that falls on a value takes it along


@given(st.lists(FINITE, min_size=1, max_size=30), st.floats(allow_nan=False))
def test_bins_at_quantiles_are_open_at_both_ends(values, anything):
    assert Bins.at_quantiles(values, n_bins=4).locate([anything])[0] >= 0


def test_bins_at_quantiles_merge_where_values_repeat():
    assert Bins.at_quantiles([5, 5, 5, 5], n_bins=4).edges.tolist() == [-np.inf, 5, np.inf]


@pytest.mark.parametrize("values", [[], [1.0, np.nan, 2.0], [1.0, np.inf]], ids=str)
def test_quantiles_of_no_values_or_of_missing_or_infinite_ones_are_refused(values):
    with pytest.raises(ParameterError, match="expected at least one value"):
        Bins.at_quantiles(values, n_bins=3)


@pytest.mark.parametrize("n_bins", [0, 1])
def test_fewer_than_two_bins_at_quantiles_are_refused(n_bins):
    with pytest.raises(ParameterError):
        Bins.at_quantiles([1.0, 2.0, 3.0], n_bins=n_bins)

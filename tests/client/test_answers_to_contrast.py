"""Sums of shares of pairs, against a loop over every pair of points."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from polyurn import answer
from polyurn.errors import ParameterError
from polyurn.wire import Contrast, total

N_LABELS, N_VALUES = 2, 3
QUERY = Contrast(N_LABELS, N_VALUES)
HISTOGRAMS = st.lists(
    st.lists(st.integers(0, 4), min_size=6, max_size=6).filter(any), min_size=1, max_size=5
)


def points_of(histogram):
    """(label, value) of each point."""
    return [divmod(j, N_VALUES) for j, count in enumerate(histogram) for _ in range(count)]


def naive(histogram):
    """One client's answer, pair by pair."""
    points = points_of(histogram)
    pairs = list(combinations(points, 2))
    if not pairs:
        return np.zeros(QUERY.n_numbers)
    p = np.array(histogram).reshape(N_LABELS, N_VALUES) / len(points)

    def share(holds):
        return sum(holds(a, b) for a, b in pairs) / len(pairs)

    labels = range(N_LABELS)
    same, other = share(lambda a, b: a == b), share(lambda a, b: a[0] == b[0] and a != b)
    return np.concatenate([
        [1.0],
        p.ravel(),
        (p**2).sum(axis=1),
        p.sum(axis=1) ** 2,
        [share(lambda a, b, y=y: a[0] == b[0] == y) for y in labels],
        [share(lambda a, b, y=y: a == b and a[0] == y) for y in labels],
        [(p.sum(axis=0) ** 2).sum()],
        [share(lambda a, b: a[1] == b[1])],
        [same**2, same * other, other**2],
    ])  # fmt: skip


@settings(max_examples=60)
@given(HISTOGRAMS)
def test_the_sums_are_those_of_a_loop_over_pairs_of_points(histograms):
    answered = answer(QUERY, np.array(histograms)).to_vector()
    assert_allclose(answered, sum(map(naive, histograms)), atol=1e-12)


@given(HISTOGRAMS)
def test_no_number_of_one_client_is_larger_than_one(histograms):
    for histogram in histograms:
        one = answer(QUERY, np.array(histogram))
        assert (one.to_vector() <= 1).all()
        for block in (
            one.proportions,
            one.squares,
            one.label_squares,
            one.pairs,
            one.matches,
            one.moments,
        ):
            assert block.sum() <= 1 + 1e-12
        assert (one.matches <= one.pairs + 1e-12).all()


@given(HISTOGRAMS)
def test_a_cohort_answers_the_sum_of_its_clients(histograms):
    each = total([answer(QUERY, np.array(histogram)) for histogram in histograms])
    assert_allclose(answer(QUERY, np.array(histograms)).to_vector(), each.to_vector(), atol=1e-12)


def test_a_client_of_one_point_adds_nothing():
    assert not answer(QUERY, np.eye(6, dtype=int)).to_vector().any()


def test_one_label_or_one_value_is_nothing_to_ask_about():
    for n_labels, n_values in ((1, 3), (3, 1)):
        with pytest.raises(ParameterError, match="of at least 2, got 1"):
            Contrast(n_labels, n_values)

"""Answers: their flat form, their sums, and what one client can add."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyurn import SizeBins, answer
from polyurn.errors import InputError
from polyurn.model.paper_truths import truth
from polyurn.wire import Initialise, Update, UpdateStatistics, total

MDM_3 = truth("medium/3")
UPDATE = Update(MDM_3)
START = Initialise(3, 10, MDM_3.sizes.bins)
CLIENTS = MDM_3.sample(60, rng=0)


@given(st.integers(1, 5), st.integers(2, 7), st.integers(1, 9), st.integers(0, 2**32))
def test_vectors_round_trip_exactly(k, c, b, seed):
    query = Initialise(k, c, SizeBins.exact(b))
    vector = np.random.default_rng(seed).normal(size=query.n_numbers)
    again = query.read(vector)
    np.testing.assert_array_equal(again.to_vector(), vector)
    assert again.size_counts.shape == (k, b)
    assert again.first_moments.shape == again.second_moments.shape == (k, c)


@pytest.mark.parametrize("query", [UPDATE, START])
def test_the_sum_of_single_answers_is_the_answer_of_the_cohort(query):
    singles = [answer(query, c, rng=i) for i, c in enumerate(CLIENTS)]
    cohort = answer(query, CLIENTS, rng=0)
    if query is UPDATE:  # every block; the start is random, so only what chance cannot touch
        np.testing.assert_allclose(total(singles).to_vector(), cohort.to_vector(), rtol=1e-11)
    else:
        summed = total(singles)
        assert summed.n_clients == cohort.n_clients == 60
        np.testing.assert_allclose(
            summed.first_moments.sum(axis=0), cohort.first_moments.sum(axis=0), rtol=1e-12
        )


@given(st.permutations(range(60)), st.integers(1, 59))
def test_adding_does_not_depend_on_client_order_or_grouping(order, cut):
    shuffled = CLIENTS[order]
    parts = answer(UPDATE, shuffled[:cut]) + answer(UPDATE, shuffled[cut:])
    whole = answer(UPDATE, CLIENTS).to_vector()
    np.testing.assert_allclose(parts.to_vector(), whole, rtol=1e-12, atol=1e-12)


def test_answers_to_different_queries_cannot_be_added():
    with pytest.raises(TypeError):
        answer(UPDATE, CLIENTS) + answer(START, CLIENTS, rng=0)
    with pytest.raises(InputError, match="different queries"):
        answer(Update(truth("medium/2")), CLIENTS) + answer(UPDATE, CLIENTS)
    with pytest.raises(InputError, match="at least one"):
        total([])


def test_a_vector_of_the_wrong_length_is_refused():
    with pytest.raises(InputError, match="expected a vector of"):
        UpdateStatistics.from_vector(np.zeros(3), UPDATE.shapes)


def test_a_statistics_never_shows_its_values():
    text = repr(answer(UPDATE, CLIENTS[:1]))
    assert "responsibilities(3,)" in text
    assert not any(
        character.isdigit()
        for character in text.replace("3", "").replace("10", "").replace("20", "")
    )


def test_one_client_stays_within_the_sensitivities_that_the_docstrings_state():
    for client in CLIENTS:
        start, step = answer(START, client, rng=0), answer(UPDATE, client)
        for block in (start.size_counts, start.first_moments, start.second_moments,
                      step.responsibilities, step.size_counts):  # fmt: skip
            assert np.linalg.norm(block) <= 1 + 1e-12
        tables = MDM_3.alphas * step.numerators
        assert (tables.sum(axis=0) <= client + 1e-9).all()
        assert np.linalg.norm(tables) <= MDM_3.max_size
        assert np.linalg.norm(MDM_3.alphas.sum(axis=1) * step.denominators) <= MDM_3.max_size

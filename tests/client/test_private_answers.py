"""Vectors that noise can protect: none is longer than 1, and they are what the page says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyurn import LocalAggregator, SizeBins, answer
from polyurn.model.scores import Mixture
from polyurn.wire import (
    BoundedSurvey,
    Differences,
    Shares,
    SizeMembership,
    Sketch,
    WhitenedScore,
)

GRID = 2.0**28


@st.composite
def mixtures(draw, n_categories):
    k = draw(st.integers(1, 3))
    logs = st.lists(st.floats(-4, 6), min_size=n_categories, max_size=n_categories)
    alphas = 10 ** np.array(draw(st.lists(logs, min_size=k, max_size=k)))
    weights = np.array(draw(st.lists(st.floats(1e-3, 1.0), min_size=k, max_size=k)))
    return Mixture(weights / weights.sum(), alphas)


@st.composite
def bounded_queries(draw):
    """A query of every kind, with parameters up to where the rounds of a fit never go."""
    c, max_size = draw(st.integers(2, 5)), draw(st.sampled_from([1, 2, 7, 300]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    bins = SizeBins.logarithmic(max_size)
    one, other = draw(mixtures(c)), draw(mixtures(c))
    scale, tight = 10 ** draw(st.floats(-6, 6)), 10 ** draw(st.floats(-6, 3))
    g = draw(st.integers(1, 6))
    kinds = [
        BoundedSurvey(c, bins),
        Sketch(rng.dirichlet(np.ones(c), g), scale * rng.normal(size=(g, c)), tight, max_size),
        WhitenedScore(one, scale * rng.normal(size=(one.n_coordinates, 4)), tight, max_size),
        Differences((one, other, one), (tight, scale), max_size),
        SizeMembership(one, bins),
    ]
    shares = tuple(rng.dirichlet(np.ones(len(kinds))))
    return draw(st.sampled_from([*kinds, Shares(tuple(kinds), shares)])), max_size


def adversarial(c, max_size, seed):
    """Clients at the corners, in the middle and beyond the declared size."""
    rng = np.random.default_rng(seed)
    sizes = np.unique([1, 2, max_size, 3 * max_size, 40])
    corners = [n * row for n in sizes for row in np.eye(c, dtype=int)]
    return np.array(
        corners
        + [rng.multinomial(n, rng.dirichlet(np.full(c, a))) for n in sizes for a in (0.1, 9)]
    )


@settings(max_examples=150, deadline=None)
@given(bounded_queries(), st.integers(0, 99))
def test_no_clients_vector_is_ever_longer_than_1(asked, seed):
    query, max_size = asked
    for client in adversarial(query.n_categories, max_size, seed):
        vector = answer(query, client, rng=seed).to_vector()
        assert np.isfinite(vector).all()
        assert np.linalg.norm(vector) <= 1
        assert (vector * GRID == np.rint(vector * GRID)).all()


@pytest.mark.parametrize(
    "query",
    [
        WhitenedScore(Mixture(np.ones(1), np.ones((1, 2))), np.full((3, 2), 1e150), 1e-150, 9),
        Sketch(np.full((1, 2), 1e150), np.full((1, 2), 1e150), 1e-300, 9),
    ],
)
def test_a_hostile_query_moves_a_sum_by_no_more_than_1(query):
    assert np.linalg.norm(answer(query, [5, 1], rng=0).to_vector()) <= 1


def test_some_client_uses_the_whole_norm():
    survey = BoundedSurvey(2, SizeBins.exact(9))
    assert np.linalg.norm(answer(survey, [9, 0]).to_vector()) == pytest.approx(1, abs=1e-7)


def test_a_larger_client_answers_for_max_size_of_its_points():
    query = BoundedSurvey(2, SizeBins.exact(10))
    vector = answer(query, [4000, 6000], rng=0).to_vector() / np.sqrt(0.4)
    p = vector[-2:]
    assert p.sum() == pytest.approx(1, abs=1e-6)
    assert p * 10 == pytest.approx(np.rint(p * 10), abs=1e-6)


def test_the_sum_over_clients_is_the_sum_of_their_vectors_to_the_last_bit():
    rng = np.random.default_rng(0)
    clients = rng.multinomial(12, np.full(4, 0.25), size=50)
    mixture = Mixture(np.array([0.5, 0.5]), rng.uniform(0.1, 9, (2, 4)))
    score = WhitenedScore(mixture, rng.normal(size=(10, 3)), 2.0, 12)
    query = Shares((score, BoundedSurvey(4, SizeBins.exact(12))), (0.6, 0.4))
    singles = sum(answer(query, client).to_vector() for client in clients)
    whole = LocalAggregator(clients, rng=0).aggregate(query, None).to_vector()
    np.testing.assert_array_equal(singles, whole)


# --------------------------------------------------------- one record of a client is another one


@settings(max_examples=100, deadline=None)
@given(bounded_queries(), st.integers(0, 2**32))
def test_no_record_changes_a_vector_by_more_than_the_query_says(asked, seed):
    query, max_size = asked
    rng, c = np.random.default_rng(seed), query.n_categories
    for n in {1, 2, max_size}:
        client = rng.multinomial(n, rng.dirichlet(np.full(c, 0.3)))
        source, target = rng.permutation(c)[:2]
        source = source if client[source] else int(client.argmax())
        other = client.copy()
        other[source] -= 1
        other[target] += 1
        one, two = (answer(query, who, rng=0).to_vector() for who in (client, other))
        assert np.linalg.norm(one - two) <= query.change_norm + 1e-7


def test_what_large_clients_draw_does_not_come_from_the_seed():
    """With a known stream, one client less would change what all others draw: more than one vector."""
    query = BoundedSurvey(2, SizeBins.exact(10))
    clients = np.full((50, 2), 5000)
    sums = {tuple(answer(query, clients, rng=1).to_vector()) for _ in range(20)}
    assert len(sums) > 1  # the same 20 times by chance: less than once in 10^20

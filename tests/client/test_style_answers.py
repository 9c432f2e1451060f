"""Moments of styles: the plain formulas, sums that do not depend on blocks, and norms of at most 1."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyurn import LocalAggregator, Records, StyleSpace, answer
from polyurn.client import style_answers as styles
from polyurn.errors import ParameterError
from polyurn.wire import BoundedStyle, Part, StyleMoments, check_answer
from style_cases import drawn_world, whole_space

WORLD = drawn_world(40, sizes=(1, 30), seed=3)
SPACE = whole_space(radius=2.0)


def plain(space, features, labels):
    """One client's moments, in loops."""
    z, far = space.located(features, labels)
    n, m, present = len(z), z.shape[1], sorted(set(labels))
    mean, between, within = z.mean(axis=0), np.zeros((m, m)), np.zeros((m, m))
    for label in present:
        mine = z[labels == label]
        apart = mine.mean(axis=0) - mean
        between += len(mine) / n * np.outer(apart, apart)
        within += (mine - mine.mean(axis=0)).T @ (mine - mine.mean(axis=0)) / n
    h = np.bincount(labels, minlength=space.n_labels) / n
    lower, lower_h = np.tril_indices(m), np.tril_indices(len(h))
    matrices = [np.outer(mean, mean)[lower], between[lower], within[lower]]
    label_effect = [h, np.outer(h, h)[lower_h], np.outer(h, mean).ravel()]
    head = [1.0, 1 / n, (h**2).sum(), len(present) / n, far.mean()]
    return np.concatenate([head, mean, *matrices, *label_effect])


def each_client(records):
    for i in range(records.n_clients):
        held = records.of(np.array([i]))
        yield held.features, held.labels


def test_moments_are_those_of_the_plain_formulas_client_by_client():
    said = answer(StyleMoments(SPACE, label_effect=True), WORLD.records).to_vector()
    told = sum(plain(SPACE, *client) for client in each_client(WORLD.records))
    np.testing.assert_allclose(said, told, rtol=1e-10, atol=1e-10)


def test_sums_do_not_depend_on_the_blocks(monkeypatch):
    query = StyleMoments(SPACE, label_effect=True)
    whole = answer(query, WORLD.records).to_vector()
    monkeypatch.setattr(styles, "_BLOCK_NUMBERS", 500)
    np.testing.assert_allclose(answer(query, WORLD.records).to_vector(), whole, rtol=1e-12)


def test_two_parts_of_the_clients_add_up_to_all_of_them():
    clients, query = LocalAggregator(WORLD.records, rng=0), StyleMoments(SPACE)
    parts = [clients.aggregate(Part(query, *ends), None) for ends in ((0, 0.3), (0.3, 1))]
    whole = clients.aggregate(query, None).to_vector()
    np.testing.assert_allclose((parts[0] + parts[1]).to_vector(), whole, rtol=1e-12)


def test_clients_with_histograms_only_say_that_records_are_needed():
    with pytest.raises(ParameterError, match="needs clients' records, got"):
        answer(StyleMoments(SPACE), WORLD.records.counts)


@st.composite
def clients_and_spaces(draw):
    """Clients at the corners: far away, all points alike, one of each label; and any space."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_labels, d, n = draw(st.integers(2, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 12))
    m, scale = draw(st.integers(1, d)), 10.0 ** draw(st.integers(-3, 4))
    features = rng.normal(size=(n, d)) * scale + draw(st.sampled_from([0.0, 5.0, -1e6]))
    if draw(st.booleans()):
        features[:] = features[0]
    labels = rng.integers(n_labels, size=n) if draw(st.booleans()) else np.arange(n) % n_labels
    space = StyleSpace(
        rng.normal(size=(n_labels, m)), rng.normal(size=(d, m)), rng.normal(size=(n_labels, m, m)),
        10.0 ** draw(st.integers(-2, 3)),
    )  # fmt: skip
    return Records(features, labels, np.zeros(n, int), n_labels=n_labels), space


@settings(max_examples=60, deadline=None)
@given(clients_and_spaces(), st.booleans())
def test_no_client_is_beyond_the_bounds_of_its_moments(given_client, label_effect):
    records, space = given_client
    query = StyleMoments(space, label_effect)
    check_answer(query, answer(query, records), query.bounds())


@settings(max_examples=60, deadline=None)
@given(clients_and_spaces(), st.booleans(), st.floats(-4, 4))
def test_no_vector_is_longer_than_1_whatever_the_space_and_the_clip(
    given_client, label_effect, log_clip
):
    records, space = given_client
    vector = answer(BoundedStyle(space, 10.0**log_clip, label_effect), records).to_vector()
    assert np.linalg.norm(vector) <= 1
    assert np.array_equal(vector, np.trunc(vector * 2.0**28) / 2.0**28)


def test_the_parts_of_the_norm_add_up_to_1_before_anything_is_cut():
    """So the gate of `unit_rows` has nothing to do for a query that fits."""
    for label_effect in (False, True):
        query = BoundedStyle(SPACE, 3.0, label_effect)
        for features, labels in each_client(WORLD.records):
            vector = styles._clipped(query, styles.Held(features, labels, [len(labels)]))
            assert np.linalg.norm(vector) <= 1 + 1e-12


def test_a_clip_that_nobody_reaches_gives_the_exact_moments_again():
    query = BoundedStyle(SPACE, SPACE.radius**2, label_effect=True)
    said = query.unscaled(answer(query, WORLD.records).values).to_vector()
    told = answer(query.moments, WORLD.records).to_vector()
    np.testing.assert_allclose(said, told, atol=1e-4)


def test_a_hostile_space_makes_no_client_refuse():
    """Who refuses would be seen: coordinates that are not finite are sent as 0, and as far."""
    huge = StyleSpace(np.zeros((2, 1)), [[1e150]], [[[1e150]], [[1.0]]], 1.0)
    records = Records([[1e100], [1.0]], [0, 1], ["a", "a"])
    told = answer(StyleMoments(huge), records)
    assert np.isfinite(told.to_vector()).all()
    assert (told.far, told.means.tolist()) == (1.0, [0.5])
    assert np.isfinite(answer(BoundedStyle(huge, 1.0), records).to_vector()).all()

"""Records: who holds which points, and the histograms of their labels."""

import tracemalloc

import numpy as np
import pytest

from polyurn import LocalAggregator, Records, SizeBins, answer
from polyurn.errors import ParameterError
from polyurn.wire import RecordColumn, Spread, Survey

FEATURES = np.arange(12.0).reshape(6, 2)
LABELS, CLIENTS = [0, 2, 1, 1, 0, 2], ["b", "a", "b", "c", "a", "b"]


def test_each_client_has_its_own_points_in_their_order():
    records = Records(FEATURES, LABELS, CLIENTS)
    held = records.of(np.array([1, 0]))
    assert records.ids.tolist() == ["a", "b", "c"]
    assert held.sizes.tolist() == [3, 2]
    assert held.labels.tolist() == [0, 1, 2, 2, 0]
    assert np.array_equal(held.features, FEATURES[[0, 2, 5, 1, 4]])


def test_histograms_of_records_are_those_of_their_labels():
    records = Records(FEATURES, LABELS, CLIENTS, n_labels=4)
    assert records.counts.toarray().tolist() == [[1, 0, 1, 0], [1, 1, 1, 0], [0, 1, 0, 0]]


def test_questions_about_histograms_are_answered_of_records_too():
    records, query = Records(FEATURES, LABELS, CLIENTS), Survey(3, SizeBins.exact(9), pairs=True)
    told = answer(query, records.counts).to_vector()
    assert np.array_equal(answer(query, records).to_vector(), told)
    assert np.array_equal(LocalAggregator(records).aggregate(query, None).to_vector(), told)


def test_a_question_about_one_column_copies_no_other():
    rng = np.random.default_rng(0)
    records = Records(rng.normal(size=(4_000, 200)), np.zeros(4_000, int), np.arange(4_000) // 4)
    query = Spread(2, RecordColumn(7, 200, np.array([0.0])))
    answer(query, records)
    tracemalloc.start()
    answer(query, records)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000 * 200 * 8 / 4


@pytest.mark.parametrize("edges", [[np.nan], [np.inf], [0.0, np.nan], [1.0, 1.0]])
def test_a_column_is_cut_at_increasing_numbers(edges):
    with pytest.raises(ParameterError, match="expected increasing edges"):
        RecordColumn(0, 1, np.array(edges))


def test_no_record_is_shown():
    assert repr(Records(FEATURES, LABELS, CLIENTS)) == "Records(3 clients, 6 points)"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"clients": ["a"]}, "a client for each"),
        ({"labels": [0, 1, 2, 3, 4, 5], "n_labels": 3}, "labels from 0 to 2, got 5"),
        ({"features": [1.0] * 6}, "shape"),
        (
            {"features": np.where(np.arange(6) == 3, np.nan, 1.0)[:, None]},
            "NaN or infinity in point 3",
        ),
        ({"features": np.zeros((0, 2)), "labels": [], "clients": []}, "at least one point"),
    ],
)
def test_records_that_do_not_fit_together_are_refused(changed, said):
    given = {"features": FEATURES, "labels": LABELS, "clients": CLIENTS}
    with pytest.raises(ParameterError, match=said):
        Records(**given | changed)

"""Records from data frames: columns of numbers, lists, and what is no feature."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from polyurn import table_records
from polyurn.client.record_tables import (
    column_records,
    list_columns,
    number_columns,
    table_features_of,
)
from polyurn.errors import CountsError

TABLE = pa.table(
    {
        "who": ["b", "a", "b"], "word": ["x", "y", "x"], "pitch": [1.5, 2.0, 4.0],
        "loud": ["3", "1", "2"], "embedding": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    }
)  # fmt: skip
ASKED = {"label": "word", "categories": ["x", "y"], "client": "who"}


def test_each_row_is_a_point_of_its_client():
    records = table_records(TABLE, features=["pitch", "loud"], **ASKED)
    held = records.of(np.array([1]))
    assert records.ids.tolist() == ["a", "b"]
    assert held.features.tolist() == [[1.5, 3.0], [4.0, 2.0]]
    assert held.labels.tolist() == [0, 0]


def test_a_column_of_lists_is_as_many_features():
    assert table_features_of(TABLE, ["embedding"]).tolist() == [[1, 2], [3, 4], [5, 6]]


def test_pandas_gives_the_same_records():
    frame = pd.DataFrame({"who": ["b", "a"], "word": ["x", "y"], "pitch": [1.0, 2.0]})
    assert table_records(frame, features=["pitch"], **ASKED).counts.toarray().tolist() == [
        [0, 1], [1, 0],
    ]  # fmt: skip


def test_columns_of_numbers_are_found_whatever_they_are_kept_as():
    assert number_columns(TABLE, leave_out=("who",)) == ("pitch", "loud")


@pytest.mark.parametrize(
    ("features", "said"),
    [
        ([], "at least one column"),
        (["word"], "expected numbers in column 'word'"),
        (["no"], "'no'"),
        (["bad"], "finite numbers in column 'bad'"),
        (["ragged"], "lengths 1 to 2"),
        (["infinite"], "finite numbers in column 'infinite', got others, the first in row 1,"),
        (["unknown"], "the first in row 2, counted"),
    ],
)
def test_columns_that_are_no_features_are_refused(features, said):
    table = TABLE.append_column("bad", pa.array([1.0, np.inf, 2.0]))
    table = table.append_column("ragged", pa.array([[1.0], [1.0, 2.0], [1.0]]))
    table = table.append_column("infinite", pa.array([[1.0, 2.0], [np.inf, 2.0], [1.0, 2.0]]))
    table = table.append_column("unknown", pa.array([[1.0, 2.0], [1.0, 2.0], [1.0, np.nan]]))
    with pytest.raises(CountsError, match=said):
        table_records(table, features=features, **ASKED)


def test_points_in_a_column_of_lists_are_read_back():
    features = np.arange(6.0).reshape(3, 2)
    table = pa.table({"picture": features.tolist(), "word": [1, 0, 1]})
    assert list_columns(table) == ("picture",)
    assert (table_features_of(table, ["picture"]) == features).all()


def test_declared_values_of_a_column_of_texts_are_their_codes():
    values = {"word": ["y", "x"]}
    assert table_features_of(TABLE, ["pitch", "word"], values)[:, 1].tolist() == [1, 0, 1]
    with pytest.raises(CountsError, match="not in the declared categories, the first"):
        table_features_of(TABLE, ["word"], {"word": ["x", "z"]})


def test_the_records_of_one_column_have_no_labels_to_speak_of():
    records = column_records(TABLE, "pitch", client="who")
    assert (records.n_clients, records.n_features, records.n_labels) == (2, 1, 2)

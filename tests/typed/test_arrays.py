"""Arrays of numbers and ids from outside, and arrays that stay read-only."""

import copy
import pickle
from dataclasses import fields, is_dataclass

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from polyurn import IID, MDM, Bins, Dirichlet, SizeBins, Sizes
from polyurn.errors import CountsError, ParameterError
from polyurn.typed.arrays import floats, ids_of, numbers

WHOLE = {
    "a list": [1, 2, 3],
    "big-endian": np.array([1, 2, 3], dtype=">i8"),
    "big-endian floats": np.array([1, 2, 3], dtype=">f4"),
    "pandas": pd.Series([1, 2, 3]),
    "pandas Int64": pd.array([1, 2, 3], dtype="Int64"),
    "a column of Int64": pd.Series([1, 2, 3], dtype="Int64"),
    "a column of Float64": pd.Series([1, 2, 3], dtype="Float64"),
    "polars": pl.Series([1, 2, 3]),
    "a memoryview": memoryview(np.array([1, 2, 3])),
    "objects": np.array([1, 2, 3], dtype=object),
}


@pytest.mark.parametrize("values", WHOLE.values(), ids=WHOLE)
def test_big_endian_and_pandas_int64_input_is_taken_as_what_it_means(values):
    given = numbers(values, "values")
    assert_array_equal(given, [1, 2, 3])
    assert given.dtype.isnative
    assert given.dtype.kind in "if"


@pytest.mark.parametrize(
    ("values", "arrived"),
    [
        (["1", "2"], "texts"),
        (None, "None"),
        ({"a": 1}, "dict"),
        ({1, 2}, "set"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "dates"),
        (pd.array([1, None], dtype="Int64"), "1 masked, the first at position 1"),
        (np.array([1, pd.NA], dtype=object), "something else, or missing values"),
        ([10**30, 1], "something else"),
        ([[1], [1, 2]], "lists of different lengths"),
        (np.ma.array([1, 2], mask=[0, 1]), "1 masked, the first at position 1"),
    ],
    ids=str,
)
def test_what_are_no_numbers_is_one_line(values, arrived):
    with pytest.raises(CountsError, match=f"^expected sizes .*got {arrived}"):
        numbers(values, "sizes", error=CountsError)


def test_floats_are_a_copy():
    given = np.ones(2)
    floats(given, "values")[0] = 5.0
    assert_array_equal(given, [1.0, 1.0])


@pytest.mark.parametrize(
    "values",
    [[3, 1], ["a", "b"], np.array(["a", "b"], dtype=object), pd.Series(["a", "b"]),
     pd.Series(["a", "b"], dtype="string"), pd.Categorical(["a", "b"]), pl.Series(["a", "b"])],
    ids=lambda values: type(values).__name__,
)  # fmt: skip
def test_ids_are_numbers_or_texts(values):
    assert ids_of(values, "owners").tolist() == list(values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, np.nan], "NaN at position 1"),
        (["a", None], "a missing value, at position 1"),
        (["a", np.nan], "a missing value, at position 1"),
        (pd.Series(["a", None]), "a missing value, at position 1"),
        (["a", 1], "a mixture, or a missing value, at position 1"),
        ([["a", "b"]], r"as a list, one for each, got shape \(1, 2\)"),
        ([["a"], ["b", "c"]], "lists of different lengths"),
        (None, r"got shape \(\)"),
    ],
    ids=str,
)
def test_ids_that_are_missing_mixed_or_nested_are_refused_with_their_position(values, message):
    with pytest.raises(ParameterError, match=message):
        ids_of(values, "owners")


FROZEN = [
    MDM([0.5, 0.5], [[1.0, 2.0], [3.0, 4.0]], Sizes.constant(3, n_components=2)),
    SizeBins([1, 2, 5]),
    Sizes.constant(3),
    Bins([0.0, 1.0, 2.0]),
    IID([1, 2], [3]),
    Dirichlet([1.0, 2.0], [3]),
]


def arrays(value):
    """Every array in a frozen value, and in those that it holds."""
    for item in fields(value) if is_dataclass(value) else ():
        inner = getattr(value, item.name)
        yield from [inner] if isinstance(inner, np.ndarray) else arrays(inner)


@pytest.mark.parametrize("value", FROZEN, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    "way",
    [
        lambda value: value,
        lambda value: pickle.loads(pickle.dumps(value)),
        copy.copy,
        copy.deepcopy,
    ],
    ids=["provenance", "pickled", "copied", "copied deeply"],
)
def test_frozen_arrays_do_not_thaw_when_pickled_or_copied(way, value):
    found = list(arrays(way(value)))
    assert found
    for array, before in zip(found, arrays(value), strict=True):
        assert_array_equal(array, before)
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0

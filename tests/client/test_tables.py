import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from polyurn.client.bins import Bins
from polyurn.client.columns import as_arrow
from polyurn.client.counting import histograms
from polyurn.client.tables import observed_categories, table_histograms
from polyurn.errors import CountsError

SECRET = "classified"
FRAMES = {"pyarrow": pa.table, "pandas": pd.DataFrame, "polars": pl.DataFrame}
each_frame = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
CELLS = st.lists(
    st.tuples(st.sampled_from("zyx"), st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=20
)


def long_columns(cells):
    client, category, count = zip(*cells, strict=True)
    return {"client": list(client), "category": list(category), "count": list(count)}


def as_dict(made):
    """{client: histogram}: what was read, whatever the order of the rows."""
    return dict(zip(made.clients.tolist(), made.counts.toarray().tolist(), strict=True))


# -------------------------------------------------------------------- layouts, frames, types


@each_frame
@settings(max_examples=30)
@given(cells=CELLS)
def test_a_long_table_adds_up_its_counts(frame, cells):
    made = table_histograms(frame(long_columns(cells)), categories=3, count="count")
    expected = {client: [0, 0, 0] for client, _, _ in cells}
    for client, category, count in cells:
        expected[client][category] += count
    assert as_dict(made) == expected


@each_frame
@settings(max_examples=30)
@given(cells=CELLS.filter(lambda cells: any(count for *_, count in cells)))
def test_a_long_table_says_the_same_as_one_row_per_point(frame, cells):
    points = [(c, j) for c, j, count in cells for _ in range(count)]
    raw = {"client": [c for c, _ in points], "category": [j for _, j in points]}
    filled = [cell for cell in cells if cell[2]]
    long = table_histograms(frame(long_columns(filled)), categories=3, count="count")
    assert as_dict(table_histograms(frame(raw), categories=3)) == as_dict(long)
    assert as_dict(histograms(raw["client"], raw["category"], categories=3)) == as_dict(long)


@each_frame
def test_clients_stand_in_the_order_in_which_they_first_appear(frame):
    table = frame({"client": ["z", "a", "z", "m"], "category": [0, 1, 1, 0]})
    assert table_histograms(table, categories=2).clients.tolist() == ["z", "a", "m"]


@each_frame
def test_clients_and_categories_may_be_text_or_numbers(frame):
    expected = [[2, 1], [0, 1]]
    for ids in (["p", "p", "q", "p"], [70, 70, 3, 70]):
        for values, categories in [
            (["x", "y", "y", "x"], ["x", "y"]),
            ([0, 1, 1, 0], 2),
            ([0.0, 1.0, 1.0, 0.0], 2),
            ([10, 20, 20, 10], ["10", "20"]),
            (["0", "1", "1", "0"], 2),
            (["0.5", "3", "3.5", "7e-1"], Bins([0, 1, np.inf])),
            ([0.5, 3.5, 3.5, 0.7], Bins([0, 1, np.inf])),
        ]:
            made = table_histograms(
                frame({"client": ids, "category": values}), categories=categories
            )
            assert made.counts.toarray().tolist() == expected
            assert made.clients.tolist() == [ids[0], ids[2]]


@each_frame
def test_columns_may_have_other_names(frame):
    table = frame({"who": ["a", "b"], "what": [0, 1], "times": [3, 4], "count": [9, 9]})
    made = table_histograms(table, categories=2, client="who", category="what", count="times")
    assert as_dict(made) == {"a": [3, 0], "b": [0, 4]}


@pytest.mark.parametrize(
    "table",
    [
        pl.DataFrame({"client": ["a", "b"], "category": ["x", "y"]}).cast(pl.Categorical),
        pd.DataFrame({"client": ["a", "b"], "category": ["x", "y"]}).astype("category"),
        pl.concat(
            [pl.DataFrame({"client": [c], "category": [v]}) for c, v in ["ax", "by"]],
            rechunk=False,
        ),
        pa.table({k: pa.array(v, pa.string_view()) for k, v in [("client", "ab"), ("category", "xy")]}),
        pa.record_batch({"client": ["a", "b"], "category": ["x", "y"]}),
    ],
    ids=["polars categorical", "pandas categorical", "chunks", "string view", "record batch"],
)  # fmt: skip
def test_the_memory_layout_of_the_columns_does_not_matter(table):
    assert as_dict(table_histograms(table, categories=["x", "y"])) == {"a": [1, 0], "b": [0, 1]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_levels_of_a_categorical_column_that_no_row_has_are_not_clients(make):
    table = make({"client": ["a", "b", "c"], "category": [0, 1, 1]})
    if make is pd.DataFrame:
        left = table.astype({"client": "category"})[table["client"] != "b"]
    else:
        left = table.cast({"client": pl.Categorical}).filter(pl.col("client") != "b")
    assert as_dict(table_histograms(left, categories=2)) == {"a": [1, 0], "c": [0, 1]}


@each_frame
def test_a_client_whose_counts_are_all_zero_is_kept_for_the_caller_to_drop(frame):
    table = frame({"client": ["a", "b"], "category": [0, 1], "count": [0, 4]})
    made = table_histograms(table, categories=2, count="count")
    assert as_dict(made) == {"a": [0, 0], "b": [0, 4]}


# --------------------------------------------------------------------------- what is refused


@each_frame
@pytest.mark.parametrize(
    ("values", "categories"), [(["x", "x", SECRET], ["x", "y"]), ([0, 0, 7919], 2)]
)
def test_an_undeclared_category_is_refused_by_its_position_and_never_shown(
    frame, values, categories
):
    table = frame({"client": ["a", "a", "b"], "category": values})
    with pytest.raises(
        CountsError,
        match=r"1 of 3 values.* in row 2, counted from 0; the categories are .* declare all",
    ) as caught:
        table_histograms(table, categories=categories)
    assert SECRET not in str(caught.value)
    assert "7919" not in str(caught.value)


def test_all_columns_with_missing_values_are_named_in_one_message():
    table = pa.table({"client": ["a", None, "b"], "category": [0, None, None], "count": [1, 2, 3]})
    with pytest.raises(
        CountsError,
        match=r"1 value is missing from column 'client', 2 values are missing from column 'category', "
        r"the first in row 1, .*--drop-missing",
    ):
        table_histograms(table, categories=2)


def test_a_wide_table_with_a_missing_count_is_recognised_and_the_count_is_named():
    table = pa.table({"client": ["a", "b"], "x": [1, None], "y": [0, 2], "z": [3, 1]})
    with pytest.raises(CountsError, match="1 value is missing from column 'x', the first in row 1"):
        table_histograms(table, categories=["x", "y", "z"])


@each_frame
@pytest.mark.parametrize("column", ["client", "category", "count"])
def test_a_missing_value_is_refused_by_its_column_and_row(frame, column):
    columns = {"client": [5, 6, 7], "category": [0, 1, 1], "count": [3, 4, 5]}
    columns[column][1] = None
    with pytest.raises(CountsError, match=f"missing from column '{column}', the first in row 1"):
        table_histograms(frame(columns), categories=2, count="count")


@each_frame
@pytest.mark.parametrize("column", ["client", "category", "count"])
def test_a_column_that_is_not_there_is_refused_and_the_others_are_listed(frame, column):
    columns = {"client": ["a"], "category": [0], "count": [3]}
    others = ", ".join(name for name in columns if name != column)
    del columns[column]
    with pytest.raises(CountsError, match=f"expected a column '{column}', got {others}"):
        table_histograms(frame(columns), categories=2, count="count")


def test_a_table_without_columns_is_refused():
    with pytest.raises(CountsError, match="'client' and 'category', got none"):
        table_histograms(pl.DataFrame(), categories=2)


def test_a_column_that_stands_there_twice_is_refused():
    twice = pa.table([["a"], [0], [1]], names=["client", "category", "category"])
    with pytest.raises(CountsError, match="expected one column 'category', got 2"):
        table_histograms(twice, categories=2)


@each_frame
@pytest.mark.parametrize(
    ("count", "message"),
    [
        (-2, "whole numbers of at least 0.* row 1"),
        (2.5, "whole numbers of at least 0.* row 1"),
        (float("inf"), "whole numbers of at least 0.* row 1"),
        (2**31, "at most 2147483647, .* in row 1"),
        (2**64 - 1, "at most 2147483647, .* in row 1"),
    ],
)
def test_a_count_that_is_not_a_count_is_refused_by_its_row(frame, count, message):
    dtype = np.uint64 if isinstance(count, int) and count > 0 else type(count)
    columns = {"client": ["a", "b"], "category": [0, 1], "count": np.array([1, count], dtype)}
    with pytest.raises(CountsError, match=message):
        table_histograms(frame(columns), categories=2, count="count")


def test_nan_that_is_not_null_is_refused_too():
    table = pl.DataFrame({"client": ["a", "b"], "category": [0, 1], "count": [1.0, float("nan")]})
    with pytest.raises(CountsError, match="column 'count', the first in row 1"):
        table_histograms(table, categories=2, count="count")


@each_frame
@pytest.mark.parametrize("column", ["category", "count"])
def test_text_is_refused_where_numbers_are_expected(frame, column):
    columns = {"client": ["a"], "category": [0], "count": [3], column: [SECRET]}
    with pytest.raises(CountsError, match=f"expected numbers in column '{column}'") as caught:
        table_histograms(frame(columns), categories=2, count="count")
    assert SECRET not in str(caught.value)


@each_frame
@pytest.mark.parametrize("categories", [2, ["x", "y"]], ids=["numbers", "names"])
def test_a_table_without_rows_is_refused_as_empty(frame, categories):
    with pytest.raises(CountsError, match="empty table"):
        table_histograms(frame({"client": [], "category": []}), categories=categories)


@pytest.mark.parametrize("table", [{"client": ["a"]}, [["a", 0]], None, "clients.csv"], ids=str)
def test_what_is_not_a_frame_is_refused_by_its_type(table):
    with pytest.raises(CountsError, match=f"got {type(table).__name__}"):
        as_arrow(table)


# --------------------------------------------------------------------- observed categories


@each_frame
def test_observed_categories_are_a_number_for_whole_numbers_and_sorted_names_for_the_rest(frame):
    assert observed_categories(frame({"category": [2, 0, 4]})) == 5
    assert observed_categories(frame({"category": ["b", "a", "b"]})) == ("a", "b")
    assert observed_categories(frame({"category": [-1, 3]})) == ("-1", "3")
    assert observed_categories(frame({"category": ["2", "0", "4"]})) == 5
    assert observed_categories(frame({"category": ["02", "0", "4"]})) == ("0", "02", "4")
    assert observed_categories(frame({"what": ["b"]}), category="what") == ("b",)


@each_frame
@settings(max_examples=30)
@given(cells=CELLS)
def test_a_table_can_be_read_with_the_categories_it_shows(frame, cells):
    columns = long_columns(cells)
    columns["category"] = [f"name {j}" for j in columns["category"]]
    table = frame(columns)
    names = observed_categories(table)
    if len(names) > 1:
        made = table_histograms(table, categories=names, count="count")
        assert made.categories == names
        assert made.counts.sum() == sum(columns["count"])


@each_frame
def test_an_empty_table_shows_no_categories_and_says_so(frame):
    with pytest.raises(CountsError, match="empty table"):
        observed_categories(frame({"category": []}))


def test_frames_are_not_changed_by_reading_them():
    table = pd.DataFrame({"client": ["a", "b"], "category": [0, 1], "count": [3, 4]})
    before = table.copy()
    table_histograms(table, categories=2, count="count")
    assert_array_equal(table.to_numpy(), before.to_numpy())


@pytest.mark.parametrize("wrong", [-3, 3.5])
def test_one_wrong_count_of_a_wide_table_is_not_taken_for_another_layout(wrong):
    table = pa.table({
        "sample": [f"s{i}" for i in range(4)], "flu": [1, 2, 3, 4], "burn": [0, 2, 2, 5],
        "cold": [2, 1, 1, 1], "gout": [1, wrong, 2, 2],
    })  # fmt: skip
    with pytest.raises(CountsError, match=f"'gout', got {wrong}"):
        table_histograms(table, categories=4)

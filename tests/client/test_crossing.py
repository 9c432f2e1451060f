"""Several columns as one category: names that tell combinations apart, whatever the values are."""

from itertools import product

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from polyurn import Bins, crossed, histograms, table_histograms
from polyurn.client.crossing import SIGN
from polyurn.client.tables import category_codes, column_numbers, observed_categories
from polyurn.errors import CountsError

# Values made of what the sign is made of, where a careless rule would join two pairs to one name.
VALUES = st.text("a× ", max_size=4)


@given(st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=8))
def test_two_combinations_never_have_the_same_name(rows):
    try:
        joined = crossed(*zip(*rows, strict=True)).tolist()
    except CountsError:
        assume(False)
    assert len(set(joined)) == len(set(rows))


def test_every_value_that_could_make_two_names_alike_is_refused():
    for value in ("a × b", "× b", "a ×", "×"):
        with pytest.raises(CountsError, match="column number 1 has '×' as a word"):
            crossed(["x"], [value])
    assert crossed(["4×4"], ["x"]).tolist() == ["4×4 × x"]


def test_whole_numbers_are_crossed_as_texts_and_continuous_ones_are_refused():
    assert crossed([7, 12], [1.0, 2.0], ["a", "b"]).tolist() == ["7 × 1 × a", "12 × 2 × b"]
    for continuous in ([0.5, 1.0], ["0.5", "1"], ["1e-3", "2"]):
        with pytest.raises(CountsError, match="continuous numbers in column number 0"):
            crossed(continuous, ["a", "b"])


def test_columns_that_do_not_belong_together_are_refused():
    with pytest.raises(CountsError, match=r"columns of one length to cross, got \[1, 2\]"):
        crossed(["a"], ["a", "b"])
    with pytest.raises(CountsError, match="at least two columns to cross, got 1"):
        crossed(["a"])


# ------------------------------------------------------------------------------------- tables

FLIGHTS = {
    "plane": ["a", "a", "b", "b", "b"],
    "origin": ["EWR", "EWR", "JFK", "EWR", "JFK"],
    "dest": ["ATL", "BOS", "ATL", "ATL", "ATL"],
    "hour": [7, 7, 9, 9, 21],
    "air_time": [1.5, 2.5, 3.5, 4.5, 5.5],
}
ROUTES = ("EWR × ATL", "EWR × BOS", "JFK × ATL")


@pytest.mark.parametrize(
    "asked", [["origin", "dest"], "origin,dest", "origin, Dest", "ORIGIN,dest"]
)
def test_a_table_is_counted_by_crossed_columns(asked):
    made = table_histograms(
        pa.table(FLIGHTS), categories=ROUTES, client="plane", category=asked, count="1"
    )
    assert made.categories == ROUTES
    assert made.counts.toarray().tolist() == [[1, 1, 0], [1, 0, 2]]
    by_hand = histograms(
        FLIGHTS["plane"], crossed(FLIGHTS["origin"], FLIGHTS["dest"]), categories=ROUTES
    )
    assert made.counts.toarray().tolist() == by_hand.counts.toarray().tolist()


def test_the_categories_of_crossed_columns_are_the_combinations_that_occur_in_order():
    assert observed_categories(pa.table(FLIGHTS), category=["origin", "dest"]) == ROUTES
    three = observed_categories(pa.table(FLIGHTS), category="dest,hour,origin")
    rows = zip(FLIGHTS["dest"], FLIGHTS["hour"], FLIGHTS["origin"], strict=True)
    assert three == tuple(sorted({SIGN.join(map(str, row)) for row in rows}))


def test_a_column_whose_own_name_has_a_comma_wins():
    table = pa.table({"origin,dest": ["x", "y"], "origin": ["a", "a"], "dest": ["b", "b"]})
    assert category_codes(table, ["x", "y"], category="origin,dest").tolist() == [0, 1]
    assert observed_categories(table, category=["origin", "dest"]) == ("a × b",)


def test_a_list_of_one_column_is_that_column():
    assert category_codes(pa.table(FLIGHTS), ["EWR", "JFK"], category=["origin"])[2] == 1


def test_a_declared_combination_that_no_row_has_keeps_its_column():
    declared = [SIGN.join(pair) for pair in product(("EWR", "JFK"), ("ATL", "BOS"))]
    table = pa.table(FLIGHTS)
    assert set(category_codes(table, declared, category="origin,dest")) == {0, 1, 2}
    with pytest.raises(CountsError, match=r"column 'origin,dest': 1 of 5 values"):
        category_codes(table, ["EWR × ATL", "JFK × ATL"], category="origin,dest")


@pytest.mark.parametrize("declared", [4, Bins([0, 1, 2])])
def test_bins_and_numbers_are_for_single_columns(declared):
    with pytest.raises(CountsError, match=r"one column .*, got 'origin,hour'"):
        category_codes(pa.table(FLIGHTS), declared, category="origin,hour")
    with pytest.raises(CountsError, match="expected one column"):
        column_numbers(pa.table(FLIGHTS), ["origin", "hour"])


def test_continuous_columns_are_not_crossed():
    with pytest.raises(CountsError, match="continuous numbers in column 'air_time'"):
        observed_categories(pa.table(FLIGHTS), category="origin,air_time")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("origin,destn", "expected a column 'destn', got plane, origin"),
        ("origin,", "expected columns to cross as origin,destination, got 'origin,'"),
        (",", "expected columns to cross"),
        ([], "expected columns to cross"),
        ("origin,ORIGIN", "expected different columns to cross, got 'origin' twice"),
    ],
)
def test_columns_that_cannot_be_crossed_are_one_line(asked, said):
    with pytest.raises(CountsError, match=said):
        table_histograms(pa.table(FLIGHTS), categories=ROUTES, client="plane", category=asked)

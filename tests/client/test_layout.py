"""Which columns mean what: names that tell, names that are given, tables with only one way to read."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from polyurn import table_histograms
from polyurn.client.layout import Columns, Layout, find_column, find_layout
from polyurn.client.tables import table_layout
from polyurn.errors import CountsError


@dataclass
class Told:
    """A table of ten rows, of which only this is known; in row i the column "x" has "x-i"."""

    whole: Sequence[str]
    distinct: Sequence[str]
    values: dict[str, int]

    def is_whole(self, name):
        return name in self.whole

    def is_number(self, name):
        return name in self.whole

    def n_distinct(self, name):
        return len(self) if name in self.distinct else self.values.get(name, 2)

    def first(self, name, n):
        return [f"{name}-{i}" for i in range(n)]

    def __len__(self):
        return 1_000


def layout(names, asked=None, *, whole=(), distinct=(), values=None, **known):
    return find_layout(names, Told(whole, distinct, values or {}), asked or Columns(), **known)


def test_columns_of_the_usual_names_are_found_without_a_remark():
    found = layout(["count", "category", "client"], whole=["count"])
    assert found == Layout("client", "category", "count")


@pytest.mark.parametrize(
    "names",
    [
        ["Client", "CATEGORY", "Count"],
        ["client_id", "category", "counts"],
        ["clients", "Category ID", "count"],
    ],
    ids=str,
)
def test_case_punctuation_and_endings_of_a_name_do_not_matter_and_are_said(names):
    found = layout(names)
    assert (found.client, found.category, found.count) == tuple(names)
    for name in set(names) - {"category", "count"}:
        assert any(repr(name) in remark for remark in found.remarks)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_spaces_around_names_are_left_out_with_those_around_texts(frame):
    table = frame({"client ": ["a ", "b"], " category": [" x", "y"], "count": [3, 4]})
    made = table_histograms(table, categories=("x", "y"))
    assert made.clients.tolist() == ["a", "b"]
    assert made.counts.toarray().tolist() == [[3, 0], [0, 4]]


def test_of_two_columns_alike_none_is_taken():
    with pytest.raises(CountsError, match="column 'client', got Client, CLIENT"):
        layout(["Client", "CLIENT", "category"])


def test_what_is_asked_for_goes_before_what_is_remembered_before_what_is_usual():
    names = ["client", "user", "owner", "category"]
    assert layout(names).client == "client"
    assert layout(names, remembered=Columns("user")).client == "user"
    assert layout(names, Columns("owner"), remembered=Columns("user")).client == "owner"
    assert layout(names, remembered=Columns("nobody")).client == "client"


def test_columns_that_are_not_read_are_listed():
    found = layout(["client", "category", "age", "town"])
    assert found.unread == ("age", "town")
    assert found.remarks == ("not read: columns age, town",)


def test_the_first_errors_of_every_newcomer_name_the_options():
    with pytest.raises(CountsError) as caught:
        layout(["user", "app", "opens"], whole=["opens"], values={"user": 80, "app": 5})
    assert str(caught.value) == (
        "expected columns 'client' and 'category', got user, app, opens; name yours, such as "
        "--client user --category app (80 clients, 5 categories; the first rows: client user-0 has 1 of "
        "app-0, client user-1 has 1 of app-1), or --client app --category user (5 clients, 80 "
        "categories); every row is one point, unless --count names a column of counts"
    )


def test_no_column_of_numbers_is_suggested_as_counts():
    with pytest.raises(CountsError) as caught:
        layout(["hospital", "diagnosis", "age"], whole=["age"])
    assert "--count age" not in str(caught.value)
    with pytest.raises(CountsError) as caught:
        layout(["client", "flu", "burn"], whole=["flu", "burn"], distinct=["client"])
    assert "--count " not in str(caught.value).replace("--count names", "")
    assert (
        "; 2 columns of counts, one per category, are a wide table: --categories flu,burn reads it so "
        "(the first row: client client-0 has flu-0 of flu, burn-0 of burn)" in str(caught.value)
    )


def test_what_is_suggested_is_what_is_read_when_it_is_obeyed():
    wide = pd.DataFrame({"client": ["a", "b"], "flu": [3, 1], "burn": [0, 2]})
    with pytest.raises(
        CountsError, match=r"--categories flu,burn .*client a has 3 of flu, 0 of burn"
    ):
        table_layout(wide, Columns())
    obeyed = table_histograms(wide, categories=("flu", "burn"))
    assert obeyed.counts.toarray().tolist() == [[3, 0], [1, 2]]
    long = pd.DataFrame({"ward": ["a", "a", "b"], "what": ["x", "x", "y"], "age": [61, 9, 40]})
    with pytest.raises(CountsError, match=r"--client ward --category what .*client a has 1 of x"):
        table_layout(long, Columns())
    obeyed = table_histograms(long, categories=("x", "y"), client="ward", category="what")
    assert obeyed.counts.toarray().tolist() == [[2, 0], [0, 1]]


def test_a_name_with_spaces_is_quoted_as_a_shell_needs_it():
    with pytest.raises(CountsError, match=r"such as --client 'user name' --category what "):
        layout(["what", "user name"])


def test_a_table_without_a_header_is_asked_for_one():
    with pytest.raises(CountsError, match="is the first line a header"):
        layout(["a", "0", "5"])


def test_the_nearest_name_is_suggested():
    with pytest.raises(CountsError, match=r"a column 'lable', got .*--label label"):
        find_column(["x", "label"], "lable", option="--label")


def test_a_slip_is_never_read_as_another_column_in_silence():
    with pytest.raises(CountsError, match=r"a column 'specie', got .*--category species"):
        find_column(["plot", "species"], "specie", option="--category")
    assert find_column(["plot", "Spe_cies"], "species", option="--category") == "Spe_cies"
    assert find_column(["x", "labels"], "label", option="--category") == "labels"


def test_one_column_is_too_few():
    with pytest.raises(CountsError, match="a column for the client and one for"):
        layout(["client,category"])


# ------------------------------------------------------------------------------ wide tables


WIDE = ["user", "cat", "dog", "bird"]


def test_a_wide_table_is_recognised_when_it_can_be_nothing_else():
    found = layout(WIDE, whole=WIDE[1:], distinct=["user"])
    assert (found.client, found.category, found.wide) == ("user", None, ("cat", "dog", "bird"))
    assert "one row per client" in found.remarks[0]


@pytest.mark.parametrize(
    ("names", "whole", "distinct"),
    [
        (WIDE, WIDE, ["user"]),  # who is the client?
        (WIDE, WIDE[1:], []),  # a client has several rows
        (["user", "cat", "dog"], ["cat", "dog"], ["user"]),  # perhaps a category and its count
        (WIDE, WIDE[2:], ["user"]),  # two columns of text
    ],
)
def test_a_table_that_may_be_something_else_is_not_taken_for_a_wide_one(names, whole, distinct):
    with pytest.raises(CountsError, match="expected columns 'client' and 'category'"):
        layout(names, whole=whole, distinct=distinct)


def test_declared_categories_say_which_columns_of_a_wide_table_are_meant():
    names = ["client", "age", "cat", "dog"]
    found = layout(names, whole=names, distinct=["client"], declared=("dog", "cat", "fish"))
    assert (found.wide, found.unread) == (("dog", "cat"), ("age",))
    assert "no column, so no points: fish" in found.remarks


def test_a_wide_frame_has_the_histograms_of_the_long_one():
    wide = pd.DataFrame({"client": ["a", "b"], "x": [1, 0], "y": [0, 2], "z": [3, 4]})
    long = wide.melt("client", var_name="category", value_name="count")
    for frame in (wide, long):
        made = table_histograms(frame, categories=("z", "y", "x"))
        assert made.counts.toarray().tolist() == [[3, 0, 1], [4, 2, 0]]
        assert made.clients.tolist() == ["a", "b"]


# -------------------------------------------------------------------- counts that are not read


OPENS = {"client": ["a", "a", "b"], "category": [0, 1, 1], "opens": [5, 2, 7]}


def test_a_column_of_counts_that_is_not_called_count_is_never_ignored_in_silence():
    with pytest.raises(CountsError, match=r"'opens', which was not read.*--count opens"):
        table_histograms(pd.DataFrame(OPENS), categories=2)
    named = table_histograms(pd.DataFrame(OPENS), categories=2, count="opens")
    assert named.counts.toarray().tolist() == [[5, 2], [0, 7]]


def test_counts_that_are_coded_texts_are_found_too():
    coded = pd.DataFrame(OPENS).astype({"opens": str}).astype({"opens": "category"})
    with pytest.raises(CountsError, match=r"--count opens"):
        table_histograms(coded, categories=2)
    assert table_histograms(coded, categories=2, count="opens").counts.sum() == 14


def test_decimal_counts_are_counts():
    table = pa.table(OPENS | {"opens": [Decimal(n) for n in OPENS["opens"]]})
    with pytest.raises(CountsError, match=r"--count opens"):
        table_histograms(table, categories=2)
    assert table_histograms(table, categories=2, count="opens").counts.sum() == 14


def test_count_1_says_that_every_row_is_one_point():
    made = table_histograms(pd.DataFrame(OPENS), categories=2, count="1")
    assert made.counts.toarray().tolist() == [[1, 1], [0, 1]]


@pytest.mark.parametrize(
    "other",
    [["x", "y", "z"], [0.5, 1.0, 2.0], [0, 1, 2], [-1, 0, 1]],
    ids=["text", "fractions", "row numbers", "negative"],
)
def test_a_column_that_cannot_be_counts_is_only_left_out(other):
    frame = pd.DataFrame(OPENS | {"opens": other})
    assert table_layout(frame, Columns()).unread == ("opens",)
    assert table_histograms(frame, categories=2).counts.sum() == 3


def test_where_a_client_has_a_category_twice_rows_are_points():
    frame = pd.DataFrame({name: [*column, column[0]] for name, column in OPENS.items()})
    assert table_histograms(frame, categories=2).counts.toarray().tolist() == [[2, 1], [0, 1]]


def test_crossed_columns_are_found_and_none_of_them_is_unread():
    found = layout(["plane", "origin", "dest", "hour"], Columns("plane", "origin,dest"))
    assert found.category == ("origin", "dest")
    assert found.unread == ("hour",)
    assert found.remarks == ("not read: column hour",)
    assert layout(["client", "Origin", "dest"], Columns(category="origin,dest")).remarks == (
        "column 'Origin,dest' is read as the category",
    )


def test_remembered_crossed_columns_are_taken_where_all_of_them_are_there():
    remembered = Columns("client", "origin,dest")
    assert layout(["client", "origin", "dest"], remembered=remembered).category == (
        "origin",
        "dest",
    )
    assert layout(["client", "category", "dest"], remembered=remembered).category == "category"


@pytest.mark.parametrize("category", ["client", "client,dest", ["dest", "client"]])
def test_the_clients_own_column_is_no_category(category):
    with pytest.raises(CountsError, match="another column for the category"):
        layout(["client", "dest"], Columns(category=category))


def test_a_column_that_is_crossed_with_itself_is_refused():
    with pytest.raises(CountsError, match="different columns to cross, got 'dest' twice"):
        layout(["client", "dest"], Columns(category="dest,dest"))


@pytest.mark.parametrize(
    ("asked", "other"),
    [
        (Columns(category="count"), "category"),
        (Columns(category="dest,count"), "category"),
        (Columns(client="count", category="dest"), "client"),
    ],
)
def test_the_column_of_the_counts_is_nothing_else(asked, other):
    names = ["client", "dest", "count"]
    with pytest.raises(CountsError, match=f"for the counts than the {other}'s, got 'count'"):
        layout(names, asked)
    assert layout(names, Columns(asked.client, asked.category, "1")).count is None


def test_where_no_name_tells_the_reading_of_more_clients_is_first():
    values = {"genre": 19, "member": 671, "when": 900}
    with pytest.raises(CountsError) as caught:
        layout(list(values), values=values, distinct=["when"])
    assert str(caught.value).endswith(
        "or --client genre --category member (19 clients, 671 categories)"
    )
    assert "such as --client member --category genre (671 clients, 19 categories; " in str(
        caught.value
    )


def test_a_number_of_the_category_is_not_suggested_as_the_client():
    with pytest.raises(CountsError, match="such as --client member --category genre_id"):
        layout(["genre_id", "member"], values={"genre_id": 19, "member": 671})

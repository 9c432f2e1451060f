"""The first five minutes with a table of one's own: what is read, what is said, what is refused."""

import json

import numpy as np
import pytest

from cli_walk import CLIENTS, COUNTS, HEAD, assert_refused
from polyurn import MDM, Sizes, save

ROWS = [line.split(",") for line in CLIENTS.splitlines()[1:]]


def written(rows, header, separator=","):
    return "\n".join([header, *(separator.join(row) for row in rows)]) + "\n"


def histograms(run, path, *options):
    ran = run("histogram", path, "--json", *options)
    assert ran.code == 0, ran.err
    return ran.json()["counts"], ran.err


# ------------------------------------------------------------ tables that can be read one way


def test_semicolons_are_recognised_and_said(run, tmp_path):
    (tmp_path / "t.csv").write_text(written(ROWS, "client;category;count", ";"))
    counts, said = histograms(run, "t.csv")
    assert counts == COUNTS
    assert "columns are separated by semicolons" in said


@pytest.mark.parametrize("header", ["Client,Category,Count", "client , category , count"], ids=str)
def test_a_header_with_spaces_or_other_case_is_read(run, tmp_path, header):
    (tmp_path / "t.csv").write_text(written(ROWS, header))
    assert histograms(run, "t.csv")[0] == COUNTS


def test_spaces_after_the_separator_are_not_part_of_the_values(run, tmp_path):
    (tmp_path / "t.csv").write_text(written(ROWS, "client, category, count", ", "))
    counts, said = histograms(run, "t.csv")
    assert counts == COUNTS
    assert "spaces around names and texts are left out" in said


def test_a_table_with_one_row_per_client_is_read_and_said(run, tmp_path):
    rows = [[f"u{i}", *map(str, row)] for i, row in enumerate(COUNTS)]
    (tmp_path / "t.csv").write_text(written(rows, "user,cat,dog,bird"))
    counts, said = histograms(run, "t.csv")
    assert counts == COUNTS
    assert "one row per client (column 'user'); the categories are cat, dog, bird" in said


def test_utf_16_is_read(run, tmp_path):
    (tmp_path / "t.csv").write_bytes(CLIENTS.encode("utf-16"))
    assert histograms(run, "t.csv")[0] == COUNTS


def test_numeric_codes_with_many_gaps_are_names(run, tmp_path):
    codes = {"0": "80331", "1": "10115", "2": "20095"}
    (tmp_path / "t.csv").write_text(written([[c, codes[j], n] for c, j, n in ROWS], HEAD.strip()))
    ran = run("histogram", "t.csv", "--json")
    assert ran.json()["categories"] == ["10115", "20095", "80331"]
    assert np.array(ran.json()["counts"])[:, [2, 0, 1]].tolist() == COUNTS
    assert "numbers are taken as names" in ran.err


def test_ratings_that_begin_at_1_do_not_get_a_category_0_in_silence(run, tmp_path):
    (tmp_path / "t.csv").write_text(HEAD + "a,1,2\na,2,1\nb,3,4\n")
    assert "no client holds category 0" in histograms(run, "t.csv")[1]
    counts, said = histograms(run, "t.csv", "--categories", "1,2,3")
    assert counts == [[2, 1, 0], [0, 0, 4]]
    assert "category 0" not in said


def test_categories_of_5000_digits_are_names(run, tmp_path):
    (tmp_path / "t.csv").write_text(HEAD + f"a,{'9' * 5000},1\nb,7,2\n")
    assert run("histogram", "t.csv", "--json").json()["categories"] == ["7", "9" * 5000]


def test_columns_that_were_not_read_are_said(run, tmp_path):
    (tmp_path / "t.csv").write_text(written([[*r, "x"] for r in ROWS], HEAD.strip() + ",town"))
    counts, said = histograms(run, "t.csv")
    assert counts == COUNTS
    assert "not read: column town" in said


# ------------------------------------------------------------------------- what is refused


def test_a_column_of_counts_by_another_name_stops_the_command_and_is_suggested(run, tmp_path):
    (tmp_path / "t.csv").write_text(written(ROWS, "client,category,opens"))
    assert_refused(run("fit", "t.csv", "--components", 2), "--count opens", "--count 1")
    assert histograms(run, "t.csv", "--count", "opens")[0] == COUNTS
    assert np.max(histograms(run, "t.csv", "--count", 1)[0]) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("client,category,count\n\na,0,5\n\nb,1,x\n", ["t.csv", "got text in line 5"]),
        ('client,category,count\n"a\nb",0,5\nc,1,x\n', ["got text in line 4"]),
        ('client,category,count\na,0,"1,234"\nb,1,1\n', ["got '1,234' in line 2; write 1234"]),
        ("client,category,count\na,0,5\nb,1\n", ["expected 3 columns, got 2 in line 3"]),
        ("client,category,count\na,0,5\nb,,7\n", ["missing", "line 3"]),
        ("client,category,count\na,0,5\nb,1,0x7\n", ["got text in line 3"]),
    ],
)
def test_an_error_in_a_row_names_the_line_of_the_file(run, tmp_path, text, words):
    (tmp_path / "t.csv").write_text(text)
    assert_refused(run("histogram", "t.csv"), *words)


def test_the_value_of_a_count_with_separators_is_shown_with_its_cause(run, tmp_path):
    (tmp_path / "t.csv").write_text("client;category;count\na;0;1.234\nb;1;2.345.678\n")
    assert_refused(run("histogram", "t.csv"), "'2.345.678' in line 3; write 2345678, without")


def test_utf_16_that_does_not_say_so_is_refused_with_the_remedy(run, tmp_path):
    (tmp_path / "t.csv").write_bytes(CLIENTS.encode("utf-16-le"))
    assert_refused(run("histogram", "t.csv"), "zero bytes", "save it as UTF-8")


def test_a_header_in_the_middle_is_refused_by_its_line(run, tmp_path):
    (tmp_path / "t.csv").write_text("client,category\na,x\na,y\nclient,category\nb,x\n")
    assert_refused(run("histogram", "t.csv"), "line 4 is the header once more; delete it")


def test_latin_1_is_refused_with_the_remedy(run, tmp_path):
    (tmp_path / "t.csv").write_bytes((HEAD + "é,0,1\nb,1,2\n").encode("latin-1"))
    assert_refused(run("histogram", "t.csv"), "save it as UTF-8")


@pytest.mark.parametrize("kind", ["list", "map", "struct", "binary"])
def test_parquet_columns_of_lists_maps_and_bytes_are_refused(run, tmp_path, kind):
    import pyarrow as pa
    from pyarrow import parquet

    cells = {
        "list": pa.array([[1], [2]]),
        "map": pa.array([[("k", 1)], [("k", 2)]], pa.map_(pa.string(), pa.int64())),
        "struct": pa.array([{"x": 1}, {"x": 2}]),
        "binary": pa.array([b"x", b"y"]),
    }
    for name in ("client", "category", "count"):
        table = {"client": [1, 2], "category": [0, 1], "count": [3, 4], name: cells[kind]}
        parquet.write_table(pa.table(table), tmp_path / "t.parquet")
        assert_refused(run("histogram", "t.parquet"), f"column '{name}'")


def test_nan_as_a_client_id_is_a_missing_one(run, tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({"client": [1.0, float("nan")], "category": [0, 1], "count": [3, 4]})
    parquet.write_table(table, tmp_path / "t.parquet")
    assert_refused(run("histogram", "t.parquet"), "missing from column 'client'", "row 1")


# -------------------------------------------------------------- what the model file remembers


def test_the_model_file_remembers_the_columns(run, tmp_path):
    """`compare`, `report` and `score` need no options again."""
    twice = [[client + end, *rest] for client, *rest in ROWS for end in "xy"]
    (tmp_path / "t.csv").write_text(written(twice, "user,app,opens"))
    named = ("--client", "user", "--category", "app", "--count", "opens")
    assert run("fit", "t.csv", "--components", 1, *named, "-o", "mdm.json").code == 0
    data = json.loads((tmp_path / "mdm.json").read_text())["provenance"]["data"]
    assert (data["client"], data["category"], data["count"]) == ("user", "app", "opens")
    assert run("score", "t.csv", "mdm.json", "--json").json()["n_clients"] == 2 * len(COUNTS)
    assert run("compare", "t.csv", "mdm=mdm.json", "--folds", 0, "--draws", "splits=100").code == 0
    assert run("report", "mdm.json", "true=t.csv").code == 0
    assert run("sample", "mdm.json", "--clients", 6, "-o", "s.csv").code == 0
    assert run("score", "s.csv", "mdm.json").code == 0  # a table of ours, with names of ours


def test_a_model_without_a_record_of_its_data_is_read_by_the_usual_names(run, tmp_path):
    save(
        MDM([1.0], [[1.0, 2.0, 1.0]], Sizes.constant(10)),
        tmp_path / "mdm.json",
        provenance={"data": "x"},
    )
    assert run("score", "clients.csv", "mdm.json").code == 0


# ------------------------------------------------- rows without a value, other names, swapped columns


DIRTY = "client,category,count\na,x,1\n,x,4\na,y,2\nb,,5\nb,y,3\n"


def test_rows_with_missing_values_are_left_out_counted_and_said(run, tmp_path):
    (tmp_path / "t.csv").write_text(DIRTY)
    counts, said = histograms(run, "t.csv", "--drop-missing")
    assert counts == [[1, 2], [0, 3]]
    assert "left out 2 of 5 rows, with missing values" in said


def test_without_missing_values_nothing_is_left_out_and_that_is_said(run):
    counts, said = histograms(run, "clients.csv", "--drop-missing")
    assert counts == COUNTS
    assert "left out 0 of " in said


def test_lines_are_counted_with_the_rows_that_were_left_out(run, tmp_path):
    (tmp_path / "t.csv").write_text(DIRTY + "c,z,1\n")
    ran = run("histogram", "t.csv", "--categories", "x,y", "--drop-missing")
    assert_refused(ran, "the first in line 7")


@pytest.mark.parametrize("command", ["fit", "score", "histogram"])
def test_missing_values_are_refused_unless_they_are_to_be_left_out(run, tmp_path, command):
    save(MDM([1.0], [[1.0, 1.0]], Sizes.constant(3)), tmp_path / "m.json", categories=["x", "y"])
    (tmp_path / "t.csv").write_text(DIRTY)
    model = ["m.json"] if command == "score" else []
    more = ["--components", 1, "--rounds", 3] if command == "fit" else []
    assert_refused(run(command, "t.csv", *model, *more), "'client', 1", "'category'", "line 3")
    assert run(command, "t.csv", *model, *more, "--drop-missing").code == 0


def test_ages_are_not_taken_for_counts_in_silence(run, tmp_path):
    rows = [f"h{i % 4},{['flu', 'burn', 'gout'][i % 3]},{20 + i}" for i in range(60)]
    (tmp_path / "t.csv").write_text("hospital,diagnosis,age\n" + "\n".join(rows))
    named = ("--client", "hospital", "--category", "diagnosis")
    ran = run("histogram", "t.csv", *named, "--count", "age")
    assert "is column 'age' one of counts? 48 rows have another number there" in ran.err
    assert "is column" not in run("histogram", "t.csv", *named).err
    (tmp_path / "long.csv").write_text("client,category,count\na,x,3\na,x,3\nb,y,2\n")
    assert "is column" not in run("histogram", "long.csv").err


def test_more_categories_than_clients_are_remarked(run, tmp_path):
    (tmp_path / "t.csv").write_text("client,category\na,x\na,y\nb,z\nb,z\n")
    assert "more categories (3) than clients (2)" in histograms(run, "t.csv")[1]
    assert "more categories" not in histograms(run, "t.csv", "--categories", "x,y,z")[1]

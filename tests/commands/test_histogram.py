"""`polyurn histogram`: from records to a table of clients."""

import csv
import io

import numpy as np
import pytest

from cli_walk import COUNTS, assert_refused
from polyurn import read_table, table_histograms


def test_a_quote_without_an_end_is_refused(run, tmp_path):
    rows = "".join(f"c{i},{'a' if i % 2 else 'b'}\n" for i in range(40))
    (tmp_path / "open.csv").write_text("client,category\n" + rows.replace("c9,a", 'c9,"a'))
    assert_refused(run("histogram", "open.csv", "-o", "out.csv"), "a quote that does not end?")
    assert not (tmp_path / "out.csv").exists()


@pytest.fixture
def records(tmp_path):
    (tmp_path / "records.csv").write_text("client,income\na,100\na,7000\nb,250000\nb,0\nb,10\n")


def histograms(path):
    return table_histograms(read_table(path), categories=TOP, count="count")


TOP = ("[0, 5000)", "[5000, 10000)", "[10000, inf)")


@pytest.mark.parametrize("bins", ["0:10000:5000", "0,5000,10000,inf"], ids=str)
@pytest.mark.parametrize("name", ["h.parquet", "h.csv"])
def test_histogram_counts_records_in_bins(run, records, bins, name):
    ran = run("histogram", "records.csv", "--category", "income", "--bins", bins, "-o", name)
    assert "wrote 2 clients" in ran.err
    made = histograms(name)
    assert made.clients.tolist() == ["a", "b"]
    assert made.counts.toarray().tolist() == [[1, 1, 0], [2, 0, 1]]


def test_histogram_takes_edges_and_a_cap(run, records):
    arguments = ("histogram", "records.csv", "--category", "income", "--json")
    told = run(*arguments, "--bins=-inf,100,inf").json()
    assert told["categories"] == ["[-inf, 100)", "[100, inf)"]
    assert told["counts"] == [[0, 2], [2, 1]]
    capped = run(*arguments, "--bins=-inf,100,inf", "--cap", 1, "--seed", 3).json()
    assert np.sum(capped["counts"], axis=1).tolist() == [1, 1]


@pytest.mark.parametrize("option", [[], ["--count", "count"]], ids=str)
def test_histogram_prints_the_table_that_fit_reads(run, option):
    ran = run("histogram", "clients.csv", *option)
    assert "3 categories, from the table" in ran.err
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert rows[0] == {"client": "a", "category": "0", "count": "5"}
    assert sum(int(row["count"]) for row in rows) == np.sum(COUNTS)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--bins", "10"], ["three increasing bin edges"]),
        (["--bins", "0:10"], ["--bins as 0:200000:5000", "got '0:10'"]),
        (["--bins", "0:10:x"], ["--bins as 0:200000:5000"]),
        (["--bins", "0:10:-1"], ["width"]),
        (["--bins", "quantiles:2"], ["--bins as 0:200000:5000"]),
        (["--bins", "0,1,2", "--categories", 3], ["--categories or --bins"]),
        (["--bins", "0,low,9"], ["--bins as 0:200000:5000 or 0,10,inf"]),
        (["--bins", "2,1,0"], ["three increasing bin edges"]),
        (["--bins", "0,1,2"], ["not in the declared categories", "line 2"]),
        (["--cap", 0], ["cap of at least 1, got 0"]),
        (["--bins", "0,1,9", "--seed", 1], ["--seed has no effect without --cap"]),
    ],
)
def test_histogram_refuses_in_one_line(run, records, tmp_path, options, words):
    arguments = ("histogram", "records.csv", "--category", "income", *options)
    assert_refused(run(*arguments), *words)
    assert_refused(run(*arguments, "-o", "h.csv"), *words)
    assert not (tmp_path / "h.csv").exists()

"""`wording.counted` in messages: one thing is singular, thousands have commas."""

import re

import pytest

from polyurn.model.paper_truths import truth
from polyurn.storage.table_files import write_histograms
from polyurn.wording import counted, in_bytes, in_time


@pytest.mark.parametrize(
    ("n", "noun", "said"),
    [
        (1, "component", "1 component"),
        (1.0, "category", "1 category"),
        (0, "round", "0 rounds"),
        (2, "category", "2 categories"),
        (3, "day", "3 days"),
        (1_234_567, "held-out client", "1,234,567 held-out clients"),
    ],
)
def test_one_is_singular_and_thousands_have_commas(n, noun, said):
    assert counted(n, noun) == said


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (999_960_000, "1.0 GB"),
        (4_321 * 10**9, "4,321.0 GB"),
    ],
)
def test_bytes_are_in_the_largest_unit_that_they_fill(n, said):
    assert in_bytes(n) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.04, "0.0 s"), (9.9, "9.9 s"), (61.2, "61 s"), (150, "2 min"), (9e3, "2.5 h")],
)
def test_times_are_in_units_that_one_waits_in(seconds, said):
    assert in_time(seconds) == said


ONES = re.compile(
    r"(?<![\d.,-])1 (?:[a-z-]+ )?(?:component|client|round|categorie|point|seed|run)s\b"
)


def test_1_components_is_never_said(run, tmp_path):
    write_histograms(truth("medium/1").sample(60, rng=0), "clients.csv")
    write_histograms(truth("medium/1").sample(12, rng=1), "held-out.csv")
    said = [
        run("fit", "clients.csv", "--components", 1, "-o", "fit.json"),
        run("fit", "clients.csv", "--components", "1,2", "-o", "mdm.json"),
        run("show", "mdm.json"),
        run("score", "held-out.csv", "mdm.json"),
        run("sample", "mdm.json", "--clients", 1, "-o", "one.csv"),
        run("compare", "held-out.csv", "mdm=mdm.json", "-o", "comparison.json"),
    ]
    for ran in said:
        assert not ONES.findall(ran.out + ran.err), ran.out + ran.err
    assert any("1 component" in ran.out + ran.err for ran in said)

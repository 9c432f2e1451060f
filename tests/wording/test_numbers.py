"""`wording.counted` in messages: one thing is singular, thousands have commas."""

import re

import pytest

from polyurn.model.paper_truths import truth
from polyurn.storage.tables import write_histograms
from polyurn.wording.numbers import counted


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


ONES = re.compile(
    r"(?<![\d.,-])1 (?:[a-z-]+ )?(?:component|client|round|categorie|point|seed|run)s\b"
)


def test_1_components_is_never_said(run, tmp_path):
    write_histograms(truth("medium/1").sample(60, rng=0), "clients.csv")
    write_histograms(truth("medium/1").sample(12, rng=1), "held-out.csv")
    said = [
        run("fit", "clients.csv", "--components", 1, "-o", "fit.json"),
        run("select", "clients.csv", "--components", 1, "-o", "mdm.json"),
        run("show", "mdm.json"),
        run("score", "mdm.json", "held-out.csv"),
        run("sample", "mdm.json", "--clients", 1, "-o", "one.csv"),
        run("compare", "held-out.csv", "mdm=mdm.json", "-o", "comparison.json"),
    ]
    for ran in said:
        assert not ONES.findall(ran.out + ran.err), ran.out + ran.err
    assert any("1 component" in ran.out + ran.err for ran in said)

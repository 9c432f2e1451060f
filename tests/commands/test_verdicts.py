"""The verdict at the terminal: every name and number can be read, however narrow it is."""

import io
import re
import sys

import pytest

from polyurn import compare_sweeps
from polyurn.commands.console import show
from polyurn.commands.verdicts import verdict_tables
from report_material import runs

EIGHT = (
    "again", "mdm", "iid", "iid proxy", "dirichlet 0.1", "dirichlet 0.5",
    "oracle destination", "mdm destination",
)  # fmt: skip


@pytest.fixture
def shown(monkeypatch):
    """A function of a verdict and a width: the tables as a terminal of that width shows them."""

    def text(verdict, columns):
        stream = io.StringIO()
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "stdout", stream)
        for table in verdict_tables(verdict):
            show(table)
        return stream.getvalue()

    return text


def eight(**options):
    return compare_sweeps(runs(populations=("true", *EIGHT), seeds=(0, 1, 2)), **options)


def words(text):
    """The words of a text by how often it has them, without the frame and where lines end."""
    return sorted(re.sub("[─-╿]", " ", text).split())


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_eight_populations_lose_no_name_and_no_number_in_a_narrow_terminal(shown, columns):
    verdict = eight(target=0.8)
    narrow, wide = shown(verdict, columns), shown(verdict, 1_000)
    assert max(map(len, narrow.splitlines())) <= columns
    numbers = [
        word for word in words(wide) if re.search(r"\d", word) and word not in ("0.1", "0.5")
    ]
    there = words(narrow)
    assert all(there.count(number) >= numbers.count(number) for number in set(numbers))
    for name in EIGHT:
        assert re.search(rf"┃ +{re.escape(name)} ┃", narrow), name
    assert "…" not in narrow


def test_few_populations_stand_side_by_side(shown):
    verdict = compare_sweeps(runs(populations=("true", "mdm", "iid")))
    assert len(verdict_tables(verdict)) == 1
    assert re.search(r"┃ +mdm ┃ +iid ┃", shown(verdict, 80))


def test_a_long_name_is_folded_and_not_cut(shown):
    name = "n" * 90
    text = shown(compare_sweeps(runs(populations=("true", "mdm", name))), 80)
    head = text[text.rindex("┏") : text.rindex("┡")]
    assert head.count("n") == 90
    assert max(map(len, text.splitlines())) <= 80


def test_rounds_to_the_target_are_said_to_be_a_difference(shown):
    assert "rounds to target, apart" in shown(eight(target=0.8), 1_000)

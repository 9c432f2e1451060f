"""The section about a model's splits, and the numbers behind its figures."""

import numpy as np
import pytest

from polyurn import MDM, Laws, Sizes, Splits, Tree, report_on
from polyurn.model.split_findings import findings, split_laws
from polyurn.report.splits_section import branch_rows, law_rows, split_rows
from polyurn.storage.models import Saved

NAMES = ("Animation", "Children", "Drama", '</script>"')
TREE = Tree.declared([[NAMES[0], NAMES[1]], [NAMES[2], NAMES[3]]], NAMES)


def mixture():
    """A component whose first two categories go together, and one that is more even than chance."""
    counts = np.arange(41)
    values = np.zeros((2, 3, 2, 41))
    values[1] = -0.15 * (counts - 8) ** 2
    concentrations = [[[2.0, 3.0], [40.0, 30.0], [3.0, 1.0]], [[5.0, 5.0], [3.0, 3.0], [3.0, 3.0]]]
    splits = Splits(TREE, concentrations, Laws(counts, values))
    return MDM([0.6, 0.4], None, Sizes.constant(40, n_components=2), splits=splits)


def test_words_say_who_is_even_and_what_goes_together():
    first, second = findings(mixture())
    assert first.variance > 3
    assert second.variance < 0.5
    assert "Animation and Children" in first.words(NAMES)
    assert second.words(NAMES).startswith("more even than chance")
    assert "together" not in second.words(NAMES)


def test_findings_are_those_of_enumerated_clients():
    splits = Splits(TREE, [[[1.0, 2.0], [40.0, 30.0], [4.0, 4.0]]])
    mdm = MDM([1.0], None, Sizes.constant(14), splits=splits)
    grid = np.stack(np.meshgrid(*[np.arange(15)] * 4), axis=-1).reshape(-1, 4)
    clients = grid[grid.sum(axis=1) == 14]
    p = np.exp(mdm.logpmf(clients))
    mean = p @ clients
    covariance = (p[:, None] * (clients - mean)).T @ (clients - mean)
    (found,) = findings(mdm)
    wanted = np.trace(covariance) / (mean * (1 - mean / 14)).sum()
    assert found.variance == pytest.approx(wanted, rel=0.1)
    r = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert found.pairs[0][:2] == (0, 1)
    assert found.pairs[0][2] == pytest.approx(r, abs=0.06)


def test_a_law_differs_from_its_beta_binomial_only_where_it_is_bent():
    laws = split_laws(mixture())
    assert [np.allclose(one.law, one.beta_binomial, atol=1e-12) for one in laws] == [True] * 3 + [
        False
    ] * 3
    assert all(one.law.sum() == pytest.approx(1, abs=1e-12) for one in laws)
    n, a, b = laws[0].total, 2.0, 3.0
    assert laws[0].variance == pytest.approx((a + b + n) / (a + b + 1))
    rows = law_rows(laws[3])
    assert {row["kind"] for row in rows} == {"law", "beta-binomial"}


def test_the_dendrogram_joins_every_category_once():
    rows = branch_rows(TREE)
    leaves = [row["y"] for row in rows if row["x2"] == 2.0 and row["y"] == row["y2"]]
    assert sorted(leaves) == [0, 1, 2, 3]
    assert len(rows) == 9
    of_splits = split_rows(mixture().splits, NAMES, split_laws(mixture()))
    assert [row["concentration"] for row in of_splits[:3]] == [5, 70, 4]


def test_the_page_draws_the_tree_and_every_law_has_a_line(tmp_path):
    page = report_on(Saved(mixture(), NAMES))
    page["tree"].save(tmp_path / "tree.svg")
    drawn = (tmp_path / "tree.svg").read_text()
    assert all(name in drawn for name in NAMES[:3])
    assert len(page["laws"].table.rows) == 6
    assert page["laws"].table.rows[-1][-1] == "0.0%"
    page.save(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "more even than chance" in text


def test_a_model_without_splits_has_no_such_section():
    page = report_on(MDM([1.0], [[1.0, 2.0]], Sizes.constant(5)))
    with pytest.raises(Exception, match="tree"):
        page["tree"]

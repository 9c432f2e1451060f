"""Results in a notebook: a chart to go on with, and a picture with its table that needs no network."""

import numpy as np
import pytest

import polyurn as pu
from polyurn.errors import MissingDependencyError
from polyurn.model.paper_truths import truth
from polyurn.report.population_section import map_rows
from polyurn.typed import plotted
from polyurn.zoo.cards import profile

COUNTS = truth("medium/3").sample(200, rng=0)
BOUNDS = {"n_categories": 10, "max_size": 20, "rng": 2}


@pytest.fixture(scope="module")
def results():
    clients = pu.LocalAggregator(COUNTS, rng=1)
    labels = np.repeat(np.arange(10), 40)
    return {
        "MDM": truth("medium/3"),
        "Fit": pu.fit(clients, n_components=2, **BOUNDS),
        "Choice": pu.fit(clients, n_components=[1, 2], **BOUNDS),
        "Comparison": pu.compare({"iid": pu.IID.like(COUNTS)}, COUNTS, n_folds=0, rng=0),
        "Partition": pu.partition(labels, COUNTS[:30], rng=0),
        "Neighbours": pu.zoo.nearest(COUNTS, rng=0),
    }


KINDS = ("MDM", "Fit", "Choice", "Comparison", "Partition", "Neighbours")


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_is_shown_as_a_picture_with_its_table(results, kind):
    shown = results[kind]._repr_html_()
    assert shown.count("<svg") == 1
    assert shown.count("<table>") == 1
    assert "<script" not in shown
    assert "src=" not in shown


@pytest.mark.parametrize("kind", KINDS)
def test_a_plot_is_an_altair_chart_with_its_data(results, kind):
    altair = pytest.importorskip("altair")
    drawn = results[kind].plot()
    assert isinstance(drawn, altair.TopLevelMixin)
    assert any(drawn.to_dict()["datasets"].values())


def test_names_of_categories_are_shown_as_text(results):
    mdm = pu.MDM([1.0], [[1.0, 2.0]], pu.Sizes.constant(3), categories=["<b>", "b"])
    assert "<b>&lt;" not in mdm._repr_html_()
    assert "<td><b></td>" not in mdm._repr_html_()


def test_without_the_extra_the_text_is_shown(results, monkeypatch):
    def missing(name):
        raise MissingDependencyError("altair", "report", "a report")

    monkeypatch.setattr(plotted, "import_module", missing)
    assert results["MDM"]._repr_html_() is None
    with pytest.raises(MissingDependencyError):
        results["MDM"].plot()


def test_the_map_has_ones_own_clients_and_every_federation():
    rows = map_rows({"mine": profile(COUNTS, rng=0)})
    assert [row["name"] for row in rows] == ["mine", *pu.zoo.names()]
    assert {row["dispersion"] for row in rows} >= {"here", "more even than chance"}

"""Which colour stands for what, and the page's charts outside the page."""

import json
import re

import pytest

from polyurn.errors import ParameterError
from polyurn.report.charts import fills, paper_colours, population_looks, tone
from polyurn.report.page import report_on
from report_material import everything, federated, runs, saved, styled


def test_known_populations_have_the_same_colour_on_every_page():
    assert population_looks(["iid", "true"])["iid"] == population_looks(["mdm", "iid"])["iid"]
    looks = population_looks(["true", "mdm", "iid", "oracle", "a", "b", "c", "d", "e"])
    assert len({look.tone for look in looks.values()}) == 9
    assert looks["true"].dash != ()


def test_the_style_sheet_has_every_colour():
    there = {f"var(--{name})" for name in paper_colours()}
    names = [str(i) for i in range(20)]
    assert {tone(i) for i in range(20)} | {*fills([*names, "other"])} <= there


@pytest.fixture(scope="module")
def report():
    trained = runs(("true", "mdm", "style", "iid", "again"), styled={"style"})
    return report_on(federated(), **{**everything(), **styled(runs=trained)})


def test_every_chart_of_the_page_is_a_picture_for_papers_without_css(report, tmp_path):
    drawn = {name: figure for name, figure in report.figures.items() if figure.panels}
    assert len(drawn) >= 14
    for name, figure in drawn.items():
        place = tmp_path / f"{name}.svg"
        figure.save(place)
        picture = place.read_text()
        assert picture.startswith("<svg")
        assert len(re.findall("<path", picture)) > 3
        assert "var(--" not in picture


@pytest.mark.parametrize(("kind", "first"), [("pdf", b"%PDF"), ("png", b"\x89PNG"), ("json", b"{")])
def test_a_figure_is_saved_in_the_format_of_its_name(report, tmp_path, kind, first):
    place = tmp_path / f"figure.{kind}"
    report["weights"].save(place)
    assert place.read_bytes().startswith(first)


def test_what_cannot_be_saved_is_one_line(report, tmp_path):
    with pytest.raises(ParameterError, match=r"ends in \.svg, .*, got 'a\.doc'"):
        report["weights"].save(tmp_path / "a.doc")
    with pytest.raises(ParameterError, match="'style-along' has pictures, and no chart"):
        report["style-along"].save(tmp_path / "a.svg")
    with pytest.raises(ParameterError, match=r"expected one of weights, .* got 'weigths'"):
        report["weigths"]


def test_populations_have_a_legend_where_there_are_no_switches(report):
    text = json.dumps(report["plane"].spec)
    assert '"legend": {"title": null}' in text
    assert '"legend": {"title": null}' not in json.dumps(report["plane"].panels[0].spec)


def test_a_notebook_shows_a_report_and_its_figures(report):
    shown = report["weights"]._repr_mimebundle_()
    assert any("vegalite" in kind for kind in shown)
    assert "<iframe srcdoc" in report_on(saved())._repr_html_()

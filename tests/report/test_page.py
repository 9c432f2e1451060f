"""The report: one self-contained page from whatever there is."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from report_material import (
    NAMES,
    Page,
    comparison,
    everything,
    federated,
    fitted,
    html_report,
    runs,
    saved,
    selection,
    styled,
    true_clients,
)


@pytest.fixture(scope="module")
def whole():
    return html_report(saved(), **everything())


@pytest.fixture(scope="module")
def page(whole):
    return Page(whole)


def test_the_page_is_well_formed_and_small(whole, page):
    assert whole.startswith("<!doctype html>")
    assert len(whole.encode()) < 6_000_000
    assert page.all("html", lang="en")
    assert page.all("title")[0]["text"] == "A <federation>"
    ids = [e["id"] for e in page.elements if "id" in e]
    assert len(ids) == len(set(ids))


def test_every_section_is_there_when_everything_is(page):
    assert page.sections() == [
        "verdict", "components", "choice", "populations", "sweep", "provenance",
    ]  # fmt: skip
    linked = [e["href"] for e in page.all("a")]
    assert set(linked) == {"#main", *(f"#{name}" for name in page.sections()[1:])}


def test_every_figure_has_a_chart_and_a_table_behind_it(page):
    figures = page.all("figure")
    assert {f["id"] for f in figures} == {
        "weights", "profiles", "distinctive", "candidates", "paths", "distances", "plane", "strips",
        "population-sizes", "map", "profile", "agreement",
    } | {"component-sizes"} & {f["id"] for f in figures}  # fmt: skip
    inside = [e for e in page.elements if "figure" in e["in"]]
    assert len([e for e in inside if e["tag"] == "details"]) == len(figures)
    assert len([e for e in inside if e["tag"] == "table"]) == len(figures)
    charts = [e for e in inside if "data-chart" in e]
    assert {e["data-chart"] for e in charts} == set(page.charts())
    labelled = [e for e in inside if e.get("role") == "img" and e["aria-label"]]
    assert len(labelled) == len(charts)


def test_every_table_has_a_caption_and_named_rows_and_columns(page):
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(e["scope"] in ("col", "row") for e in page.all("th"))


def test_nothing_on_the_page_is_fetched(whole, page):
    for element in page.elements:
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            target = element.get(name, "#")
            assert target.startswith("#") or target == "data:,", element
    style = page.all("style")[0]["text"]
    assert "url(" not in style
    assert "@import" not in style
    assert "http" not in json.dumps(page.charts())


def test_names_from_outside_are_shown_as_they_are_and_never_become_markup(whole, page):
    assert "<b>zero</b>" not in whole
    assert whole.count("</script>") == 3
    cells = {e["text"] for e in page.all("th", scope="row")}
    assert {"<b>zero</b>", "one & only", '"two"'} <= cells
    assert "</script>" in cells
    shares = page.charts()["profiles-0"]["datasets"]["rows"]
    assert {row["category"] for row in shares} == set(NAMES)


def test_the_verdict_comes_first_with_a_sentence_and_three_numbers(page):
    values = [e["text"] for e in page.elements if e.get("class") == "value"]
    assert len(values) == 3
    assert re.fullmatch(r"α ≈ \d.*", values[0])
    ratio = comparison()["mdm"].energy_ratio
    assert values[1] == f"{ratio:.2f}×"
    assert values[2].endswith(" pts off")
    assert not [e for e in page.elements if e.get("class") == "unknown"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"model": "mdm"}, ["components"]),
        ({"model": "saved"}, ["components", "choice"]),
        ({"model": "federated"}, ["components", "choice", "traffic"]),
        ({"comparison": True}, ["populations"]),
        ({"runs": True}, ["sweep"]),
        ({"clients": True}, ["populations"]),
        ({"style": True}, ["style"]),
        ({"style": True, "model": "mdm", "runs": True}, ["components", "style", "sweep"]),
    ],
    ids=str,
)
def test_sections_appear_only_for_what_there_is(given, expected):
    models = {"mdm": selection().mdm, "saved": saved(), "federated": federated(), None: None}
    made = html_report(
        models[given.get("model")],
        comparison=comparison() if "comparison" in given else None,
        runs=runs() if "runs" in given else (),
        clients={"true": true_clients()} if "clients" in given else None,
        **(styled() if "style" in given else {}),
    )
    assert Page(made).sections() == ["verdict", *expected, "provenance"]


def test_traffic_adds_a_section_and_leaves_the_rest_of_a_page_as_it_was_to_the_byte():
    without, page = html_report(saved()), html_report(federated())
    assert "Traffic of each round" not in without
    section = re.compile(r'<section id="traffic".*?</section>\n', re.DOTALL)
    assert section.search(page)
    page = section.sub("", page)
    page = page.replace('<li><a href="#traffic">Traffic on the wire</a></li>', "")
    line = federated().provenance.traffic.line
    page = page.replace(
        f"{line}; the section of that name has the rest",
        "sums over clients of addable statistics, never a client’s records or histogram",
    )
    assert page == without


def test_facts_stand_before_the_tables_of_a_section_that_has_both():
    page = html_report(federated())
    assert page.index('class="facts" style=') < page.index(">Traffic of each round<")
    assert page.count('class="facts"') == 2


def test_pictures_are_in_the_page_and_say_what_they_show():
    whole = html_report(saved(), **styled(), title="Styles")
    page = Page(whole)
    pictures = page.all("img")
    assert len(pictures) == 2 * 5 + 2 * 3
    assert all(one["src"].startswith("data:image/png;base64,") for one in pictures)
    assert all(one["alt"] for one in pictures)
    assert "Points of label <b>zero</b> from −2 to +2 along direction 1" in {
        one["alt"] for one in pictures
    }
    figures = page.all("figure")
    behind = [e for e in page.elements if "figure" in e["in"] and e["tag"] == "table"]
    assert len(behind) == len(figures)
    assert "<b>zero" not in whole


def test_a_style_adds_a_section_and_leaves_the_others_as_they_were():
    def others(page):
        return re.sub(r'<section id="style".*?</section>\n', "", page, flags=re.DOTALL).split(
            '<script type="application/json"'
        )[0]

    with_style = html_report(saved(), **styled()).replace(
        '<li><a href="#style">What clients differ in besides their labels</a></li>', ""
    )
    assert others(with_style) == others(html_report(saved()))


def test_names_of_nodes_and_reasons_never_become_markup():
    record = federated().provenance.traffic
    hostile = replace(record.nodes[0], name="<b>ward</b>", excluded="</script><i>")
    rounds = (replace(record.rounds[0], kind="</script><script>"), *record.rounds[1:])
    whole = html_report(
        federated(replace(record, nodes=(hostile, *record.nodes[1:]), rounds=rounds))
    )
    assert whole.count("</script>") == 3
    assert "<b>ward" not in whole
    assert "</script><script>" in {e["text"] for e in Page(whole).all("td")}


def test_the_same_seed_gives_the_same_page():
    first, second = (
        html_report(selection().mdm, clients={"true": true_clients()}, rng=3) for _ in range(2)
    )
    assert first == second


def test_a_sweep_without_true_clients_has_curves_and_no_verdict():
    shown = Page(html_report(runs=runs(populations=("mdm", "iid"))))
    assert [f["id"] for f in shown.all("figure")] == ["profile"]
    assert "Not measured" in shown.all("dl")[0]["text"]


def test_runs_that_share_no_seed_with_the_true_ones_leave_the_rest_of_the_page():
    made = [*runs(("true",), seeds=(0,)), *runs(("mdm", "style"), seeds=(1,), styled={"style"})]
    shown = Page(html_report(saved(), **{**styled(), "runs": made}))
    assert {"weights", "profile"} <= {figure["id"] for figure in shown.all("figure")}
    assert "has no run with the seed and settings of a true one" in shown.all("dl")[0]["text"]


def test_a_name_that_is_no_text_of_utf_8_does_not_keep_the_page_from_being_written():
    whole = html_report(selection().mdm, title="half a pair: \ud83d", categories=["\ud800"] * 10)
    assert "<title>half a pair: ?</title>" in whole
    whole.encode()


def test_a_sweep_of_texts_and_diverged_runs_is_drawn():
    made = []
    for run, weighting in zip(runs(), ["points", "uniform"] * 24, strict=True):
        settings = {**run.settings, "weighting": weighting, "local_epochs": 1}
        made.append(replace(run, settings=settings))
    made[0] = replace(made[0], diverged_at=2, final={"accuracy": None})
    charts = Page(html_report(runs=made)).charts()
    values = {row["value"] for row in charts["profile-1"]["datasets"]["rows"]}
    assert values == {"points", "uniform"}
    scores = [row["true"] for row in charts["agreement-0"]["datasets"]["rows"]]
    assert np.isfinite(scores).all()


def test_no_page_speaks_of_held_out_clients_where_there_are_none():
    measured = replace(comparison(), n_fitted=60)
    page = Page(html_report(fitted(), comparison=measured, clients={"true": true_clients()}))
    words = page.all("main")[0]["text"]
    assert "60 of these true ones were fitted" in words
    assert re.findall("held.out", words, re.IGNORECASE) == []


def test_no_page_gives_two_ranges_for_one_energy_ratio():
    mdm = comparison()["mdm"]
    measured = replace(comparison(), rows=(mdm,))
    words = Page(html_report(comparison=measured)).all("main")[0]["text"]
    low, high = (f"{end:.2f}" for end in mdm.energy_null)
    of_splits = f"{measured.floors.energy:.2f}"
    assert of_splits != f"{low} to {high}"
    assert words.count(f"{low} to {high}") == 2  # the card, and the table
    assert of_splits not in words
    assert of_splits not in str(measured)

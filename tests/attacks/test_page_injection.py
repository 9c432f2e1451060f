"""Markup in every text that reaches the report page: it is shown as it stands, and nothing of it runs.

Once without a browser, and once in Chromium where there is one (slow). Names of categories, nodes and
reasons on their own: tests/report/test_page.py.
"""

import itertools
import json
import time

import pytest

from browser import chromium
from hostile_page import MARKUP, harmless, markup, page_of, shape_of
from polyurn.storage.models import save
from polyurn.storage.table_files import write_histograms
from report_material import NAMES, Page, selection, true_clients


@pytest.fixture(scope="module")
def hostile():
    """The page, and the texts that are in it."""
    return page_of(markup())


def test_no_text_from_outside_makes_an_element_or_an_attribute(hostile):
    page, texts = hostile
    assert len(texts) > 10 * len(MARKUP)
    same, _ = page_of(harmless())
    assert shape_of(Page(page).elements) == shape_of(Page(same).elements)


def test_no_attribute_of_an_element_is_code_or_an_address(hostile):
    for element in Page(hostile[0]).elements:
        names = set(element) - {"tag", "text", "in"}
        assert not [name for name in names if name.startswith("on")], element
        assert names.isdisjoint({"srcdoc", "srcset", "formaction", "action"}), element
        for name in names & {"href", "src"}:
            assert element[name].startswith(("#", "data:")), element
            assert not element[name].startswith("data:text"), element
        assert "url(" not in element.get("style", ""), element


def test_no_text_from_outside_leaves_the_data_of_the_charts(hostile):
    """They are JSON in a script element; all else in it is what a page without these texts has."""
    page, texts = hostile
    same, words = page_of(harmless())
    charts, others = Page(page).charts(), Page(same).charts()
    assert charts.keys() == others.keys()
    named = dict(zip(texts, words, strict=True))
    for name in charts:
        assert expressions(charts[name]) == expressions(others[name], named), name
    assert page.count("<!--") == same.count("<!--")
    assert page.lower().count("<script") == same.lower().count("<script") == 3


def expressions(chart, named=None):
    """Everything in a chart that Vega evaluates or reads as the name of a field."""
    found = []

    def walk(part):
        if isinstance(part, dict):
            for key in ("filter", "calculate", "expr", "test", "field", "signal", "href", "url"):
                if isinstance(part.get(key), str):
                    found.append((key, part[key]))
            for key, inner in part.items():
                if key != "datasets":
                    walk(inner)
        elif isinstance(part, list):
            for inner in part:
                walk(inner)

    walk(chart)
    assert not [text for _, text in found if any(bad in text for bad in MARKUP)]
    return found


def test_no_text_is_shown_otherwise_than_it_stands(hostile):
    """What the page escapes it escapes once: nobody reads &lt; where < was meant."""
    page, texts = hostile
    shown = {element["text"] for element in Page(page).elements}
    cells = [text for text in texts if text in shown]
    assert len(cells) > len(texts) / 4
    assert {text.rstrip("0123456789") for text in cells} >= {
        one for one in MARKUP if not one[-1].isdecimal()
    }


def test_no_name_of_a_file_or_of_a_population_is_markup_on_the_page_of_the_command(run, tmp_path):
    """Names as a shell passes them; one of a file has no slash."""
    model, table = "<img src=x onerror=hacked()>.json", '"><svg onload=hacked()>.csv'
    population = "<script>hacked()</script>"
    save(selection().mdm, tmp_path / model, categories=NAMES)
    write_histograms(true_clients(), tmp_path / table, categories=NAMES)
    title = "</title><script>hacked()</script>"
    done = run("report", model, f"{population}={table}", "--title", title, "-o", "page.html")
    assert done.code == 0, done.err
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert page.all("title")[0]["text"] == title
    assert len(page.all("script")) == 3
    assert {one["tag"] for one in page.elements}.isdisjoint({"b", "svg", "iframe"})
    assert not [one for one in page.elements if any(name.startswith("on") for name in one)]
    facts = " ".join(one["text"] for one in page.all("dd"))
    assert model in facts
    assert population in facts


# ------------------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def opened(hostile, tmp_path_factory):
    """The page in Chromium, with all its charts drawn."""
    place = tmp_path_factory.mktemp("hostile") / "report.html"
    place.write_text(hostile[0], encoding="utf-8")
    driver = chromium()
    driver.get(place.as_uri())
    until = time.monotonic() + 60
    drawn = "return [...document.querySelectorAll('[data-chart]')].every(e => e.dataset.drawn)"
    while not driver.execute_script(drawn):
        assert time.monotonic() < until, "the charts are not drawn"
        time.sleep(0.05)
    yield driver
    driver.quit()


@pytest.mark.slow
def test_nothing_of_any_text_runs_or_is_fetched_in_a_browser(opened):
    marks = opened.execute_script(
        """
        for (const one of document.querySelectorAll('details')) one.open = true;
        for (const one of document.querySelectorAll('*')) {
          for (const kind of ['mouseover', 'mousemove', 'focus', 'pointerover']) {
            one.dispatchEvent(new MouseEvent(kind, { bubbles: true, view: window }));
          }
        }
        return document.querySelectorAll('.mark-group path').length;
        """
    )
    assert marks > 100
    assert opened.execute_script("return window.hacked") is None
    assert opened.execute_script("return document.scripts.length") == 3
    assert (
        opened.execute_script(
            """
        const inline = (e) => [...e.attributes].some(a => a.name.startsWith('on'));
        const made = 'iframe, object, embed, base, form:not(.vega-bindings), main svg animate, '
          + 'a[href^="javascript"]';
        return [...document.querySelectorAll('*')].filter(inline).length
          + document.querySelectorAll(made).length
          + [...document.images].filter(e => !e.src.startsWith('data:image/png')).length;
        """
        )
        == 0
    )
    asked = [
        message["params"]["request"]["url"]
        for message in (json.loads(one["message"])["message"] for one in opened.get_log("performance"))
        if message["method"] == "Network.requestWillBeSent"
    ]  # fmt: skip
    assert {url.split(":")[0] for url in asked} <= {"file", "data", "blob"}
    assert [one["message"] for one in opened.get_log("browser")] == []


@pytest.mark.slow
def test_no_tooltip_of_a_mark_is_markup(opened):
    from selenium.webdriver.common.action_chains import ActionChains

    shown = []
    for chart in opened.find_elements("css selector", "[data-chart]"):
        marks = chart.find_elements("css selector", ".role-mark path, .role-mark rect")
        for mark in itertools.islice((one for one in marks if one.is_displayed()), 3):
            opened.execute_script("arguments[0].scrollIntoView({block: 'center'})", mark)
            ActionChains(opened).move_to_element(mark).perform()
            tooltip = opened.execute_script(
                "const t = document.querySelector('#vg-tooltip-element.visible');"
                "return t && [t.innerText, t.querySelectorAll(':not(table,tbody,tr,td)').length]"
            )
            if tooltip is not None:
                shown.append(tooltip)
    assert len(shown) >= 5
    assert [text for text, n_others in shown if n_others] == []
    assert any("hacked" in text for text, _ in shown)
    assert opened.execute_script("return window.hacked") is None

"""The report in a real browser: it draws, hides, fetches nothing, and can be used by everybody."""

import json
import time

import pytest

from browser import axe, chromium
from report_material import everything, federated, html_report, runs, styled

pytestmark = pytest.mark.slow

WIDTHS = (1280, 390)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    place = tmp_path_factory.mktemp("report") / "report.html"
    trained = runs(("true", "mdm", "style", "iid", "again"), styled={"style"})
    given = {**everything(), **styled(runs=trained)}
    place.write_text(html_report(federated(), **given), encoding="utf-8")
    return place.as_uri()


@pytest.fixture(scope="module")
def driver():
    started = chromium()
    yield started
    started.quit()


@pytest.fixture
def page(driver, address):
    """The page, drawn, at the width of a desk and in light colours."""
    show(driver, address)
    return driver


def show(driver, address, *, width=1280, scheme="light"):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    for log in ("browser", "performance"):
        driver.get_log(log)  # what came before is not this page's
    driver.get(address)
    wait(
        driver, "return [...document.querySelectorAll('[data-chart]')].every(e => e.dataset.drawn)"
    )


def wait(driver, script, *arguments, seconds=20):
    until = time.monotonic() + seconds
    while not driver.execute_script(script, *arguments):
        assert time.monotonic() < until, f"never true: {script}"
        time.sleep(0.05)


def n_marks(driver, chart):
    """How many shapes a chart's marks have drawn, axes and legends left out."""
    script = """
      const marks = document.querySelectorAll(
        `#chart-${arguments[0]} .mark-group.role-frame [class*='role-mark'] path`);
      return [...marks].filter(e => e.getAttribute('d')).length;
    """
    return driver.execute_script(script, chart)


def test_the_console_has_nothing_to_say(page):
    assert [entry["message"] for entry in page.get_log("browser")] == []


def test_no_request_leaves_the_page(page):
    messages = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    asked = [
        m["params"]["request"]["url"]
        for m in messages
        if m["method"] == "Network.requestWillBeSent"
    ]
    assert asked
    assert {url.split(":")[0] for url in asked} <= {"file", "data", "blob"}


def test_each_chart_has_drawn_marks(page):
    charts = page.execute_script(
        "return [...document.querySelectorAll('[data-chart]')].map(e => e.dataset.chart)"
    )
    assert len(charts) >= 14
    assert {chart: n_marks(page, chart) for chart in charts if n_marks(page, chart) == 0} == {}


def test_every_picture_is_shown(page):
    pictures = page.execute_script(
        "return [...document.images].map(e => [e.complete, e.naturalWidth, e.width, e.alt])"
    )
    assert len(pictures) == 2 * 5 + 2 * 3
    for complete, pixels, width, alt in pictures:
        assert complete
        assert alt
        assert 0 < pixels <= width


@pytest.mark.parametrize("population", ["iid", "mdm"])
def test_a_population_is_hidden_and_shown_by_the_keyboard(page, population):
    from selenium.webdriver.common.keys import Keys

    before = {chart: n_marks(page, chart) for chart in ("plane-0", "distances-0", "profile-0")}
    box = page.find_element("css selector", f".switches input[value='{population}']")
    box.send_keys(Keys.SPACE)
    strip = page.find_element("css selector", f".panel[data-population='{population}']")
    wait(page, "return arguments[0].hidden", strip)
    until = time.monotonic() + 10
    while any(n_marks(page, chart) >= n for chart, n in before.items()):
        assert time.monotonic() < until, "some chart still shows it"
        time.sleep(0.05)
    box.send_keys(Keys.SPACE)
    wait(page, "return !arguments[0].hidden", strip)
    until = time.monotonic() + 10
    while any(n_marks(page, chart) != n for chart, n in before.items()):
        assert time.monotonic() < until, "it does not come back"
        time.sleep(0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_screen(driver, address, width, scheme):
    show(driver, address, width=width, scheme=scheme)
    wider = driver.execute_script(
        """
        const edge = document.documentElement.clientWidth + 1;
        const outside = (e) => e.getBoundingClientRect().right > edge && !e.closest('.scroll');
        const all = [...document.querySelectorAll('main *')];
        return all.filter(outside).map(e => e.outerHTML.slice(0, 120));
        """
    )
    assert wider == []


def test_no_open_table_is_clipped_at_the_width_of_a_desk(page):
    clipped = page.execute_script(
        """
        const open = [...document.querySelectorAll('.scroll')].filter(e => !e.closest('details'));
        return open.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.ariaLabel);
        """
    )
    assert clipped == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_axe_finds_no_serious_fault(driver, address, axe_core, width, scheme):
    show(driver, address, width=width, scheme=scheme)
    driver.execute_script("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    driver.execute_script(axe_core)
    found = driver.execute_async_script(
        "const done = arguments[0]; axe.run({ resultTypes: ['violations'] }).then(done)"
    )
    serious = [v for v in found["violations"] if v["impact"] in ("serious", "critical")]
    said = [(v["id"], [node["html"][:200] for node in v["nodes"][:3]]) for v in serious]
    assert said == []


@pytest.fixture(scope="module")
def axe_core(tmp_path_factory):
    return axe(tmp_path_factory.mktemp("axe"))

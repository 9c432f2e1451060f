"""The zoo page in a real browser: it draws as `pu.zoo` does, writes files, and everybody can use it."""

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest

import polyurn as pu
from browser import chromium
from polyurn.model.trees import Tree
from polyurn.zoo import federations
from polyurn.zoo import zoo_page as zoo_page_module
from polyurn.zoo.zoo_page import zoo_page

PARTS = Path(pu.__file__).parent / "zoo"
SOME = ("celeba_hair", "flights", "movielens_rating", "county_votes", "chat_acts")
SHARES = [0.3, 0.25, 0.2, 0.1, 0.1, 0.05]
LABELS = np.repeat(["ant", "bee, wild", "cat"], [300, 200, 100])


# ------------------------------------------------------------------------ without a browser


def test_the_file_is_small_and_its_templates_are_short():
    assert len(zoo_page().encode()) <= 150_000
    parts = [PARTS / name for name in ("page.html", "page.css", "draws.js", "page.js")]
    assert sum(len(part.read_text("utf-8").splitlines()) for part in parts) <= 700


def test_nothing_on_the_page_is_fetched():
    assert re.findall(r"(?:src|href)=\"(?!data:)[^\"]*\"|https?://|@import|url\(", zoo_page()) == []


def test_labels_have_the_colours_of_the_report():
    style = (PARTS.parent / "report" / "style.css").read_text("utf-8")
    script = (PARTS / "page.js").read_text("utf-8")
    light = style.partition("@media")[0]
    fills = re.findall(r"--fill-\d: (#\w+);", light)
    assert len(fills) == 9
    assert re.findall(r"#\w{6}", script.partition("FILLS = [")[2].partition("]")[0]) == fills


# --------------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    place = tmp_path_factory.mktemp("zoo") / "zoo.html"
    place.write_text(zoo_page(), encoding="utf-8")
    return place.as_uri()


@pytest.fixture(scope="module")
def driver():
    started = chromium()
    yield started
    started.quit()


@pytest.fixture
def page(driver, address):
    return show(driver, address)


def show(driver, address, *, width=1280, scheme="light"):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    driver.get("about:blank")  # another fragment alone would not load the page again
    for log in ("browser", "performance"):
        driver.get_log(log)
    driver.get(address)
    wait(driver, "return document.body && document.body.dataset.ready === 'yes'")
    return driver


def wait(driver, script, *arguments, seconds=20):
    until = time.monotonic() + seconds
    while not driver.execute_script(script, *arguments):
        assert time.monotonic() < until, f"never true: {script}"
        time.sleep(0.05)


def drawn(driver, name, n, **settings):
    """Clients as the page draws them."""
    given = {"shares": SHARES, "match": "rank", "size": None, "seed": 1} | settings
    script = "return clientsLike(arguments[0], arguments[1], arguments[2])"
    return np.array(driver.execute_script(script, name, given, n))


def labels_of(shares):
    return np.repeat(np.arange(len(shares)), np.rint(1_000 * np.array(shares)).astype(int))


def is_alike(clients, others, seed=0):
    """Whether the energy ratio of clients to others is in the range of others to themselves."""
    (row,) = pu.compare({"page": clients}, others, n_clients=len(clients), n_folds=0, rng=seed).rows
    return row.energy_ratio <= row.energy_null[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_clients_of_the_page_are_alike_to_those_of_the_library(page, name):
    laid = pu.zoo.like(name, labels_of(SHARES))
    assert is_alike(drawn(page, name, 2_000), laid.sample(2_000, rng=1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rule", "size"),
    [("un_votes", "rank", 40.0), ("flights", "marginal", 100.0), ("lecturers", "marginal", None)],
)
def test_other_labels_and_sizes_are_those_of_the_library(page, name, rule, size):
    laid = pu.zoo.like(name, labels_of(SHARES), match=rule, mean_size=size)
    clients = drawn(page, name, 2_000, match=rule, size=size)
    assert is_alike(clients, laid.sample(2_000, rng=2))
    error = 4 * clients.sum(axis=1).std() / np.sqrt(2_000)
    assert abs(clients.sum() / 2_000 - laid.mean().sum()) < max(error, 0.01 * laid.mean().sum())


@pytest.mark.slow
def test_clients_of_another_federation_are_not_alike(page):
    laid = pu.zoo.like("movielens_rating", labels_of(SHARES))
    assert not is_alike(drawn(page, "celeba_hair", 2_000), laid.sample(2_000, rng=1))


@pytest.mark.slow
@pytest.mark.parametrize("bent", [False, True])
@pytest.mark.parametrize("n_labels", [3, 2, 6])
def test_splits_are_drawn_down_the_tree(driver, tmp_path, monkeypatch, bent, n_labels):
    tree, values = Tree([[1, 4], [2, 3]]), np.zeros((1, 2, 2, 3))
    values[..., 1] = 1.5  # some points on either side are likelier than none or all
    laws = pu.Laws([0, 3, 8], values) if bent else None
    splits = pu.Splits(tree, [[[1.0, 2.0], [3.0, 2.0]]], laws)
    mdm = pu.MDM([1.0], None, pu.Sizes(pu.SizeBins([1, 5, 20]), [[0.3, 0.7]]), splits=splits)
    monkeypatch.setattr(zoo_page_module, "load", lambda name: mdm)
    monkeypatch.setattr(zoo_page_module, "names", lambda: federations.names()[:2])
    place = tmp_path / "zoo.html"
    place.write_text(zoo_page(), encoding="utf-8")
    show(driver, place.as_uri())
    shares = np.arange(n_labels, 0, -1) / sum(range(n_labels + 1))
    clients = drawn(driver, federations.names()[0], 2_000, shares=shares.tolist())
    laid = mdm.relabelled(n_labels, shares=shares)
    assert is_alike(clients, laid.sample(2_000, rng=3))


@pytest.mark.slow
def test_the_file_has_the_rows_of_a_csv_and_the_lines_make_the_same(
    page, tmp_path, run, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = rng.permutation(LABELS)
    text = "id,kind of animal\n" + "".join(f'{i},"{row}"\n' for i, row in enumerate(rows))
    Path("my animals.csv").write_text(text, encoding="utf-8")
    page.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    page.find_element("id", "file").send_keys(str(tmp_path / "my animals.csv"))
    wait(page, "return !document.getElementById('save').disabled")
    assert page.execute_script("return settings().names") == ["ant", "bee, wild", "cat"]
    page.find_element("id", "save").click()
    page.find_element("id", "save-counts").click()
    found, counts = wait_for("partition.json", "clients.csv")
    held = pu.load_partition(found).histograms(np.unique(rows, return_inverse=True)[1], 3)
    assert held.tolist() == page.execute_script("return clientsLike(chosen, settings(), 100)")
    pu.save_partition(pu.load_partition(found), "again.json")
    assert Path("again.json").read_bytes() == found.read_bytes()
    names = ["ant", "bee, wild", "cat"]
    table = pu.table_histograms(pu.read_table(counts), categories=names, client="client")
    assert sorted(table.counts.toarray().tolist()) == sorted(held.tolist())
    shell, python, flower = page.execute_script(
        "return [...document.querySelectorAll('pre')].map(e => e.textContent)"
    )
    found.rename("page.json")
    exec(python, {})
    by_python = pu.load_partition("partition.json")
    found.unlink()
    words = shell.removeprefix("polyurn ").replace("'my animals.csv'", "FILE")
    words = words.replace("'kind of animal'", "COLUMN").split()
    known = {"FILE": "my animals.csv", "COLUMN": "kind of animal"}
    assert run(*[known.get(word, word) for word in words]).code == 0
    by_shell = pu.load_partition("partition.json")
    codes = np.unique(rows, return_inverse=True)[1]
    assert by_shell.histograms(codes, 3).tolist() == by_python.histograms(codes, 3).tolist()
    exec(flower, {})


@pytest.mark.slow
def test_a_csv_that_is_dropped_on_the_page_is_read_in_it(page):
    page.execute_script(
        """
        const held = new DataTransfer();
        const text = 'id,kind\\n' + 'a,cat\\n'.repeat(30) + 'b,dog\\n'.repeat(20);
        held.items.add(new File([text], 'mine.csv', {type: 'text/csv'}));
        const about = {dataTransfer: held, bubbles: true, cancelable: true};
        document.body.dispatchEvent(new DragEvent('drop', about));
        """
    )
    wait(page, "return !document.getElementById('save').disabled")
    assert page.execute_script("return [settings().names, settings().shares]") == [
        ["cat", "dog"], [0.6, 0.4],
    ]  # fmt: skip


def open_csv(driver, text):
    """Open a CSV, and give the chosen column and the message."""
    driver.execute_script("table = null; open(new File([arguments[0]], 'mine.csv'))", text)
    wait(driver, "return table !== null")
    return driver.execute_script(
        "return [$('column').selectedOptions[0]?.textContent ?? null, $('message').textContent]"
    )


def csv_of(**columns):
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n"


N = 600
PLOT, HEIGHT = [f"p{i}" for i in range(N)], [f"{i % 50 / 10:.1f}" for i in range(N)]
SPECIES, BLOCK = [("oak", "elm")[i % 2] for i in range(N)], [i % 7 for i in range(N)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"plot": PLOT, "Species": SPECIES, "height": HEIGHT}, "Species"),
        ({"species": SPECIES, "label": BLOCK, "sex": SPECIES}, "label"),
        ({"plot": PLOT, "tree": SPECIES, "block": BLOCK, "height": HEIGHT}, "tree"),
        ({"plot": PLOT, "block": BLOCK, "height": HEIGHT}, "block"),
        ({"plot": PLOT, "label": range(N), "tree": SPECIES}, "tree"),
    ],
)
def test_the_column_of_labels_has_their_name_or_few_values_and_no_decimals(page, columns, expected):
    assert open_csv(page, csv_of(**columns)) == [expected, ""]
    assert page.find_element("id", "save").is_enabled()


@pytest.mark.slow
def test_a_csv_without_a_column_that_looks_like_labels_asks_for_it(page):
    column, message = open_csv(page, csv_of(plot=PLOT, height=HEIGHT, label=range(N)))
    assert column is None
    assert "Choose the column of mine.csv" in message
    assert_nothing_is_shown(page)
    type_in(page, "labels", "cat 3, dog 2")
    assert "labels.csv zoo:celeba_hair --clients" in page.find_element("id", "lines").text
    type_in(page, "column", "1")
    assert "mine.csv zoo:celeba_hair --category height" in page.find_element("id", "lines").text
    assert page.execute_script("return settings().names.length") == 50
    assert page.find_element("id", "save").is_enabled()


def assert_nothing_is_shown(driver):
    assert not driver.find_element("css selector", "#rows canvas").is_displayed()
    assert driver.find_element("id", "lines").text == ""
    assert not driver.find_element("id", "save").is_enabled()
    assert not driver.find_element("id", "save-counts").is_enabled()


@pytest.mark.slow
def test_shares_that_a_federation_cannot_be_given_are_not_offered(page, address):
    offered = "return [$('match').options[1].disabled, $('match').options[1].text]"
    for name in pu.zoo.names():
        page.execute_script(f"document.querySelector('[value={name}]').click()")
        disabled, told = page.execute_script(offered)
        assert disabled == ("not this federation" in told) == (pu.zoo.load(name).splits is not None)
    page.execute_script("document.querySelector('[value=flights]').click()")
    open_csv(page, csv_of(species=SPECIES))
    type_in(page, "match", "marginal")
    assert "--match marginal" in page.find_element("id", "lines").text
    page.execute_script("document.querySelector('[value=rodents]').click()")
    assert "match by rank" in page.find_element("id", "message").text
    assert_nothing_is_shown(page)
    type_in(page, "match", "rank")
    assert "zoo:rodents" in page.find_element("id", "lines").text
    assert page.find_element("css selector", "#rows canvas").is_displayed()
    show(page, address + "#federation=rodents&match=marginal")
    assert_nothing_is_shown(page)


def wait_for(*names):
    until = time.monotonic() + 20
    while not all(Path(name).exists() for name in names):
        assert time.monotonic() < until, "a file was not written"
        time.sleep(0.05)
    return [Path(name) for name in names]


@pytest.mark.slow
def test_a_link_opens_the_same_view(page, address):
    type_in(page, "labels", "cat 120\nred dog 80\nbird 40")
    type_in(page, "clients", "30")
    type_in(page, "size", "55")
    type_in(page, "seed", "9")
    page.execute_script("document.querySelector('[value=rodents]').click()")
    pixels = "return [...document.querySelectorAll('#rows canvas')].map(e => e.toDataURL())"
    before, link = page.execute_script(pixels), page.current_url
    assert link.startswith(address + "#")
    show(page, address)
    assert page.execute_script(pixels) != before
    show(page, link)
    assert page.execute_script(pixels) == before


def type_in(driver, field, text):
    script = "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
    driver.execute_script(script + "e.dispatchEvent(new Event('input'))", field, text)


@pytest.mark.slow
def test_five_hundred_clients_are_drawn_again_in_a_tenth_of_a_second(page):
    took = page.execute_script(
        """
        document.getElementById('clients').value = 500;
        const timed = () => { const t = performance.now(); redraw(); return performance.now() - t; };
        return [...Array(7)].map(timed);
        """
    )
    assert min(took) < 100


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_screen_and_nothing_is_said(driver, address, width, scheme):
    show(driver, address, width=width, scheme=scheme)
    assert [entry["message"] for entry in driver.get_log("browser")] == []
    wider = driver.execute_script(
        """
        const edge = document.documentElement.clientWidth + 1;
        const all = [...document.querySelectorAll('main *, header *')].filter(e => !e.closest('pre'));
        const wide = (e) => e.getBoundingClientRect().right > edge;
        return all.filter(wide).map(e => e.outerHTML.slice(0, 90));
        """
    )
    assert wider == []


@pytest.mark.slow
def test_no_request_leaves_the_page(page):
    messages = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    asked = [
        m["params"]["request"]["url"]
        for m in messages
        if m["method"] == "Network.requestWillBeSent"
    ]
    assert asked
    assert {url.split(":")[0] for url in asked} <= {"file", "data", "blob"}


@pytest.mark.slow
def test_a_federation_is_chosen_with_the_keyboard(page):
    from selenium.webdriver.common.keys import Keys

    before = page.execute_script("return chosen")
    page.find_element("css selector", "[name=federation]:checked").send_keys(Keys.ARROW_DOWN)
    after = page.execute_script("return [chosen, document.getElementById('title').textContent]")
    assert after[0] != before
    assert pu.zoo.card(after[0]).title in after[1]
    assert f"federation={after[0]}" in page.current_url


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("labels", "cat 1, dog x", "dog x"),
        ("labels", "1, 0", "two labels"),
        ("labels", "1 equal", "2 to 2,000"),
        ("clients", "0", "Clients"),
        ("seed", "-1", "Seed"),
    ],
)
def test_a_setting_that_cannot_be_is_said_in_a_line(page, field, text, said):
    type_in(page, field, text)
    assert said in page.find_element("id", "message").text
    assert not page.find_element("id", "save-counts").is_enabled()

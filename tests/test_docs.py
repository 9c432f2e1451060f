"""The documentation says what is there: names, options, files and commands."""

import doctest
import importlib
import json
import re
import shlex
import subprocess
import sys
from itertools import zip_longest
from operator import attrgetter
from pathlib import Path

import pytest
import typer

import polyurn
from polyurn import cli
from polyurn.commands.app import app

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *DOCS]
COMMANDS = typer.main.get_command(app)


def page(name):
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def names_in_docs():
    pages = (path.read_text(encoding="utf-8") for path in DOCS)
    return sorted(
        {pair for text in pages for pair in re.findall(r"`(polyurn[\w.]*):([\w.]+)`", text)}
    )


@pytest.mark.parametrize(("module", "name"), names_in_docs())
def test_every_name_in_the_docs_can_be_imported(module, name):
    assert attrgetter(name)(importlib.import_module(module)) is not None


@pytest.mark.parametrize("number", range(1, 20))
def test_every_equation_of_the_main_text_is_on_the_map(number):
    rows = [line.split("|") for line in page("paper").splitlines() if line.startswith("| ")]
    spans = [re.match(r" *\((\d+)\)(?: to \((\d+)\))?", cell) for row in rows for cell in row[1:3]]
    assert any(int(span[1]) <= number <= int(span[2] or span[1]) for span in spans if span)


@pytest.mark.parametrize("number", range(1, 20))
def test_every_equation_of_the_map_is_named_in_the_reference(number):
    source = (ROOT / "src" / "polyurn" / "reference.py").read_text(encoding="utf-8")
    spans = re.findall(r"equations? (\d+)(?: (?:to|and) (\d+))?", source)
    assert any(int(a) <= number <= int(b or a) for a, b in spans)


@pytest.mark.parametrize(("algorithm", "n_lines"), [(1, 15), (2, 18)])
def test_every_line_of_the_algorithms_is_on_the_map(algorithm, n_lines):
    section = page("paper").split(f"## Algorithm {algorithm}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([\d, ]+) \| (.+?) \| (.*?)\|", section, flags=re.MULTILINE)
    assert [int(n) for lines, *_ in rows for n in lines.split(",")] == [*range(1, n_lines + 1)]
    for _, what, plainly in rows:
        assert plainly.startswith("`polyurn.reference:") != what.startswith("end of the")


def test_the_architecture_names_every_room():
    rooms = {path.parent.name for path in (ROOT / "src" / "polyurn").glob("*/__init__.py")}
    table = page("architecture").split("## The rooms")[1].split("\n## ")[0]
    assert rooms == set(re.findall(r"^\| `(\w+)/` \|", table, flags=re.MULTILINE))
    assert len(page("architecture").split()) <= 2000


def test_every_file_that_the_architecture_names_is_there():
    named = re.findall(r"`([\w/]+\.py)`", page("architecture"))
    assert len(named) > 30
    assert [name for name in named if not (ROOT / "src" / "polyurn" / name).exists()] == []


def test_the_contents_name_every_page():
    listed = re.findall(r"^([\w/-]+)$", page("index"), flags=re.MULTILINE)
    pages = {str(path.relative_to(ROOT / "docs").with_suffix("")) for path in DOCS}
    assert sorted(listed) == sorted(pages - {"index"})


def test_the_reference_has_every_public_name():
    named = re.findall(r"auto(?:class|function):: polyurn\.(\w+)$", page("reference"), flags=re.M)
    assert sorted(named) == polyurn.__all__


@pytest.fixture
def docs_script(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    return importlib.import_module


# ---------------------------------------------------------------------------- commands


def commands(group=COMMANDS, title="polyurn"):
    """A group, its commands, and those of the groups in it: (title, command)."""
    yield title, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, f"{title} {name}")


def test_the_page_of_commands_is_what_the_program_says(docs_script):
    shown = page("commands")
    assert "\n## polyurn federation join\n" in shown  # a command of a group
    assert docs_script("make_commands").page(shown) == shown, "run `python docs/make_commands.py`"


@pytest.mark.parametrize(
    ("title", "command"), [*commands()], ids=[title for title, _ in commands()]
)
def test_every_command_and_option_has_help(title, command):
    assert command.help, title
    assert all(p.help for p in command.params)


def shell_commands():
    """Every `polyurn ...` of the help's examples, of every page's sh blocks, and after `$ `."""
    for title, command in commands():
        for line in re.findall(r"`(polyurn [^`]+)`", command.help.partition("\nExample")[2]):
            yield pytest.param(line, id=f"{title} --help: {line}")
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for block in (*shell_blocks(text), *shell_blocks(text, "console")):
            for line in block.splitlines():
                if line.startswith(("polyurn ", "$ polyurn ")):
                    yield pytest.param(line.removeprefix("$ "), id=f"{path.stem}: {line}")


def shell_blocks(text, kind="sh"):
    return re.findall(rf"```{kind}\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.parametrize("line", [*shell_commands()])
def test_every_command_on_a_page_is_one_that_the_command_line_takes(line):
    command, (name, *arguments) = COMMANDS, shlex.split(line, comments=True)
    while hasattr(command, "commands"):  # a group: the next word names one of its commands
        by_itself = not arguments or arguments[0].startswith("-")
        if command.invoke_without_command and by_itself:
            break
        name, *arguments = arguments
        command = command.commands[name]
    assert command.make_context(name, arguments).info_name == name


def test_the_commands_of_the_guide_run_on_the_table_that_it_makes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    guide = page("guides/own-data")
    there = first_examples(guide)
    blocks = [block.splitlines() for block in shell_blocks(guide)]
    walk = next(lines for lines in blocks if all(line.startswith("polyurn ") for line in lines))
    assert [run([*shlex.split(line), "--quiet"]) for line in walk] == ["histogram", "fit"]
    made = {path.name for path in tmp_path.iterdir()} - there
    assert made == {"clients.parquet", "mdm.json"}


def first_examples(text):
    """Run a page's first block of examples; the names of the files that it made."""
    block = re.search(r"```pycon\n(.*?)```", text, flags=re.DOTALL)[1]
    known = {}
    for example in doctest.DocTestParser().get_examples(block):
        exec(example.source, known)
    return {path.name for path in Path().iterdir()}


def test_the_walk_through_the_other_commands_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    there = first_examples(page("quickstart"))
    block = shell_blocks(page("quickstart"))[-1]
    ran = [run(shlex.split(line)) for line in block.splitlines()]
    walk = "describe split histogram fit show score sample partition compare"
    assert ran == walk.split()
    assert {path.name for path in tmp_path.iterdir()} - there == {
        "fitted.csv",
        "held-out.csv",
        "counted.csv",
        "mdm.json",
        "simulated.csv",
        "partition.json",
        "comparison.json",
    }
    assert "nothing moved beyond chance" in capsys.readouterr().out


def run(words):
    """Run `polyurn COMMAND ...` in this process; say which command it was."""
    assert words[0] == "polyurn"
    with pytest.raises(SystemExit) as ended:
        cli.main(words[1:])
    assert not ended.value.code
    return words[1]


def test_the_quickstart_names_every_command():
    for name in COMMANDS.commands:
        assert re.search(rf"`{name}`|polyurn {name}", page("quickstart"))


# ----------------------------------------------------------------------------- outputs


@pytest.fixture
def renew(docs_script):
    return docs_script("renew_outputs")


@pytest.mark.parametrize(
    ("name", "ran"),
    [
        ("README.md", ["partition"]),
        ("docs/quickstart.md", ["fit", "sample", "compare", "report"]),
        ("docs/guides/feature.md", ["features"]),
    ],
)
def test_a_page_shows_what_its_commands_print(name, ran, renew, tmp_path):
    shown = (ROOT / name).read_text(encoding="utf-8")
    commands = re.findall(r"^\$ (?:polyurn )?(\w+)", shown, flags=re.MULTILINE)
    assert commands == ran
    printed = renew.renewed(shown, tmp_path)
    differences = [pair for pair in zip_longest(words(shown), words(printed)) if not alike(*pair)]
    assert not differences, f"{name}: run `python docs/renew_outputs.py`; {differences[:5]}"


def words(text):
    """The words of a page, without the lines of tables, whose lengths change with the words."""
    return [word for word in text.split() if word.strip("┏━┳┓┡╇┩└─┴┘")]


def alike(shown, printed):
    """Equal, or numbers within a tenth: processors round differently, and a search goes on from that."""
    if shown == printed or None in (shown, printed):
        return shown == printed
    numbers = [re.findall(NUMBER, word) for word in (shown, printed)]
    rests = [re.sub(NUMBER, "", word) for word in (shown, printed)]
    return rests[0] == rests[1] and all(
        float(a.replace(",", "")) == pytest.approx(float(b.replace(",", "")), rel=0.1, abs=0.05)
        for a, b in zip(*numbers, strict=True)
    )


NUMBER = r"\d[\d,]*(?:\.\d+)?"


def test_the_first_page_has_the_evidence_that_the_experiments_kept(monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "experiments")
    importlib.import_module("front_door").main()  # prints the records that are kept
    tables = capsys.readouterr().out.split("\n\n")
    screen = (ROOT / "README.md").read_text(encoding="utf-8")
    assert screen.count("\n") <= 150
    assert [table.strip().count("\n") for table in tables] == [7, 5]
    for table in tables:
        assert f"\n{table.strip()}\n" in screen, "run `python docs/renew_outputs.py`"


def test_the_documentation_begins_with_the_first_screen_of_the_readme():
    directive, *options = page("index").split("```{")[1].split("```")[0].strip().splitlines()
    assert directive == "include} ../README.md"
    assert ":start-after: <!-- front door -->" in options
    assert ":end-before: <!-- end of the front door -->" in options


# ----------------------------------------------------------------------------- figures


def test_the_page_on_alphas_has_the_table_of_the_zoos_cards(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "experiments")
    experiment = importlib.import_module("which_alpha")
    found, shown = experiment.cards(), page("which-alpha").splitlines()
    rows = [row for part in (experiment.summary, experiment.alpha_table) for row in part(found)]
    assert len(rows) == 4 + 2 + len(found)
    assert [row for row in rows if row not in shown] == [], (
        "run `python experiments/which_alpha.py`"
    )


def test_the_tables_of_training_are_those_of_the_records(renew):
    pytest.importorskip("torch")
    shown = page("results")
    marks = re.findall(r"<!-- tables of (\w+) -->", shown)
    reports = [
        report.name for name in renew.TRAINING_SCRIPTS for report in renew.experiment(name).REPORTS
    ]
    assert sorted(marks) == sorted(reports)
    assert renew.with_training_tables(shown) == shown, "run `python docs/renew_outputs.py results`"


def test_the_tables_of_styles_are_those_of_the_records(renew):
    pytest.importorskip("torch")
    shown = page("results")
    marks = re.findall(r"<!-- styles: (\w+) -->", shown)
    assert sorted(marks) == ["bars", "summary"]
    assert renew.with_style_tables(shown) == shown, "run `python docs/renew_outputs.py results`"


def test_the_table_of_likeness_is_that_of_the_records(renew):
    shown = page("results")
    assert shown.count("| mdm | ") >= 6
    assert renew.with_likeness_table(shown) == shown, "run `python docs/renew_outputs.py results`"


def test_the_tables_of_shapes_are_those_of_the_records(renew):
    shown = page("results")
    assert "<!-- shapes -->" in shown
    assert renew.with_shapes(shown) == shown, "run `python docs/renew_outputs.py results`"


def test_the_tables_of_regret_are_those_of_the_records(renew):
    pytest.importorskip("torch")
    shown = page("results")
    marks = " ".join(re.findall(r"<!-- regret: ([\w ]+) -->", shown)).split()
    assert sorted(marks) == sorted(renew.experiment("regret").CASES)
    assert renew.with_regret(shown) == shown, "run `python docs/renew_outputs.py results`"


def test_no_private_size_is_impossible_and_the_table_of_them_is_that_of_the_records():
    pytest.importorskip("dp_accounting")
    records = (ROOT / "benchmarks/results/private_sizes.jsonl").read_text().splitlines()
    for cell in map(json.loads, records):
        assert cell["impossible"] == 0
        assert cell["worst"] > cell["uniform"]
        if (cell["epsilon"], cell["n_clients"]) == (1, 10_000):
            assert cell["no_noise"] - cell["value"] < 0.03
    command = [sys.executable, ROOT / "benchmarks/private_sizes.py", "--table"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    several = ran.stdout.partition("\n\n")[0].removeprefix("several\n")
    assert f"```text\n{several}\n```" in page("privacy")


def test_the_pages_have_at_most_as_many_words_as_a_reader_bears():
    most = {"results": 6_000, "decisions": 3_000, "commands": 6_000}
    assert {name: len(page(name).split()) <= n for name, n in most.items()} == dict.fromkeys(
        most, True
    )
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in DOCS) <= 45_000


# ------------------------------------------------------------------------------- links


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_link_to_a_file_leads_somewhere(path):
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        file, _, anchor = target.partition("#")
        if re.match(r"\w+:", target):  # another site
            continue
        there = path.parent / file if file else path
        assert there.exists(), f"{path.name} links to {target}"
        assert not anchor or anchor in anchors(there), f"{path.name} links to {target}"


def anchors(path):
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}

"""`polyurn show`: the components as a table, and files that are none."""

import subprocess
import sys

import pytest

from cli_walk import EXAMPLE, assert_refused
from polyurn import save as save_any
from polyurn.storage.documents import save_document
from polyurn.storage.models import save
from polyurn.typed.json_form import to_json
from report_material import traffic_case
from style_cases import whole_space


@pytest.mark.parametrize("name", ["[0, 5)", "[red]", "[/b]", ":cat:"])
def test_category_names_that_look_like_markup_are_shown_as_they_are(run, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "200")
    save(EXAMPLE, "mdm.json", categories=[name, "other"])
    assert f"{name} " in run("show", "mdm.json").out


@pytest.mark.parametrize(
    "command",
    [("show",), ("score",), ("sample", "--clients", 3, "-o", "out.csv")],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.json", ["cannot read missing.json", "No such file"]),
        ("folder", ["cannot read folder", "directory"]),
        ("cut.json", ["cut.json is not an MDM file, or was cut off"]),
        ("future.json", ["version 99", "upgrade polyurn"]),
        ("clients.csv", ["clients.csv is "]),
        ("damaged.json", ["damaged.json is damaged"]),
    ],
)
def test_an_mdm_that_cannot_be_read_is_one_line_and_no_file(run, tmp_path, command, name, words):
    (tmp_path / "folder").mkdir()
    save(EXAMPLE, "whole.json")
    whole = (tmp_path / "whole.json").read_text()
    (tmp_path / "cut.json").write_text(whole[: len(whole) // 2])
    (tmp_path / "future.json").write_text(whole.replace('"version": 3', '"version": 99'))
    (tmp_path / "damaged.json").write_text(whole.replace('"weights": [', '"weights": [7,'))
    first, *rest = command
    table = ["clients.csv"] if first == "score" else []
    assert_refused(run(first, *table, name, *rest), *words)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("parts.json", ["parts.json is not an MDM file", "the file names none"]),
        ("comparison.json", ["not an MDM file", "got 'polyurn.comparison'"]),
        ("space.json", ["not an MDM file", "got 'polyurn.style-space'"]),
        ("clients.csv", ["clients.csv is not an MDM file"]),
        ("other.json", ["not an MDM file", "got 'somebody.else'"]),
        ("list.json", ["not an MDM file"]),
    ],
)
def test_a_file_of_another_kind_is_called_what_it_is(run, tmp_path, name, words):
    (tmp_path / "parts.json").write_text('{"a": [0, 2], "b": [1]}')
    save_document({}, "comparison.json", kind="comparison")
    save_any(whole_space(2, 3), "space.json")
    (tmp_path / "other.json").write_text('{"format": "somebody.else"}')
    (tmp_path / "list.json").write_text("[1, 2]")
    assert_refused(run("show", name), *words)


def test_a_model_of_a_federation_has_a_line_about_what_crossed(run):
    record = traffic_case()
    save(EXAMPLE, "mdm.json", provenance={"traffic": to_json(record)})
    said = run("show", "mdm.json")
    assert said.err == f"crossed: {record.line}\n"
    save(EXAMPLE, "local.json")
    local = run("show", "local.json")
    assert (local.out, local.err) == (said.out, "")


def test_showing_a_file_loads_neither_the_search_nor_the_large_parts_of_scipy(tmp_path):
    save(EXAMPLE, tmp_path / "mdm.json")
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print(*sys.modules, sep='\\n'))\n"
        "from polyurn.cli import main\n"
        "main(['show', 'mdm.json', '--quiet'])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    loaded = set(ran.stdout.splitlines())
    assert "polyurn.model.mdm" in loaded
    assert loaded.isdisjoint({"scipy.sparse", "scipy.special", "scipy.stats", "numba", "pyarrow"})

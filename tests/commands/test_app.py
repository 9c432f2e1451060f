"""How a command ends: real processes, with real pipes, devices and signals."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli_walk import CLIENTS, EXAMPLE, assert_refused
from polyurn import load, save
from polyurn.storage.models import load_saved

COMMAND = [sys.executable, "-m", "polyurn.cli"]


def process(*arguments, **settings):
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
    return subprocess.Popen([*COMMAND, *map(str, arguments)], **settings)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "arguments", [("show", "mdm.json"), ("show", "mdm.json", "--json"), ("--help",)]
)
def test_stdout_that_is_full_is_one_line(tmp_path, arguments):
    save(EXAMPLE, tmp_path / "mdm.json")
    with open("/dev/full", "wb") as full:
        ended = process(*arguments, cwd=tmp_path, stdout=full)
        _, said = ended.communicate()
    line = b"error: cannot write to the standard output: No space left on device\n"
    assert (ended.returncode, said) == (2, line)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_stdout_that_is_closed_early_ends_in_silence(tmp_path, unbuffered):
    save(EXAMPLE, tmp_path / "mdm.json")
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    ended = process("sample", "mdm.json", "--clients", 50_000, cwd=tmp_path, env=environment)
    assert ended.stdout.readline() == b'"client","category","count"\n'
    ended.stdout.close()
    assert ended.stderr.read() == b""
    ended.stderr.close()
    assert ended.wait() == 1


def test_file_names_and_titles_that_are_not_utf_8_are_shown_and_kept(run, tmp_path):
    name = os.fsdecode(b"\xff\x1b[31m")
    shown = r"\udcff\x1b[31m"
    assert_refused(run("show", f"{name}.json"), f"cannot read {shown}.json")
    assert f"wrote {shown}.json" in run(
        "fit", "clients.csv", "--components", 1, "--rounds", 3, "-o", f"{name}.json"
    ).err  # fmt: skip
    assert load(f"{name}.json").n_categories == 3
    assert f"{name}.json" in load_saved(f"{name}.json").provenance.command
    assert run("report", f"{name}.json", "--title", name, "-o", f"{name}.html").code == 0
    assert (tmp_path / f"{name}.html").read_bytes().startswith(b"<!doctype html>")
    assert run("compare", f"{name}/", "x=y").code == 2


def test_an_error_of_the_system_that_names_a_file_is_not_taken_for_a_full_stdout(run, monkeypatch):
    def broken(*_):
        raise OSError(5, "Input/output error", "somewhere")

    monkeypatch.setattr("polyurn.storage.documents.format_of", broken)
    with pytest.raises(OSError, match="Input/output"):
        run("show", "mdm.json")


INTERRUPTED_IMPORT = """
import os, signal, sys

class Interrupts:
    def find_spec(name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts)
from polyurn.cli import main
main(sys.argv[2:])
"""


@pytest.mark.parametrize("module", ["typer", "rich.text", "numpy", "scipy", "numba", "pyarrow"])
@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_in_the_first_second_is_exit_130_in_silence(tmp_path, module):
    (tmp_path / "clients.csv").write_text(CLIENTS)
    command = ("fit", "clients.csv", "--components", 2, "-o", "mdm.json")
    code = [sys.executable, "-c", INTERRUPTED_IMPORT, module, *map(str, command)]
    ended = subprocess.run(code, cwd=tmp_path, capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"")
    assert os.listdir(tmp_path) == ["clients.csv"]


def test_a_zero_character_in_a_name_is_one_line(run):
    assert_refused(
        run("histogram", "clients\0.csv"), "expected words and names of files without zero"
    )


def test_a_usage_mistake_of_thousands_of_characters_is_shortened(run):
    ran = run("sample", "mdm.json", "--clients", "9" * 5000)
    assert_refused(ran, "Invalid value for '--clients'", "is not a valid integer")
    assert len(ran.err) < 600


@pytest.mark.parametrize("group", ["federation"])
def test_a_group_without_a_command_shows_its_help_and_no_empty_error(run, group):
    ended = run(group)
    assert ended.code == 2
    assert f"Usage: polyurn {group}" in ended.out
    assert "error" not in ended.err

"""What reaches a terminal, and what does not."""

import io
import json
import sys
import warnings

import pytest
from rich.table import Table

from cli_walk import EXAMPLE, assert_refused
from polyurn import save
from polyurn.commands import console
from polyurn.commands.console import (
    _Terminal,
    print_data,
    say,
    show,
    visible,
    warn,
    warnings_as_sentences,
)
from polyurn.commands.progress import sweep_progress
from polyurn.errors import StyleWarning
from polyurn.sweeps.grid import SweepProgress
from report_material import runs

EVIL = "a\x1b]0;title\x07b\x1b[31m\x9bC1\r\x08\u202ebidi\u2066\n\u2028\ud800"
SHOWN = r"a\x1b]0;title\x07b\x1b[31m\x9bC1\r\x08\u202ebidi\u2066\n\u2028\ud800"


def test_control_characters_are_shown_as_escapes():
    assert visible(EVIL) == SHOWN


@pytest.mark.parametrize(
    "name", ["café", "東京 都", "نمی‌خواهم", "👩‍👩‍👧", "a\u00a0b", "α₀ ± ∞", r"\x1b"]
)
def test_letters_of_every_language_are_shown_as_they_are(name):
    assert visible(name) == name


def test_terminal_escapes_of_a_strangers_names_do_not_reach_the_terminal():
    stream = io.StringIO()
    terminal = _Terminal(file=stream, force_terminal=True, width=300)
    table = Table(title=EVIL, caption=EVIL)
    table.add_column(EVIL)
    table.add_row(EVIL)
    terminal.print(table)
    terminal.print(EVIL)
    terminal.out(EVIL)
    run = runs(populations=(EVIL,), seeds=(0,))[0]
    with sweep_progress(terminal) as on_run:
        on_run(SweepProgress(1, 2, run))
    sent = stream.getvalue()
    assert sent.count(SHOWN) >= 6
    for forbidden in ("\x07", "\x9b", "\u202e", "\u2066", "\u2028", "\x1b]0", "\x1b[31m", "\x08"):
        assert forbidden not in sent


def test_a_name_that_looks_like_markup_does_not_end_a_progress_bar():
    stream = io.StringIO()
    run = runs(populations=("[/nobody]",), seeds=(0,))[0]
    with sweep_progress(_Terminal(file=stream, force_terminal=True, width=200)) as on_run:
        on_run(SweepProgress(1, 2, run))
    assert "[/nobody]" in stream.getvalue()


def test_no_command_sends_control_characters_of_a_file_to_the_terminal(run, tmp_path, monkeypatch):
    name = "a\x1b[31m\x07\x9b\u202e"
    escaped = r"a\x1b[31m\x07\x9b\u202e"
    save(EXAMPLE, "mdm.json", categories=[name, "b"])
    rows = f'client,category,count\n"{name}",b,3\n"{name}","{name}",2\nc,b,4\n'
    (tmp_path / f"{name}.csv").write_text(rows)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for arguments in (
        ("show", "mdm.json"),
        ("sample", "mdm.json", "--clients", 3),
        ("histogram", f"{name}.csv"),
        ("show", f"{name}.json"),
        ("score", f"{name}.csv", "mdm.json", "--count", name),
        ("fit", f"{name}.csv", "--components", 1, "--rounds", 3, "-o", f"{name}.json"),
        (name,),
    ):
        ran = run(*arguments)
        sent = ran.out + ran.err
        assert escaped in sent.replace("\n", ""), arguments
        assert "\x1b[31m" not in sent
        assert not set("\x07\x9b\u202e") & set(sent)


def test_what_is_piped_or_written_keeps_the_names_as_they_are(run):
    save(EXAMPLE, "mdm.json", categories=["a\x1b[31m", "b"])
    assert '"a\x1b[31m"' in run("sample", "mdm.json", "--clients", 9).out
    assert run("show", "mdm.json", "--json").json()["categories"] == ["a\x1b[31m", "b"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_ascii_or_latin_1_stdout_has_characters_replaced(run, monkeypatch, encoding):
    save(EXAMPLE, "mdm.json", categories=["東京", "b"])
    for arguments in (("show", "mdm.json"), ("--help",), ("fit", "--help")):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        assert run(*arguments).code == 0
        shown = stream.buffer.getvalue().decode(encoding)
        if arguments[0] == "show":
            assert ("東京" if encoding == "utf-8" else "?? 7") in shown


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_data_on_stdout_are_utf_8_whatever_the_terminal_is(run, monkeypatch, encoding):
    save(EXAMPLE, "mdm.json", categories=["東京", "b"])
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    assert run("sample", "mdm.json", "--clients", 9).code == 0
    assert '"東京"' in stream.buffer.getvalue().decode()


def test_stdout_that_is_closed_is_one_line(run, monkeypatch):
    save(EXAMPLE, "mdm.json")
    monkeypatch.setattr(sys, "stdout", None)
    for arguments in (("show",), ("show", "--json"), ("sample", "--clients", 2)):
        ran = run(arguments[0], "mdm.json", *arguments[1:])
        assert_refused(ran, "cannot write the result: the standard output is closed")


def test_a_warning_is_not_silenced_by_quiet_and_talk_is(capsys, monkeypatch):
    monkeypatch.setattr(console.talk, "quiet", True)
    say("talk")
    warn("left out")
    assert capsys.readouterr().err == "left out\n"
    assert console.talk.quiet


def test_a_table_and_json_go_to_stdout(capsys):
    table = Table()
    table.add_row("cell")
    show(table)
    print_data([json.dumps({"a": 1}).encode()])
    assert "cell" in capsys.readouterr().out


def test_a_warning_is_a_sentence_and_is_said_once(capsys):
    with warnings_as_sentences(StyleWarning):
        for _ in range(2):
            warnings.warn("too few points", StyleWarning, stacklevel=1)
        with pytest.raises(UserWarning, match="another"):  # warnings are errors here, but for these
            warnings.warn("another", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "too few points\n"

"""The log of a sweep on disk."""

import dataclasses
import json

import pytest

from polyurn.errors import FileError
from polyurn.storage.run_log import RunLog, finite, read_runs
from polyurn.typed.json_form import to_json
from report_material import runs
from sweep_cases import small_sweep

RUN = runs(seeds=(0,))[0]


def written(folder, *lines):
    """The folder of a sweep with these lines."""
    head = {"format": "polyurn.runs", "version": 3, "a": 1}
    texts = (line if isinstance(line, str) else json.dumps(line) for line in (head, *lines))
    (folder / "runs.jsonl").write_text("".join(f"{text}\n" for text in texts))
    return folder


def test_runs_come_back_as_they_were(tmp_path):
    done = small_sweep(tmp_path, seeds=[0]).runs
    assert read_runs(tmp_path) == list(done)


def test_a_run_that_diverged_comes_back_with_what_is_not_a_number_as_none(tmp_path):
    changes = {"loss": finite([float("nan")]), "final": {"accuracy": None}, "diverged_at": 3}
    (read,) = read_runs(written(tmp_path, {**to_json(RUN), **changes}))
    assert (read.loss, read.final, read.diverged) == ([None], {"accuracy": None}, True)


def test_numbers_that_have_no_finite_square_are_none():
    assert finite([0.5, 1e200, float("inf"), float("nan"), -1e200]) == [0.5, None, None, None, None]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"population": 3}, "population: expected a text, got 3"),
        ({"seed": "one"}, "seed: expected an integer, got 'one'"),
        ({"rounds": None}, "rounds: expected a list, got None"),
        (
            {"final": {"accuracy": "high"}},
            "final['accuracy']: expected a finite number, got 'high'",
        ),
        ({"metrics": {"accuracy": 1}}, "metrics['accuracy']: expected a list, got 1"),
        ({"seconds": 1e300}, "seconds: expected a finite number, got 1e+300"),
        ({"settings": []}, "settings: expected an object, got []"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_damaged_line_says_what_is_wrong_with_which_field(tmp_path, changes, said):
    folder = written(tmp_path, {**to_json(RUN), **changes})
    with pytest.raises(FileError) as error:
        read_runs(folder)
    assert str(error.value).startswith(f"{folder / 'runs.jsonl'}, line 2, is damaged: {said}")
    assert str(error.value).endswith("; delete the line and repeat the sweep")


def test_a_run_whose_line_lacks_only_its_end_is_not_repeated(tmp_path):
    with RunLog(tmp_path, {"a": 1}) as log:
        log.append([RUN])
    place = tmp_path / "runs.jsonl"
    place.write_bytes(place.read_bytes().removesuffix(b"\n"))
    with RunLog(tmp_path, {"a": 1}) as log:
        assert log.runs == [RUN]
        log.append([RUN])
    assert read_runs(tmp_path) == [RUN, RUN]


def test_reading_a_record_that_was_not_begun_writes_nothing(tmp_path):
    (tmp_path / "runs.jsonl").touch()
    with pytest.raises(FileError, match="is not the log of a sweep"):
        read_runs(tmp_path)
    assert (tmp_path / "runs.jsonl").read_bytes() == b""


def test_two_sweeps_cannot_write_to_one_folder(tmp_path):
    with RunLog(tmp_path, {"a": 1}), pytest.raises(FileError, match="another sweep is running"):
        RunLog(tmp_path, {"a": 1})


def test_a_damaged_line_is_named(tmp_path):
    small_sweep(tmp_path, seeds=[0])
    log = tmp_path / "runs.jsonl"
    lines = log.read_text().splitlines()
    for damage in ("{", "[]", json.dumps({"format": "other"}), lines[1].replace('"seed"', '"sed"')):
        log.write_text("\n".join([lines[0], damage, *lines[2:], ""]))
        with pytest.raises(FileError, match=r"runs\.jsonl, line 2, is damaged: "):
            read_runs(tmp_path)
    log.write_text(lines[0].replace('"version": 3', '"version": 4') + "\n")
    with pytest.raises(FileError, match="newer than 3: upgrade polyurn"):
        read_runs(tmp_path)
    log.write_text(lines[0].replace('"version": 3', '"version": 1') + "\n")
    with pytest.raises(FileError, match="version 1, and this polyurn reads 3"):
        read_runs(tmp_path)
    with pytest.raises(FileError, match="cannot read"):
        read_runs(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        '"x"',
        "7",
        "null",
        "1" * 5_000,
        '{"seed": 1e999}',
        "\0",
        "[]",
    ],
    ids=lambda text: text[:8],
)
def test_deep_or_mistyped_runs_are_one_line_with_its_number(tmp_path, text):
    written(tmp_path, to_json(RUN), text)
    with pytest.raises(FileError, match=r"runs\.jsonl, line 3, is damaged: ") as error:
        read_runs(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["[]", "7", '"format"', "[" * 100_000, "{", "null"], ids=str)
def test_a_file_of_something_else_is_no_sweep(tmp_path, text):
    (tmp_path / "runs.jsonl").write_text(f"{text}\n")
    with pytest.raises(FileError, match="is not the log of a sweep"):
        RunLog(tmp_path, {"a": 1})


def test_another_sweep_is_refused_by_what_it_asked(tmp_path):
    RunLog(tmp_path, {"a": 1, "b": 2}).__exit__()
    with pytest.raises(FileError, match="that differs in b; ask for the same"):
        RunLog(tmp_path, {"a": 1, "b": 3})


def test_what_a_killed_sweep_left_half_written_does_not_refuse_the_folder(tmp_path):
    (tmp_path / f".polyurn-{7:016x}").write_bytes(b"half")
    RunLog(tmp_path, {"a": 1}).__exit__()
    assert (tmp_path / "runs.jsonl").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".polyurn-notes").write_text("not ours")
    with pytest.raises(FileError, match="holds something else"):
        RunLog(tmp_path / "other", {"a": 1})


def test_a_population_whose_name_is_not_utf_8_comes_back(tmp_path):
    run = dataclasses.replace(RUN, population="\udcff")
    with RunLog(tmp_path, {"a": 1}) as log:
        log.append([run])
    assert read_runs(tmp_path) == [run]

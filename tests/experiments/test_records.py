"""The records of experiments: made once, never taken for those of another experiment."""

import importlib.util
import json
from pathlib import Path

import pytest

import polyurn

SCRIPT = Path(__file__).parents[2] / "experiments" / "records.py"


@pytest.fixture
def records(monkeypatch, tmp_path):
    spec = importlib.util.spec_from_file_location("experiment_records", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    return module


def test_a_record_says_what_made_it_and_is_not_made_again(records, tmp_path):
    (first,) = records.run_all("try", [{"seed": 1}], lambda seed: {"result": seed})
    assert first["made"]["polyurn"] == polyurn.__version__
    assert first["made"]["experiment"] == 1
    assert first["made"]["command"].startswith("python ")
    (again,) = records.run_all("try", [{"seed": 1}], lambda seed: pytest.fail("run twice"))
    assert again == first
    assert len((tmp_path / "try.jsonl").read_text().splitlines()) == 1


def test_a_record_of_another_version_of_the_experiment_is_not_reused(records):
    list(records.run_all("try", [{"seed": 1}], lambda seed: {"result": "old"}))
    (new,) = records.run_all("try", [{"seed": 1}], lambda seed: {"result": "new"}, version=2)
    assert new["result"] == "new"
    (kept,) = records.run_all("try", [{"seed": 1}], lambda seed: pytest.fail("run"), version=2)
    assert kept == new


def test_records_from_before_versions_and_of_other_versions_count_and_it_is_said(
    records, tmp_path, capsys
):
    other = {"polyurn": "0.0", "experiment": 1, "command": "python x"}
    lines = [
        {"settings": {"seed": 1}, "result": 1},
        {"settings": {"seed": 2}, "made": other, "result": 2},
    ]
    (tmp_path / "try.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    grid = [{"seed": 1}, {"seed": 2}]
    taken = list(records.run_all("try", grid, lambda seed: pytest.fail("run")))
    assert [record["result"] for record in taken] == [1, 2]
    told = capsys.readouterr().err
    assert "try: 1 records made before records had versions" in told
    assert "try: 1 records made by other versions of polyurn" in told

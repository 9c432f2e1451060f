"""Tables of the experiments on style, on records made on the spot."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
import style_tables as tables


@pytest.fixture
def records(tmp_path, monkeypatch):
    """Two seeds of two settings; the last run of one population is missing."""
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    monkeypatch.setattr(tables, "LEAST_PAIRS", 2)
    lines = []
    for population, above in (("natural", 0.0), ("oracle", 0.01), ("style", -0.002)):
        for seed in (0, 1):
            for model, sign in (("softmax", 1), ("mlp", -1)):
                told = {"split": 3, "seed": seed, "population": population, "model": model}
                score = 0.8 + seed / 100 + sign * above
                runs = [{"local_learning_rate": 0.1, "score": score}]
                lines.append(json.dumps({"settings": told | {"epochs": 5}, "runs": runs}))
    (tmp_path / "made.jsonl").write_text("\n".join(lines[:-1]))
    return tables.scores("made")


def test_differences_are_paired_and_signs_cancel_in_the_mean_only(records):
    found = tables.differences(records, "oracle", "natural")
    assert found.settings == [("softmax", 5, 0.1), ("mlp", 5, 0.1)]
    assert found.by_setting == pytest.approx([1.0, -1.0])
    assert found.mean == pytest.approx(0, abs=1e-9)
    assert found.absolute == pytest.approx(1)
    assert found.run_by_run == pytest.approx(1)


def test_a_seed_with_a_missing_run_is_left_out(records):
    assert sorted(records["oracle"]) == [(3, 0), (3, 1)]
    assert sorted(records["style"]) == [(3, 0)]
    assert len(tables.differences(records, "style", "natural").values) == 1


def test_the_table_has_a_row_for_each_population_that_was_run(records):
    names = {"oracle": "theirs", "iid": "none", "style": "one pair only"}
    rows = [*tables.table(records, "natural", names)]
    assert rows[-1].startswith("| theirs | +1.00 | -1.00 | +0.00 ± ")
    assert len(rows) == 3

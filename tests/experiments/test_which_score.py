"""The score of a run: what the kept sweeps say about it."""

import importlib.util
from pathlib import Path

import pytest

import polyurn as pu
from report_material import runs

SCRIPT = Path(__file__).parents[2] / "experiments" / "which_score.py"


@pytest.fixture(scope="module")
def which_score():
    spec = importlib.util.spec_from_file_location("which_score", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_advantage_over_iid_clients_is_that_of_the_verdict(which_score):
    some = runs(populations=("true", "again", "mdm", "iid"), seeds=(0, 1, 2))
    found = which_score.scored(some, "accuracy", "mdm", last=0.5)
    verdict = pu.compare_sweeps(some)
    assert found.nearer == pytest.approx(100 * verdict.paired("iid", "mdm").value)
    assert found.floor == pytest.approx(100 * verdict["again"].difference.value)
    assert found.deviation == pytest.approx(0, abs=1e-9)  # the same shift under every seed


def test_every_sweep_of_the_table_is_kept_with_its_floor(which_score):
    for name, metric, simulated in which_score.SETTINGS.sweeps:
        kept = pu.read_runs(which_score.RESULTS / name)
        assert {"true", "again", "iid", simulated} <= {run.population for run in kept}
        assert metric in kept[0].metrics

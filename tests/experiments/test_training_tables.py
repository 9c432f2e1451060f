"""How the training experiments are run and reported, on data made on the spot."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import polyurn as pu

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
import census
import cifar10
import digits_by_writer
import training_clients as clients
import training_tables as tables

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(400, 3)).astype(np.float32)
LABELS = (POINTS[:, 0] > 0).astype(np.int64)
DATA = pu.Examples(POINTS[:300], LABELS[:300], POINTS[300:], LABELS[300:])
MODELLED = clients.Modelled("label", LABELS[:300], 2)
TRUE = pu.Partition.by_owner(20 * LABELS[:300] + np.arange(300) % 20)


def experiment():
    of = clients.always(clients.Federation(TRUE, np.arange(300)))
    makers = {"mdm": lambda _: pu.Oracle(TRUE.histograms(LABELS[:300], 2)), "iid": pu.IID.like}
    return tables.Experiment(
        "made",
        pu.FedAvg(n_rounds=4, cohort_size=3, evaluate_every=1),
        {"local_epochs": (1, 2), "local_learning_rate": (0.01, 0.1)},
        "softmax",
        DATA,
        {"true": clients.true_clients(of), **clients.simulated(of, MODELLED, makers)},
    )


REPORT = tables.Report(
    "made",
    "Made on the spot",
    references=("mdm",),
    bars=(
        tables.difference_bar("mdm", most=100),
        tables.regret_bar("iid", least=100),
        tables.nearer_bar("iid", "mdm", least=-100),
    ),
    paper={"mdm": 0.8},
)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    tables.run(experiment(), seeds=range(2), out=folder)
    return folder


def test_a_finished_experiment_is_not_run_again_and_costs_no_more_seconds(out):
    before = {path: path.read_bytes() for path in out.rglob("*.json*")}
    assert len(before) == 2
    tables.run(experiment(), seeds=range(2), out=out)
    assert {path: path.read_bytes() for path in out.rglob("*.json*")} == before


def test_the_true_clients_are_trained_again(out):
    names = {run.population for run in pu.read_runs(out / "made")}
    assert names == {"true", "again", "mdm", "iid"}


def test_seconds_of_several_starts_are_added(tmp_path):
    for _ in range(2):
        tables.Kept(tmp_path, "x").write(found=1)
    path = tmp_path / "x.json"
    facts = json.loads(path.read_text())
    assert facts["n_starts"] == 2
    path.write_text(json.dumps(facts | {"processor_seconds": 100.0}))
    tables.Kept(tmp_path, "x").write()
    assert json.loads(path.read_text())["processor_seconds"] >= 100
    assert json.loads(path.read_text())["found"] == 1


def test_the_tables_have_every_population_every_pair_and_every_setting(out):
    printed = list(tables.lines(REPORT, out))
    first_cells = [line.split("|")[1].strip() for line in printed if line.startswith("|")]
    assert {"again", "mdm", "iid", "again − mdm", "iid − mdm"} <= set(first_cells)
    assert {"1, 0.01", "1, 0.1", "2, 0.01", "2, 0.1"} <= set(first_cells)
    assert printed[0].startswith("Made on the spot: 2 seeds (0 to 1), 4 settings, ")
    mdm = next(line for line in printed if line.startswith("| mdm | ") and line.endswith("0.8 |"))
    assert len(mdm.split("|")) == 9


def test_whether_a_bar_is_met_is_computed(out):
    rows = [line for line in tables.lines(REPORT, out) if line.endswith(("met |", "missed |"))]
    assert [row.split("|")[2].strip() for row in rows] == ["≤ 100", "≥ 100", "≥ -100"]
    assert [row.split("|")[4].strip() for row in rows] == ["met", "missed", "met"]


def test_a_bar_on_both_sides_and_a_figure_that_is_none():
    within = tables.Bar("gap", lambda verdict: verdict, -0.2, 0.2)
    assert within.row(0.1) == "| gap | -0.2 to 0.2 | 0.10 | met |"
    assert within.row(-0.3).endswith("| missed |")
    assert within.row(float("nan")).endswith("| missed |")


def test_signed_differences_are_those_of_the_scores(out):
    verdict = pu.compare_sweeps(pu.read_runs(out / "made"), last=tables.LAST)
    whole = replace(REPORT, settings=(), bars=())
    _, row = (line for line in tables.lines(whole, out) if line.startswith("|  | "))
    names = [name for name in verdict.scores if name != "true"]
    cells = dict(zip(names, row.split("|")[3:-1], strict=True))
    for name in names:
        assert float(cells[name]) == pytest.approx(100 * verdict[name].signed.value, abs=0.051)


def test_the_curves_are_drawn_beside_records_that_are_not_the_projects(out):
    pytest.importorskip("matplotlib")
    picture = tables.draw(REPORT, out)
    assert picture.parent == out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_seeds_are_a_range(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["x", "--seeds", "0:2"])
    assert tables.arguments("x").seeds == range(2)
    monkeypatch.setattr(sys, "argv", ["x", "--seeds", "2:0"])
    with pytest.raises(SystemExit):
        tables.arguments("x")
    assert "expected FIRST:END as 500:506, got 2:0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("script", "file"),
    [(census, "persons.parquet"), (digits_by_writer, "images.npz"), (cifar10, "images.npz")],
)
def test_a_missing_file_is_named(script, file, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["experiment", "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match=file):
        tables.or_exit(script.main)

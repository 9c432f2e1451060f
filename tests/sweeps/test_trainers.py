"""Sweeps over a trainer of the user's: a function, or a command."""

import json
import sys
import time
from pathlib import Path

import joblib
import numpy as np
import pytest
from joblib._parallel_backends import ThreadingBackend

from polyurn import CommandTrainer, OptunaSearch, Partition, read_runs, sweep_trainer
from polyurn.errors import ParameterError, TrainerError

LABELS = np.arange(24) % 3
TRUE = Partition.by_owner(np.arange(24) // 4)

SCRIPT = """
import json, os, sys, time
partition, lr, seed, metrics = sys.argv[1:5]
clients = json.load(open(partition))
assert len(clients) == 6 and sum(map(len, clients.values())) == 24
lr = float(lr)
if lr == 0.4:
    print("weights exploded", file=sys.stderr)
    sys.exit(3)
if lr == 0.5:
    time.sleep(60)
with open(metrics, "a") as file:
    for round_ in (5, 10):
        accuracy = float("nan") if lr == 0.3 else lr + round_ / 100 + int(seed) / 1000
        if lr != 0.6:
            report = {"round": round_, "accuracy": accuracy, "loss": 1.0}
            print(json.dumps(report), file=file, flush=True)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return CommandTrainer(
        f"{sys.executable} train.py {{partition}} {{lr}} {{seed}} {{metrics}}", folder=tmp_path
    )


def swept(trainer, rates, folder=None, **options):
    given = {"populations": {"true": TRUE}, "seeds": [0, 1], "noise_floor": False, "n_jobs": 1}
    return sweep_trainer(
        trainer, LABELS, folder=folder, **{"grid": {"lr": rates}, **given, **options}
    )


def test_a_command_is_run_for_every_setting_and_seed(script, tmp_path):
    done = swept(script, [0.1, 0.2], tmp_path / "runs")
    found = {(run.settings["lr"], run.seed): run.metrics["accuracy"] for run in done.runs}
    assert found[0.1, 1] == pytest.approx([0.151, 0.201])
    assert found[0.2, 0] == pytest.approx([0.25, 0.3])
    assert [run.rounds for run in done.runs] == [[5, 10]] * 4
    assert read_runs(tmp_path / "runs") == list(done.runs)


def test_a_run_that_crashes_hangs_or_says_nothing_loses_no_other(script, tmp_path):
    trainer = CommandTrainer(script.command, folder=script.folder, timeout=2.0)
    started = time.monotonic()
    done = swept(trainer, [0.1, 0.3, 0.4, 0.5, 0.6], tmp_path / "runs", seeds=[0])
    assert time.monotonic() - started < 30
    assert {run.settings["lr"]: run.diverged_at for run in done.runs} == {0.1: None, 0.3: 5}
    errors = {run.settings["lr"]: run.error for run in done.failed}
    assert errors[0.4] == "the command ended with code 3: 'weights exploded'"
    assert errors[0.5] == "no end within 2 s: it was stopped"
    assert errors[0.6].startswith("it reported no metrics; expected such as")
    kept = [path.read_text() for path in (tmp_path / "runs" / "failed").iterdir()]
    assert any("weights exploded" in text for text in kept)


def test_only_what_failed_is_run_again(script, tmp_path):
    assert len(swept(script, [0.1, 0.4], tmp_path / "runs", seeds=[0]).failed) == 1
    Path(script.folder, "train.py").write_text(SCRIPT.replace("lr == 0.4", "lr == 0.1"))
    again = swept(script, [0.1, 0.4], tmp_path / "runs", seeds=[0])
    assert again.failed == ()
    assert [run.settings["lr"] for run in again.runs] == [0.1, 0.4]


def test_a_stopped_run_leaves_no_process(tmp_path):
    (tmp_path / "child.sh").write_text("sleep 300 & echo $! > child.pid; wait\n")
    trainer = CommandTrainer("sh child.sh", folder=tmp_path, timeout=0.5)
    with pytest.raises(TrainerError, match="no end within"):
        list(trainer(TRUE, {}, 0))
    child = int((tmp_path / "child.pid").read_text())
    deadline = time.monotonic() + 5
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(child)


def _runs(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_value_with_spaces_or_quotes_stays_one_word(tmp_path):
    code = "import sys, json; print(json.dumps(dict(round=1, n=len(sys.argv), x=sys.argv[1])))"
    trainer = CommandTrainer(f'{sys.executable} -c "{code}" {{name}}')
    (report,) = trainer(TRUE, {"name": "' ;b"}, 0)
    assert report == {"round": 1, "n": 2, "x": "' ;b"}


def test_settings_and_test_points_are_files(tmp_path):
    code = (
        "import sys, json; s = json.load(open(sys.argv[1])); t = json.load(open(sys.argv[2])); "
        "print('starting'); print(json.dumps(dict(round=1, lr=s['lr'], n_test=len(t))))"
    )
    trainer = CommandTrainer(f'{sys.executable} -c "{code}" {{settings}} {{test}}')
    done = swept(trainer, [0.5], client_test=0.25, seeds=[0])
    assert done.runs[0].metrics == {"lr": [0.5], "n_test": [6.0]}
    with pytest.raises(ParameterError, match="no points to test on"):
        swept(trainer, [0.5])


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("true {epochs}", "names {epochs}, which is no setting; expected one of lr, partition"),
        ("true", "does not name {lr}: the setting would have no effect"),
        ("no-such-program {lr}", "there is no program 'no-such-program'"),
        ("true {lr} 'open", "cannot read the command"),
        ("  ", "expected a command, got none"),
        ("true {} {lr}", "expected the name of a setting in braces, got ''"),
    ],
)
def test_a_wrong_command_is_said_before_the_first_run(command, says):
    with pytest.raises(ParameterError, match=says.replace("{", "[{]")):
        swept(CommandTrainer(command), [0.1])


@pytest.mark.parametrize(
    ("reports", "says"),
    [
        ([{"round": 2, "a": 1.0}, {"round": 2, "a": 1.0}], "expected a round after 2, got 2"),
        ([{"a": 1.0}, {"b": 1.0}], "round 2: expected a, got b"),
        ([{"a": "high"}], "round 1: expected a as a number, got 'high'"),
        ([{"round": 1}], "round 1 has no metric"),
        ([], "it reported no metrics"),
    ],
)
def test_a_report_that_is_none_fails_its_run(reports, says):
    (failed, _) = swept(lambda *_: iter(reports), [0.1]).failed
    assert says in failed.error


class Batches(ThreadingBackend):
    """Returns all results of a call at once, as Ray's backend does."""

    supports_return_generator = False


def test_a_backend_without_generators_keeps_what_it_has_done():
    joblib.register_parallel_backend("batches", Batches)
    seen = []

    def train(clients, settings, seed):
        if settings["lr"] > 0.5:
            assert len(seen) >= 3  # the start, and the first two runs
        return {"accuracy": settings["lr"]}

    with joblib.parallel_config(backend="batches", n_jobs=2):
        done = swept(train, [0.1, 0.2, 0.6], seeds=[0], n_jobs=None, on_run=seen.append)
    assert sorted(run.final["accuracy"] for run in done.runs) == [0.1, 0.2, 0.6]


def test_what_a_function_raises_is_kept_with_its_traceback(tmp_path):
    def broken(clients, settings, seed):
        yield {"round": 1, "accuracy": 0.5}
        raise KeyError("weights")

    done = swept(broken, [0.1], tmp_path / "runs", seeds=[0])
    assert done.runs == ()
    assert done.failed[0].error == "KeyError: 'weights'"
    (path,) = (tmp_path / "runs" / "failed").iterdir()
    assert "in broken" in path.read_text()


def test_a_function_may_return_one_report():
    done = swept(lambda clients, settings, seed: {"accuracy": settings["lr"]}, [0.1], seeds=[0])
    assert done.runs[0].final == {"accuracy": 0.1}


def test_a_search_stops_bad_runs_of_a_trainer_early(tmp_path):
    pytest.importorskip("optuna")
    closed = []

    def train(clients, settings, seed):
        try:
            for round_ in range(1, 6):
                yield {"round": round_, "accuracy": 1 - abs(settings["lr"] - 0.3)}
        finally:
            closed.append(settings["lr"])

    search = OptunaSearch(
        {"lr": {"low": 0.0, "high": 1.0}}, n_trials=8, pruner_options={"n_startup_trials": 2}
    )
    done = swept(train, None, tmp_path / "runs", grid=None, optuna=search, seeds=[0])
    pruned = [run for run in done.runs if run.pruned]
    assert len(done.runs) == len(closed) == 8
    assert pruned
    assert max(len(run.rounds) for run in pruned) < 5


def test_a_search_for_a_metric_that_nobody_reports_says_so():
    pytest.importorskip("optuna")
    search = OptunaSearch({"lr": {"low": 0.0, "high": 1.0}}, n_trials=1, metric="auc")
    done = swept(lambda *_: {"accuracy": 0.5}, None, grid=None, optuna=search, seeds=[0])
    assert "'auc', which the trainer does not report; it reports accuracy" in done.failed[0].error


TOML = """
seeds = [0, 1]
[data]
file = "labels.csv"
label = "species"
[clients.true]
column = "owner"
[clients.iid]
iid = "true"
[trainer]
command = "{python} train.py {{partition}} {{lr}} {{seed}} {{metrics}}"
[settings]
lr = 0.1
[grid]
lr = [0.1, 0.2, 0.4]
"""


def test_the_command_sweeps_over_a_trainer_and_says_which_settings_to_use(run, script, tmp_path):
    rows = [f"{'abc'[i % 3]},{i // 4}" for i in range(24)]
    (tmp_path / "labels.csv").write_text("\n".join(["species,owner", *rows]) + "\n")
    (tmp_path / "config.toml").write_text(TOML.format(python=sys.executable))
    ran = run("sweep", tmp_path / "config.toml", "-o", tmp_path / "runs", "--jobs", 1)
    assert ran.code == 0, ran.err
    assert ran.err.count("failed: ") >= 6
    assert "6 runs failed; what they printed is in" in " ".join(ran.err.split())
    best = json.loads((tmp_path / "runs" / "best.json").read_text())
    assert best["settings"] == {"lr": 0.2}
    assert best["elsewhere"][0]["population"] == "true"
    assert (tmp_path / "runs" / "best.toml").read_text().splitlines()[-1] == '"lr" = 0.2'
    assert "use these settings: lr 0.2" in " ".join(ran.err.split())

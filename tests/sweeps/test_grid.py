"""Sweeps: every run once, whatever happens in between."""

import errno
import os
import signal
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial

import joblib
import numpy as np
import pytest
import torch
from torch import nn

from polyurn import IID, Partition
from polyurn.errors import FileError, ParameterError, TrainingError
from polyurn.storage.run_log import read_runs, run_key
from polyurn.sweeps.optuna_search import OptunaSearch
from polyurn.sweeps.trainable import function_fingerprint
from polyurn.training.fedavg import FedAvg
from polyurn.training.federated import train
from polyurn.training.losses import accuracy
from sweep_cases import BASE, DATA, POPULATIONS, small_sweep
from training_cases import tabular


def outcomes(runs):
    return {run.key: (run.final, run.loss) for run in runs}


# -------------------------------------------------------------------- what is run


def test_every_setting_meets_every_population_under_every_seed_once(tmp_path):
    seen = []
    done = small_sweep(tmp_path / "runs", on_run=seen.append)
    assert len(done.runs) == len(outcomes(done.runs)) == 2 * 2 * 4
    assert [p.n_done for p in seen] == [*range(17)]
    assert {p.n_total for p in seen} == {16}
    assert outcomes(read_runs(tmp_path / "runs")) == outcomes(done.runs)


@pytest.mark.parametrize("engine", ["workers", "batched"])
def test_a_run_of_a_sweep_is_what_train_returns(engine):
    done = small_sweep(engine=engine, seeds=[3])
    clients = POPULATIONS | {"iid": POPULATIONS["iid"](3)}
    for run in done.runs:
        alone = train(
            FedAvg(**run.settings), "softmax", DATA, clients[run.population], seed=3, n_workers=1
        )
        assert run.rounds == [1, 2]
        assert run.metrics["accuracy"] == alone.metrics["accuracy"]
        assert np.allclose(run.loss, alone.loss, rtol=1e-5)


def test_divergent_runs_are_recorded_and_do_not_stop_the_sweep(tmp_path):
    done = small_sweep(tmp_path, grid={"local_learning_rate": [1e30, 0.1]}, model="mlp", seeds=[0])
    assert [run.diverged for run in done.runs] == [True, False] * 2
    assert all(run.final == {"accuracy": None} for run in done.runs if run.diverged)
    assert "NaN" not in (tmp_path / "runs.jsonl").read_text()


def test_processes_of_joblib_give_the_same_as_this_one():
    offset = 0.0

    def model():  # a closure: it can only travel by value
        built = nn.Linear(5, 3)
        nn.init.constant_(built.bias, offset)
        return built

    with joblib.parallel_config(backend="loky", n_jobs=2):
        spread = small_sweep(model=model, n_jobs=None, seeds=[0])
    assert outcomes(spread.runs) == outcomes(small_sweep(model=model, seeds=[0]).runs)


@pytest.mark.parametrize("engine", ["workers", "batched"])
def test_threads_of_joblib_give_the_same_as_one_after_the_other(engine):
    def model():
        return nn.Sequential(nn.Linear(5, 16), nn.Dropout(0.5), nn.Linear(16, 3))

    asked = {"model": model, "engine": engine, "settings": BASE.with_changes({"n_rounds": 6})}
    with joblib.parallel_config(backend="threading", n_jobs=2):
        spread = small_sweep(n_jobs=None, **asked)
    assert outcomes(spread.runs) == outcomes(small_sweep(**asked).runs)


def test_a_dask_cluster_runs_the_same_call():
    distributed = pytest.importorskip("distributed")
    code = f"""
import sys; sys.path[:0] = {sys.path!r}
import joblib
from distributed import Client, LocalCluster
from sweep_cases import small_sweep
if __name__ == "__main__":
    own = {{"processes": True, "dashboard_address": "127.0.0.1:0"}}  # any port that is free
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, **own) as c,
        Client(c) as client,
        joblib.parallel_config(backend="dask"),
    ):
        where = client.submit(__import__("os").getpid).result()
        runs = small_sweep(n_jobs=None, seeds=[0]).runs
        print(len(runs), sorted((r.population, r.final["accuracy"]) for r in runs))
"""
    assert distributed
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    expected = sorted((r.population, r.final["accuracy"]) for r in small_sweep(seeds=[0]).runs)
    assert done.stdout.split("\n")[0] == f"8 {expected}"


# -------------------------------------------------------------- stopped and resumed


def test_a_finished_sweep_is_not_run_again(tmp_path, monkeypatch):
    first = small_sweep(tmp_path)
    monkeypatch.setattr("polyurn.sweeps.own_engines.train_columns", None)
    assert small_sweep(tmp_path).runs == first.runs


@pytest.mark.parametrize("cut", [1, 40])
def test_a_torn_last_line_is_done_again(tmp_path, cut):
    whole = small_sweep(tmp_path)
    log = tmp_path / "runs.jsonl"
    log.write_bytes(log.read_bytes()[:-cut])
    assert len(read_runs(tmp_path)) == (16 if cut == 1 else 15)  # a line may lack only its end
    resumed = small_sweep(tmp_path)
    assert outcomes(resumed.runs).keys() == outcomes(whole.runs).keys()
    assert len(log.read_text().splitlines()) == 1 + 16


def test_a_sweep_that_is_killed_goes_on_without_repeating_or_losing_a_run(tmp_path):
    code = f"""
import sys; sys.path[:0] = {sys.path!r}
from sweep_cases import small_sweep
def until_killed(progress):
    if progress.n_done == 3:
        print("three", flush=True)
        sys.stdin.read()
small_sweep({str(tmp_path)!r}, engine="workers", on_run=until_killed)
"""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], env=env, **pipes) as process:
        assert process.stdout.readline() == b"three\n"
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    kept = (tmp_path / "runs.jsonl").read_text().splitlines()
    assert len(kept) == 1 + 3
    n_new = []
    done = small_sweep(tmp_path, engine="workers", on_run=lambda p: n_new.append(p.run))
    assert (tmp_path / "runs.jsonl").read_text().splitlines()[: len(kept)] == kept
    assert len(n_new) - 1 == 1 + 16 - len(kept)
    assert outcomes(done.runs) == outcomes(small_sweep(engine="workers").runs)


def test_a_folder_with_another_sweep_is_refused(tmp_path):
    small_sweep(tmp_path, seeds=[0])
    for changes, what in [
        ({"seeds": [0, 1]}, "seeds, populations"),
        ({"grid": {"local_epochs": [1]}}, "grid"),
        ({"settings": BASE.with_changes({"n_rounds": 3})}, "settings"),
        ({"model": "mlp"}, "model, layers, first_weights"),
        ({"data": tabular(seed=1)}, "data"),
        ({"loss": accuracy}, "loss, loss_code"),
        ({"metrics": {"accuracy": lambda outputs, labels: outputs[:, 0]}}, "metrics_code"),
    ]:
        with pytest.raises(FileError, match=f"differs in {what}; ask for the same"):
            small_sweep(tmp_path, **({"seeds": [0]} | changes))
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "notes.txt").write_text("mine")
    with pytest.raises(FileError, match="holds something else"):
        small_sweep(tmp_path / "else")


def test_a_model_with_the_same_shapes_is_not_the_same_model(tmp_path):
    def dense(activation, scale=1.0):
        def build():
            model = nn.Sequential(nn.Linear(5, 4), activation(), nn.Linear(4, 3))
            nn.init.normal_(model[2].weight, std=scale)
            return model

        return build

    asked = {"seeds": [0], "grid": {"local_epochs": [1]}}
    small_sweep(tmp_path, model=dense(nn.ReLU), **asked)
    small_sweep(tmp_path, model=dense(nn.ReLU), **asked)
    for other, what in ((dense(nn.Tanh), "layers"), (dense(nn.ReLU, scale=0.1), "first_weights")):
        with pytest.raises(FileError, match=f"differs in {what}; ask for the same"):
            small_sweep(tmp_path, model=other, **asked)


def test_functions_are_known_by_what_they_do():
    def scaled(factor):
        return lambda outputs, labels: outputs[:, 0] * factor

    assert function_fingerprint(scaled(2.0)) == function_fingerprint(scaled(2.0))
    assert function_fingerprint(scaled(2.0)) != function_fingerprint(scaled(3.0))
    assert function_fingerprint(partial(max, key=len)) != function_fingerprint(partial(max))


# --------------------------------------------------------------------- when things go wrong


def test_a_full_disk_keeps_the_finished_runs(tmp_path, monkeypatch):
    n_synced = []

    def full(descriptor):
        n_synced.append(descriptor)
        if len(n_synced) == 5:  # the head, its folder, and two runs before it
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match=r"No space left .*; the 2 finished runs are kept"):
        small_sweep(tmp_path, engine="workers")
    monkeypatch.undo()
    assert len(read_runs(tmp_path)) == 2
    assert len(small_sweep(tmp_path, engine="workers").runs) == 16


def test_a_worker_that_dies_keeps_the_finished_runs(tmp_path, monkeypatch):
    def dying(tasks):
        yield tasks[0][0](*tasks[0][1], **tasks[0][2])
        raise BrokenProcessPool

    monkeypatch.setattr(joblib, "Parallel", lambda **_: dying)
    with pytest.raises(TrainingError, match=r"a worker died, .* 2 finished runs are kept"):
        small_sweep(tmp_path)
    assert len(read_runs(tmp_path)) == 2


def test_out_of_memory_is_one_clear_line(tmp_path):
    class Huge(nn.Linear):
        def forward(self, x):
            if self.training:
                torch.empty(2**48)
            return super().forward(x)

    with pytest.raises(TrainingError, match="out of memory"):
        small_sweep(tmp_path, model=lambda: Huge(5, 3), engine="workers")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grid": None}, "either a grid or optuna"),
        ({"populations": {}}, "at least one population"),
        ({"seeds": [1, 1]}, "different seeds"),
        (
            {"seeds": [-1]},
            "seeds as a list, got -1 at position 0, in place of an integer of at least 0",
        ),
        (
            {"grid": {"cohort_size": [4, 21]}},
            "true: expected a cohort of at most 20 clients, got 21",
        ),
        ({"grid": {"server_optimizer": ["SGD", "Sgd"]}}, "no optimiser 'Sgd'"),
        ({"grid": {"server_optimizer": ["SGD", "SparseAdam"]}}, "torch.optim.SparseAdam"),
        ({"grid": {"local_learning_rate": [1, 1.0]}}, "local_learning_rate, got 1 more than once"),
        (
            {"grid": {"local_learning_rate": [1e308]}},
            "local_learning_rate as a number from 1e-38 to 1e",
        ),
        ({"grid": {"local_rate": [1]}}, "no setting 'local_rate'; did you mean"),
        (
            {"grid": None, "optuna": OptunaSearch({"rate": {"low": 0, "high": 1}}, 2)},
            "no setting 'rate'",
        ),
        ({"grid": {"local_epochs": []}}, "a list of values for local_epochs"),
        ({"grid": {"local_epochs": "12"}}, "got '12' under 'local_epochs', in place of a list"),
        ({"grid": {"local_epochs": [1, 2, 2]}}, "local_epochs, got 2 more than once"),
        ({"populations": {"mdm": [[1]]}}, "got list under 'mdm', in place of a Partition"),
        ({"populations": {"mdm": Partition([0, 1], [900])}}, "mdm: a client holds point 900"),
        ({"populations": {"mdm": lambda seed: [[seed]]}}, "mdm as a Partition, got list"),
        ({"populations": {"iid": IID([1, 1, 1], [9])}}, "iid: expected n_clients"),
    ],
)
def test_mistakes_are_refused_with_one_line_before_a_run(tmp_path, changes, message):
    with pytest.raises(ParameterError, match=message) as error:
        small_sweep(tmp_path / "runs", **changes)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "runs").exists()


def test_numbers_of_numpy_are_numbers(tmp_path):
    by_numpy = small_sweep(
        tmp_path, grid={"local_learning_rate": np.array([0.5, 1.0])}, seeds=np.arange(1)
    )
    by_hand = small_sweep(tmp_path, grid={"local_learning_rate": [0.5, 1]}, seeds=[0])
    assert by_hand.runs == by_numpy.runs
    epochs = small_sweep(grid={"local_epochs": list(np.array([1, 2]))}, seeds=[0])
    assert len(epochs.runs) == 4


# ----------------------------------------------------------------------- adaptive searches

SEARCH = OptunaSearch(
    {
        "local_learning_rate": {"low": 1e-3, "high": 1.0, "log": True},
        "local_epochs": {"choices": [1, 2]},
    },
    n_trials=4,
    pruner_options={"n_startup_trials": 1},
)


def test_a_search_runs_its_trials_prunes_and_tries_the_winners_on_the_true_clients(tmp_path):
    done = small_sweep(
        tmp_path, grid=None, optuna=SEARCH, seeds=[0], settings=BASE.with_changes({"n_rounds": 4})
    )
    trials = [run for run in done.runs if run.trial is not None]
    assert sorted((run.population, run.trial) for run in trials) == [
        (name, number) for name in ("iid", "true") for number in range(4)
    ]
    assert any(run.pruned and run.rounds[-1] < 4 for run in trials)
    assert {run.engine for run in trials} == {"batched"}
    assert all(run.seconds > 0 for run in trials)
    assert len({run.settings["local_learning_rate"] for run in trials}) >= 4
    best = max(
        (r for r in trials if r.population == "iid" and not r.pruned),
        key=lambda r: r.final["accuracy"],
    )
    assert any(r.population == "true" and r.settings == best.settings for r in done.runs)


def test_the_time_left_follows_from_the_runs_of_this_start(monkeypatch):
    clock = iter([100.0, 130.0, 160.0])
    monkeypatch.setattr("polyurn.sweeps.grid.monotonic", lambda: next(clock))
    seen = []
    small_sweep(grid={"local_learning_rate": [0.1, 0.2]}, seeds=[0], on_run=seen.append)
    # Two tasks of two runs each, half a minute a task.
    assert [p.seconds_left for p in seen] == [None, 30.0, 30.0, 0.0, 0.0]


def negative_loss(outputs, labels):
    return -((outputs - nn.functional.one_hot(labels, 3)) ** 2).mean(dim=1)


def test_very_many_rounds_are_timed_and_told_before_they_begin(monkeypatch):
    began = []
    monkeypatch.setattr(
        "polyurn.sweeps.grid._Runner._run", lambda *_: None
    )  # which would take days
    small_sweep(settings=BASE.with_changes({"n_rounds": 10**9}), on_run=began.append)
    (start,) = began
    assert start.run is None
    assert start.seconds_left > 3600


def test_a_search_never_takes_a_diverged_run_for_the_best(tmp_path):
    import optuna

    space = {"local_learning_rate": {"choices": [1e30, 0.01]}}
    search = OptunaSearch(space, 6, metric="score", sampler="RandomSampler", pruner="NopPruner")
    done = small_sweep(
        tmp_path, grid=None, optuna=search, seeds=[0], metrics={"score": negative_loss}, model="mlp"
    )
    assert {run.diverged for run in done.runs} == {True, False}
    storage = optuna.storages.JournalStorage(
        optuna.storages.journal.JournalFileBackend(str(tmp_path / "optuna.journal"))
    )
    for name in ("true", "iid"):
        best = optuna.load_study(study_name=f"{name}, seed 0", storage=storage).best_trial
        assert best.params == {"local_learning_rate": 0.01}


@pytest.mark.parametrize("storage", ["journal", "sqlite"])
def test_a_search_in_threads_and_on_resuming_draws_what_one_after_the_other_draws(
    tmp_path, storage, monkeypatch
):
    search = replace(SEARCH, storage=storage, sampler="RandomSampler", pruner="NopPruner",
                     pruner_options={})  # fmt: skip
    asked = {"grid": None, "optuna": search, "seeds": [0]}
    monkeypatch.chdir(tmp_path)
    seen = []
    with joblib.parallel_config(backend="threading", n_jobs=2):
        spread = small_sweep("spread", n_jobs=None, on_run=seen.append, **asked)
    assert (seen[-1].n_done, seen[-1].n_total) == (len(spread.runs), len(spread.runs))
    assert (
        tmp_path / "spread" / {"journal": "optuna.journal", "sqlite": "optuna.db"}[storage]
    ).exists()

    def tried(runs):
        return sorted(run_key(run.population, run.seed, run.settings) for run in runs)

    one = small_sweep("one", **asked)
    assert tried(spread.runs) == tried(one.runs)


def test_a_search_goes_on_after_a_loss_of_records_and_a_cut_off_trial(tmp_path):
    import optuna

    asked = {"grid": None, "optuna": SEARCH, "seeds": [0]}
    whole = small_sweep(tmp_path, **asked)
    log = tmp_path / "runs.jsonl"
    log.write_text("\n".join(log.read_text().splitlines()[:3]) + "\n")
    storage = optuna.storages.JournalStorage(
        optuna.storages.journal.JournalFileBackend(str(tmp_path / "optuna.journal"))
    )
    study = optuna.load_study(study_name="iid, seed 0", storage=storage)
    study.ask()
    resumed = small_sweep(tmp_path, **asked)
    assert outcomes(resumed.runs) == outcomes(whole.runs)


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"sampler": "Best"}, "no 'Best'; expected one of .*TPESampler"),
     ({"sampler": "nsgaii"}, "no 'nsgaii'; expected one of"),
     ({"pruner_options": {"x": 1}}, "MedianPruner has no option 'x'; expected one of"),
     ({"metric": "speed"}, "not a metric; expected one of accuracy"),
     ({"space": {"cohort_size": {"low": 1, "high": 99}}}, "a cohort of at most 20 clients, got 99")],
)  # fmt: skip
def test_a_search_names_what_optuna_does_not_have_and_leaves_no_folder(tmp_path, changes, message):
    search = OptunaSearch(
        **({"space": {"local_epochs": {"low": 1, "high": 2}}, "n_trials": 1} | changes)
    )
    with pytest.raises(ParameterError, match=message):
        small_sweep(tmp_path / "runs", grid=None, optuna=search)
    assert not (tmp_path / "runs").exists()

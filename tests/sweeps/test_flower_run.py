"""Flower apps as they are: in Flower's own simulation once, and what is recorded of them."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets

import polyurn as pu

pytest.importorskip("flwr")

from flwr.app import ArrayRecord, Context, MetricRecord, RecordDict
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg, Strategy

from polyurn.errors import FileError, ParameterError, TrainingError
from polyurn.sweeps.config import parse_config
from polyurn.sweeps.flower_run import recorded, simulate

EXAMPLE = Path(__file__).parents[2] / "examples" / "flower_app"


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


CONFIG = """
seeds = [3]
[data]
file = "labels.csv"
label = "digit"
[clients.iid]
iid = 100
n_clients = 4
[trainer]
flower = "{app}"
timeout = 300
[settings]
batch_size = 100
local_epochs = 10
cohort_size = 3
num-server-rounds = 2
[grid]
learning_rate = [1]
"""


def test_a_sweep_runs_the_example_in_flowers_simulation_on_the_clients_it_drew(run, tmp_path):
    pytest.importorskip(
        "ray", reason="Flower's simulation needs ray: pip install 'flwr[simulation]'"
    )
    labels = datasets.load_digits(return_X_y=True)[1][:400]
    (tmp_path / "labels.csv").write_text("\n".join(["digit", *map(str, labels)]) + "\n")
    (tmp_path / "config.toml").write_text(CONFIG.format(app=EXAMPLE))
    ran = run("sweep", tmp_path / "config.toml", "-o", tmp_path / "runs", "--jobs", 1)
    assert ran.code == 0, ran.err + "".join(
        path.read_text() for path in (tmp_path / "runs").glob("failed/*")
    )
    (done,) = pu.read_runs(tmp_path / "runs")
    assert done.rounds == [1, 2]
    assert set(done.metrics) == {"train_loss", "accuracy"}
    assert done.metrics["accuracy"][-1] > 0.6  # 0.75 in eight trials; default settings 0.36 to 0.5
    best = tomllib.loads((tmp_path / "runs" / "best.toml").read_text())
    assert best["learning-rate"] == 1.0
    app = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    assert set(best) <= set(app["config"])


def test_settings_are_called_as_in_the_run_config_before_anything_runs():
    asked = {
        "seeds": [0], "data": {"file": "labels.csv"}, "clients": {"iid": {"iid": 9, "n_clients": 4}},
        "trainer": {"flower": str(EXAMPLE)}, "settings": {"local_epochs": 2},
    }  # fmt: skip
    found = parse_config({**asked, "grid": {"learning_rate": [1, 0.3]}})
    assert dict(found.settings) == {"local-epochs": 2}
    assert repr(dict(found.grid)) == "{'learning-rate': [1.0, 0.3]}"
    space = {"learning_rate": {"low": 1, "high": 2, "log": True}}
    found = parse_config({**asked, "search": {"space": space, "n_trials": 2}})
    assert repr(found.search.space["learning-rate"]) == "{'low': 1.0, 'high': 2.0, 'log': True}"
    with pytest.raises(ParameterError, match="has no momentum in its run-config"):
        parse_config({**asked, "grid": {"momentum": [0.9]}})


class Replies(FedAvg):
    """A strategy without clients: their replies and its metrics are made up."""

    replies = ()

    def summary(self):
        pass

    def configure_train(self, *_):
        return self.replies

    def configure_evaluate(self, *_):
        return ()

    def aggregate_train(self, server_round, replies):
        metrics = MetricRecord({"train": 0.5 * server_round, "each": [1.0, 2.0]})
        return ArrayRecord([np.ones(2)]), metrics

    def aggregate_evaluate(self, server_round, replies):
        return MetricRecord({"accuracy": 0.1 * server_round})


class Echo:
    """A grid whose messages are their own replies."""

    def send_and_receive(self, messages, *, timeout=None):
        return messages


@pytest.fixture
def record(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYURN_METRICS", str(tmp_path / "metrics.jsonl"))
    monkeypatch.setenv("POLYURN_FLOWER_END", str(tmp_path / "end"))
    context = Context(run_id=7, node_id=1, node_config={}, state=RecordDict(), run_config={})

    def call(main):
        app = ServerApp()
        app.main()(main)
        recorded(app)(Echo(), context)

    return call


def test_all_that_a_strategy_returns_is_a_line_for_each_round(record, tmp_path):
    start = Strategy.start

    def main(grid, context):
        Replies().start(grid, ArrayRecord(), 2)
        Replies().start(
            grid, ArrayRecord(), num_rounds=1, evaluate_fn=lambda r, _: MetricRecord({"loss": r})
        )

    record(main)
    assert lines_of(tmp_path / "metrics.jsonl") == [
        {"round": 1, "train": 0.5, "accuracy": 0.1},
        {"round": 2, "train": 1.0, "accuracy": 0.2},
        {"round": 1, "train": 0.5, "accuracy": 0.1, "loss": 1},
    ]
    assert (tmp_path / "end").read_text() == ""
    assert Strategy.start is start


def test_a_serverapp_that_raises_says_so_in_one_line_and_keeps_earlier_rounds(record, tmp_path):
    def main(grid, context):
        Replies().start(grid, ArrayRecord(), 1)
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        record(main)
    assert (tmp_path / "end").read_text() == "ValueError: no such thing"
    assert len(lines_of(tmp_path / "metrics.jsonl")) == 1


def test_a_round_all_of_whose_clients_fail_is_an_error(record, tmp_path):
    class Failed:
        class error:  # noqa: N801
            reason = "<KeyError: 'image'>"

        def has_error(self):
            return True

    class Hollow(Replies):
        replies = (Failed(), Failed())

    with pytest.raises(
        TrainingError, match=r"all 2 clients of round 1 failed: <KeyError: 'image'>"
    ):
        record(lambda grid, context: Hollow().start(grid, ArrayRecord(), 1))
    assert not (tmp_path / "metrics.jsonl").exists()


def test_what_is_no_app_and_what_is_no_setting_are_said_before_anything_starts(tmp_path):
    with pytest.raises(FileError, match="is not a Flower app"):
        simulate(tmp_path, {}, n_nodes=2)
    with pytest.raises(
        ParameterError, match="has no momentum in its run-config; expected one of num-"
    ):
        simulate(EXAMPLE, {"momentum": 0.9}, n_nodes=2)

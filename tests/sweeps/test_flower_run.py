"""Flower apps as they are: in Flower's own simulation once, and what is recorded of them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import polyurn as pu

pytest.importorskip("flwr")

from flwr.app import ArrayRecord, Context, MetricRecord, RecordDict
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg, Strategy

from polyurn.errors import FileError, ParameterError, TrainingError
from polyurn.sweeps.flower_run import recorded, simulate

EXAMPLE = Path(__file__).parents[2] / "examples" / "flower_app"


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_example_runs_in_flowers_simulation_on_the_clients_it_is_given(tmp_path):
    pytest.importorskip(
        "ray", reason="Flower's simulation needs ray: pip install 'flwr[simulation]'"
    )
    parts = pu.Partition.from_lists(np.split(np.arange(400), 4))
    pu.save_partition(parts, tmp_path / "clients.json")
    settings = {"learning_rate": 1, "batch_size": 100, "local_epochs": 10, "cohort_size": 3}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    files = {
        name: str(tmp_path / name) for name in ("clients.json", "metrics.jsonl", "settings.json")
    }
    done = subprocess.run(
        [
            sys.executable, "-m", "polyurn.sweeps.flower_run", str(EXAMPLE),
            "--partition", files["clients.json"], "--metrics", files["metrics.jsonl"],
            "--settings", files["settings.json"], "--set", "num-server-rounds=2", "--seed", "3",
        ],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    first, second = lines_of(tmp_path / "metrics.jsonl")
    assert (first["round"], second["round"]) == (1, 2)
    assert set(first) == {"round", "train_loss", "loss", "accuracy"}
    assert second["accuracy"] > 0.6  # 0.75 in eight trials; default settings reach 0.36 to 0.5
    assert "(4 simulated SuperNodes)" in done.stdout
    assert "Sampled 3 nodes" in done.stdout


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
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYURN_METRICS", str(tmp_path / "metrics.jsonl"))
    monkeypatch.setenv("POLYURN_FLOWER_END", str(tmp_path / "end"))
    context = Context(run_id=7, node_id=1, node_config={}, state=RecordDict(), run_config={})

    def call(main):
        app = ServerApp()
        app.main()(main)
        recorded(app)(Echo(), context)

    return call


def test_all_that_a_strategy_returns_is_a_line_for_each_round(run, tmp_path):
    start = Strategy.start

    def main(grid, context):
        Replies().start(grid, ArrayRecord(), 2)
        Replies().start(
            grid, ArrayRecord(), num_rounds=1, evaluate_fn=lambda r, _: MetricRecord({"loss": r})
        )

    run(main)
    assert lines_of(tmp_path / "metrics.jsonl") == [
        {"round": 1, "train": 0.5, "accuracy": 0.1},
        {"round": 2, "train": 1.0, "accuracy": 0.2},
        {"round": 1, "train": 0.5, "accuracy": 0.1, "loss": 1},
    ]
    assert (tmp_path / "end").read_text() == ""
    assert Strategy.start is start


def test_a_serverapp_that_raises_says_so_in_one_line_and_keeps_earlier_rounds(run, tmp_path):
    def main(grid, context):
        Replies().start(grid, ArrayRecord(), 1)
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        run(main)
    assert (tmp_path / "end").read_text() == "ValueError: no such thing"
    assert len(lines_of(tmp_path / "metrics.jsonl")) == 1


def test_a_round_all_of_whose_clients_fail_is_an_error(run, tmp_path):
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
        run(lambda grid, context: Hollow().start(grid, ArrayRecord(), 1))
    assert not (tmp_path / "metrics.jsonl").exists()


def test_what_is_no_app_and_what_is_no_setting_are_said_before_anything_starts(tmp_path):
    with pytest.raises(FileError, match="is not a Flower app"):
        simulate(tmp_path, {}, n_nodes=2)
    with pytest.raises(
        ParameterError, match="has no momentum in its run-config; expected one of num-"
    ):
        simulate(EXAMPLE, {"momentum": 0.9}, n_nodes=2)

"""The gap between the mean client and the lowest tenth, from runs that can be added up by hand."""

import client_spread
import pytest

from polyurn import compare_sweeps
from polyurn.storage.run_log import FinishedRun


def run(population, seed, mean, tenth, diverged_at=None):
    metrics = {client_spread.MEAN: mean, client_spread.TENTH: tenth}
    final = {name: None if diverged_at else values[-1] for name, values in metrics.items()}
    return client_spread.with_gap(
        FinishedRun(population, seed, {"lr": 0.1}, "batched", [3, 6], [1.0, 1.0], metrics, final,
                    diverged_at, 1.0)
    )  # fmt: skip


def test_the_gap_is_the_mean_less_the_lowest_tenth():
    found = run("true", 0, [0.5, 0.8], [0.4, 0.5])
    assert found.metrics[client_spread.GAP] == pytest.approx([0.1, 0.3])
    assert found.final[client_spread.GAP] == pytest.approx(0.3)
    assert run("true", 0, [0.5, None], [0.4, None], diverged_at=6).final[client_spread.GAP] is None


def test_the_gap_is_a_metric_of_a_verdict():
    runs = [run("true", seed, [0.5, 0.8], [0.4, 0.5]) for seed in (0, 1)]
    runs += [run("iid", seed, [0.5, 0.7 + 0.1 * seed], [0.4, 0.5]) for seed in (0, 1)]
    verdict = compare_sweeps(runs, metric=client_spread.GAP)
    assert verdict["iid"].difference.value == pytest.approx(0.05)

"""The verdict of a sweep, on runs whose answer can be written down."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from polyurn.errors import ParameterError
from polyurn.storage.run_log import RunRecord
from polyurn.sweeps.pairs import regret
from polyurn.sweeps.verdict import compare_sweeps
from polyurn.training.settings import FedAvg


def run(population, setting, score, *, seed=0, **changes):
    settings = FedAvg(n_rounds=1, cohort_size=1, local_learning_rate=float(setting))
    fields = {
        "engine": "workers",
        "rounds": [1],
        "loss": [1.0],
        "metrics": {"accuracy": [score]},
        "final": {"accuracy": score},
        "diverged_at": 1 if score is None else None,
        "seconds": 0.0,
    } | changes
    return RunRecord(population=population, seed=seed, settings=settings, **fields)


def runs(population, scores, *, seed=0):
    return [run(population, i + 1, score, seed=seed) for i, score in enumerate(scores)]


scores = st.lists(st.integers(0, 100).map(lambda n: n / 100), min_size=1, max_size=8)


@given(scores)
def test_the_true_clients_predict_themselves(values):
    verdict = compare_sweeps([*runs("true", values), *runs("twin", values)])["twin"]
    assert verdict.difference.value == 0
    assert verdict.n_settings == len(values)
    if len(set(values)) > 1:
        assert verdict.rank_correlation.value == pytest.approx(1)
    else:
        assert math.isnan(verdict.rank_correlation.value)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8))
def test_regret_is_between_zero_and_the_spread_of_the_true_scores(pairs):
    simulated, true = np.array(pairs).T
    assert -1e-12 <= regret(simulated, true) <= np.ptp(true) + 1e-12


def test_intervals_are_students_over_seeds():
    true = {0: [0.8, 0.6, 0.7], 1: [0.7, 0.5, 0.9], 2: [0.9, 0.4, 0.6]}
    mdm = {0: [0.7, 0.6, 0.9], 1: [0.9, 0.5, 0.8], 2: [0.9, 0.5, 0.6]}
    records = [
        record
        for name, table in (("true", true), ("mdm", mdm))
        for seed, values in table.items()
        for record in runs(name, values, seed=seed)
    ]
    verdict = compare_sweeps(records)["mdm"]
    differences = [np.abs(np.subtract(true[s], mdm[s])).mean() for s in range(3)]
    low, high = stats.t.interval(0.95, 2, np.mean(differences), stats.sem(differences))
    assert verdict.difference.value == pytest.approx(np.mean(differences))
    assert (verdict.difference.low, verdict.difference.high) == pytest.approx((low, high))
    assert verdict.regret.value == pytest.approx(((0.8 - 0.7) + (0.9 - 0.7) + 0.0) / 3)
    expected = np.mean([stats.spearmanr(true[s], mdm[s]).statistic for s in range(3)])
    assert verdict.rank_correlation.value == pytest.approx(expected)
    assert verdict.n_seeds == 3


def test_a_diverged_run_scores_the_worst():
    records = [*runs("true", [0.8, None]), *runs("iid", [0.7, 0.9])]
    verdict = compare_sweeps(records)["iid"]
    assert verdict.difference.value == pytest.approx((0.1 + 0.9) / 2)
    assert verdict.regret.value == pytest.approx(0.8)
    assert (verdict.n_diverged, verdict.n_diverged_true) == (0, 1)
    lenient = compare_sweeps(records, diverged_score=0.5)["iid"]
    assert lenient.regret.value == pytest.approx(0.3)


def test_only_settings_of_both_count_and_pruned_runs_do_not():
    records = [
        *runs("true", [0.5, 0.6, 0.9]),
        *runs("iid", [0.5, 0.7]),
        run("iid", 3, 0.1, pruned=True),
    ]
    verdict = compare_sweeps(records)["iid"]
    assert verdict.n_settings == 2
    assert verdict.difference.value == pytest.approx(0.05)
    assert verdict.regret.value == pytest.approx(0.3)  # from the best of all true runs


def test_a_diverged_run_is_never_the_best_of_a_negative_metric():
    records = [*runs("true", [-0.5, -2.0, None]), *runs("iid", [-0.4, -3.0, None])]
    verdict = compare_sweeps(records)["iid"]
    assert verdict.regret.value == 0
    assert verdict.rank_correlation.value == pytest.approx(1)


def test_a_score_that_is_not_a_number_counts_as_diverged():
    odd = run("iid", 2, math.nan, diverged_at=None)
    verdict = compare_sweeps([*runs("true", [0.5, 0.6]), *runs("iid", [0.5]), odd])["iid"]
    assert verdict.difference.value == pytest.approx(0.3)
    assert verdict.n_diverged == 1


def test_a_population_without_a_common_run_does_not_hide_the_others():
    records = [*runs("true", [0.5]), *runs("iid", [0.9]), *runs("mdm", [0.6], seed=7)]
    verdict = compare_sweeps(records)
    assert [v.population for v in verdict.populations] == ["iid", "mdm"]
    assert verdict["iid"].difference.value == pytest.approx(0.4)
    assert math.isnan(verdict["mdm"].difference.value)
    assert (verdict["mdm"].n_seeds, verdict["mdm"].n_missing) == (0, 2)


def test_seeds_without_a_rank_correlation_are_left_out_of_it():
    records = [
        record
        for name, tied in (("true", [0.5, 0.5]), ("iid", [0.4, 0.6]))
        for seed, values in ((0, [0.1, 0.2]), (1, [0.3, 0.6]), (2, tied))
        for record in runs(name, values, seed=seed)
    ]
    verdict = compare_sweeps(records)["iid"]
    assert verdict.rank_correlation.value == pytest.approx(1)
    assert verdict.n_seeds == 3


def test_runs_without_a_counterpart_are_counted():
    records = [*runs("true", [0.5, 0.6, 0.9]), *runs("iid", [0.5]), run("iid", 9, 0.1)]
    assert compare_sweeps(records)["iid"].n_missing == 3


def test_populations_are_ordered_by_their_difference():
    records = [*runs("true", [0.5]), *runs("iid", [0.9]), *runs("mdm", [0.6])]
    assert [v.population for v in compare_sweeps(records).populations] == ["mdm", "iid"]


@pytest.mark.parametrize(
    ("records", "options", "message"),
    [
        (runs("iid", [0.5]), {}, "no runs on the population 'true'; choose one of iid"),
        ([], {}, "no runs on the population 'true'; run the sweep first"),
        (runs("true", [0.5]), {}, "nothing to compare"),
        ([*runs("true", [0.5]), *runs("iid", [0.5], seed=1)], {}, "'iid' has no run with the seed"),
        (runs("true", [0.5]), {"metric": "recall"}, "no metric 'recall'; expected accuracy"),
        (runs("true", [0.5]), {"confidence": 1.5}, "confidence between 0 and 1"),
    ],
)
def test_mistakes_are_refused(records, options, message):
    with pytest.raises(ParameterError, match=message):
        compare_sweeps(records, **options)

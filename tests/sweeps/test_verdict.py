"""The verdict of a sweep, on runs whose answer can be written down."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from polyurn.errors import ParameterError
from polyurn.storage.run_log import FinishedRun
from polyurn.sweeps.run_scores import regret
from polyurn.sweeps.verdict import compare_sweeps


def run(population, setting, score, *, seed=0, **changes):
    settings = {"n_rounds": 1, "local_learning_rate": float(setting)}
    fields = {
        "engine": "workers",
        "rounds": [1],
        "loss": [1.0],
        "metrics": {"accuracy": [score]},
        "final": {"accuracy": score},
        "diverged_at": 1 if score is None else None,
        "seconds": 0.0,
    } | changes
    return FinishedRun(population=population, seed=seed, settings=settings, **fields)


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


def test_the_interval_of_a_correlation_does_not_leave_its_range():
    records = [
        record
        for seed, iid in ((0, [0.1, 0.2]), (1, [0.6, 0.3]))
        for record in (*runs("true", [0.1, 0.2], seed=seed), *runs("iid", iid, seed=seed))
    ]
    found = compare_sweeps(records)["iid"].rank_correlation
    assert (found.value, found.low, found.high) == (0.0, -1.0, 1.0)


def test_runs_without_a_counterpart_are_counted():
    records = [*runs("true", [0.5, 0.6, 0.9]), *runs("iid", [0.5]), run("iid", 9, 0.1)]
    assert compare_sweeps(records)["iid"].n_missing == 3


def test_populations_are_ordered_by_their_difference():
    records = [*runs("true", [0.5]), *runs("iid", [0.9]), *runs("mdm", [0.6])]
    assert [v.population for v in compare_sweeps(records).populations] == ["mdm", "iid"]


# ------------------------------------------------------------------ pairs, means, words

SEEDS = {
    "true": {0: [0.8, 0.6, 0.7], 1: [0.7, 0.5, 0.9], 2: [0.9, 0.4, 0.6], 3: [0.8, 0.5, 0.7]},
    "again": {0: [0.81, 0.6, 0.7], 1: [0.7, 0.51, 0.9], 2: [0.9, 0.4, 0.59], 3: [0.8, 0.51, 0.7]},
    "mdm": {0: [0.79, 0.6, 0.73], 1: [0.7, 0.52, 0.9], 2: [0.9, 0.43, 0.6], 3: [0.8, 0.5, 0.74]},
    "iid": {0: [0.9, 0.7, 0.8], 1: [0.8, 0.65, 0.99], 2: [0.97, 0.5, 0.7], 3: [0.9, 0.6, 0.8]},
}


def table_runs(table, **changes):
    return [
        run(name, i + 1, score, seed=seed, **changes)
        for name, by_seed in table.items()
        for seed, values in by_seed.items()
        for i, score in enumerate(values)
    ]


def test_a_paired_interval_is_the_t_interval_of_the_differences_seed_by_seed():
    verdict = compare_sweeps(table_runs(SEEDS))

    def off(name, seed):
        return np.abs(np.subtract(SEEDS[name][seed], SEEDS["true"][seed])).mean()

    values = [off("iid", seed) - off("mdm", seed) for seed in range(4)]
    expected = (np.mean(values), *stats.t.interval(0.95, 3, np.mean(values), stats.sem(values)))
    paired = verdict.paired("iid", "mdm")
    assert (paired.value, paired.low, paired.high) == pytest.approx(expected)
    back = verdict.paired("mdm", "iid")
    assert (back.value, back.low, back.high) == pytest.approx(
        (-expected[0], -expected[2], -expected[1])
    )
    assert verdict.paired("mdm", "mdm").value == 0


def test_a_paired_regret_is_that_of_one_less_that_of_the_other():
    verdict = compare_sweeps(table_runs(SEEDS))
    apart = verdict["iid"].regret.value - verdict["mdm"].regret.value
    assert verdict.paired("iid", "mdm", of="regret").value == pytest.approx(apart)
    table = SEEDS | {"iid": {seed: [0.1, 0.9, 0.2] for seed in range(4)}}
    worse = compare_sweeps(table_runs(table))
    lost = [max(SEEDS["true"][s]) - SEEDS["true"][s][1] for s in range(4)]
    assert worse.paired("iid", "mdm", of="regret").value == pytest.approx(
        np.mean(lost) - worse["mdm"].regret.value
    )


def test_pairs_are_taken_on_settings_that_both_and_the_true_clients_share():
    records = [
        *runs("true", [0.5, 0.6, 0.7]),
        *runs("iid", [0.6, 0.6, 0.9]),
        *runs("mdm", [0.5, 0.9]),
        *runs("mdm", [0.5], seed=1),
    ]
    verdict = compare_sweeps(records)
    assert verdict.paired("iid", "mdm").value == pytest.approx((0.1 + 0) / 2 - (0 + 0.3) / 2)
    assert math.isnan(verdict.paired("iid", "mdm").low)


@pytest.mark.parametrize("name", ["true", "nobody"])
def test_a_pair_is_of_populations_that_are_compared(name):
    verdict = compare_sweeps(table_runs(SEEDS))
    with pytest.raises(ParameterError, match=f"from again, mdm, iid, got '{name}'"):
        verdict.paired(name, "mdm")


def test_the_difference_of_means_leaves_out_what_averages_out_over_seeds():
    noise = {0: 0.1, 1: -0.1, 2: 0.1, 3: -0.1}
    mdm = {seed: [v + noise[seed] for v in values] for seed, values in SEEDS["true"].items()}
    found = compare_sweeps(table_runs({"true": SEEDS["true"], "mdm": mdm}))["mdm"]
    assert found.difference.value == pytest.approx(0.1)
    assert found.difference_of_means == pytest.approx(0)
    assert found.signed.value == pytest.approx(0)
    assert found.rank_correlation_of_means == pytest.approx(1)


def test_a_signed_difference_is_simulated_less_true_also_for_the_loss():
    records = table_runs({"true": {0: [0.5, 0.6]}}, loss=[1.0])
    records += table_runs({"iid": {0: [0.7, 0.7]}}, loss=[0.25])
    assert compare_sweeps(records)["iid"].signed.value == pytest.approx(0.15)
    assert compare_sweeps(records, metric="loss")["iid"].signed.value == pytest.approx(-0.75)


def losses(population, values):
    return [run(population, i + 1, 0.5, loss=[value]) for i, value in enumerate(values)]


@given(st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9)), min_size=1, max_size=8))
def test_a_loss_is_judged_as_its_negative_would_be(pairs):
    simulated, true = zip(*pairs, strict=True)
    loss = compare_sweeps([*losses("true", true), *losses("a", simulated)], metric="loss")["a"]
    negative = [
        run(name, i + 1, 0.5, metrics={"score": [-value]})
        for name, values in (("true", true), ("a", simulated))
        for i, value in enumerate(values)
    ]
    mirrored = compare_sweeps(negative, metric="score")["a"]
    assert loss.regret.value == pytest.approx(mirrored.regret.value)
    assert loss.difference.value == pytest.approx(mirrored.difference.value)
    assert loss.signed.value == pytest.approx(-mirrored.signed.value)
    if not math.isnan(loss.rank_correlation.value):
        assert loss.rank_correlation.value == pytest.approx(mirrored.rank_correlation.value)


def test_a_run_that_diverged_has_the_largest_loss_and_is_never_chosen():
    records = [*losses("true", [0.5, 2.0]), *losses("iid", [0.6])]
    records.append(run("iid", 2, None, loss=[None]))
    found = compare_sweeps(records, metric="loss")["iid"]
    assert found.n_diverged == 1
    assert found.regret.value == 0
    assert found.difference.value == pytest.approx((0.1 + (2.0 + 1.5 - 2.0)) / 2)


def test_rounds_to_a_target_are_compared_where_both_reach_it():
    def curve(population, setting, values):
        changes = {"rounds": [2, 4, 6], "loss": [1.0] * 3, "metrics": {"accuracy": values}}
        return run(population, setting, values[-1], **changes)

    records = [
        curve("true", 1, [0.1, 0.5, 0.9]), curve("iid", 1, [0.5, 0.5, 0.9]),
        curve("true", 2, [0.1, 0.1, 0.1]), curve("iid", 2, [0.1, 0.5, 0.9]),
        curve("true", 3, [0.1, 0.2, 0.6]), curve("iid", 3, [0.6, 0.7, 0.8]),
    ]  # fmt: skip
    found = compare_sweeps(records, target=0.5)["iid"]
    assert found.rounds_to_target.value == pytest.approx((2 + 4) / 2)
    assert (found.n_reached, found.n_reached_true) == (3, 2)
    assert compare_sweeps(records)["iid"].rounds_to_target is None


def test_the_noise_floor_comes_first_and_is_never_the_simulation_that_is_recommended():
    verdict = compare_sweeps(table_runs(SEEDS))
    assert [v.population for v in verdict.populations] == ["again", "mdm", "iid"]
    assert verdict.floor is verdict["again"]
    assert verdict.reference is verdict["mdm"]
    without = compare_sweeps(table_runs({n: t for n, t in SEEDS.items() if n != "mdm"}))
    assert without.reference is without["iid"]
    assert "again clients" not in verdict.sentence() + verdict.regret_sentence()


def test_the_sentence_says_what_is_promised_the_floor_and_who_is_nearer():
    said = compare_sweeps(table_runs(SEEDS)).sentence()
    assert said.startswith(
        "IID clients promise 10.1 points too much, mdm clients are off by 1.1 points (mostly too much)"
    )
    assert "; the true clients trained again differ by 0.3 points. " in said
    assert "mdm clients are nearer to the true ones than IID clients by 9.0 points (95 %" in said


def test_errors_of_both_signs_are_in_the_sentence_although_their_mean_is_0():
    table = {"true": {s: [0.5, 0.6] for s in (0, 1, 2)}, "iid": {s: [0.6, 0.5] for s in (0, 1, 2)}}
    assert compare_sweeps(table_runs(table)).sentence() == (
        "IID clients are off by 10.0 points (in both directions)."
    )


def test_a_regret_of_0_in_every_seed_is_said_of_these_seeds_only():
    table = {name: {s: [0.5, 0.6] for s in (0, 1, 2)} for name in ("true", "iid")}
    assert compare_sweeps(table_runs(table)).regret_sentence() == (
        "Tuning on IID clients lost nothing in these 3 seeds."
    )


def test_a_perfect_weighted_run_that_rounds_above_1_is_still_said_in_points():
    table = {"true": {0: [1.00000004, 0.6]}, "iid": {0: [0.9, 0.6]}}
    assert compare_sweeps(table_runs(table)).wording.in_points
    table["true"][0][0] = 1.1
    assert not compare_sweeps(table_runs(table)).wording.in_points


def test_one_seed_cannot_tell():
    table = {name: {0: by_seed[0]} for name, by_seed in SEEDS.items()}
    verdict = compare_sweeps(table_runs(table))
    assert "It cannot be told which of mdm and IID clients are nearer: " in verdict.sentence()
    assert "nothing" not in verdict.regret_sentence()
    assert "nearer to the true ones" not in verdict.sentence()
    alone = {name: table[name] for name in ("true", "again")}
    assert compare_sweeps(table_runs(alone)).sentence() == (
        "The true clients trained again differ by 0.3 points; there are no simulated clients to judge."
    )


@pytest.mark.parametrize(
    ("records", "options", "message"),
    [
        (runs("iid", [0.5]), {}, "no runs on the population 'true'; choose one of iid"),
        ([], {}, "no runs on the population 'true'; run the sweep first"),
        (runs("true", [0.5]), {}, "no other population has no run"),
        ([*runs("true", [0.5]), *runs("iid", [0.5], seed=1)], {}, "'iid' has no run with the seed"),
        (runs("true", [0.5]), {"metric": "recall"}, "no metric 'recall'; expected accuracy"),
        (runs("true", [0.5]), {"last": -0.1}, "last as a number from 0 to 1, got -0.1"),
        (runs("true", [0.5]), {"last": 1.5}, "last as a number from 0 to 1, got 1.5"),
        (runs("true", [0.5]), {"target": math.inf}, "target as a finite number, got inf"),
    ],
)
def test_mistakes_are_refused(records, options, message):
    with pytest.raises(ParameterError, match=message):
        compare_sweeps(records, **options)


def test_plausible_mixtures_say_how_much_hangs_on_the_fit_and_are_not_judged_one_by_one():
    scores = {"true": [0.8, 0.6], "mdm": [0.7, 0.6], "mdm~1": [0.72, 0.62], "mdm~2": [0.69, 0.57]}
    verdict = compare_sweeps([one for name, table in scores.items() for one in runs(name, table)])
    said = verdict.sentence()
    assert said.endswith(
        "2 plausible mixtures promise -2.0 to 2.0 points more than mdm: so much hangs on the fit."
    )
    assert "mdm~" not in said
    assert {v.population for v in verdict.simulated} == {"mdm", "mdm~1", "mdm~2"}

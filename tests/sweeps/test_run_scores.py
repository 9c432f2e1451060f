"""What a run scores, on curves that can be added up by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyurn.storage.run_log import FinishedRun
from polyurn.sweeps.run_scores import round_reached, score, score_runs, worst_score

SETTINGS = {"n_rounds": 40}


def run(curve, *, loss=None, diverged_at=None, population="true", **changes):
    return FinishedRun(
        population=population, seed=0, settings=SETTINGS, engine="workers",
        rounds=[10 * (i + 1) for i in range(len(curve))],
        loss=[1.0] * len(curve) if loss is None else loss, metrics={"accuracy": curve},
        final={"accuracy": curve[-1] if curve else None}, diverged_at=diverged_at, seconds=0.0,
        **changes,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("last", "n"), [(0.5, 2), (0.51, 3), (1.0, 4), (0.25, 1), (1e-9, 1), (0.75, 3)]
)
def test_the_share_of_the_last_evaluations_is_rounded_up(last, n):
    curve = [0.1, 0.2, 0.4, 0.8]
    assert score(run(curve), "accuracy", last=last) == pytest.approx(sum(curve[-n:]) / n)


@given(st.integers(1, 100))
def test_so_many_hundredths_of_a_hundred_evaluations_are_so_many(n):
    curve = [0.0] * (100 - n) + [1.0] * n
    assert score(run(curve), "accuracy", last=n / 100) == 1.0


def test_a_score_does_not_depend_on_what_came_before_the_last_half():
    assert score(run([None, 0.3, 0.5, 0.7]), "accuracy") == pytest.approx(0.6)


def test_a_value_that_is_not_finite_among_the_last_counts_as_diverged():
    assert score(run([0.3, 0.5, None, 0.7]), "accuracy") is None
    assert score(run([0.3, 0.5, 0.6, None]), "accuracy", last=0.1) is None
    assert score(run([]), "accuracy") is None


def test_a_run_that_diverged_has_no_score_however_good_it_was():
    assert score(run([0.3, 0.9], diverged_at=30), "accuracy") is None
    assert round_reached(run([0.3, 0.9], diverged_at=30), "accuracy", 0.5) is None


def test_the_loss_of_a_diverged_run_is_as_far_beyond_the_worst_as_the_best_is_from_it():
    assert worst_score([0.5, 2.0], "loss") == pytest.approx(2.0 + 1.5)
    assert worst_score([0.5], "loss") == pytest.approx(0.5 + 1.0)
    assert worst_score([0.5, 2.0], "accuracy") == 0.0
    diverged = score_runs(
        [run([0.5], loss=[2.0]), run([0.5], loss=[None], population="iid")], "loss"
    )
    assert diverged["iid"][0].popitem()[1].value == pytest.approx(2.0 + 1.0)


def test_an_accuracy_is_reached_from_below_and_a_loss_from_above():
    falling = run([0.2, 0.5, 0.4, 0.8], loss=[3.0, None, 2.0, 1.0])
    assert round_reached(falling, "accuracy", 0.5) == 20
    assert round_reached(falling, "accuracy", 0.9) is None
    assert round_reached(falling, "loss", 2.0) == 30


def test_runs_that_a_search_cut_short_have_no_score():
    assert score_runs([run([0.5], pruned=True)], "accuracy") == {}
    assert math.isclose(score_runs([run([0.5])], "accuracy")["true"][0].popitem()[1].value, 0.5)

"""The verdict in words: what is said, and what is not."""

import math

import pytest

from polyurn.comparison.estimates import Estimate
from polyurn.sweeps.verdict import Wording, excludes_zero

POINTS = Wording("accuracy", True)
LOSS = Wording("loss", False)
ALONE = (math.nan, math.nan)


def agreeing(signed):
    """Populations whose errors all have the same sign: absolute differences as large as signed ones."""
    return {name: (found, Estimate(abs(found.value), *ALONE)) for name, found in signed.items()}


def test_which_is_nearer_does_not_depend_on_the_order_of_the_two():
    apart = Estimate(0.024, 0.019, 0.029)
    said = POINTS.nearer("iid", "mdm", apart)
    assert said == POINTS.nearer("mdm", "iid", Estimate(-0.024, -0.029, -0.019))
    assert said == (
        "mdm clients are nearer to the true ones than IID clients by 2.4 points "
        "(95 % interval 1.9 to 2.9)"
    )


@pytest.mark.parametrize(
    ("paired", "end"),
    [
        (Estimate(0.003, -0.004, 0.01), "0.3 points (-0.4 to 1.0)"),
        (Estimate(0.003, *ALONE), "0.3 points (one seed has no interval)"),
        (Estimate(0.0, 0.0, 0.0), "0.0 points (0.0 to 0.0)"),
        (Estimate(math.nan, *ALONE), "they share no run"),
    ],
)
def test_without_an_interval_beyond_0_nobody_is_nearer(paired, end):
    assert not excludes_zero(paired)
    assert POINTS.nearer("iid", "mdm", paired) == (
        f"it cannot be told which of mdm and IID clients are nearer: {end}"
    )


def test_what_cannot_be_told_from_0_is_said_to_be_so():
    said = POINTS.promises(
        agreeing({"a": Estimate(0.004, -0.001, 0.009), "b": Estimate(-0.02, *ALONE)})
    )
    assert said == (
        "a clients promise 0.4 points too much (cannot be told from 0), "
        "b clients 2.0 points too little (cannot be told from 0)"
    )


def test_a_loss_has_no_points_and_less_of_it_is_a_promise():
    signed = {"iid": Estimate(-0.125, -0.2, -0.05), "mdm": Estimate(0.5, 0.4, 0.6)}
    said = LOSS.promises(agreeing(signed))
    assert said == "IID clients promise a loss that is 0.125 too low, mdm clients 0.5 too high"
    assert LOSS.nearer("iid", "mdm", Estimate(0.5, 0.25, 0.75)).endswith(
        "by 0.5 (95 % interval 0.25 to 0.75)"
    )


@pytest.mark.parametrize(
    ("signed", "said"),
    [
        (Estimate(-0.013, -0.05, 0.024), "x clients are off by 7.0 points (in both directions)"),
        (Estimate(-0.013, -0.02, -0.006), "x clients are off by 7.0 points (in both directions)"),
        (Estimate(0.05, -0.01, 0.11), "x clients are off by 7.0 points (in both directions)"),
        (Estimate(0.05, 0.04, 0.06), "x clients are off by 7.0 points (mostly too much)"),
        (Estimate(-0.05, -0.06, -0.04), "x clients are off by 7.0 points (mostly too little)"),
        (Estimate(0.069, 0.06, 0.078), "x clients promise 7.0 points too much"),
    ],
)
def test_errors_that_cancel_over_settings_are_not_said_to_be_small(signed, said):
    assert POINTS.promises({"x": (signed, Estimate(0.07, 0.06, 0.08))}) == said


def test_what_is_said_beside_the_floor_is_an_absolute_difference_as_the_floor_is():
    hidden = Estimate(0.002, -0.004, 0.008), Estimate(0.018, 0.01, 0.026)
    floor = Estimate(0.013, 0.01, 0.016)
    assert (
        POINTS.promises({"mdm": hidden}) == "mdm clients are off by 1.8 points (in both directions)"
    )
    assert POINTS.floor(floor) == "the true clients trained again differ by 1.3 points"


def test_a_verb_is_said_once_for_all_that_share_it():
    much, both = Estimate(0.05, 0.04, 0.06), Estimate(0.0, -0.1, 0.1)
    found = {"a": (much, much), "b": (much, much), "c": (both, much), "d": (both, much)}
    assert POINTS.promises({**found, "e": (much, much)}) == (
        "a clients promise 5.0 points too much, b clients 5.0 points too much, "
        "c clients are off by 5.0 points (in both directions), "
        "d clients by 5.0 points (in both directions), e clients promise 5.0 points too much"
    )
    assert LOSS.promises({name: found[name] for name in "acd"}) == (
        "a clients promise a loss that is 0.05 too high, "
        "c clients are off by 0.05 (in both directions), "
        "d clients by 0.05 (in both directions)"
    )


@pytest.mark.parametrize(
    ("regret", "said"),
    [
        (Estimate(0.0, 0.0, 0.0), "tuning on mdm clients lost nothing in these 4 seeds"),
        (
            Estimate(0.0, *ALONE),
            "cannot tell whether tuning on mdm clients loses anything: 0.0 points (one seed has no "
            "interval)",
        ),
        (
            Estimate(0.001, -0.001, 0.003),
            "cannot tell whether tuning on mdm clients loses anything: 0.1 points (-0.1 to 0.3)",
        ),
        (
            Estimate(0.02, 0.01, 0.03),
            "tuning on mdm clients loses 2.0 points (95 % interval 1.0 to 3.0)",
        ),
    ],
)
def test_a_regret_is_a_loss_only_where_its_interval_says_so(regret, said):
    assert POINTS.loses("mdm", regret, n_seeds=4) == said


def test_small_differences_keep_a_digit():
    assert [POINTS.number(v) for v in (0.0318, 0.00094, 0.0004, -0.00001, 1e-18)] == [
        "3.2", "0.09", "0.04", "0.0", "0.0",
    ]  # fmt: skip
    assert LOSS.number(-1.4e-17) == "0"

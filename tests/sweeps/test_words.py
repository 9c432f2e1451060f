"""The verdict in words: what is said, and what is not."""

import math

import pytest

from polyurn.comparison.estimates import Estimate
from polyurn.sweeps.words import Wording, excludes_zero, negative

POINTS = Wording("accuracy", True, 0.95)
LOSS = Wording("loss", False, 0.9)
ALONE = (math.nan, math.nan)


def test_which_is_nearer_does_not_depend_on_the_order_of_the_two():
    apart = Estimate(0.024, 0.019, 0.029)
    said = POINTS.nearer("iid", "mdm", apart)
    assert said == POINTS.nearer("mdm", "iid", negative(apart))
    assert said == (
        "mdm clients are nearer to the true ones than IID clients by 2.4 points "
        "(95 % interval 1.9 to 2.9)"
    )


@pytest.mark.parametrize(
    ("paired", "end"),
    [
        (Estimate(0.003, -0.004, 0.01), "0.3 points (-0.4 to 1.0)"),
        (Estimate(0.003, *ALONE), "0.3 points, and one seed has no interval"),
        (Estimate(0.0, 0.0, 0.0), "0.0 points (0.0 to 0.0)"),
        (Estimate(math.nan, *ALONE), "they share no run"),
    ],
)
def test_without_an_interval_beyond_0_nobody_is_nearer(paired, end):
    assert not excludes_zero(paired)
    assert POINTS.nearer("iid", "mdm", paired) == (
        f"cannot tell which of mdm and iid is nearer: {end}"
    )
    assert POINTS.loses_more("iid", "mdm", paired).startswith("cannot tell whether")


def test_what_cannot_be_told_from_0_is_said_to_be_so():
    said = POINTS.promises({"a": Estimate(0.004, -0.001, 0.009), "b": Estimate(-0.02, *ALONE)})
    assert said == (
        "a clients promise 0.4 points too much (cannot be told from 0), "
        "b clients 2.0 points too little (cannot be told from 0)"
    )


def test_a_loss_has_no_points_and_less_of_it_is_a_promise():
    said = LOSS.promises({"iid": Estimate(-0.125, -0.2, -0.05), "mdm": Estimate(0.5, 0.4, 0.6)})
    assert said == "IID clients promise a loss that is 0.125 too low, mdm clients 0.5 too high"
    assert LOSS.nearer("iid", "mdm", Estimate(0.5, 0.25, 0.75)).endswith(
        "by 0.5 (90 % interval 0.25 to 0.75)"
    )


@pytest.mark.parametrize(
    ("regret", "said"),
    [
        (Estimate(0.0, 0.0, 0.0), "tuning on mdm clients loses nothing"),
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
    assert POINTS.loses("mdm", regret) == said


def test_small_differences_keep_a_digit():
    assert [POINTS.number(v) for v in (0.0318, 0.00094, 0.0004, -0.00001, 1e-18)] == [
        "3.2", "0.09", "0.04", "0.0", "0.0",
    ]  # fmt: skip
    assert LOSS.number(-1.4e-17) == "0"

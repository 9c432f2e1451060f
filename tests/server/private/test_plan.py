"""Plans: shares that add up, and as many starts as noise allows."""

import pytest

from polyurn.server.private.plan import CHOOSING, DEFAULT, SINGLE


@pytest.mark.parametrize("plan", [DEFAULT, CHOOSING, SINGLE])
def test_no_plan_has_more_than_twelve_rounds(plan):
    once = sum(share > 0 for share in (plan.survey, plan.sketch, plan.choice, plan.guard))
    assert once + len(plan.race) + len(plan.score) <= 12


def test_noise_and_numbers_limit_the_starts():
    few, many = DEFAULT.n_starts
    assert DEFAULT.racers(33, 1.0, 1e6)[0] == many
    assert DEFAULT.racers(33, 1e4, 1e3)[0] == few
    assert DEFAULT.racers(500, 1.0, 1e6)[0] == 6
    assert all(n >= 2 for n in DEFAULT.racers(33, 1e4, 1e3))

"""The attack itself: it finds who can be found, and no more than a guarantee allows."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
import membership

from polyurn import LocalAggregator, SizeBins
from polyurn.model.paper_truths import truth
from polyurn.privacy.ledger import PrivacyLedger
from polyurn.privacy.private_aggregator import PrivateAggregator
from polyurn.wire import BoundedSurvey, Noised, Survey

CANDIDATES = truth("medium/1").sample(40, rng=0)
TOOK_PART = np.random.default_rng(1).random(40) < 0.5


def test_sums_with_more_numbers_than_candidates_are_solved_for_them():
    survey = Survey(10, SizeBins.exact(20), pairs=True)
    total = LocalAggregator(CANDIDATES[TOOK_PART]).aggregate(survey, None).to_vector()
    guesses = membership.estimated(CANDIDATES, [(survey, total)])
    assert membership.area(guesses, TOOK_PART) == 1.0


def test_the_area_of_guesses_at_random_is_a_half_and_of_right_ones_one():
    rng = np.random.default_rng(2)
    took_part = rng.random(20_000) < 0.5
    assert membership.area(rng.random(20_000), took_part) == pytest.approx(0.5, abs=0.02)
    assert membership.area(took_part + 0.0, took_part) == 1.0


def test_an_attack_on_a_single_private_release_stays_below_what_it_allows():
    question = Noised(BoundedSurvey(10, SizeBins.exact(20)), 4.0)
    rng = np.random.default_rng(3)

    def seeded(n, scale):
        return np.rint(rng.normal(0.0, scale, n)).astype(np.int64)

    members, others = [], []
    for _ in range(90):
        took_part = rng.random(40) < 0.5
        clients = LocalAggregator(CANDIDATES[took_part])
        private = PrivateAggregator(clients, ledger=PrivacyLedger(2.0, 1e-6), noise=seeded)
        total = private.aggregate(question, None).to_vector()
        guesses = membership.estimated(CANDIDATES, [(question, total)])
        members.append(guesses[took_part])
        others.append(guesses[~took_part])
    both = np.concatenate([*members, *others])
    took_part = np.arange(len(both)) < sum(map(len, members))
    assert (
        membership.area(both, took_part) < membership.largest_auc(4.0) + 0.03
    )  # three standard errors

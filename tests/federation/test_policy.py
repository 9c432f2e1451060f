"""What an owner allows, question by question."""

import itertools

import numpy as np
import pytest

from polyurn import SizeBins
from polyurn.errors import ParameterError
from polyurn.federation.messages import Refusal
from polyurn.federation.policy import NodePolicy
from polyurn.model.paper_truths import truth
from polyurn.server.feature_choice import N_GROUPS
from polyurn.wire import (
    Batch,
    Expect,
    Initialise,
    Parameters,
    Part,
    Score,
    Survey,
    Update,
)
from wire_cases import QUERIES

MDM = truth("medium/2")
SURVEY = Survey(10, SizeBins.exact(20), pairs=False)


def test_a_plain_question_is_refused_unless_the_owner_allows_it():
    assert NodePolicy().objection(SURVEY, secure=False) is Refusal.SECURE_ONLY
    assert NodePolicy().objection(SURVEY, secure=True) is None
    assert NodePolicy(secure_only=False).objection(SURVEY, secure=False) is None


@pytest.mark.parametrize("name", QUERIES)
def test_the_limit_of_sizes_holds_in_every_kind_of_question(name):
    """All have a max_size of 12, but for a contrast and questions about style, which have none."""
    without = name in ("contrast", "part-outside") or "style" in name
    for largest, is_fine in ((12, True), (11, without)):
        policy = NodePolicy(largest_max_size=largest, narrowest_part=0.0)
        refusal = policy.objection(QUERIES[name], secure=True)
        assert refusal is (None if is_fine else Refusal.TOO_LARGE_SIZE)


def test_the_limit_of_numbers_is_exact():
    n = SURVEY.n_numbers
    assert NodePolicy(most_numbers=n).objection(SURVEY, secure=True) is None
    refusal = NodePolicy(most_numbers=n - 1).objection(SURVEY, secure=True)
    assert refusal is Refusal.TOO_MANY_NUMBERS


@pytest.mark.parametrize(
    ("query", "is_fine"),
    [
        (Part(SURVEY, 0.2, 0.4), True),
        (Part(SURVEY, 0.2, 0.25), False),
        (Part(SURVEY, 0.5, 0.5), False),
        (Part(Part(SURVEY, 0.0, 0.5), 0.45, 1.0), False),
        (Batch((SURVEY, Part(SURVEY, 0.2, 0.25))), False),
        (Part(Batch((SURVEY, Part(SURVEY, 0.0, 0.5))), 0.45, 1.0), False),
        (Part(SURVEY, 0.2, 0.1 + 0.2), True),  # 0.1, but for rounding
        (Batch((Part(SURVEY, 0.0, 0.3), Part(SURVEY, 0.1 + 0.2, 1.0))), True),
        # What two of them differ in is a part, too.
        (Part(SURVEY, 0.0, 0.95), False),
        (Batch((Part(SURVEY, 0.0, 0.5), Part(SURVEY, 0.0, 0.55))), False),
        (Batch((Part(SURVEY, 0.0, 0.5), Part(SURVEY, 0.45, 1.0))), False),
        (Part(Batch((Part(SURVEY, 0.0, 0.5), Part(SURVEY, 0.0, 0.55))), 0.2, 0.9), False),
        (Batch((Part(SURVEY, 0.0, 0.8), Part(SURVEY, 0.8, 1.0), Part(SURVEY, 0.0, 0.4))), True),
    ],
)
def test_a_part_may_not_be_narrower_than_the_limit_however_it_is_nested(query, is_fine):
    refusal = NodePolicy(narrowest_part=0.1).objection(query, secure=True)
    assert refusal is (None if is_fine else Refusal.TOO_NARROW_PART)


@pytest.mark.parametrize("narrowest", [0.02, NodePolicy().narrowest_part])
def test_the_parts_that_fits_selections_and_features_ask_are_allowed(narrowest):
    edges = np.linspace(0.0, 1.0, N_GROUPS + 1).tolist()
    groups = Batch(tuple(Part(SURVEY, low, high) for low, high in itertools.pairwise(edges)))
    fitted = Part(Batch((SURVEY, Part(SURVEY, 0.0, 0.03))), 0.0, 0.8)
    for query in (groups, Batch((fitted, Part(SURVEY, 0.8, 1.0)))):
        assert NodePolicy(narrowest_part=narrowest).objection(query, secure=True) is None


def test_a_question_of_many_narrow_parts_is_refused_where_the_owner_says_so():
    """It would single out clients, however many nodes are in the sum."""
    tiny = Survey(10, SizeBins([1, 21]), pairs=False)
    many = Batch(tuple(Part(tiny, i / 900, (i + 1) / 900) for i in range(900)))
    policy = NodePolicy(narrowest_part=0.02)
    assert policy.objection(many, secure=True) is Refusal.TOO_NARROW_PART


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"fewest": 1}, "fewest as an integer of at least 2"),
        ({"rounds_per_day": -1}, "rounds_per_day as an integer of at least 0"),
        ({"majority": 0.4}, "majority from 0.5"),
        ({"narrowest_part": 2.0}, "narrowest_part as a number from 0 to 1"),
        ({"secure_only": "no"}, "secure_only as True or False"),
    ],
)
def test_a_policy_out_of_range_is_refused(settings, why):
    with pytest.raises(ParameterError, match=why):
        NodePolicy(**settings)


def test_a_question_is_named_by_the_kinds_inside_it():
    parameters = Parameters(MDM.weights, MDM.alphas, MDM.sizes)
    assert Update(MDM).text == "update"
    assert Initialise(2, 10, SizeBins.exact(20)).text == "initialise"
    nested = Batch((Expect(parameters), Part(Expect(parameters), 0.0, 0.5), Score((MDM,))))
    assert nested.text == "batch of 2 expect, 1 score"
    assert Part(SURVEY, 0.0, 0.5).text == "part of 1 survey"

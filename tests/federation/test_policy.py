"""What an owner allows, question by question."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from federations import ALL_METHODS, EXACT
from polyurn import SizeBins, Sizes
from polyurn.errors import ParameterError
from polyurn.federation.messages import Refusal
from polyurn.federation.policy import NodePolicy
from polyurn.model.paper_truths import truth
from polyurn.server.feature_choice import N_GROUPS
from polyurn.wire import (
    Batch,
    Expect,
    Group,
    Initialise,
    Parameters,
    Part,
    Score,
    Survey,
    Update,
)
from wire_cases import QUERIES

MDM = truth("medium/2")
BINS = SizeBins([1, 10])
SURVEY = Survey(10, SizeBins.exact(20), pairs=False)


def objection(query, *, secure=True, max_size=None, **limits):
    """Of a policy that allows exact sums, but for the given limits."""
    size = query.max_size if max_size is None else max_size
    policy = replace(EXACT, **limits)
    return policy.objection(query, secure=secure, max_size=size, clients_per_node=25)


def test_a_plain_question_is_refused_unless_the_owner_allows_it():
    assert objection(SURVEY, secure=False) is Refusal.SECURE_ONLY
    assert objection(SURVEY, secure=True) is None
    assert objection(SURVEY, secure=False, secure_only=False) is None


def test_a_question_without_noise_is_refused_unless_the_owner_allows_it():
    assert objection(SURVEY, allow_exact=False) is Refusal.PRIVATE_ONLY
    assert NodePolicy().allow_exact is False


@pytest.mark.parametrize("name", QUERIES)
def test_the_declared_size_holds_in_every_kind_of_question(name):
    """All have a max_size of 12, but for contrasts and questions about records, which have none."""
    without = name in ("part-outside", "spread") or "style" in name or "contrast" in name
    for declared, is_fine in ((12, True), (11, without), (13, without)):
        refusal = objection(QUERIES[name], max_size=declared, narrowest_part=0.0)
        if is_fine:
            assert refusal is not Refusal.OTHER_SIZE
        else:
            assert refusal is Refusal.OTHER_SIZE


@pytest.mark.parametrize("name", QUERIES)
def test_a_question_of_a_method_that_the_owner_does_not_allow_is_refused(name):
    query = QUERIES[name]
    methods = {leaf.method for leaf, _, _ in query.leaves()}
    others = tuple(method for method in ALL_METHODS if method not in methods)
    assert objection(query, max_size=12, questions=others) is Refusal.NOT_APPROVED


def test_parameters_under_which_a_client_has_no_answer_are_refused_whoever_the_clients_are():
    """A node that fails only where such a client is would say that it is there."""
    for parameters in (
        Parameters(np.ones(1), np.array([[1.0, 0.0]]), Sizes(BINS, [[1.0]])),
        Parameters(np.ones(1), np.array([[2e6, 1.0]]), Sizes(BINS, [[1.0]])),
        Parameters(np.ones(1), np.ones((1, 2)), Sizes(SizeBins([1, 3, 10]), [[1.0, 0.0]])),
        Parameters(np.ones(1), np.ones((1, 2)),
                   Sizes(SizeBins([1, 10], fine=[1, 2, 10], shares=[1.0, 0.0]), [[1.0]])),
    ):  # fmt: skip
        assert objection(Expect(parameters)) is Refusal.NOT_APPROVED
    fine = Parameters(np.ones(1), np.ones((1, 2)), Sizes(BINS, [[1.0]]))
    assert objection(Expect(fine)) is None


def test_the_limit_of_numbers_is_exact():
    n = SURVEY.n_numbers
    assert objection(SURVEY, most_numbers=n) is None
    assert objection(SURVEY, most_numbers=n - 1) is Refusal.TOO_MANY_NUMBERS


def test_the_limits_of_components_and_parameters_are_exact():
    sizes = Sizes(SizeBins([1, 21]), np.ones((2, 1)))
    query = Expect(Parameters(MDM.weights, MDM.alphas, sizes))
    k, size = len(MDM.weights), MDM.alphas.size
    assert objection(query, most_components=k, most_parameters=size) is None
    assert objection(query, most_components=k - 1) is Refusal.TOO_MANY_NUMBERS
    assert objection(query, most_parameters=size - 1) is Refusal.TOO_MANY_NUMBERS
    group = Group(np.zeros((3, 12)), np.zeros(3), SizeBins.exact(20))
    assert objection(group, most_components=3) is None
    assert objection(group, most_components=2) is Refusal.TOO_MANY_NUMBERS


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
    refusal = objection(query, narrowest_part=0.1)
    assert refusal is (None if is_fine else Refusal.TOO_NARROW_PART)


@pytest.mark.parametrize("narrowest", [0.02, NodePolicy().narrowest_part])
def test_the_parts_that_fits_selections_and_features_ask_are_allowed(narrowest):
    edges = np.linspace(0.0, 1.0, N_GROUPS + 1).tolist()
    groups = Batch(tuple(Part(SURVEY, low, high) for low, high in itertools.pairwise(edges)))
    fitted = Part(Batch((SURVEY, Part(SURVEY, 0.0, 0.03))), 0.0, 0.8)
    for query in (groups, Batch((fitted, Part(SURVEY, 0.8, 1.0)))):
        assert objection(query, narrowest_part=narrowest) is None


def test_a_question_of_many_narrow_parts_is_refused_where_the_owner_says_so():
    """It would single out clients, however many nodes are in the sum."""
    tiny = Survey(10, SizeBins([1, 21]), pairs=False)
    many = Batch(tuple(Part(tiny, i / 900, (i + 1) / 900) for i in range(900)))
    assert objection(many, narrowest_part=0.02) is Refusal.TOO_NARROW_PART


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"fewest": 1}, "fewest as an integer of at least 2"),
        ({"rounds_per_day": -1}, "rounds_per_day as an integer of at least 0"),
        ({"majority": 0.4}, "majority from 0.5"),
        ({"narrowest_part": 2.0}, "narrowest_part as a number from 0 to 1"),
        ({"secure_only": "no"}, "secure_only as True or False"),
        ({"renew": "monthly:0.5", "most_epsilon": 0.0}, "most_epsilon above 0 with renew"),
        ({"renew": "monthly"}, "a renewal as monthly:0.5"),
        ({"questions": ("guess",)}, "questions of .*fit_private.*, got guess"),
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

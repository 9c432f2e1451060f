"""What a fit and a selection say about themselves."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from polyurn import answer
from polyurn.model.mdm import MDM
from polyurn.model.paper_truths import truth
from polyurn.model.sizes import Sizes
from polyurn.server.fit_results import Candidate, Fit, Round, behind
from polyurn.wire import Score

TWO = truth("medium/2")


def candidate(k, *, mdm=TWO, **more):
    return Candidate(k, mdm, -3.0, 0.1, 0.0, 0.0, 9, **{"converged": True, **more})


def selection(*candidates, chosen=2):
    done = all(one.converged or one.overtaken for one in candidates)
    return Fit(
        TWO, (), done, "", n_components=chosen, candidates=candidates, n_held_out=30, n_clients=99
    )


def test_a_fit_counts_its_rounds_and_leaves_out_those_without_a_likelihood():
    rounds = (
        Round(1, None, float("nan"), 50, 10),
        Round(2, None, float("nan"), 50, 20),
        Round(3, TWO, -3.0, 50, 20),
        Round(4, TWO, -2.5, 50, 20),
    )
    fit = Fit(TWO, rounds, converged=True, stopped="converged")
    assert fit.n_rounds == 4
    assert fit.log_likelihoods.tolist() == [-3.0, -2.5]
    assert fit.n_agreeing is None
    with pytest.raises(FrozenInstanceError):
        fit.n_agreeing = 3


def test_components_at_the_cap_are_named():
    capped = MDM([0.6, 0.4], [[2.0, 3.0], [4e5, 6e5]], Sizes.constant(9, n_components=2))
    assert capped.multinomial == (1,)
    assert TWO.multinomial == ()


def test_a_candidate_knows_the_number_of_its_parameters():
    assert candidate(5).n_parameters == TWO.n_parameters


def test_the_chosen_candidate_is_that_with_the_chosen_number_of_components():
    one, two = candidate(1), candidate(2)
    assert selection(one, two).chosen is two


def test_a_selection_names_those_that_had_not_converged():
    done = selection(candidate(1), candidate(2), candidate(3, converged=False, overtaken=True))
    assert done.unfinished == ()
    cut = selection(candidate(1), candidate(2, converged=False), candidate(3, converged=False))
    assert cut.unfinished == (2, 3)


def test_differences_and_their_errors_are_those_of_the_same_clients():
    counts = TWO.sample(80, rng=0)
    mdms = tuple(truth(name) for name in ("medium/2", "medium/3", "high/2"))
    logs = np.stack([mdm.logpmf(counts) for mdm in mdms])
    mean, error = behind(answer(Score(mdms), counts), 0)
    difference = logs[0] - logs
    np.testing.assert_allclose(mean, difference.mean(axis=1), atol=1e-9)
    np.testing.assert_allclose(error, difference.std(axis=1, ddof=1) / np.sqrt(80), atol=1e-6)

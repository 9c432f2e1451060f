"""Several numbers of components in the same rounds, judged by clients that were not fitted."""

from functools import partial

import numpy as np
import pytest

import polyurn
from polyurn import MDM, LocalAggregator, SizeBins, Sizes
from polyurn.errors import ParameterError, ZeroLikelihoodError
from polyurn.model.paper_truths import truth
from polyurn.server.fit_settings import DEFAULT, Policy
from polyurn.server.fitting import GRID
from polyurn.wire import Batch, Initialise, Part, Score
from searches import Changing, problem_of

APPENDIX_A = truth("appendix-a")
fit = partial(polyurn.fit, shape="dirichlet")  # `test_stages.py` has what follows the choice


def choose(counts, numbers, *, seed=0, **more):
    bounds = {"n_categories": 5, "max_size": 100, "sizes": "shared", "rng": seed}
    return fit(LocalAggregator(counts, rng=seed), n_components=numbers, **{**bounds, **more})


@pytest.mark.parametrize("seed", range(2))
def test_the_true_number_of_components_is_chosen(seed):
    choice = choose(APPENDIX_A.sample(1_500, rng=seed), range(1, 6), seed=seed)
    assert choice.n_components == choice.mdm.n_components == 3
    assert [c.n_components for c in choice.candidates] == [1, 2, 3, 4, 5]


def members(n_clients, *, seed, low, high):
    """Which clients of a LocalAggregator with this seed are in a part, by the buckets they drew."""
    counts = np.stack([np.arange(1, n_clients + 1), np.zeros(n_clients, int)], axis=1)
    query = Part(Initialise(1, 2, SizeBins.exact(n_clients)), low, high)
    answer = LocalAggregator(counts, rng=seed).aggregate(query, None)
    return np.flatnonzero(answer.size_counts[0])  # client i holds i + 1 points here


class Watched:
    """Notes which of its clients were fitted and which scored."""

    def __init__(self, counts):
        self.n_clients = len(counts)
        self.inner = LocalAggregator(counts, rng=0)
        self.fitted, self.scored, self.n_both, self.n_joined = set(), set(), 0, 0

    def aggregate(self, query, cohort_size):
        answer = self.inner.aggregate(query, cohort_size)
        if isinstance(query, Batch) and not isinstance(query.queries[0], Part):  # after the choice
            self.n_joined += 1
            return answer
        assert self.n_joined == 0
        parts, answers = (query,), (answer,)
        if isinstance(query, Batch):  # those that are fitted, and those that score
            parts, answers = query.queries, answer.answers
            self.n_both += 1
        for part, said in zip(parts, answers, strict=True):
            assert isinstance(part, Part)
            asked = members(self.n_clients, seed=0, low=part.low, high=part.high)
            (self.scored if isinstance(part.query, Score) else self.fitted).update(asked)
            first = said if hasattr(said, "n_clients") else said.answers[0]
            assert first.n_clients == len(asked)
        return answer


@pytest.mark.parametrize("max_rounds", [6, 50])
def test_no_client_scores_that_was_fitted_before(max_rounds):
    counts = np.stack([np.arange(1, 101), np.arange(100, 0, -1) + 2 * np.arange(100)], axis=1)
    clients = Watched(counts)
    fit(clients, n_components=[1, 2], n_categories=2, max_size=400, max_rounds=max_rounds, rng=0)
    assert (clients.n_both > 1) == (max_rounds == 50)  # scored in the last round, or after it
    assert clients.fitted.isdisjoint(clients.scored)
    assert clients.fitted | clients.scored == set(range(100))
    assert 5 < len(clients.scored) < 40
    assert 1 <= clients.n_joined <= 6


@pytest.mark.parametrize("cohort_size", [None, 300])
def test_held_out_clients_are_fitted_after_the_choice_and_their_score_stands(cohort_size):
    counts = APPENDIX_A.sample(600, rng=1)
    choice = choose(counts, [3], cohort_size=cohort_size, max_rounds=20)
    held = members(600, seed=0, low=0.8, high=1.0)
    if cohort_size is not None:  # samples
        assert choice.joined == ()
        assert choice.mdm == choice.chosen.mdm
        return
    assert choice.chosen.log_likelihood == pytest.approx(
        choice.chosen.mdm.logpmf(counts[held]).mean()
    )
    assert 1 <= len(choice.joined) <= 6
    assert choice.n_clients == 600
    mean = choice.mdm.logpmf(counts).mean()
    assert mean == pytest.approx(max(choice.joined), rel=1e-9)
    assert mean > choice.chosen.mdm.logpmf(counts).mean()


def test_differences_are_judged_client_by_client():
    counts = APPENDIX_A.sample(800, rng=3)
    aggregator = LocalAggregator(counts, rng=4)
    choice = fit(
        aggregator, n_components=[2, 3, 4], n_categories=5, max_size=100, sizes="shared", rng=5
    )
    held = members(800, seed=4, low=0.8, high=1.0)
    logs = np.stack([c.mdm.logpmf(counts[held]) for c in choice.candidates])
    best = logs.mean(axis=1).argmax()
    difference = logs[best] - logs
    error = difference.std(axis=1, ddof=1) / np.sqrt(len(held))
    for i, c in enumerate(choice.candidates):
        assert c.log_likelihood == pytest.approx(logs[i].mean(), rel=1e-9)
        assert c.behind == pytest.approx(difference[i].mean(), abs=1e-9)
        assert c.behind_error == pytest.approx(error[i], abs=1e-6)
    within = [c.n_components for c in choice.candidates if c.behind <= c.behind_error]
    assert choice.n_components == min(within)


@pytest.mark.parametrize("seed", range(4))
def test_all_numbers_share_the_rounds(seed):
    choice = choose(APPENDIX_A.sample(400, rng=seed), [1, 2, 3], seed=seed)
    slowest = max(c.n_rounds for c in choice.candidates)
    assert (
        choice.n_rounds - len(choice.joined) == slowest
    )  # held-out clients score in the last of them


def test_more_components_stop_when_fewer_do_better():
    counts = truth("medium/1").sample(500, rng=4)  # clients of one kind
    choice = choose(counts, [1, 8], seed=4, n_categories=10, max_size=20)
    one, eight = choice.candidates
    assert one.converged
    assert eight.overtaken
    assert eight.behind > eight.behind_error
    assert choice.n_components == 1
    assert choice.n_rounds - len(choice.joined) == eight.n_rounds < 50


@pytest.mark.parametrize("seed", range(4))
def test_who_has_converged_is_not_outdone(seed):
    choice = choose(APPENDIX_A.sample(600, rng=seed), [1, 2, 3, 4, 6], seed=seed)
    assert not any(c.converged and c.overtaken for c in choice.candidates)


def test_more_components_go_on_when_they_are_needed():
    choice = choose(APPENDIX_A.sample(1_500, rng=1), [1, 2, 3])
    assert all(c.converged and not c.overtaken for c in choice.candidates)


def test_all_numbers_together_stay_within_the_upload():
    sent = []
    choose(APPENDIX_A.sample(300, rng=0), range(1, 5), max_upload=4_000, max_rounds=12,
           on_round=lambda done: sent.append(done.n_numbers))  # fmt: skip
    assert max(sent) <= 4_000


def test_auto_of_a_table_does_not_stop_before_to_double_k_gains_less_than_a_standard_error():
    choice = fit(APPENDIX_A.sample(800, rng=1), sizes="shared", rng=1)
    assert choice.n_components in (3, 4)
    tried = [c.n_components for c in choice.candidates]
    assert tried == list(GRID[: len(tried)])
    assert 2 * choice.n_components <= tried[-1] < GRID[-1]
    assert f"from {tried[-1] // 2} to {tried[-1]} components" in choice.stopped


def test_auto_of_clients_elsewhere_takes_no_more_rounds_than_its_largest_number():
    choice = choose(APPENDIX_A.sample(800, rng=1), "auto")
    tried = [c.n_components for c in choice.candidates]
    assert tried == [2**i for i in range(len(tried))]
    assert tried[-1] >= 16
    slowest = max(c.n_rounds for c in choice.candidates)
    assert choice.n_rounds <= slowest + 1 + len(choice.joined) <= 40
    assert max(r.n_numbers for r in choice.rounds) <= 50_000
    few = choose(APPENDIX_A.sample(800, rng=1), "auto", max_upload=2_000)
    assert few.candidates[-1].n_components < tried[-1]
    assert max(r.n_numbers for r in few.rounds) <= 2_000


def test_where_a_result_went_is_not_left_to_guess():
    choice = choose(APPENDIX_A.sample(300, rng=0), [1, 2])
    assert sum(choice.sent.values()) == choice.n_numbers == sum(r.n_numbers for r in choice.rounds)
    assert set(choice.sent) <= {"survey", "starts", "steps", "curvature", "scores"}
    assert choice.cost.startswith(
        f"{choice.n_rounds} rounds, {choice.n_numbers:,} numbers from a client"
    )


def test_a_round_in_which_held_out_clients_only_score_is_counted():
    clients = Watched(APPENDIX_A.sample(100, rng=0))
    asked = []
    clients.inner = type("Noting", (), {
        "aggregate": lambda self, query, size, inner=clients.inner: (
            asked.append(query), inner.aggregate(query, size))[1]
    })()  # fmt: skip
    choice = fit(clients, n_components=[1, 2], n_categories=5, max_size=100, max_rounds=6, rng=0)
    assert choice.n_rounds == len(asked) == choice.rounds[-1].number


def test_progress_tells_all_numbers_at_once():
    seen = []
    choose(APPENDIX_A.sample(300, rng=0), [1, 2], on_round=seen.append)
    assert [p.number for p in seen] == list(range(1, len(seen) + 1))
    assert set(seen[-1].values) == {1, 2}
    assert seen[-1].running == ()


def test_sampled_cohorts_can_choose_too():
    choice = choose(APPENDIX_A.sample(20_000, rng=0), [1, 2, 3], cohort_size=1_500, max_rounds=20)
    assert choice.n_components == 3


@pytest.mark.parametrize(
    ("numbers", "more"),
    [
        ([], {}),
        ([0, 1], {}),
        ([1], {"held_out": 0.0}),
        ([1], {"held_out": 1.0}),
        ([1], {"tol": 0}),
        ([1], {"max_rounds": 3}),
        ([1], {"patience": -1}),
    ],
)
def test_settings_out_of_range_are_refused(numbers, more):
    with pytest.raises(ParameterError):
        choose(APPENDIX_A.sample(50, rng=0), numbers, **more)


@pytest.mark.parametrize("n_clients", [1, 2, 3, 5])
def test_one_held_out_client_is_found_in_the_first_round_not_after_twelve(n_clients):
    clients = Watched(APPENDIX_A.sample(n_clients, rng=0))
    seen = []
    with pytest.raises(ParameterError, match=r"2 held out, got \d and \d; .* 25 clients") as said:
        fit(clients, n_components=[1, 2], n_categories=5, max_size=100, rng=0, on_round=seen.append)
    assert not seen
    assert clients.n_both == 1
    assert "\n" not in str(said.value)


def test_few_held_out_clients_show_in_the_words_of_a_selection():
    few = choose(APPENDIX_A.sample(40, rng=0), [1, 2])
    assert f"{few.n_held_out} held-out clients are too few to tell" in few.caution
    many = choose(APPENDIX_A.sample(300, rng=0), [1, 2])
    assert "too few" not in many.caution


def test_a_selection_says_where_the_largest_number_won_and_what_to_offer_next():
    counts = APPENDIX_A.sample(300, rng=0)
    won = choose(counts, [1, 2])
    assert won.n_components == 2
    assert "K = 2 is the largest that was offered" in won.caution
    assert "--components 2,3,4 (in Python n_components=[2, 3, 4])" in won.caution
    assert choose(counts, [2]).caution == ""
    one = choose(MDM([1.0], [[2.0] * 5], Sizes.constant(30)).sample(300, rng=0), [1, 2])
    assert one.n_components == 1
    assert "largest" not in one.caution


def test_too_few_held_out_clients_are_an_error_that_says_so():
    with pytest.raises(ParameterError, match=r"1 client to fit and 2 held out, got \d+ and 0"):
        choose(APPENDIX_A.sample(20, rng=0), [1], held_out=1e-6)


def test_numbers_that_there_are_too_few_clients_for_are_left_out_and_said():
    counts = APPENDIX_A.sample(18, rng=0)
    choice = choose(counts, [1, 2, 40])
    assert choice.skipped == (40,)
    assert [c.n_components for c in choice.candidates] == [1, 2]
    auto = choose(counts, "auto")
    assert max(c.n_components for c in auto.candidates) <= 9
    with pytest.raises(ParameterError, match=r"40 components need .* clients, got 1"):
        choose(counts, [40])


@pytest.mark.parametrize("seed", range(4))
def test_auto_copes_with_small_cohorts(seed):
    counts = truth("medium/2").sample(300, rng=0)
    choice = fit(
        LocalAggregator(counts, rng=seed), n_components="auto", n_categories=10, max_size=20,
        cohort_size=50, max_rounds=8, rng=seed,
    )  # fmt: skip
    assert choice.n_components >= 1


def test_a_selection_that_ran_out_of_rounds_says_so():
    counts = APPENDIX_A.sample(300, rng=0)
    short = choose(counts, [1, 2, 3], max_rounds=6)
    assert short.unfinished == (1, 2, 3)
    assert "K = 1 to 3" in short.stopped
    assert "allow more rounds" in short.stopped
    whole = choose(counts, [1, 2, 3])
    assert whole.unfinished == ()
    assert whole.stopped.startswith("converged")


def test_a_candidate_says_what_became_of_its_components():
    choice = choose(np.tile([10, 20, 30, 20, 20], (60, 1)), [4])
    (four,) = choice.candidates
    assert choice.n_dropped == 4 - four.mdm.n_components
    assert four.mdm.multinomial == tuple(range(four.mdm.n_components))
    assert choice.chosen is four


def test_numbers_that_do_not_fit_into_one_upload_are_fitted_in_groups():
    counts = APPENDIX_A.sample(200, rng=0)
    most = 200  # for three of the trials that are made for one to four components
    choice = choose(counts, [1, 2, 3, 4], max_upload=most, max_rounds=12)
    assert [c.n_components for c in choice.candidates] == [1, 2, 3, 4]
    assert max(r.n_numbers for r in choice.rounds) <= most
    begun = {k: next(r.number for r in choice.rounds if k in r.values) for k in (1, 4)}
    ended = max(r.number for r in choice.rounds if 1 in r.running)
    assert begun[1] < ended < begun[4]
    with pytest.raises(ParameterError, match=r"4 components take .* numbers .*, and 40"):
        choose(counts, [1, 4], max_upload=40)
    with pytest.raises(ParameterError, match=r"1 component takes .* numbers .*, and 20"):
        choose(counts, "auto", max_upload=20)


def test_settings_that_rule_out_held_out_clients_are_said():
    counts = np.stack([np.arange(1, 61), np.arange(60, 0, -1) * 2], axis=1)
    more = {"n_categories": 2, "max_size": 200, "sizes": "exact"}
    with pytest.raises(ZeroLikelihoodError, match="size_prior=0"):
        choose(counts, [1, 2], size_prior=0.0, max_rounds=8, **more)
    with pytest.raises(ParameterError, match="category_prior"):
        choose(counts, [1, 2], category_prior=0.0, **more)


def test_a_cohort_of_all_clients_is_everyone():
    counts = APPENDIX_A.sample(400, rng=0)
    everyone, same = choose(counts, [1, 2]), choose(counts, [1, 2], cohort_size=400)
    assert same.mdm == everyone.mdm
    assert same.n_rounds == everyone.n_rounds
    assert same.n_agreeing == everyone.n_agreeing


def test_a_choice_says_how_many_starts_of_its_number_agree():
    choice = choose(APPENDIX_A.sample(600, rng=0), [1, 2, 3])
    assert choice.n_components > 1
    assert 1 <= choice.n_agreeing <= DEFAULT.starts
    sampled = choose(APPENDIX_A.sample(600, rng=0), [1, 2], cohort_size=300, max_rounds=8)
    assert sampled.n_agreeing is None


def test_patience_of_none_stops_no_later():
    counts = APPENDIX_A.sample(400, rng=0)
    hasty, usual = (choose(counts, [1, 2, 3], patience=p) for p in (0, 3))
    assert all(c.converged for c in hasty.candidates)
    for one, other in zip(hasty.candidates, usual.candidates, strict=True):
        assert one.n_rounds <= other.n_rounds


def test_a_policy_is_passed_on():
    counts = APPENDIX_A.sample(300, rng=0)
    choice = choose(counts, [2, 3], policy=Policy(starts=5), max_rounds=6)
    first = next(r for r in choice.rounds if r.starts)
    assert len(first.starts) == 5
    trials = sum(5 * problem_of(counts, k).trial_cost for k in (2, 3))
    assert first.n_numbers == trials


@pytest.mark.parametrize("at", [4, 8, 12])
@pytest.mark.parametrize("until", [10**9, 10])
def test_a_node_may_leave_and_come_back_during_a_selection(at, until):
    counts = APPENDIX_A.sample(1_000, rng=3)
    clients = Changing(counts, np.arange(1_000), np.arange(125, 1_000), at=at, until=at + until)
    choice = fit(clients, n_components=range(1, 5), n_categories=5, max_size=100, rng=0)
    assert choice.n_components == 3
    assert not choice.unfinished
    assert choice.n_rounds < 30

"""Where there are many clients, a part of them runs the race."""

import numpy as np
import pytest

from polyurn import Journal, LocalAggregator, ReplayAggregator, fit
from polyurn.model.paper_truths import truth
from polyurn.server.fit_settings import DEFAULT, Policy, Settings
from polyurn.server.fitting import begin_search
from polyurn.wire import Batch, Group, Part
from searches import landscape_of, problem_of, rounds_of

COUNTS = truth("medium/3").sample(8_200, rng=0)
BOUNDS = {"n_categories": 10, "max_size": 20}
UNSCREENED = Policy(screened_from=10**9)


class Watched(LocalAggregator):
    """Notes how many numbers those of the part, and the others, were asked for in each round."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.queries, self.part, self.others = [], [], []

    def aggregate(self, query, cohort_size):
        parts = query.queries if isinstance(query, Batch) else (query,)
        self.queries.append(parts)
        self.part.append(sum(q.n_numbers for q in parts))
        self.others.append(sum(q.n_numbers for q in parts if not isinstance(q, Part)))
        return super().aggregate(query, cohort_size)


def fitted(clients, **more):
    return fit(clients, n_components=3, rng=1, **BOUNDS, **more)


@pytest.fixture(scope="module")
def clients():
    return Watched(COUNTS, rng=0)


@pytest.fixture(scope="module")
def done(clients):
    return fitted(clients)


@pytest.mark.parametrize("name", ["low/2", "medium/3", "high/3"])
def test_it_ends_where_a_race_of_all_clients_ends(name):
    mdm = truth(name)
    counts = mdm.sample(8_200, rng=0)
    screened, plain = (
        fit(LocalAggregator(counts, rng=0), n_components=mdm.n_components, rng=1, policy=policy,
            **BOUNDS)
        for policy in (DEFAULT, UNSCREENED)
    )  # fmt: skip
    assert screened.converged
    assert {r.n_clients for r in plain.rounds} == {8_200} != {r.n_clients for r in screened.rounds}
    assert screened.log_likelihoods[-1] == pytest.approx(plain.log_likelihoods[-1], abs=1e-3)
    got = screened.mdm.logpmf(counts).mean()
    assert got == pytest.approx(screened.log_likelihoods[-1], abs=1e-9)


def test_a_part_races_before_all_are_asked(done):
    asked = [r.n_clients for r in done.rounds]
    assert asked[0] == asked[-1] == 8_200  # the survey, and what counts in the end
    part = [n for n in asked if n < 8_200]
    assert asked == [8_200, *part, *[8_200] * (len(asked) - 1 - len(part))]
    assert len(part) >= 4
    assert len(set(part)) == 1  # always the same clients
    assert 900 < part[0] < 1_100


def test_most_clients_send_little(clients, done):
    assert sum(clients.others) < 0.2 * sum(clients.part)
    few = fitted(few_clients := Watched(COUNTS, rng=0), policy=UNSCREENED)
    assert few.converged
    assert sum(clients.others) < 0.2 * sum(few_clients.others)


def test_all_begin_with_the_hessian_that_the_part_has_sent(clients, done):
    first = next(r for r in done.rounds if r.n_clients == 8_200 and r.mdm is not None)
    (asked,) = clients.queries[first.number - 1]
    after = clients.queries[first.number]
    assert not asked.curvature
    assert len(after) == 1 + len(DEFAULT.dampings)  # Newton steps at once
    assert sum(bool(q.curvature) for q in after) == 1


def test_it_says_how_many_starts_of_the_race_agree(done):
    assert 1 < done.n_agreeing <= DEFAULT.starts


@pytest.mark.parametrize("max_upload", [1_500, 3_000, 10_000])
def test_nobody_sends_more_than_it_may(max_upload):
    clients = Watched(COUNTS, rng=0)
    result = fitted(clients, max_upload=max_upload)
    assert max(clients.part) <= max_upload
    assert result.converged


@pytest.mark.parametrize("after", [3, 7, 11])
def test_a_stopped_fit_goes_on_to_the_identical_result(tmp_path, done, after):
    class Gone(LocalAggregator):
        n_left = after

        def aggregate(self, query, cohort_size):
            if self.n_left == 0:
                raise KeyboardInterrupt
            self.n_left -= 1
            return super().aggregate(query, cohort_size)

    with pytest.raises(KeyboardInterrupt):
        fitted(ReplayAggregator(Gone(COUNTS, rng=0), Journal(tmp_path, {})))
    again = fitted(ReplayAggregator(LocalAggregator(COUNTS, rng=0), Journal(tmp_path, {})))
    assert again.mdm == done.mdm


@pytest.mark.parametrize(
    ("n_clients", "k", "more"), [(7_900, 3, {}), (8_200, 1, {}), (8_200, 3, {"size_prior": 0.0})]
)
def test_few_clients_one_component_and_no_prior_for_sizes_are_not_screened(n_clients, k, more):
    result = fit(
        LocalAggregator(COUNTS[:n_clients], rng=0), n_components=k, rng=1, max_rounds=5, **BOUNDS,
        **more,
    )  # fmt: skip
    assert {r.n_clients for r in result.rounds} == {n_clients}


def test_which_search_is_begun_follows_from_the_clients():
    problem, land = problem_of(COUNTS, 3), landscape_of(COUNTS)

    def first(n_clients, *, sampled=False, max_upload=50_000):
        settings = Settings(cohort_size=100 if sampled else None, max_upload=max_upload)
        rng = np.random.default_rng(0)
        search = begin_search(problem, land, settings, rng, n_clients=n_clients)
        return search.queries()

    assert [type(q) for q in first(7_999)] == [Group] * 48
    (part,) = first(8_000)
    assert (part.low, part.high) == (0.0, pytest.approx(1_000 / 8_000))
    assert [type(q) for q in part.query.queries] == [Group] * 48
    assert [type(q) for q in first(8_000, sampled=True)] == [Group] * 48
    assert len(first(7_999, max_upload=5 * problem.trial_cost)) == 5


def test_what_the_part_has_come_to_is_never_the_end():
    problem, land = problem_of(COUNTS, 3), landscape_of(COUNTS)
    rng = np.random.default_rng(0)
    search = begin_search(problem, land, Settings(), rng, n_clients=8_200)
    states = [state for _, state in rounds_of(search, COUNTS)]
    part = [s for s in states if s.n_clients < 8_200]
    assert not any(s.converged or s.nearly_done for s in part)
    assert all(s.promise >= problem.n_parameters / 2_000 for s in part)  # by as much it may miss
    assert states[-1].converged


def test_a_selection_is_screened_among_those_that_are_fitted():
    counts = truth("medium/2").sample(10_500, rng=1)
    parts = []

    class Noted(LocalAggregator):
        def aggregate(self, query, cohort_size):
            parts.extend(nested(query))
            return super().aggregate(query, cohort_size)

    only = {"shape": "dirichlet", "held_out": 0.2}  # nothing follows the choice
    choice = fit(Noted(counts, rng=0), n_components=[1, 2, 3], rng=1, **only, **BOUNDS)
    assert choice.n_components == 2
    assert 1_900 < choice.n_held_out < 2_300
    buckets, part = {p for p in parts if p[0] == 0.0}, min(p[1] for p in parts)
    assert buckets == {(0.0, 0.8), (0.0, part)}
    assert 800 < part * 10_500 < 1_200
    two = choice.candidates[1]
    assert two.converged
    n_fitted = 10_500 - choice.n_held_out
    assert max(r.n_clients for r in choice.rounds) == n_fitted
    assert 800 < min(r.n_clients for r in choice.rounds) < 1_200  # sums over the part
    alone = fit(LocalAggregator(counts, rng=0), n_components=2, rng=1, **BOUNDS)
    gap = alone.mdm.logpmf(counts).mean() - two.mdm.logpmf(counts).mean()
    assert 0 <= gap < 0.01  # it was fitted to four fifths of them


def nested(query):
    """The buckets of every part in a query."""
    found = [(query.low, query.high)] if isinstance(query, Part) else []
    inner = query.queries if isinstance(query, Batch) else getattr(query, "query", None)
    for one in inner if isinstance(inner, tuple) else [inner] if inner is not None else []:
        found += nested(one)
    return found


@pytest.mark.parametrize("sizes", ["binned", "shared"])
@pytest.mark.parametrize("size_prior", [0.0, 1.0])
def test_sizes_that_the_part_lacks_are_not_impossible(sizes, size_prior):
    counts = COUNTS.copy()
    counts[:8, 0] += 379  # very few very large clients
    more = {"n_categories": 10, "max_size": 399, "sizes": sizes, "size_prior": size_prior}
    result = fit(LocalAggregator(counts, rng=0), n_components=2, rng=1, **more)
    assert np.isfinite(result.mdm.logpmf(counts)).all()


def test_the_path_of_a_start_has_no_gap():
    """Climbers that were followed late were once drawn at rounds when nobody had judged them."""
    counts = truth("low/3").sample(8_200, rng=2)
    result = fit(LocalAggregator(counts, rng=2), n_components=3, rng=2, **BOUNDS)
    judged = {}
    for r in result.rounds:
        for start in r.starts:
            judged.setdefault(start, []).append(r.number)
    for numbers in judged.values():
        assert numbers == list(range(numbers[0], numbers[-1] + 1))


def test_a_fit_that_only_the_part_has_judged_says_so():
    result = fitted(LocalAggregator(COUNTS, rng=0), max_rounds=4)
    assert not result.converged
    assert f"judged by {result.rounds[-1].n_clients:,} clients only" in result.stopped

"""Where there are many clients, a part of them runs the race."""

import numpy as np
import pytest

from polyurn import Journal, LocalAggregator, RecordedAggregator, fit, select
from polyurn.model.paper_truths import truth
from polyurn.server.records import FitRecord
from polyurn.server.search import screening as vanguard
from polyurn.wire import Batch, Part

TRUTH = truth("medium/2")
COUNTS = TRUTH.sample(9_000, rng=0)
BOUNDS = {"n_categories": 10, "max_size": 20}


class Watched(LocalAggregator):
    """Notes how many clients were asked how much in each round."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.queries, self.ahead, self.others = [], [], []

    def aggregate(self, query, cohort_size):
        parts = query.queries if isinstance(query, Batch) else (query,)
        self.queries.append(parts)
        self.ahead.append(sum(q.n_numbers for q in parts))
        self.others.append(sum(q.n_numbers for q in parts if not isinstance(q, Part)))
        return super().aggregate(query, cohort_size)


def fitted(clients, **more):
    return fit(clients, n_components=2, rng=1, **BOUNDS, **more)


@pytest.fixture(scope="module")
def done():
    return fitted(LocalAggregator(COUNTS, rng=0))


def test_it_ends_where_a_race_of_all_clients_ends(done, monkeypatch):
    monkeypatch.setattr(vanguard, "_WORTH", np.inf)
    plain = fitted(LocalAggregator(COUNTS, rng=0))
    assert done.converged
    assert done.n_rounds <= plain.n_rounds + 2
    assert done.log_likelihoods[-1] == pytest.approx(plain.log_likelihoods[-1], abs=1e-6)
    assert done.mdm.logpmf(COUNTS).mean() == pytest.approx(done.log_likelihoods[-1], abs=1e-9)


def test_a_part_races_before_all_are_asked(done):
    asked = [r.n_clients for r in done.rounds]
    assert asked[0] == asked[-1] == 9_000  # the survey, and what counts in the end
    ahead = [n for n in asked if n < 9_000]
    assert len(ahead) >= 4
    assert len(set(ahead)) == 1  # always the same clients
    assert 900 < ahead[0] < 1_100


def test_most_clients_send_little():
    clients = Watched(COUNTS, rng=0)
    fitted(clients)
    assert sum(clients.others) < 0.4 * sum(clients.ahead)


def test_all_begin_with_the_curvature_that_the_part_has_sent():
    clients = Watched(COUNTS, rng=0)
    done = fitted(clients)
    first = next(r for r in done.rounds if r.n_clients == 9_000 and r.mdm is not None)
    asked = [q for q in clients.queries[first.number - 1] if not isinstance(q, Part)]
    after = [q for q in clients.queries[first.number] if not isinstance(q, Part)]
    assert not any(q.curvature for q in asked)
    assert len(asked) < len(after)  # Newton steps, of which one tells the curvature of all
    assert sum(bool(q.curvature) for q in after) == 1


@pytest.mark.parametrize("max_upload", [1_500, 3_000, 10_000])
def test_nobody_sends_more_than_it_may(max_upload):
    clients = Watched(COUNTS, rng=0)
    result = fitted(clients, max_upload=max_upload)
    assert max(clients.ahead) <= max_upload
    assert result.converged


@pytest.mark.parametrize("after", [3, 7, 9])
def test_a_stopped_fit_goes_on_to_the_identical_result(tmp_path, done, after):
    class Gone(LocalAggregator):
        n_left = after

        def aggregate(self, query, cohort_size):
            if self.n_left == 0:
                raise KeyboardInterrupt
            self.n_left -= 1
            return super().aggregate(query, cohort_size)

    with pytest.raises(KeyboardInterrupt):
        fitted(RecordedAggregator(Gone(COUNTS, rng=0), Journal(tmp_path, {})))
    again = fitted(RecordedAggregator(LocalAggregator(COUNTS, rng=0), Journal(tmp_path, {})))
    assert again.mdm == done.mdm


def test_few_clients_race_all_together():
    result = fitted(LocalAggregator(COUNTS[:3_000], rng=0))
    assert {r.n_clients for r in result.rounds} == {3_000}


def test_a_selection_has_a_vanguard_among_those_that_are_fitted():
    counts = TRUTH.sample(11_000, rng=1)
    parts = []

    class Noted(LocalAggregator):
        def aggregate(self, query, cohort_size):
            parts.extend(nested(query))
            return super().aggregate(query, cohort_size)

    choice = select(Noted(counts, rng=0), [1, 2, 3], rng=1, **BOUNDS)
    assert choice.n_components == 2
    assert 2_000 < choice.n_held_out < 2_400
    fitted_lots, ahead = {p for p in parts if p[0] == 0.0}, min(p[1] for p in parts)
    assert fitted_lots == {(0.0, 0.8), (0.0, ahead)}
    assert 800 < ahead * 11_000 < 1_200
    two = choice.candidates[1]
    assert two.converged
    n_fitted = 11_000 - choice.n_held_out
    assert max(r.n_clients for r in choice.rounds) == n_fitted
    assert 800 < min(r.n_clients for r in choice.rounds) < 1_200  # sums over the part
    alone = fitted(LocalAggregator(counts, rng=0))
    gap = alone.mdm.logpmf(counts).mean() - two.mdm.logpmf(counts).mean()
    assert 0 <= gap < 0.01  # it was fitted to four fifths of them


def nested(query):
    """The lots of every part in a query."""
    found = [(query.low, query.high)] if isinstance(query, Part) else []
    inner = query.queries if isinstance(query, Batch) else getattr(query, "query", None)
    for one in inner if isinstance(inner, tuple) else [inner] if inner is not None else []:
        found += nested(one)
    return found


@pytest.mark.parametrize("sizes", ["binned", "shared"])
def test_sizes_that_the_part_lacks_are_not_impossible(sizes):
    counts = COUNTS.copy()
    counts[:8, 0] += 379  # very few very large clients
    more = {"n_categories": 10, "max_size": 399, "sizes": sizes, "size_prior": 0.0}
    for seed in range(3):
        result = fit(LocalAggregator(counts, rng=seed), n_components=2, rng=1, **more)
        assert np.isfinite(result.mdm.logpmf(counts)).all()


def test_the_path_of_a_start_has_no_gap():
    """Tracks that are followed late were once drawn at rounds when nobody had judged them."""
    counts = truth("low/3").sample(10_000, rng=2)
    result = fit(LocalAggregator(counts, rng=2), n_components=3, rng=2, **BOUNDS)
    judged = {}
    for r in result.rounds:
        for start in r.starts:
            judged.setdefault(start, []).append(r.number)
    for path in FitRecord.of(result).paths:
        rounds = judged[path.start]
        assert rounds == list(range(path.first_round, path.last_round + 1))


def test_a_fit_that_only_the_part_has_judged_says_so():
    result = fitted(LocalAggregator(COUNTS, rng=0), max_rounds=4)
    assert not result.converged
    assert f"judged by {result.rounds[-1].n_clients:,} clients only" in result.stopped

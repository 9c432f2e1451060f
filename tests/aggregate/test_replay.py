"""A run that was stopped goes on to the same result, to the bit."""

import numpy as np
import pytest

from polyurn import MDM, Journal, LocalAggregator, ReplayAggregator, Sizes, fit
from polyurn.errors import FileError
from polyurn.model.paper_truths import truth
from polyurn.wire import Update

COUNTS = truth("appendix-a").sample(300, rng=0)
BOUNDS = {"n_categories": 5, "max_size": 100, "rng": 1}


class Stops:
    """Clients that are gone after some rounds."""

    def __init__(self, aggregator, after):
        self.aggregator, self.left = aggregator, after

    def aggregate(self, query, cohort_size):
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        return self.aggregator.aggregate(query, cohort_size)

    def skip(self):
        return self.aggregator.skip()


def fitted(aggregator, **more):
    return fit(aggregator, n_components=3, **BOUNDS, **more).mdm


def selected(aggregator, **more):
    return fit(aggregator, n_components=[1, 2, 3], **BOUNDS, **more).mdm


@pytest.mark.parametrize("run", [fitted, selected])
@pytest.mark.parametrize(
    "more", [{}, {"cohort_size": 200, "max_rounds": 16}], ids=["all", "sample"]
)
@pytest.mark.parametrize("after", [1, 4, 8])
def test_a_stopped_run_goes_on_to_the_identical_result(tmp_path, run, more, after):
    whole = run(LocalAggregator(COUNTS, rng=2), **more)
    stopped = Stops(LocalAggregator(COUNTS, rng=2), after)
    with pytest.raises(KeyboardInterrupt):
        run(ReplayAggregator(stopped, Journal(tmp_path, {})), **more)
    journal = Journal(tmp_path, {})
    assert len(journal) == after
    assert run(ReplayAggregator(LocalAggregator(COUNTS, rng=2), journal), **more) == whole


def test_a_finished_run_asks_nobody(tmp_path):
    first = fitted(ReplayAggregator(LocalAggregator(COUNTS), Journal(tmp_path, {})))
    again = fitted(ReplayAggregator(Stops(LocalAggregator(COUNTS), 0), Journal(tmp_path, {})))
    assert first == again


def test_a_record_of_another_run_is_refused(tmp_path):
    journal = Journal(tmp_path, {})
    journal.append(np.zeros(3))
    with pytest.raises(FileError, match="another run"):
        fitted(ReplayAggregator(LocalAggregator(COUNTS), journal))


def test_a_recorded_sum_in_which_a_start_had_probability_zero_is_replayed():
    impossible = Update(MDM([1.0], [[1.0, 0.0]], Sizes.constant(2)))
    kept = []
    first = ReplayAggregator(LocalAggregator([[1, 1]]), kept).aggregate(impossible, None)
    again = ReplayAggregator(LocalAggregator([[1, 1]]), kept).aggregate(impossible, None)
    assert first.log_likelihood == again.log_likelihood == -np.inf

"""Searches driven by hand, for the tests: what each round asks is put to the clients of a table."""

import numpy as np

from polyurn import LocalAggregator, SizeBins, answer
from polyurn.server import em
from polyurn.server.em import Problem
from polyurn.server.fit_settings import DEFAULT, Settings
from polyurn.server.search import Race
from polyurn.server.starts import landscape, random_groups, survey
from polyurn.wire import Batch, Parameters


def parameters_of(mdm):
    return Parameters(mdm.weights, mdm.alphas, mdm.sizes)


def to_x(parameters):
    return em.to_x(parameters.weights, parameters.alphas)


def from_x(x, shape, sizes):
    return Parameters(*em.from_x(x, shape), sizes)


def problem_of(counts, k, *, shared=True, size_prior=1.0, category_prior=1e-3):
    bins = SizeBins.logarithmic(int(counts.sum(axis=1).max()))
    return Problem(k, counts.shape[1], bins, shared, size_prior, category_prior)


def landscape_of(counts, *, sizes=False, max_upload=50_000):
    bins = SizeBins.logarithmic(int(counts.sum(axis=1).max()))
    query = survey(counts.shape[1], bins, max_upload=max_upload)
    return landscape(query, answer(query, counts), sizes=sizes)


def race_of(counts, k, *, groups=None, begin=None, size_prior=1.0, policy=DEFAULT, seed=0, **more):
    """A race for k components; its groupings are random unless they are given."""
    problem = problem_of(counts, k, size_prior=size_prior)
    rng = np.random.default_rng(seed)
    if groups is None and begin is None:
        n_ways = min(policy.starts, more.get("max_upload", 50_000) // problem.trial_cost)
        land = landscape_of(counts)
        groups = random_groups(land, k, problem.size_bins, n_ways=n_ways, rng=rng)
    return Race(problem, groups or [], Settings(policy=policy, **more), rng, begin=begin)


def rounds_of(search, counts, *, at_most=40):
    """What a search asked in each round, and the state that it then came to, until it converged."""
    clients, done = LocalAggregator(counts, rng=0), []
    for _ in range(at_most):
        asked = search.queries()
        state = search.learn(list(clients.aggregate(Batch(tuple(asked)), None).answers))
        done.append((asked, state))
        if state.converged:
            break
    return done


def states_of(search, counts, *, at_most=40):
    return [state for _, state in rounds_of(search, counts, at_most=at_most)]


class Changing:
    """Plays the clients of `first`, and from round `at` on those of `then`; clients keep their buckets.

    Both are lists of rows of `counts`; `until` is the first round in which those of `first` are back.
    """

    def __init__(self, counts, first, then, *, at, until=10**9):
        self.counts, self.first, self.then = counts, first, then
        self.rounds, self.n_rounds = range(at, until), 0
        self.buckets = np.random.default_rng([0, 1]).random(len(counts))

    def aggregate(self, query, cohort_size):
        self.n_rounds += 1
        there = self.then if self.n_rounds in self.rounds else self.first
        return answer(query, self.counts[there], buckets=self.buckets[there])

    def skip(self):
        self.n_rounds += 1

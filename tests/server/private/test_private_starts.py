"""Mixtures that would explain a noised sketch."""

from dataclasses import dataclass, field

import numpy as np

from polyurn import LocalAggregator
from polyurn.model.paper_truths import truth
from polyurn.model.scores import Mixture
from polyurn.model.sizes import SizeBins
from polyurn.server.private.private_starts import Sketched, make_sketch
from polyurn.server.private.steps import ClientTotals, surveyed
from polyurn.wire import BoundedSurvey


@dataclass(frozen=True)
class Counting(ClientTotals):
    """Totals that remember how many clients were simulated of them."""

    drawn: list[int] = field(default_factory=list)

    def simulate(self, mixture, n, rng):
        self.drawn.append(n)
        return super().simulate(mixture, n, rng)


def matched(n_clients):
    """A match of the sketch of so many clients, how many were simulated for it, and the truth."""
    known = truth("medium/2")
    clients = LocalAggregator(known.sample(n_clients, rng=0))
    survey = BoundedSurvey(10, SizeBins.logarithmic(20))
    population = surveyed(survey, clients.aggregate(survey, None).values, 1e-6)
    rng = np.random.default_rng(1)
    sketch = make_sketch(population, 16, rng)
    seen = Sketched(sketch, clients.aggregate(sketch, None).values / n_clients, 1e-4)
    counting = Counting(**vars(population))
    _, mixture = seen.matched(Mixture(known.weights, 1.5 * known.alphas), counting, rng)
    return mixture, sum(counting.drawn), known


def test_few_clients_are_not_matched_by_hundreds_of_thousands_of_simulated_ones():
    assert matched(600)[1] <= 25 * 10 * 600
    assert matched(20_000)[1] > 180_000


def test_a_match_comes_from_one_and_a_half_times_the_concentrations_to_the_known_ones():
    mixture, _, known = matched(20_000)
    np.testing.assert_allclose(
        np.sort(mixture.concentrations), np.sort(known.alphas.sum(axis=1)), rtol=0.25
    )

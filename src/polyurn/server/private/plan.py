"""What a private fit spends on which round, and every other tuned number of it.

One frozen value; `benchmarks/privacy.py` has the paired runs behind the numbers. The modules beside this
one perform the rounds.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Plan:
    """Shares of the budget, round by round, and the tuned numbers of the rounds.

    A round with share f of the budget has noise of standard deviation σ / √f, where σ is that of a
    single release that spends everything: the inverse squares of Gaussian noises add up.

    `survey`, `sketch`, `choice` and `guard` are shares of the rounds that are asked once; `choice`
    compares numbers of components, and `guard` the result with the mixture before the last climb. `race`
    and `score` are those of the rounds in which several starts climb, and in which the chosen one does.
    In the first round of the race there are at least and at most `n_starts` beside a single
    Dirichlet-multinomial: as many as `race_cost` allows, in nats per client that the noise of one round
    may cost each, and `race_numbers`, that a client sends in a round, or those of six starts, if these
    are more. `racing` is the share of the starts in each round (successive halving, Jamieson and
    Talwalkar 2016), and `racing_each` how many of each number of components climb if the number is to be
    chosen. `of_gains` is the share of a race's round that compares the starts, `of_sizes` that of the
    last round that asks for the sizes of each component's clients.

    The sketch has `groups` prototypes for each component. `n_simulated` clients are drawn in every round
    for each of several starts, and for a single one; the scores of at least the share `unclipped` of
    them are not clipped, and clips are raised until the noise of a score round costs `noise_cost` nats
    per client. Directions of θ with less than `least_information` per client do not move. `largest_step`
    is in any log α or logit, `largest_gain` in nats per client. Steps of the last `n_shrunk` rounds are
    shrunk towards 0, and in the last `n_free` small weights and alphas are allowed: floors are the least
    α_kj as a share of α_k0 times the pooled proportion of j, and the least weight times K.
    """

    survey: float = 0.04
    sketch: float = 0.14
    race: tuple[float, ...] = (0.08, 0.08, 0.08, 0.08, 0.08)
    n_starts: tuple[int, int] = (2, 14)
    racing: tuple[float, ...] = (1.0, 1.0, 0.8, 0.5, 0.25)
    race_cost: float = 0.03
    race_numbers: int = 600
    racing_each: tuple[int, ...] = (5, 5, 3, 2)
    of_gains: float = 0.3
    score: tuple[float, ...] = (0.10, 0.10, 0.11, 0.11)
    choice: float = 0.0
    guard: float = 0.03
    groups: int = 8
    n_simulated: tuple[int, int] = (10_000, 20_000)
    unclipped: float = 0.8
    noise_cost: float = 0.002
    least_information: float = 5e-5
    largest_step: float = 1.5
    largest_gain: float = 20.0
    n_shrunk: int = 2
    n_free: int = 3
    early_floors: tuple[float, float] = (0.03, 0.1)
    late_floors: tuple[float, float] = (1e-3, 0.01)
    of_sizes: float = 0.1

    def racers(self, n_coordinates: int, sigma: float, n_clients: float) -> tuple[int, ...]:
        """How many starts climb in each round of a race whose noise has standard deviation sigma.

        m starts of d coordinates that share a round cost each of them m (d σ / n)² / 2 nats.

        >>> DEFAULT.racers(33, 12.0, 10_000), DEFAULT.racers(33, 25.0, 10_000)
        ((14, 14, 11, 7, 4), (8, 8, 6, 4, 2))
        """
        affordable = 2 * self.race_cost * (n_clients / (n_coordinates * sigma)) ** 2
        fitting = max(self.race_numbers / n_coordinates, 6)
        first = int(np.clip(min(affordable, fitting), *self.n_starts))
        return tuple(max(2, round(share * first)) for share in self.racing)

    @property
    def total(self) -> float:
        """The sum of all shares; a round gets its share of this sum."""
        once = self.survey + self.sketch + self.choice + self.guard
        return once + sum(self.race) + sum(self.score)


DEFAULT = Plan()

# A choice among numbers of components: one round fewer for the race, one round for the choice.
CHOOSING = Plan(race=(0.08, 0.08, 0.08, 0.08), choice=0.08)

# One Dirichlet-multinomial: its survey already gives a start, and there is nothing to choose.
SINGLE = Plan(survey=0.1, sketch=0.0, race=(), score=(0.3, 0.3, 0.3), guard=0.0)

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

    Attributes
    ----------
    survey, sketch, choice, guard : float
        Shares of the rounds that are asked once. `choice` compares numbers of components; `guard`
        compares the result with the mixture before the last climb.
    race, score : tuple of float
        Shares of the rounds in which several starts climb, and of those in which the chosen one does.
    n_starts : pair of int
        The fewest and the most starts that climb in the first round of the race, beside a single
        Dirichlet-multinomial: as many as `race_cost` allows, and `race_numbers`.
    racing : tuple of float
        The share of the starts in each round (successive halving, Jamieson and Talwalkar 2016).
    racing_each : tuple of int
        How many starts of each number of components climb if the number is to be chosen.
    race_cost : float
        Nats per client that the noise of one round may cost each start of a race.
    race_numbers : int
        Numbers that a client sends in a round of the race; or those of six starts, if these are more.
    of_gains : float
        Share of a race's round that compares the starts.
    groups : int
        Prototypes of the sketch for each component.
    n_simulated : pair of int
        Clients that the server draws in every round for each of several starts, and for a single one.
    unclipped : float
        The smallest share of simulated clients whose scores are not clipped.
    noise_cost : float
        Nats per client that the noise of one score round may cost: clips are raised to that limit.
    least_information : float
        Directions of θ with less information per client do not move.
    largest_step, largest_gain : float
        The largest step in any log α or logit, and its largest gain in nats per client.
    n_shrunk, n_free : int
        The last rounds whose steps are shrunk towards 0, and in which small weights and alphas are
        allowed.
    early_floors, late_floors : pair of float
        The least α_kj as a share of α_k0 times the pooled proportion of j, and the least weight times K.
    of_sizes : float
        Share of the last round that asks for the sizes of each component's clients.
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

        Examples
        --------
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

"""Starts of a private fit: mixtures made of a noised sketch, before any of them has climbed.

Some are groups of the sketch's cells; some of those have a broad component; some were matched to the
sketch as a whole. No kind is the best on all clients: all of them climb (`race.py`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyurn.model.k_means import k_means
from polyurn.model.scores import Mixture
from polyurn.server.private.moments import match_sketch
from polyurn.server.private.population import Population
from polyurn.server.private.sketch import Cells, read_cells
from polyurn.wire.private import Sketch

# Concentrations of components that differ in nothing else, in those of a single one.
_SPREAD = (0.4, 2.5)
# A start's component has a little of everything; and no start has a component of almost nobody.
_BLURRED, _LEAST_WEIGHT = 0.05, 0.02
# A component for the odd ones out: a fifth of the single one's concentration, and a tenth of clients.
_BROAD, _BROAD_WEIGHT, _LEAST_BROAD = 0.2, 0.1, 0.3


@dataclass(frozen=True)
class Sketched:
    """A sketch as it was received.

    Attributes
    ----------
    sketch : Sketch
    values : float array of shape (n_groups * (n_categories + 2),)
        Per client: the noised sum over the noised number of clients.
    tau : float
        Standard deviation of the noise in it.
    """

    sketch: Sketch
    values: NDArray[np.float64]
    tau: float

    def matched(
        self, start: Mixture, population: Population, rng: np.random.Generator
    ) -> tuple[float, Mixture]:
        """The mixture near a start that explains the sketch, and how badly it does."""
        return match_sketch(start, self.sketch, self.values, self.tau, population, rng)


def starts(
    n_components: int,
    n_starts: int,
    sketched: Sketched,
    population: Population,
    rng: np.random.Generator,
) -> list[Mixture]:
    """Mixtures of K components to climb from, of three kinds in turn.

    Matches of the sketch (the best, then those least like it), groups of its cells, and groups with a
    broad component. Matches and groups lead to the best optimum of real tables, where a broad component
    stays small; on the paper's truths, which have one, it is the broad ones that find it.
    """
    k = n_components
    table = sketched.values.reshape(sketched.sketch.n_groups, -1)
    cells = read_cells(sketched.sketch, table, sketched.tau, k)
    plain = [grouped(k, cells, population, rng) for _ in range(max(n_starts, 2))]
    broad = [with_broad(grouped(k, cells, population, rng), population) for _ in plain]
    origins = [equal_means(k, population, rng), plain[0], *broad[:2]]
    (_, best), *others = sorted(
        (sketched.matched(m, population, rng) for m in origins), key=lambda fit: fit[0]
    )
    matched = [best, *sorted((m for _, m in others), key=lambda m: -_unlikeness(m, best))]
    return _in_turn(matched, broad, plain)[:n_starts]


def _in_turn(*kinds: list[Mixture]) -> list[Mixture]:
    """One of each kind, another of each, and so on, as long as there are any."""
    longest = max(len(kind) for kind in kinds)
    return [kind[i] for i in range(longest) for kind in kinds if i < len(kind)]


def _unlikeness(one: Mixture, other: Mixture) -> float:
    """How different two mixtures are in their weights and concentrations, component by component."""
    weights = np.abs(np.sort(one.weights) - np.sort(other.weights)).sum()
    logs = np.log(np.sort(one.concentrations)) - np.log(np.sort(other.concentrations))
    return float(weights + np.abs(logs).mean())


def equal_means(n_components: int, population: Population, rng: np.random.Generator) -> Mixture:
    """Components of one mean that differ in concentration."""
    single = population.single.alphas[0]
    scales = np.geomspace(*_SPREAD, n_components)[:, None]
    jitter = np.exp(0.05 * rng.standard_normal((n_components, len(single))))
    weights = np.full(n_components, 1 / n_components)
    return population.capped(Mixture(weights, scales * single * jitter))


def grouped(
    n_components: int, cells: Cells, population: Population, rng: np.random.Generator
) -> Mixture:
    """A component for each of K groups of cells, by weighted k-means of their means."""
    k = n_components
    _, joined = k_means(np.sqrt(cells.means), k, rng, cells.sizes)
    alpha_0 = population.single.concentrations[0]
    weights, alphas = np.zeros(k), np.zeros((k, len(population.proportions)))
    for i in range(k):
        mine = np.flatnonzero(joined == i)
        weights[i] = cells.sizes[mine].sum()
        if not len(mine):
            alphas[i] = population.single.alphas[0]
            continue
        shares = cells.sizes[mine] / weights[i]
        mean, kappa = shares @ cells.means[mine], shares @ cells.agreement[mine]
        noise = np.sqrt(((shares * cells.agreement_noise[mine]) ** 2).sum())
        squares = (mean**2).sum()
        # Not more concentrated than noise can tell, nor less than the clients as a whole.
        rho = max((kappa - squares) / (1 - squares), 2 * noise, 1 / (population.cap + 1))
        rho = min(rho, 1 / (1 + 1.5 * alpha_0))
        mean = (1 - _BLURRED) * mean + _BLURRED * population.proportions
        alphas[i] = mean * (1 / rho - 1)
    weights = np.maximum(weights / weights.sum(), _LEAST_WEIGHT)
    return population.capped(Mixture(weights / weights.sum(), alphas))


def with_broad(start: Mixture, population: Population) -> Mixture:
    """The same with its smallest component broad, for clients that are like no group."""
    i = int(start.weights.argmin())
    weights, alphas = start.weights.copy(), start.alphas.copy()
    weights[i] = max(weights[i], _BROAD_WEIGHT)
    alpha_0 = max(_BROAD * population.single.concentrations[0], _LEAST_BROAD)
    alphas[i] = population.proportions * alpha_0
    return Mixture(weights / weights.sum(), alphas)

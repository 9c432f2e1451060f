"""Where a private fit starts: a noised sketch of the clients, and mixtures that would explain it.

A sketch says how many clients are near each of some prototypes, and how they differ from them.
Prototypes come from clients simulated from the survey, so that they cost nothing. Some starts are
groups of the sketch's cells; some of those have a broad component; some match the sketch as a whole by
simulated moments (McFadden, 1989): simulate clients from the current mixture, compare their mean sketch
with the one received, and take a damped Gauss-Newton step. No kind is best on all clients, so that all
climb. Everything but the sketch itself (`Sketch` of `wire/private_queries.py`) is post-processing.
"""

from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import scipy.sparse

from polyurn.model.scores import Mixture, scores
from polyurn.server.private.steps import ClientTotals, PrivateRounds, moved
from polyurn.typed.declared import Floats, Ints
from polyurn.wire.private_queries import SKETCH_PARTS, Sketch

# Simulated clients from which prototypes are made.
_N_DRAWN = 8_000
# Residuals longer than those of 95 % of simulated clients are clipped.
_UNCLIPPED = 0.95
# Directions are logs of prototypes with a small share of every category: no category decides alone.
_BLURRED_PROTOTYPE, _LEAST_SHARE = 0.03, 1e-6
_ITERATIONS = 25
# The last iterations are judged, by more simulated clients; the first ones go on half as many.
_ROUGH, _JUDGED, _DRAWN, _DRAWN_JUDGED = 12, 5, 6_000, 20_000
# Of few clients fewer: ten for each add a tenth to the variance of the clients' own mean.
_DRAWN_EACH, _LEAST_DRAWN = 10, 2_000
_LARGEST_STEP = 0.7
# Damping grows and falls by these factors, between these bounds (Levenberg and Marquardt).
_HARDER, _SOFTER, _DAMPING = 4.0, 3.0, (1e-3, 100.0)
# Concentrations of components that differ in nothing else, relative to that of the single one.
_SPREAD = (0.4, 2.5)
# The smallest shares of a category in a start's component, and of clients in a component.
_BLURRED, _LEAST_WEIGHT = 0.05, 0.02
# A broad component for outliers: a fifth of the single one's concentration, a tenth of the clients.
_BROAD, _BROAD_WEIGHT, _LEAST_BROAD = 0.2, 0.1, 0.3
_LLOYD_ITERATIONS = 15


@dataclass(frozen=True)
class Cells:
    """What a noised sketch says about the clients near each prototype, and how noisy that is.

    `sizes` (n_cells,) are shares of all clients, `means` (n_cells, C) proportions, shrunk towards the
    prototype where noise would move them, and `agreement` (n_cells,) the mean κ, with noise of standard
    deviation `agreement_noise`.
    """

    sizes: Floats
    means: Floats
    agreement: Floats
    agreement_noise: Floats


@dataclass(frozen=True)
class Sketched:
    """A received sketch: the noised sum over the noised number of clients, with noise `tau`."""

    sketch: Sketch
    values: Floats  # (n_groups * (n_categories + 2),)
    tau: float

    @classmethod
    def ask(cls, rounds: PrivateRounds, n_components: int) -> "Sketched":
        """The sketch round of a fit with this number of components."""
        population, share = rounds.population, rounds.plan.sketch
        sketch = make_sketch(population, rounds.plan.groups * n_components, rounds.rng)
        values = rounds.ask(sketch, share) / population.n_clients
        rounds.end(population.single)
        return cls(sketch, values, rounds.sigma(share) / population.n_clients)

    def cells(self, n_components: int) -> Cells:
        """Its cells without those that noise alone could fill; at least `n_components`."""
        values, tau = self.values.reshape(self.sketch.n_groups, -1), self.tau
        of_clients, of_rest, of_pairs = np.sqrt(SKETCH_PARTS)
        sizes, noise = values[:, 0] / of_clients, tau / of_clients
        kept = np.flatnonzero(sizes > 2 * noise)
        if len(kept) < n_components:
            kept = np.argsort(-sizes)[:n_components]
        sizes = np.maximum(sizes[kept], noise)
        rest = values[kept, 1:-1] * (self.sketch.radius / of_rest) / sizes[:, None]
        variance = (tau * self.sketch.radius / of_rest / sizes) ** 2
        # James and Stein (1961): the factor of a mean after its noise is subtracted from its square.
        squares = np.maximum((rest**2).sum(axis=1), 1e-300)
        shrink = np.maximum(0.0, 1 - rest.shape[1] * variance / squares)
        means = np.maximum(self.sketch.prototypes[kept] + shrink[:, None] * rest, 1e-4)
        means /= means.sum(axis=1, keepdims=True)
        agreement = np.maximum(values[kept, -1] / of_pairs, 0.0) / sizes
        return Cells(sizes, means, agreement, tau / of_pairs / sizes)

    def matched(
        self, start: Mixture, population: ClientTotals, rng: np.random.Generator
    ) -> tuple[float, Mixture]:
        """The mixture near a start that explains the sketch best, and how badly (a χ² statistic)."""
        mixture, damping, before = start, 1.0, np.inf
        best = np.inf, start
        enough = max(round(_DRAWN_EACH * population.n_clients), _LEAST_DRAWN)
        for i in range(_ITERATIONS):
            judged = i >= _ITERATIONS - _JUDGED
            n_drawn = min(_DRAWN_JUDGED if judged else _DRAWN, enough) // (2 if i < _ROUGH else 1)
            counts = population.simulate(mixture, n_drawn, rng)
            gradients = scores(mixture, counts)
            mean, jacobian, variance = _moments(self.sketch, counts, gradients)
            spread = self.tau**2 + variance * (1 / population.n_clients + 1 / len(counts)) + 1e-12
            rest = self.values - mean
            misfit = float((rest**2 / spread).sum())
            if judged and misfit < best[0]:
                best = misfit, mixture
            softer = misfit < 1.02 * before
            damping = float(np.clip(damping / _SOFTER if softer else damping * _HARDER, *_DAMPING))
            before = misfit
            normal = jacobian.T @ (jacobian / spread[:, None])
            fisher = gradients.T @ gradients / len(counts)
            ridge = 0.02 * damping * np.trace(normal) / np.trace(fisher) * fisher
            step = np.linalg.solve(
                normal + ridge + 0.05 * np.eye(len(normal)), jacobian.T @ (rest / spread)
            )
            mixture = population.capped(moved(mixture, step, largest=_LARGEST_STEP))
        return best


def make_sketch(population: ClientTotals, n_groups: int, rng: np.random.Generator) -> Sketch:
    """The query: its prototypes are centres of simulated clients, by k-means in √p."""
    counts = population.simulate(population.single, _N_DRAWN, rng)
    p = counts / counts.sum(axis=1, keepdims=True)
    _, joined = k_means(np.sqrt(p), n_groups, rng)
    sizes = np.bincount(joined, minlength=n_groups)
    sums = np.zeros((n_groups, p.shape[1]))
    np.add.at(sums, joined, p)
    prototypes = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], p.mean(axis=0))
    blurred = (1 - _BLURRED_PROTOTYPE) * prototypes + _BLURRED_PROTOTYPE * prototypes.mean(axis=0)
    directions = np.log(np.maximum(blurred, _LEAST_SHARE))
    nearest = (p @ directions.T).argmax(axis=1)
    radius = float(np.quantile(np.linalg.norm(p - prototypes[nearest], axis=1), _UNCLIPPED))
    return Sketch(prototypes, directions, max(radius, _LEAST_SHARE), population.sizes.max_size)


def _moments(sketch: Sketch, counts: Ints, gradients: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, derivative and variance of simulated clients' sketches.

    The derivative of an expectation is a covariance with the score, E[y s'].
    """
    joined, values = _sketched_by(sketch, counts)
    n, width = values.shape
    at = (joined[:, None] * width + np.arange(width)).ravel()
    rows = scipy.sparse.csr_array(
        (values.ravel(), at, np.arange(0, len(at) + 1, width)), shape=(n, sketch.n_numbers)
    )
    mean, square = (
        np.bincount(at, v.ravel(), minlength=sketch.n_numbers) / n for v in (values, values**2)
    )
    return mean, rows.T @ gradients / n, np.maximum(square - mean**2, 0.1 / n)


def _sketched_by(sketch: Sketch, counts: Ints) -> tuple[Ints, Floats]:
    """The row of the sketch of each simulated client, and its (n_clients, C + 2) numbers there."""
    n = counts.sum(axis=1, keepdims=True)
    p = counts / n
    joined = (p @ sketch.directions.T).argmax(axis=1)
    rest = p - sketch.prototypes[joined]
    long = np.sqrt(np.einsum("ij,ij->i", rest, rest))[:, None]
    rest *= np.minimum(1.0, sketch.radius / np.maximum(long, 1e-300)) / sketch.radius
    pairs = (counts * (counts - 1.0)).sum(axis=1) / np.maximum(n * (n - 1.0), 1.0)[:, 0]
    of_clients, of_rest, of_pairs = np.sqrt(SKETCH_PARTS)
    ones = np.full(len(p), of_clients)
    return joined, np.column_stack([ones, of_rest * rest, of_pairs * pairs])


def starts(
    n_components: int,
    n_starts: int,
    sketched: Sketched,
    population: ClientTotals,
    rng: np.random.Generator,
) -> list[Mixture]:
    """Mixtures of K components to climb from, of three kinds in turn.

    Matches of the sketch (the best, then those least like it), groups with a broad component, and groups
    of its cells. Matches and groups lead to the best optimum of real tables, where a broad component
    stays small; the broad ones find it on the paper's truths, which have a broad component.
    """
    k, cells = n_components, sketched.cells(n_components)
    plain = [grouped(k, cells, population, rng) for _ in range(max(n_starts, 2))]
    broad = [with_broad(grouped(k, cells, population, rng), population) for _ in plain]
    origins = [equal_means(k, population, rng), plain[0], *broad[:2]]
    (_, best), *others = sorted(
        (sketched.matched(m, population, rng) for m in origins), key=lambda fit: fit[0]
    )
    matched = [best, *sorted((m for _, m in others), key=lambda m: -_unlikeness(m, best))]
    in_turn = [kind for kinds in zip_longest(matched, broad, plain) for kind in kinds]
    return [start for start in in_turn if start is not None][:n_starts]


def _unlikeness(one: Mixture, other: Mixture) -> float:
    """The difference of two mixtures in weights and concentrations, component by component."""
    weights = np.abs(np.sort(one.weights) - np.sort(other.weights)).sum()
    logs = np.log(np.sort(one.concentrations)) - np.log(np.sort(other.concentrations))
    return float(weights + np.abs(logs).mean())


def equal_means(n_components: int, population: ClientTotals, rng: np.random.Generator) -> Mixture:
    """Components of one mean that differ in concentration."""
    single = population.single.alphas[0]
    scales = np.geomspace(*_SPREAD, n_components)[:, None]
    jitter = np.exp(0.05 * rng.standard_normal((n_components, len(single))))
    weights = np.full(n_components, 1 / n_components)
    return population.capped(Mixture(weights, scales * single * jitter))


def grouped(
    n_components: int, cells: Cells, population: ClientTotals, rng: np.random.Generator
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
        # Not more concentrated than noise can show, nor less than the clients as a whole.
        rho = max((kappa - squares) / (1 - squares), 2 * noise, 1 / (population.cap + 1))
        rho = min(rho, 1 / (1 + 1.5 * alpha_0))
        mean = (1 - _BLURRED) * mean + _BLURRED * population.proportions
        alphas[i] = mean * (1 / rho - 1)
    weights = np.maximum(weights / weights.sum(), _LEAST_WEIGHT)
    return population.capped(Mixture(weights / weights.sum(), alphas))


def with_broad(start: Mixture, population: ClientTotals) -> Mixture:
    """The mixture with its smallest component made broad, for clients unlike any group."""
    i = int(start.weights.argmin())
    weights, alphas = start.weights.copy(), start.alphas.copy()
    weights[i] = max(weights[i], _BROAD_WEIGHT)
    alpha_0 = max(_BROAD * population.single.concentrations[0], _LEAST_BROAD)
    alphas[i] = population.proportions * alpha_0
    return Mixture(weights / weights.sum(), alphas)


def k_means(
    points: Floats, n_groups: int, rng: np.random.Generator, weights: Floats | None = None
) -> tuple[Floats, Ints]:
    """Lloyd's centres (n_groups, n_features), and who joined which (n_points,).

    From a k-means++ start (Arthur and Vassilvitskii, 2007); `weights` (n_points,) are those of points.

    >>> points = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> centres, joined = k_means(points, 2, np.random.default_rng(0))
    >>> sorted(centres[:, 0].tolist()), bool(joined[0] == joined[1])
    ([0.5, 10.5], True)
    """
    w = np.ones(len(points)) if weights is None else weights
    centres = points[rng.choice(len(points), 1, p=w / w.sum())]
    squared = ((points - centres[0]) ** 2).sum(axis=1)
    for _ in range(n_groups - 1):
        chance = squared * w
        total = chance.sum()
        one = points[rng.choice(len(points), p=chance / total if total > 0 else None)]
        centres = np.vstack([centres, one])
        squared = np.minimum(squared, ((points - one) ** 2).sum(axis=1))
    for _ in range(_LLOYD_ITERATIONS):
        joined = (points @ centres.T - 0.5 * (centres * centres).sum(axis=1)).argmax(axis=1)
        masses = np.bincount(joined, w, minlength=n_groups)
        groups = scipy.sparse.csr_array((w, joined, np.arange(len(w) + 1)), (len(w), n_groups))
        sums = groups.T @ points
        filled = masses > 0
        centres[filled] = sums[filled] / masses[filled, None]
    return centres, joined

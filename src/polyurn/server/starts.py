"""Starts: a survey of the clients, many starts from a second round, and recombinations of two starts.

The first round shows how clients vary, and which sizes occur inside each bin: components differ in the
masses of coarse bins, and the profile inside is learned once, so that spikes are reproduced. In the
second round every client joins, for each start, the group with the highest random linear score of its
features; the answer has the groups' moments. Groups are planned to be large, but chance can leave one
with few clients, whose sum then hides little. No start is judged here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtri

from polyurn.model.rising_factorials import log_rising
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.server.em import Problem
from polyurn.typed.arrays import symmetric
from polyurn.typed.declared import Floats
from polyurn.wire import Group, GroupStatistics, Parameters, Survey, SurveyStatistics

# A client is asked for its exact size if there are no more sizes than this: a tenth of an upload.
_MOST_SIZES = 4_096
# Otherwise for a bin: widths of 0.3 %, 1 % and 4 % of the size, where the bins of components have 19 %.
_PER_DOUBLING = 256, 64, 16
# Beyond these bounds, a concentration per size acts like none, or like an even profile.
_LOG_CONCENTRATIONS = np.log(1e-6), np.log(1e6)
# Scaling directions in which clients hardly vary would amplify noise.
_SMALLEST_VARIANCE = 1e-9
# No group is planned to hold less than this share of the clients.
_SMALLEST_SHARE = 0.02
# The average client gets this share of every category, so that no start makes a category impossible.
_EVEN_SHARE = 0.01
# Bounds of a start's concentration; moments of few clients can have any value.
_CONCENTRATIONS = 0.01, 1_000.0

_Scores = tuple[Floats, Floats]  # of each group: directions, offsets


def survey(n_categories: int, bins: SizeBins, *, max_upload: int) -> Survey:
    """The query of the first round: with all covariances if a client may send that many numbers.

    It asks for sizes in the finest bins that leave room for the covariances.
    """
    for pairs in (True, False):
        for fine in _finer_bins(bins):
            question = Survey(n_categories, fine, pairs=pairs)
            if question.n_numbers <= max_upload:
                return question
    return question


def _finer_bins(bins: SizeBins) -> Iterator[SizeBins]:
    """Bins to count clients in, the finest first and `bins` last; all have the edges of `bins`."""
    if bins.max_size <= _MOST_SIZES:
        yield SizeBins.exact(bins.max_size)
    for per_doubling in _PER_DOUBLING:
        more = SizeBins.logarithmic(bins.max_size, per_doubling=per_doubling)
        yield SizeBins(np.union1d(bins.edges, more.edges))
    yield bins


def with_profile(bins: SizeBins, fine: SizeBins, counts: Floats, *, size_prior: float) -> SizeBins:
    """The same bins, with the profile of the clients counted in finer ones, which have all their edges.

    The counts of a bin are taken for those of a Pólya urn whose concentration all bins share. It is
    fitted to the counts (empirical Bayes), so that a profile without spikes stays even, and one with
    spikes follows them; at least `size_prior` pseudo-clients per bin are spread evenly over its sizes.

    >>> bins, counts = SizeBins([1, 45, 51]), np.zeros(50)
    >>> counts[49] = 400  # everybody holds 50 points
    >>> spiked = with_profile(bins, SizeBins.exact(50), counts, size_prior=1.0)
    >>> np.exp(spiked.log_inside([49, 50])).round(4).tolist()
    [0.0004, 0.9979]
    """
    within = bins.locate(fine.edges[:-1])
    in_bin = np.asarray(np.bincount(within, counts, minlength=bins.n_bins), np.float64)

    def surprise(log_concentration: float) -> float:
        a = np.exp(log_concentration)
        inside = log_rising(a * fine.widths, counts, scale=a).sum()
        return float(log_rising(a * bins.widths, in_bin, scale=a).sum() - inside)

    found = minimize_scalar(surprise, bounds=_LOG_CONCENTRATIONS, method="bounded")
    evenly = fine.widths / bins.widths[within]
    prior = np.maximum(np.exp(found.x) * fine.widths, size_prior * evenly)
    total = in_bin + np.bincount(within, prior, minlength=bins.n_bins)
    return SizeBins(bins.edges, fine.edges, (counts + prior) / total[within])


@dataclass(frozen=True)
class Landscape:
    """How clients vary: the mean of their features, and independent directions of unit variance."""

    mean: Floats  # (n_features,)
    directions: Floats  # (n_features, n_directions)
    deviations: Floats  # (n_directions,), before each direction was scaled to one


def landscape(query: Survey, sums: SurveyStatistics, *, sizes: bool) -> Landscape:
    """The result of the first round; without `sizes`, without the sizes of clients."""
    mean = sums.features / sums.n_clients
    if query.pairs:
        covariances = symmetric(sums.products / sums.n_clients) - np.outer(mean, mean)
        if not sizes:
            covariances[-1] = covariances[:, -1] = 0.0
        variances, axes = np.linalg.eigh(covariances)
        # Rounding decides which of two opposite axes is found: the largest entry is made positive.
        largest = axes[np.abs(axes).argmax(axis=0), np.arange(len(axes))]
        axes = axes * np.where(largest < 0, -1.0, 1.0)
    else:
        variances, axes = sums.products / sums.n_clients - mean**2, np.eye(len(mean))
        variances[-1] *= sizes
    kept = variances > _SMALLEST_VARIANCE * max(variances.max(), np.finfo(float).tiny)
    deviations = np.sqrt(variances[kept])
    return Landscape(mean, axes[:, kept] / deviations, deviations)


def random_groups(
    land: Landscape, n_components: int, size_bins: SizeBins, *, n_ways: int,
    rng: np.random.Generator,
) -> list[Group]:  # fmt: skip
    """Random ways to put clients into groups; the three kinds take turns.

    The best kind depends strongly on the clients, so that chance must not leave one out.
    """
    if n_components == 1 or len(land.deviations) == 0:
        zeros = np.zeros((n_components, len(land.mean)))
        return [Group(zeros, np.zeros(n_components), size_bins)] * n_ways
    kinds = (_category_groups, _cuts, _classifier, _cuts)
    return [
        Group(*kinds[i % len(kinds)](land, n_components, rng), size_bins) for i in range(n_ways)
    ]


def starts(sums: Sequence[GroupStatistics], problem: Problem) -> list[Parameters]:
    """For each grouping the parameters that match the moments of each group, pooled over categories.

    A group's moments are mixed with those of one average client.
    """
    n_clients = np.array([[s.n_clients] for s in sums])
    proportions = np.array([s.proportions for s in sums])
    squares = np.array([s.squares for s in sums])
    size_counts = np.array([s.size_counts for s in sums])
    average = (1 - _EVEN_SHARE) * proportions.sum(axis=1) / n_clients
    average += _EVEN_SHARE / problem.n_categories
    joined = size_counts.sum(axis=2) + 1
    first = (proportions + average[:, None]) / joined[..., None]
    second = (squares + squares.sum(axis=1, keepdims=True) / n_clients) / joined
    variance = np.maximum(second - (first**2).sum(axis=2), np.finfo(float).tiny)
    concentrations = np.clip((1 - second) / variance, *_CONCENTRATIONS)
    weights, alphas = joined / joined.sum(axis=1, keepdims=True), concentrations[..., None] * first
    masses, bins = problem.size_masses(size_counts), problem.size_bins
    return [
        Parameters(w, a, Sizes.unchecked(bins, m))
        for w, a, m in zip(weights, alphas, masses, strict=True)
    ]


def recombine(leader: Parameters, other: Parameters, *, rng: np.random.Generator) -> Parameters:
    """The leader's parameters with a component of another start, a novel one rather than a known one."""
    here, there = (np.sqrt(p.alphas / p.alphas.sum(axis=1, keepdims=True)) for p in (leader, other))
    alike = (here @ there.T).max(axis=0)  # Bhattacharyya's coefficient
    novelty = np.maximum(1.0 - alike, _EVEN_SHARE / 10)
    comes = rng.choice(len(novelty), p=novelty / novelty.sum())
    goes = rng.integers(len(novelty))
    weights, alphas = leader.weights.copy(), leader.alphas.copy()
    masses = leader.sizes.masses.copy()
    weights[goes], alphas[goes] = other.weights[comes], other.alphas[comes]
    masses[goes] = other.sizes.masses[comes]
    return Parameters(weights / weights.sum(), alphas, Sizes.unchecked(leader.sizes.bins, masses))


def _cuts(land: Landscape, k: int, rng: np.random.Generator) -> _Scores:
    """Intervals along one direction, at random quantiles: the upper envelope of k lines."""
    axis = _random_directions(land, 1, rng)[:, 0]
    if rng.random() < 1 / 3:  # only how concentrated a client is, or how large
        alone = np.zeros(len(land.mean))
        alone[rng.choice([-2, -1])] = 1.0
        deviation = np.linalg.norm(alone @ (land.directions * land.deviations**2))
        axis = alone / deviation if deviation > 0 else axis
    shares = _SMALLEST_SHARE + (1 - _SMALLEST_SHARE * k) * rng.dirichlet(np.ones(k))
    cuts = ndtri(np.clip(np.cumsum(shares / shares.sum())[:-1], 1e-3, 1 - 1e-3))
    steepness = np.arange(k)
    offsets = -np.concatenate([[0.0], np.cumsum(cuts)]) - steepness * (axis @ land.mean)
    return steepness[:, None] * axis, offsets


def _classifier(land: Landscape, k: int, rng: np.random.Generator) -> _Scores:
    """The highest of k random scores."""
    axes = _random_directions(land, k, rng)
    return axes.T, 0.5 * rng.standard_normal(k) - land.mean @ axes


def _category_groups(land: Landscape, k: int, rng: np.random.Generator) -> _Scores:
    """A client joins the group whose categories it holds most of, compared with the average.

    Categories are assigned at random; each group gets at least one, if there are enough.
    """
    mean = land.mean[:-2]
    groups = rng.integers(k, size=len(mean))
    if k <= len(mean):
        groups[rng.permutation(len(mean))[:k]] = np.arange(k)
    directions = np.zeros((k, len(land.mean)))
    scale = 1.0 / np.sqrt(mean + 1.0 / len(mean) ** 2)
    directions[groups, np.arange(len(mean))] = scale
    usual = np.bincount(groups, scale * mean, minlength=k)
    return directions / np.where(usual > 0, usual, 1.0)[:, None], np.zeros(k)


def _random_directions(land: Landscape, n: int, rng: np.random.Generator) -> Floats:
    """Random directions in which clients have unit variance, shape (n_features, n).

    Large variances are slightly favoured: the differences between components may vary little.
    """
    favour = np.sqrt(land.deviations / land.deviations.max())
    draws = rng.standard_normal((len(favour), n)) * favour[:, None]
    return np.asarray(land.directions @ (draws / np.linalg.norm(draws, axis=0)))

"""Answers that noise can protect: each client's vector is computed, cut to norm 1, and added.

`wire/bounded.py` says what is sent and why it is at most 1 long; `unit_rows` makes sure of it
whatever a query holds, so that the guarantee does not hang on what the server sends. No noise here.
"""

import numpy as np
from numpy.typing import NDArray

from polyurn.client.rows import Rows
from polyurn.client.unit_norm import unit_rows
from polyurn.errors import ParameterError
from polyurn.model.scores import log_likelihoods, responsibilities, scores
from polyurn.wire.bounded import (
    SKETCH_PARTS,
    SURVEY_PARTS,
    Bounded,
    BoundedSurvey,
    Differences,
    Shares,
    SizeMembership,
    Sketch,
    WhitenedScore,
)
from polyurn.wire.statistics import BoundedStatistics

# Clients whose vectors are held at once.
_BLOCK_CLIENTS = 8_192


def answer_bounded(query: Bounded, rows: Rows, members: NDArray[np.uint32]) -> BoundedStatistics:
    """The sum of the members' vectors, each of norm at most 1."""
    # Large clients draw from fresh entropy, never from a seed: with a stream that somebody knows, a
    # client less would change what all others draw, and the sum by more than its own vector.
    rng = np.random.default_rng()
    total = np.zeros(query.n_numbers)
    for start in range(0, len(members), _BLOCK_CLIENTS):
        some = members[start : start + _BLOCK_CLIENTS]
        counts = rows.counts_of(some).toarray().astype(np.int64, copy=False)
        # Whatever a hostile query makes infinite or NaN is sent as 0.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            total += _sum(query, counts, rng)
    return BoundedStatistics(total)


def _sum(
    query: Bounded, counts: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """The sum over some clients, each client's vector cut to norm 1."""
    if isinstance(query, Sketch):  # a row of the table each: the rest of it is 0
        joined, vectors = _sketch(query, _thinned(counts, query.max_size, rng))
        table = np.zeros((query.n_groups, vectors.shape[1]))
        np.add.at(table, joined, unit_rows(vectors))
        return table.ravel()
    return np.asarray(unit_rows(_vectors(query, counts, rng)).sum(axis=0))


def _vectors(
    query: Bounded, counts: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """One row for each client, shape (n_clients, n_numbers)."""
    if isinstance(query, Shares):
        parts = zip(query.queries, query.shares, rng.spawn(len(query.shares)), strict=True)
        return np.hstack([np.sqrt(share) * _vectors(q, counts, r) for q, share, r in parts])
    counts = _thinned(counts, query.max_size, rng)
    match query:
        case BoundedSurvey(_, bins):
            of_clients, of_pairs, of_size, of_p = np.sqrt(SURVEY_PARTS)
            n = len(counts)
            sizes = np.zeros((n, bins.n_bins))
            sizes[np.arange(n), bins.locate(counts.sum(axis=1))] = of_size
            ones = np.full(n, of_clients)
            return np.column_stack(
                [ones, of_pairs * _agreement(counts), sizes, of_p * _shares(counts)]
            )
        case Sketch():
            joined, rows = _sketch(query, counts)
            table = np.zeros((len(counts), query.n_groups, rows.shape[1]))
            table[np.arange(len(counts)), joined] = rows
            return table.reshape(len(counts), -1)
        case WhitenedScore(mixture, whitener, clip):
            return _clipped(scores(mixture, counts) @ whitener, clip) / clip
        case Differences(mixtures, bounds):
            first, *others = (log_likelihoods(mixture, counts) for mixture in mixtures)
            gains = (np.column_stack(others) - first[:, None]) / bounds
            return np.asarray(np.clip(gains, -1.0, 1.0) / np.sqrt(len(others)))
        case SizeMembership(mixture, bins):
            omega = responsibilities(mixture, counts)
            vectors = np.zeros((*omega.shape, bins.n_bins))
            where = bins.locate(counts.sum(axis=1))
            vectors[np.arange(len(counts)), :, where] = omega
            return vectors.reshape(len(counts), -1)
        case _:
            raise ParameterError(f"no client knows how to answer a {type(query).__name__}")


def _sketch(
    query: Sketch, counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Each client's prototype, and its row of the table, shape (n_clients, n_categories + 2)."""
    of_clients, of_rest, of_pairs = np.sqrt(SKETCH_PARTS)
    p = _shares(counts)
    joined = (p @ query.directions.T).argmax(axis=1)
    rest = _clipped(p - query.prototypes[joined], query.radius) * (of_rest / query.radius)
    ones = np.full(len(p), of_clients)
    return joined, np.column_stack([ones, rest, of_pairs * _agreement(counts)])


def _shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _agreement(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """κ of each client: the share of its pairs of points that agree; 0 if it has no pair."""
    n = counts.sum(axis=1).astype(np.float64)
    pairs = (counts * (counts - 1.0)).sum(axis=1)
    return np.asarray(pairs / np.maximum(n * (n - 1), 1.0))


def _thinned(
    counts: NDArray[np.int64], max_size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Histograms of at most `max_size` points; larger clients draw so many of theirs at random."""
    large = np.flatnonzero(counts.sum(axis=1) > max_size)
    if not len(large):
        return counts
    counts = counts.copy()
    for i in large:
        counts[i] = rng.multivariate_hypergeometric(counts[i], max_size, method="marginals")
    return counts


def _clipped(vectors: NDArray[np.float64], longest: float) -> NDArray[np.float64]:
    """Rows scaled down to a norm of at most `longest`."""
    norms = np.linalg.norm(vectors, axis=1)
    return np.asarray(vectors * np.minimum(1.0, longest / np.maximum(norms, 1e-300))[:, None])

"""Answers that noise can protect: each client's vector is computed, cut to norm 1, and added.

`wire/private_queries.py` says what is sent and proves that its norm is at most 1. `unit_rows` enforces
it for any query, so that the guarantee does not depend on what the server sends. A client's vector has
the same bits whoever else is asked: each row is computed by itself, without BLAS. Clients draw from
fresh entropy here, never from a seed: with a known stream, removing one client would change what all
others draw, and the sum by more than its own vector.
"""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from polyurn.client.cohort import Cohort
from polyurn.client.contrast import contrast_rows
from polyurn.client.counting import cap_sizes
from polyurn.client.style_answers import shrinkage
from polyurn.errors import ParameterError
from polyurn.model.scores import log_likelihoods, responsibilities, scores
from polyurn.model.standing import standings
from polyurn.privacy.noise import noised
from polyurn.typed.declared import Floats, Ints
from polyurn.wire import (
    Bounded,
    BoundedStatistics,
    BoundedSurvey,
    ContrastStatistics,
    Describe,
    Differences,
    Noised,
    Query,
    S,
    Scaled,
    Shares,
    SizeMembership,
    Sketch,
    Spread,
    Standing,
    WhitenedScore,
)
from polyurn.wire.private_grid import unit_rows
from polyurn.wire.private_queries import SKETCH_PARTS

# Clients whose vectors are held at once, and the most numbers of these vectors: 128 MB.
_BLOCK_CLIENTS, _BLOCK_NUMBERS = 8_192, 2**24


def answer_private(query: Bounded, cohort: Cohort) -> BoundedStatistics:
    """The sum of the members' vectors, each cut to norm 1."""
    rng = np.random.default_rng()
    total = np.zeros(query.n_numbers)
    for some in _blocks(query, cohort):
        if isinstance(query, Spread):
            held = some.records.binned(some.members, query.column, with_labels=False)
        else:
            held = some.counts()
        counts = held.toarray().astype(np.int64, copy=False)
        # Numbers that a hostile query makes infinite or NaN are sent as 0.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if isinstance(query, Sketch):
                total += _sketch_sum(query, counts, rng)
                continue
            # Kept until the next block is computed: memory that is freed at once returns to the system,
            # and its page faults take as long as the answer.
            vectors = _vectors(query, counts, rng)
            total += unit_rows(vectors).sum(axis=0)
    return query.shaped(total)


def answer_scaled(query: Scaled, cohort: Cohort) -> ContrastStatistics:
    """The sum of the members' scaled numbers, each client's cut to norm 1."""
    total = np.zeros(query.n_numbers)
    for some in _blocks(query, cohort):
        total += unit_rows(contrast_rows(query.query, some).toarray() * query.scales).sum(axis=0)
    return query.shaped(total)


def _blocks(query: Query[Any], cohort: Cohort) -> Iterator[Cohort]:
    return cohort.blocks(max(1, min(_BLOCK_CLIENTS, _BLOCK_NUMBERS // query.n_numbers)))


def _sketch_sum(query: Sketch, counts: Ints, rng: np.random.Generator) -> Floats:
    """The sum of the clients' tables, each of which is one row, cut to norm 1, and 0 elsewhere."""
    joined, vectors = _sketch_rows(query, cap_sizes(counts, query.max_size, rng=rng))
    table = np.zeros((query.n_groups, vectors.shape[1]))
    np.add.at(table, joined, unit_rows(vectors))
    return table.ravel()


def _vectors(query: Query[Any], counts: Ints, rng: np.random.Generator) -> Floats:
    """One row for each client, shape (n_clients, n_numbers)."""
    match query:
        case Shares(queries, shares):
            parts = zip(queries, shares, rng.spawn(len(shares)), strict=True)
            return np.hstack([np.sqrt(share) * _vectors(q, counts, r) for q, share, r in parts])
        case Spread():  # of its bins; no number depends on how many points there are
            return np.hstack([np.ones((len(counts), 1)), _shares(counts)]) * query.scales
    most = cast(int, query.max_size)
    counts = cap_sizes(counts, most, rng=rng)
    match query:
        case BoundedSurvey(c, bins) | Describe(c, bins):
            kappa, ones = _agreement(counts)[:, None], np.ones((len(counts), 1))
            blocks = {
                "clients": ones,
                "alike": kappa,
                "squares": kappa**2,
                "sizes": _in_bins(ones, bins.locate(counts.sum(axis=1)), bins.n_bins),
                "p": _shares(counts),
                "holders": (counts > 0) / np.sqrt(c),
            }
            return np.hstack([blocks[name] for name in query.PARTS]) * query.scales
        case Standing(mdm, bins, yardstick):
            return standings(mdm, bins, yardstick, counts) * query.scales
        case Sketch():
            joined, rows = _sketch_rows(query, counts)
            table = np.zeros((len(counts), query.n_groups, rows.shape[1]))
            table[np.arange(len(counts)), joined] = rows
            return table.reshape(len(counts), -1)
        case WhitenedScore(mixture, whitener, clip):
            whitened = _products(scores(mixture, counts, max_size=most), whitener)
            return _clipped(whitened, clip) / clip
        case Differences(mixtures, clips):
            first, *others = (log_likelihoods(one, counts, max_size=most) for one in mixtures)
            gains = (np.column_stack(others) - first[:, None]) / clips
            return np.asarray(np.clip(gains, -1.0, 1.0) / np.sqrt(len(others)))
        case SizeMembership(mixture, bins):
            omega = responsibilities(mixture, counts, max_size=most)
            return _in_bins(omega, bins.locate(counts.sum(axis=1)), bins.n_bins)
        case _:
            raise ParameterError(f"no client knows how to answer a {type(query).__name__}")


def _sketch_rows(query: Sketch, counts: Ints) -> tuple[Ints, Floats]:
    """Each client's prototype, and its row of the table, shape (n_clients, n_categories + 2)."""
    of_clients, of_rest, of_pairs = np.sqrt(SKETCH_PARTS)
    p = _shares(counts)
    joined = _products(p, query.directions.T).argmax(axis=1)
    rest = _clipped(p - query.prototypes[joined], query.radius) * (of_rest / query.radius)
    ones = np.full(len(p), of_clients)
    return joined, np.column_stack([ones, rest, of_pairs * _agreement(counts)])


def _shares(counts: Ints) -> Floats:
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _agreement(counts: Ints) -> Floats:
    """κ of each client: the share of its pairs of points that agree; 0 without a pair."""
    n = counts.sum(axis=1).astype(np.float64)
    pairs = (counts * (counts - 1.0)).sum(axis=1)
    return np.asarray(pairs / np.maximum(n * (n - 1), 1.0))


def _in_bins(values: Floats, where: Ints, n_bins: int) -> Floats:
    """Each client's (n_components,) values at the bin of its size and 0 elsewhere, as one row."""
    table = np.zeros((*values.shape, n_bins))
    table[np.arange(len(values)), :, where] = values
    return table.reshape(len(values), -1)


def _products(rows: Floats, matrix: Floats) -> Floats:
    """Rows @ matrix, row by row."""
    from polyurn.model.model_kernels import row_products

    return np.asarray(row_products(rows, np.ascontiguousarray(matrix)))


def _clipped(vectors: Floats, longest: float) -> Floats:
    """Rows scaled down to a norm of at most `longest`."""
    return np.asarray(vectors * shrinkage(vectors, longest))


# ----------------------------------------------------------------------------- the clients' own noise


def without_noise(query: Query[S], n_nodes: int) -> Query[S]:
    """The query inside a noised query; any other query is returned as it is. See `with_noise`.

    Fewer nodes than a distributed query needs are refused: the sum would have too little noise.
    """
    if not isinstance(query, Noised):
        return query
    if query.trust == "distributed" and n_nodes < query.n_reporters:
        raise ParameterError(
            f"expected at least {query.n_reporters} nodes, each with its share of noise, got {n_nodes}"
        )
    return cast("Query[S]", query.query)


def with_noise(query: Query[S], sums: S, *, n_adders: int) -> S:
    """A sum of answers with the noise of `n_adders` clients (local) or nodes (distributed).

    Each adds its share of the noise if the query asks for noise, which comes from the operating
    system's randomness, never from a seed.
    `privacy/private_aggregator.py` adds the server's own noise.
    """
    if not isinstance(query, Noised):
        return sums
    vector = noised(sums.to_vector(), query.share, n_adders=max(n_adders, 1))
    return cast(S, query.shaped(vector))

"""Clients' answers to the paper's questions as vectors of norm at most 1, client by client.

Noise hides one client only if its vector is bounded as a whole, so vectors are made one by one before
they are added. The plain sums are `survey.py` and `e_step.py`.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.client.rows import Rows
from polyurn.client.unit_norm import unit_rows
from polyurn.model.mdm import MDM, mixture_logpmf
from polyurn.model.sizes import SizeBins
from polyurn.wire import Initialise, Statistics, Update
from polyurn.wire.scaled import Scaled

# Clients whose vectors are held at once.
_BLOCK_CLIENTS = 2_048


def answer_scaled(query: Scaled[Any], rows: Rows, members: NDArray[np.uint32]) -> Statistics:
    """The sum of the members' vectors. A member larger than the declared size sends zeros."""
    # Fresh entropy: from a stream that somebody knows, all later clients would draw other components
    # if one of them were not there, and the sum would move by more than its vector.
    rng = np.random.default_rng()
    scales, total = query.scales, np.zeros(query.n_numbers)
    bins = _bins(query)
    fits = rows.size_values[rows.size_index[members]] <= bins.max_size
    for some in _blocks(members[fits]):
        counts = rows.counts_of(some).toarray()
        match query.query:
            case Update(mdm):
                vectors = _update(mdm, counts)
            case Initialise(n_components):
                joined = rng.integers(n_components, size=len(some))
                vectors = _initialise(query.query, counts, joined)
        total += unit_rows(vectors * scales).sum(axis=0)
    shaped: Statistics = query.shaped(total)
    return shaped


def _initialise(
    query: Initialise, counts: NDArray[np.int64], joined: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Algorithm 1, lines 4 to 7, of each client, shape (n_clients, n_numbers)."""
    n, sizes = len(counts), counts.sum(axis=1)
    p = counts / sizes[:, None]
    each, k = np.arange(n), query.n_components
    size_counts = np.zeros((n, k, query.size_bins.n_bins))
    size_counts[each, joined, query.size_bins.locate(sizes)] = 1.0
    first, second = np.zeros((2, n, k, query.n_categories))
    first[each, joined], second[each, joined] = p, p * p
    blocks = (size_counts, first, second)
    return np.concatenate([np.ones((n, 1)), *(block.reshape(n, -1) for block in blocks)], axis=1)


def _update(mdm: MDM, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Algorithm 2, lines 7 to 10, of each client, shape (n_clients, n_numbers)."""
    n, sizes = len(counts), counts.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):  # a client of probability zero is all NaN
        joint = np.log(mdm.weights) + mixture_logpmf(counts, mdm.alphas) + mdm.sizes.logpmf(sizes)
        omega = np.exp(joint - joint.max(axis=1, keepdims=True))
        omega /= omega.sum(axis=1, keepdims=True)
    size_counts = np.zeros((n, mdm.n_components, mdm.sizes.bins.n_bins))
    size_counts[np.arange(n), :, mdm.sizes.bins.locate(sizes)] = omega
    rises = _rises(mdm.alphas, counts.max())  # (K, C, largest count + 1)
    numerators = omega[:, :, None] * rises[:, np.arange(counts.shape[1]), counts].swapaxes(0, 1)
    totals = _rises(mdm.alphas.sum(axis=1, keepdims=True), sizes.max())[:, 0]
    denominators = omega * totals[:, sizes].T
    blocks = (omega, size_counts, numerators, denominators)
    unsent = np.zeros((n, 2))  # the number of clients, and the log-likelihood
    return np.concatenate([unsent, *(block.reshape(n, -1) for block in blocks)], axis=1)


def _rises(alphas: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """ψ(c + α) - ψ(α) = Σ_{m<c} 1 / (α + m) for c up to `most`; 0 where α is."""
    there = np.where(alphas > 0, alphas, np.inf)[..., None]
    terms = 1 / (there + np.arange(most))
    zeros = np.zeros((*alphas.shape, 1))
    return np.concatenate([zeros, np.cumsum(terms, axis=-1)], axis=-1)


def _bins(query: Scaled[Any]) -> SizeBins:
    match query.query:
        case Update(mdm):
            return mdm.sizes.bins
        case Initialise(_, _, bins):
            return bins
    raise AssertionError("a scaled query is one of the two")


def _blocks(members: NDArray[np.uint32]) -> Iterator[NDArray[np.uint32]]:
    for start in range(0, len(members), _BLOCK_CLIENTS):
        yield members[start : start + _BLOCK_CLIENTS]

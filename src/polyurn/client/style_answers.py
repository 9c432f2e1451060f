"""A client's answer to questions about its style: moments of its points' coordinates.

`wire/style_queries.py` says what is sent and how large it can be. The coordinates are clipped at
the declared radius here, on the client; no noise is added.
"""

from collections.abc import Iterator

import numpy as np

from polyurn.client.cohort import Cohort
from polyurn.client.records import Held
from polyurn.model.style_coordinates import StyleSpace
from polyurn.typed.declared import Floats
from polyurn.wire.private_grid import unit_rows
from polyurn.wire.private_queries import BoundedStatistics
from polyurn.wire.style_queries import BoundedStyle, StyleMoments, StyleStatistics, triangle

# Numbers of a block of clients, with the matrices of the labels: 64 MB of float64.
_BLOCK_NUMBERS = 8_000_000
_SMALLEST = 1e-300  # divides a row of zeros in place of its norm


def answer_style(query: StyleMoments, cohort: Cohort) -> StyleStatistics:
    """The sum of the members' moments."""
    total = np.zeros(query.n_numbers)
    for held in _blocks(query.space, cohort):
        total += _vectors(query, held).sum(axis=0)
    return query.shaped(total)


def answer_bounded_style(query: BoundedStyle, cohort: Cohort) -> BoundedStatistics:
    """The sum of the members' vectors, each of norm at most 1."""
    total = np.zeros(query.n_numbers)
    for held in _blocks(query.space, cohort):
        # Numbers that a hostile query makes infinite or NaN are sent as 0.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            total += unit_rows(_clipped(query, held)).sum(axis=0)
    return BoundedStatistics(total)


def _clipped(query: BoundedStyle, held: Held) -> Floats:
    """Each client's scaled vector, its mean and its matrices cut at the clip."""
    m = query.space.n_directions
    vectors = _vectors(query.moments, held)
    means, matrices = slice(5, 5 + m), slice(5 + m, 5 + m + 3 * (m * (m + 1) // 2))
    shrunk = shrinkage(vectors[:, means], query.clip**0.5)
    vectors[:, means] *= shrunk
    if query.label_effect:  # h z̄' with the same z̄
        vectors[:, vectors.shape[1] - query.space.n_labels * m :] *= shrunk
    vectors *= query.scales
    part = float(query.scales[matrices][0]) * query.clip  # the largest norm of the matrices
    vectors[:, matrices] *= shrinkage(vectors[:, matrices], part)
    return vectors


def shrinkage(rows: Floats, longest: float) -> Floats:
    """The factors that scale rows down to a norm of at most `longest`, shape (n, 1)."""
    from polyurn.model.model_kernels import row_norms

    norms = row_norms(np.ascontiguousarray(rows))
    return np.asarray(np.minimum(1.0, longest / np.maximum(norms, _SMALLEST))[:, None])


def _vectors(query: StyleMoments, held: Held) -> Floats:
    """One row for each client, shape (n_clients, n_numbers).

    A row has the same bits whoever else is asked: sums over labels run in their order, not in one that
    NumPy chooses by the shape of the whole.
    """
    n_clients, n_labels, m = len(held.sizes), query.space.n_labels, query.space.n_directions
    # A space can be built so that one point overflows: a refusal would reveal the point.
    z, far = query.space.located(held.features, held.labels, finite_only=False)
    owner, sizes = held.owner, held.sizes[:, None].astype(np.float64)
    cell = owner * n_labels + held.labels
    counts = np.bincount(cell, minlength=n_clients * n_labels).astype(np.float64)
    sums = np.stack([np.bincount(cell, z[:, k], len(counts)) for k in range(m)], axis=1)
    per_label = sums / np.maximum(counts, 1.0)[:, None]  # z̄_l, and 0 where there are no points
    shares = counts.reshape(n_clients, n_labels) / sizes
    means = [per_label[label::n_labels] for label in range(n_labels)]
    z_bar = sum((shares[:, [i]] * mean for i, mean in enumerate(means)), np.zeros((n_clients, m)))
    between_labels = np.zeros((n_clients, m * (m + 1) // 2))
    for i, mean in enumerate(means):
        apart = mean - z_bar
        between_labels += shares[:, [i]] * triangle(apart[:, :, None] * apart[:, None, :])
    inside = z - per_label[cell]
    products = triangle(inside[:, :, None] * inside[:, None, :])
    within = np.stack([np.bincount(owner, p, n_clients) for p in products.T], axis=1)
    blocks = [
        np.ones((n_clients, 1)),
        1 / sizes,
        (shares**2).sum(axis=1, keepdims=True),
        (shares > 0).sum(axis=1, keepdims=True) / sizes,
        np.bincount(owner, far, n_clients)[:, None] / sizes,
        z_bar,
        triangle(z_bar[:, :, None] * z_bar[:, None, :]),
        between_labels,
        within / sizes,
    ]
    if query.label_effect:
        blocks += [
            shares,
            triangle(shares[:, :, None] * shares[:, None, :]),
            (shares[:, :, None] * z_bar[:, None, :]).reshape(n_clients, -1),
        ]
    return np.concatenate(blocks, axis=1)


def _blocks(space: StyleSpace, cohort: Cohort) -> Iterator[Held]:
    """The members' points, block by block of clients."""
    records, members = cohort.records, cohort.members
    m, n_labels = space.n_directions, space.n_labels
    per_client = n_labels * (4 * m + m * m + n_labels)
    numbers = per_client + (records.n_features + 3 * m * m) * records.sizes[members]
    which = np.cumsum(numbers) // _BLOCK_NUMBERS
    for some in np.split(members, np.flatnonzero(np.diff(which)) + 1):
        if len(some):
            yield records.of(some)

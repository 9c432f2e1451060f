"""Which proxy points suit the clients' styles: density ratios in the proxy data's own coordinates.

A client i draws its style t_il = μ + u_i + v_il for each label (`Style`), and its points of label l are
to be N(t_il, E_l) where the proxy data's are N(0, I). So a point y has the weight

    w(y) = N(y; t, E_l) / N(y; 0, I),   E_l = I - B - V,   the eigenvalues of B + V at most 0.8,

and is the less likely the more often it was given before. Coordinates are turned so that E_l is
diagonal. Where the proxy data have too few points of large weight, directions are left out. The draws
are `styled_kernels.py`; how many points of which label a client holds is decided before (`assign.py`).
"""

import math
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from polyurn.counts import Counts
from polyurn.errors import ParameterError
from polyurn.memory import check_memory, n_cores
from polyurn.model.style import Style
from polyurn.partitioning.result import POORLY_SERVED, StyleReport
from polyurn.typed.declared import Floats, Ints
from polyurn.wording import counted

# A client and label whose points varied less would need proxy data that are dense everywhere. On
# handwritten digits the forecast of training was the same with 0.95, and 0.1 to 0.2 points worse with
# 0.7 and 0.6.
MOST_BETWEEN = 0.8
# How much less likely a point is once it was given: 79 % of the points come into use where as many
# points are asked for as there are; independent draws use 63 %.
REUSED = 0.3
# Clients and labels whose effective sample size is computed, and points it is computed from, at most.
_N_LOOKED_AT, _N_POINTS_LOOKED_AT = 1_000, 2_000
# More boxes cost time for every client and label, fewer for every point that it asks for: about as much
# with this many boxes for each such point and squared number of directions (measured with 4 and 8).
_BOXES_PER_POINT, _FEWEST_PER_BOX = 4, 8


@dataclass(frozen=True, eq=False)
class _Law:
    """How the points of one label are weighed: in coordinates y in which the proxy points are N(0, I).

    `centre`, of shape (n_directions,), is the proxy points' own mean, from which styles are counted:
    without any, all points weigh the same. y = turn (z - centre), and a style t becomes turn t; `turn`
    has shape (n_directions_used, n_directions). `within` is the diagonal of E_l, outside of which there
    are zeros.
    """

    centre: Floats
    turn: Floats
    within: Floats


def draw_with_style(
    style: Style, features: ArrayLike, codes: Ints, urns: Sequence[NDArray[np.integer]],
    table: Counts, indices: Ints, replace: bool, rng: np.random.Generator,
) -> StyleReport:  # fmt: skip
    """Give every client its points, label by label, and say how well the proxy data could serve it.

    `codes`, of shape (n_points,), is the label of each proxy point, and `urns` are the points of each
    label. The histograms `table` have shape (n_clients, n_labels). On return `indices` has the points of
    the first client, then those of the second, and so on. With `replace` a point may be given again
    before all others of its label were.
    """
    from polyurn.partitioning.styled_kernels import draw_styled

    if style.space.n_labels != table.shape[1]:
        raise ParameterError(
            f"expected a style of {counted(table.shape[1], 'label')}, the clients' categories, "
            f"got one of {style.space.n_labels:,}"
        )
    check_memory(
        8 * len(codes) * style.n_directions,
        "the style coordinates of the proxy points",
        "take fewer points, or a style of fewer directions",
    )
    located = style.space.coordinates(features, codes, n_threads=n_cores())
    styles = style.clients(table, rng=rng)
    cells = sparse.csc_array(table)
    laws, report = _served_laws(style, located, codes, urns, cells, styles, rng)
    begins = _begins(cells)
    factor = REUSED if replace else 0.0

    def serve(label: int, own: np.random.Generator) -> None:
        law, asking = laws[label], slice(cells.indptr[label], cells.indptr[label + 1])
        targets = styles[cells.indices[asking]] @ law.turn.T
        spread = law.turn @ style.by_label_root
        needs = cells.data[asking]
        boxes = _boxes(law, located, urns[label], law.turn @ style.mean, needs.mean())
        draw_styled(
            begins[asking], needs, targets, spread, law.within, *boxes, factor, indices, own
        )

    asked = np.flatnonzero(np.diff(cells.indptr)).tolist()
    with ThreadPoolExecutor(n_cores()) as threads:  # each label has a random stream of its own
        deque(threads.map(serve, asked, rng.spawn(len(asked))), maxlen=0)
    return report


def _begins(cells: sparse.csc_array) -> Ints:
    """The index of the first point of each client and label: clients in turn, and of each its labels."""
    by_client = cells.tocsr()
    begins = np.cumsum(by_client.data) - by_client.data
    parts = (begins, by_client.indices, by_client.indptr)
    return np.asarray(sparse.csr_array(parts, by_client.shape).tocsc().data)


def _served_laws(
    style: Style, located: Floats, codes: Ints, urns: Sequence[NDArray[np.integer]],
    cells: sparse.csc_array, styles: Floats, rng: np.random.Generator,
) -> tuple[list[_Law], StyleReport]:  # fmt: skip
    """The law of each label, along as many directions as the proxy data can serve: at least one.

    Directions are those of B + V + μμ': in the first, clients' styles are farthest from the proxy
    data's.
    """
    between = style.shared + style.by_label
    axes = np.linalg.eigh(between + np.outer(style.mean, style.mean))[1][:, ::-1]
    moments = _moments(located, codes, len(urns))
    for n_used in range(style.n_directions, 0, -1):
        laws = [_law(*pair, between, axes[:, :n_used]) for pair in zip(*moments, strict=True)]
        report = _looked_at(laws, located, urns, cells, styles, style, rng)
        if report.served >= 1 - POORLY_SERVED:
            break
    return laws, report


def _moments(located: Floats, codes: Ints, n_labels: int) -> tuple[Floats, Floats]:
    """The mean and covariance of the proxy points of each label.

    The space makes the points N(0, I) of which it was made; these may be others, and few. One point more
    than there are directions is added as a prior, of mean 0 and covariance I.
    """
    from polyurn.partitioning.styled_kernels import add_moments

    n_directions = located.shape[1]
    n_prior = n_directions + 1
    means = np.zeros((n_labels, n_directions))
    seconds = np.tile(n_prior * np.eye(n_directions), (n_labels, 1, 1))
    add_moments(located, codes, means, seconds)
    n_points = np.bincount(codes, minlength=n_labels) + n_prior
    means /= n_points[:, None]
    seconds /= n_points[:, None, None]
    return means, seconds - means[:, :, None] * means[:, None]


def _law(centre: Floats, covariance: Floats, between: Floats, axes: Floats) -> _Law:
    """The law of a label whose proxy points have this mean and covariance, along some axes."""
    values, vectors = np.linalg.eigh(axes.T @ covariance @ axes)
    whitening = (vectors / np.sqrt(values)) @ vectors.T
    shares, turn = np.linalg.eigh(whitening @ axes.T @ between @ axes @ whitening)
    within = 1.0 - np.clip(shares, 0.0, MOST_BETWEEN)
    return _Law(centre, turn.T @ whitening @ axes.T, within)


def _looked_at(
    laws: Sequence[_Law], located: Floats, urns: Sequence[NDArray[np.integer]],
    cells: sparse.csc_array, styles: Floats, style: Style, rng: np.random.Generator,
) -> StyleReport:  # fmt: skip
    """How many points the proxy data have for some of the clients and labels."""
    from polyurn.partitioning.styled_kernels import effective_sizes

    chosen = np.sort(rng.choice(cells.nnz, min(cells.nnz, _N_LOOKED_AT), replace=False))
    ends = np.searchsorted(chosen, cells.indptr)
    effective, needs = np.empty(len(chosen)), np.empty(len(chosen))
    for label, law in enumerate(laws):
        here = slice(ends[label], ends[label + 1])
        if ends[label] == ends[label + 1]:
            continue
        mine, urn = chosen[here], urns[label]
        own = rng.standard_normal((len(mine), style.n_directions)) @ style.by_label_root.T
        targets = (styles[cells.indices[mine]] + own) @ law.turn.T
        some = located[urn[:: math.ceil(len(urn) / _N_POINTS_LOOKED_AT)]]
        points = (some - law.centre) @ law.turn.T
        effective_sizes(targets, law.within, points, effective[here])
        effective[here] *= len(urn) / len(points)
        # Whoever asks for more than there are has all of them, and some twice.
        needs[here] = cells.data[mine] % len(urn)
    by_label = np.split(effective, ends[1:-1])
    return StyleReport(
        n_directions=style.n_directions,
        n_directions_used=len(laws[0].within),
        effective_median=_quantiles(by_label, 0.5),
        effective_low=_quantiles(by_label, POORLY_SERVED),
        served=float(np.mean(effective >= needs)),
    )


def _quantiles(by_label: Sequence[Floats], share: float) -> Floats:
    """A quantile for each label; NaN for one that nobody asks for."""
    return np.array([np.quantile(found, share) if len(found) else np.nan for found in by_label])


def _boxes(
    law: _Law, located: Floats, urn: NDArray[np.integer], mean: Floats, asked: float
) -> tuple[Any, ...]:
    """Points in the order of their boxes, where boxes start, between what they lie, the points' names.

    The more the logarithms of weights change along a direction the narrower are the boxes: their mean
    square derivative is (1 - e) / e, plus the square of the mean style.
    """
    from polyurn.partitioning.styled_kernels import into_boxes, turned

    points, named = turned(located.take(urn, axis=0), law.centre, law.turn), urn.copy()
    change = np.sqrt((1 - law.within) / law.within + mean**2)
    n_boxes = _BOXES_PER_POINT * len(mean) ** 2 * asked
    most = max(_FEWEST_PER_BOX, int(len(urn) / n_boxes))
    return points, *into_boxes(points, named, change, most), named

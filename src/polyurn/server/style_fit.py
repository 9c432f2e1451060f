"""Fitting clients' styles: one question, the moment equations of the two-level law, and their errors.

With a, b and c the means over clients of Σ_l (n_l / n)², 1 / n and L_i / n, and T1, A and W those of the
matrices of `wire/style_queries.py`, the law of `model/style.py` gives

    E[W] = (1 - c) E,    E[A] = (1 - a) V + (c - b) E,    E[T1] = μμ' + B + a V + b E,

which are solved for E, V and B, whatever the sizes and labels of the clients.

Standard errors are those of the delta method: of sampled clients, of noise, and of clipping. Only the
numbers that the estimates need are asked for: groups of clients for a jackknife would be smaller sums,
and under differential privacy each would have the whole noise. The variance of clients' moments is
therefore that of the fitted Gaussian law; with heavier tails the errors are too small.
"""

import math
from dataclasses import dataclass

import numpy as np

from polyurn.errors import FitError, ParameterError
from polyurn.model.style import Style, StyleErrors, nearest_covariance
from polyurn.model.style_coordinates import StyleSpace
from polyurn.privacy.ledger import PrivacyLedger, Trust
from polyurn.privacy.noise import Noise, discrete_gaussian
from polyurn.server.describing import Asked
from polyurn.typed.arguments import checked
from polyurn.typed.arrays import symmetric
from polyurn.typed.declared import Floats, Ints
from polyurn.wire import Aggregator
from polyurn.wire.style_queries import BoundedStyle, StyleMoments, StyleStatistics, triangle

# A smaller part of the label shares' variance is rounding: shares add up to 1, so one direction is 0.
_LEAST_SHARE = 1e-6
# Below this, 1 - a and 1 - c are rounding: every client has one label, or one point of each label.
_NOTHING = 1e-9
# 1 - c counts as known if it is at least this many standard deviations of its noise.
_SURE = 2.0
# The relative step of a difference quotient: the cube root of the rounding of float64.
_STEP = 6e-6
# Clients, and points of each, that are simulated to see what clipping does to the estimates.
_SIMULATED, _MOST_POINTS = 2_000, 200


@checked
def fit_style(
    aggregator: Aggregator,
    space: StyleSpace,
    *,
    label_effect: bool = False,
    epsilon: float | None = None,
    delta: float | None = None,
    clip: float | None = None,
    trust: Trust = "central",
    ledger: PrivacyLedger | None = None,
    noise: Noise = discrete_gaussian,
) -> Style:
    """Learn how clients differ besides their labels, in one round.

    All clients with records send 5 + m + 3 m (m + 1) / 2 numbers, once. Negative eigenvalues of B, V and
    E are set to 0. If every client has one label, B and V cannot be distinguished: B gets all of it.

    Parameters
    ----------
    aggregator : Aggregator
        Of clients with records: `LocalAggregator(Records(...))`, say. With `epsilon` it may be a
        `PrivateAggregator`, whose ledger, trust model and noise then count, and whose `guarantee()`
        states what was spent.
    space : StyleSpace
        Of the server's own proxy points: see `style_space`.
    label_effect : bool
        Whether label shares are asked for as well, so that style depends on them: for federations where
        label and style are correlated. It takes L + L (L + 1) / 2 + L m more numbers.
    epsilon, delta : float, optional
        Ask with (ε, δ)-differential privacy for one client added or removed. The standard errors of the
        estimates include the noise.
    clip : float, optional
        With `epsilon`: the norm at which a client's second moments are cut; by default m, the mean of
        z'z in the proxy data. Larger ones are scaled down less often, and all have more noise.
    trust, ledger, noise
        With `epsilon`, as in `fit_private`.

    Raises
    ------
    FitError
        Fewer than two clients answered, none has two points of one label, or there is more noise than
        signal.

    Examples
    --------
    >>> import polyurn as pu
    >>> rng = np.random.default_rng(0)
    >>> labels, clients = rng.integers(2, size=6000), np.repeat(np.arange(200), 30)
    >>> own = rng.normal(size=(200, 2))[clients]
    >>> features = own + rng.normal(size=(6000, 2)) + 3 * labels[:, None]
    >>> space = pu.style_space(features, labels, n_directions=2)
    >>> style = pu.fit_style(pu.LocalAggregator(pu.Records(features, labels, clients)), space)
    >>> style.n_clients, round(style.between, 1)
    (200, 0.5)
    """
    if epsilon is None:
        if delta is not None or clip is not None or ledger is not None:
            raise ParameterError("expected epsilon with delta, clip and ledger: they are for noise")
        sums = aggregator.aggregate(StyleMoments(space, label_effect), None)
        return _fitted(space, sums, None, math.inf)
    cut = float(space.n_directions) if clip is None else clip
    query = BoundedStyle(space, cut, label_effect)
    asked = Asked(aggregator, epsilon, delta, trust=trust, ledger=ledger, noise=noise)
    values, sigmas = asked.released(query)
    return _fitted(space, query.unscaled(values), sigmas, cut)


@dataclass(frozen=True)
class Estimates:
    """μ, B, V and E."""

    mean: Floats
    shared: Floats
    by_label: Floats
    within: Floats

    def to_vector(self) -> Floats:
        """μ and the lower triangles of the others, one after the other."""
        matrices = (self.shared, self.by_label, self.within)
        return np.concatenate([self.mean, *(triangle(one) for one in matrices)])


@dataclass(frozen=True)
class Clients:
    """The number of clients, and the means over them of Σ_l (n_l / n)², 1 / n and L_i / n."""

    n_clients: float
    squared_shares: float
    inverse_size: float
    labels_per_point: float
    n_labels: int

    @property
    def n_points(self) -> int:
        """The number of points of a client like the mean one, limited to 2 to 200."""
        return max(2, round(1 / max(self.inverse_size, 1 / _MOST_POINTS)))

    def shares(self) -> Floats:
        """Label shares of a client like the mean one, shape (n_present,): in geometric progression."""
        most = min(self.n_labels, self.n_points)
        present = min(max(1, round(self.labels_per_point / max(self.inverse_size, 1e-9))), most)
        low, high = 0.0, 1.0
        for _ in range(60):  # Σ shares² falls from 1 to 1 / present as the ratio rises from 0 to 1
            ratio = (low + high) / 2
            shares = ratio ** np.arange(present)
            shares /= shares.sum()
            low, high = (ratio, high) if (shares**2).sum() > self.squared_shares else (low, ratio)
        return np.asarray(shares)


def _fitted(space: StyleSpace, sums: StyleStatistics, sigmas: Floats | None, clip: float) -> Style:
    n_clients = float(sums.n_clients)
    if sigmas is None and not n_clients >= 2:
        raise FitError(
            "expected answers of at least two clients with records, a style is how they differ, got "
            f"{n_clients:g}"
        )
    if not n_clients >= 1:
        raise FitError("there is more noise than clients: ask more of them")
    vector = sums.to_vector()
    if sigmas is not None:
        noise = math.hypot(sigmas[0], sigmas[3])  # of the number of clients, and of the sum of c
        if n_clients - vector[3] < _SURE * noise:
            raise FitError(
                "there is more noise than signal: whether clients have two points of the same label "
                "cannot be told; ask more clients, or with a larger epsilon"
            )
    # Means of shares; noise may leave their range.
    vector[1:5] = np.clip(vector[1:5], 0.0, n_clients)
    b, a, c, far = (float(mean) for mean in vector[1:5] / n_clients)
    raw = solved(vector, space.n_directions)
    kept = Estimates(raw.mean, *map(nearest_covariance, (raw.shared, raw.by_label, raw.within)))
    clients = Clients(n_clients, a, b, c, space.n_labels)
    errors = standard_errors(kept, clients, vector, sigmas, radius=space.radius, clip=clip)
    return Style(
        space, kept.mean, kept.shared, kept.by_label, kept.within,
        errors=errors, n_clients=round(n_clients),
        far_share=far,
        **_label_effect(space, sums, kept.mean, sigmas),
    )  # fmt: skip


def solved(sums: Floats, n_directions: int) -> Estimates:
    """The moment equations, from `StyleStatistics.to_vector()`; eigenvalues may be negative."""
    m, n_lower = n_directions, n_directions * (n_directions + 1) // 2
    b, a, c, _, *_ = sums[1:5] / sums[0]
    mean = sums[5 : 5 + m] / sums[0]
    matrices = sums[5 + m : 5 + m + 3 * n_lower].reshape(3, n_lower) / sums[0]
    between_clients, between_labels, within_labels = map(symmetric, matrices)
    if 1 - c < _NOTHING:
        raise FitError(
            "expected clients with two points of the same label, got none: what a client's points "
            "have in common cannot be told from chance; ask clients with more points"
        )
    within = within_labels / (1 - c)
    by_label = np.zeros((m, m))
    if 1 - a >= _NOTHING:
        by_label = (between_labels - (c - b) * within) / (1 - a)
    shared = between_clients - np.outer(mean, mean) - a * by_label - b * within
    return Estimates(mean, shared, by_label, within)


def _label_effect(
    space: StyleSpace, sums: StyleStatistics, mean: Floats, sigmas: Floats | None
) -> dict[str, Floats]:
    """p, Cov(h) and G = Cov(h)^+ Cov(h, z̄), if they were asked for."""
    if not len(sums.label_effect):
        return {}
    n, m, n_clients = space.n_labels, space.n_directions, float(sums.n_clients)
    n_lower = n * (n + 1) // 2
    shares, products, means = np.split(sums.label_effect / n_clients, [n, n + n_lower])
    covariance = nearest_covariance(symmetric(products) - np.outer(shares, shares))
    joint = means.reshape(n, m) - np.outer(shares, mean)
    values, vectors = np.linalg.eigh(covariance)
    least = _LEAST_SHARE * max(values[-1], 0.0)
    if sigmas is not None:
        # The largest eigenvalue of symmetric noise is twice its deviation times √n (Wigner 1955).
        of_products = sigmas[len(sigmas) - len(sums.label_effect) + n] / n_clients
        least = max(least, 2 * math.sqrt(n) * of_products)
    seen = values > least
    inverse = (vectors[:, seen] / values[seen]) @ vectors[:, seen].T
    return {"label_shares": shares, "label_covariance": covariance, "label_effect": inverse @ joint}


def standard_errors(
    fitted: Estimates,
    clients: Clients,
    sums: Floats,
    sigmas: Floats | None,
    *,
    radius: float,
    clip: float,
) -> StyleErrors:
    """The errors of μ, B, V and E: √(sampling² + noise² + what clipping takes away²).

    `sums` (n_numbers,) are what the estimates were made of, `sigmas` the standard deviation of the noise
    in each, if any; points were clipped at `radius`, and clients' second moments at `clip`.
    """
    m = len(fitted.mean)
    n_used = 5 + m + 3 * (m * (m + 1) // 2)
    used = sums[:n_used]
    square_errors = _of_sampling(fitted, clients, used)
    if sigmas is not None:
        square_errors += (_jacobian(used, m) ** 2) @ sigmas[:n_used] ** 2
    square_errors += _of_clipping(fitted, clients, radius=radius, clip=clip) ** 2
    errors = np.sqrt(square_errors)
    shared, by_label, within = map(symmetric, np.split(errors[m:], 3))
    far = 0.0 if sigmas is None else float(sigmas[4]) / clients.n_clients
    return StyleErrors(errors[:m], shared, by_label, within, far_share=far)


def _jacobian(sums: Floats, m: int) -> Floats:
    """How the estimates change with each sum, shape (n_estimates, n_sums)."""
    columns = []
    for i in range(len(sums)):
        step = np.zeros_like(sums)
        step[i] = _STEP * max(abs(sums[i]), _STEP * abs(sums[0]))
        rise = solved(sums + step, m).to_vector() - solved(sums - step, m).to_vector()
        columns.append(rise / (2 * step[i]))
    return np.column_stack(columns)


def _of_sampling(fitted: Estimates, clients: Clients, sums: Floats) -> Floats:
    """The squared errors that come from which clients there are, shape (n_estimates,).

    For a client of label shares w, means of normal vectors have the covariances C_lr = B + δ_lr D_l,
    D_l = V + E / n_l, and quadratic forms in them those of Isserlis (1918): with
    ⟨X⟩ = X_jp X_kq + X_jq X_kp,

        Cov(T1, T1) = ⟨B + a V + b E⟩,   Cov(T1, T2) = Σ_l w_l ⟨B + w_l V + b E⟩,
        Cov(T2, T2) = (1 - a) ⟨B⟩ + Σ_l w_l² ⟨B + D_l⟩,    T2 = T1 + A,

    and W, which is independent of both, that of Wishart (1928), (n - L_i) / n² ⟨E⟩.
    """
    m, n = len(fitted.mean), clients.n_clients
    b_, v_, e_ = fitted.shared, fitted.by_label, fitted.within
    shares, b = clients.shares(), clients.inverse_size
    a, c = float((shares**2).sum()), clients.labels_per_point
    one = b_ + a * v_ + b * e_
    tt = _pairs(one)
    t2 = sum(w * _pairs(b_ + w * v_ + b * e_) for w in shares)
    both = (1 - a) * _pairs(b_) + sum(w * w * _pairs(b_ + v_ + b / w * e_) for w in shares)
    n_lower = len(tt)
    covariance = np.zeros((m + 3 * n_lower, m + 3 * n_lower))
    first, second, third = (slice(m + i * n_lower, m + (i + 1) * n_lower) for i in range(3))
    covariance[:m, :m] = one
    covariance[first, first] = tt
    covariance[first, second] = t2 - tt
    covariance[second, first] = (t2 - tt).T
    covariance[second, second] = both - t2 - t2.T + tt
    covariance[third, third] = b * max(1 - c, 0.0) * _pairs(e_)
    # Around the mean: the equations subtract μμ' from T1, and the rest does not depend on μ.
    centred = sums.copy()
    centred[5 : 5 + m] = 0.0
    centred[5 + m : 5 + m + n_lower] = n * triangle(one)
    jacobian = _jacobian(centred, m)[:, 5:]
    squares = np.einsum("ij,jk,ik->i", jacobian, n * covariance, jacobian)
    return np.asarray(np.maximum(squares, 0.0))


def _pairs(matrix: Floats) -> Floats:
    """⟨X⟩ of two lower triangles, shape (n_lower, n_lower)."""
    rows, columns = np.tril_indices(len(matrix))
    straight = matrix[np.ix_(rows, rows)] * matrix[np.ix_(columns, columns)]
    swapped = matrix[np.ix_(rows, columns)] * matrix[np.ix_(columns, rows)]
    return np.asarray(straight + swapped)


def _of_clipping(fitted: Estimates, clients: Clients, *, radius: float, clip: float) -> Floats:
    """How much clipping moves the estimates: clients of the fitted law, clipped and not.

    Both have the same simulated clients, so that the difference has little random error.
    """
    rng = np.random.default_rng(0)
    m, shares = len(fitted.mean), clients.shares()
    per_label = np.maximum(1, np.rint(clients.n_points * shares).astype(int))
    # The most frequent labels: the equations need two points of a label.
    per_label[0] = max(2, per_label[0])
    roots = [np.linalg.eigh(one) for one in (fitted.shared, fitted.by_label, fitted.within)]
    b, v, e = (vectors * np.sqrt(np.maximum(values, 0.0)) for values, vectors in roots)
    normal = rng.standard_normal
    client = fitted.mean + normal((_SIMULATED, 1, m)) @ b.T
    label = client + normal((_SIMULATED, len(per_label), m)) @ v.T
    points = np.repeat(label, per_label, axis=1)
    points += normal((_SIMULATED, per_label.sum(), m)) @ e.T
    lengths = np.linalg.norm(points, axis=2, keepdims=True)
    clipped = points * np.minimum(1.0, radius / np.maximum(lengths, 1e-300))
    free = solved(_sums(points, per_label, math.inf), m)
    return np.asarray(solved(_sums(clipped, per_label, clip), m).to_vector() - free.to_vector())


def _sums(points: Floats, per_label: Ints, clip: float) -> Floats:
    """The vector that simulated clients with the same label counts send, without label_effect."""
    n_clients, n = points.shape[:2]
    w = per_label / n
    starts = np.cumsum(per_label) - per_label
    centres = np.add.reduceat(points, starts, axis=1) / per_label[:, None]
    means = np.einsum("l,ilk->ik", w, centres)
    apart = centres - means[:, None]
    inside = points - np.repeat(centres, per_label, axis=1)
    matrices = np.stack(
        [
            np.einsum("ij,ik->ijk", means, means),
            np.einsum("l,ilj,ilk->ijk", w, apart, apart),
            np.einsum("inj,ink->ijk", inside, inside) / n,
        ],
        axis=1,
    )
    norms = np.sqrt((matrices**2).sum(axis=(1, 2, 3)))
    matrices *= np.minimum(1.0, clip / np.maximum(norms, 1e-300))[:, None, None, None]
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    means = means * np.minimum(1.0, math.sqrt(clip) / np.maximum(lengths, 1e-300))
    heads = np.array([1.0, 1 / n, (w**2).sum(), len(per_label) / n, 0.0]) * n_clients
    return np.concatenate([heads, means.sum(axis=0), triangle(matrices.sum(axis=0)).reshape(-1)])

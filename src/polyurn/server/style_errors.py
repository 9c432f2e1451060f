"""Standard errors of a style, by the delta method: of sampled clients, of noise, and of clipping.

No number more is asked for than the estimates need: groups of clients for a jackknife would be smaller
sums, and under differential privacy each would have all of the noise. What clients' moments vary by is
therefore that of the fitted Gaussian law; heavier tails than that make the errors too small. What is
asked, and how it is solved, is `style.py`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from polyurn.model.style import StyleErrors
from polyurn.wire.styles import square, triangle

# Of a relative step of a difference quotient: the cube root of the rounding of float64.
_STEP = 6e-6
# Clients, and points of each, that are simulated to see what clipping does to the estimates.
_SIMULATED, _MOST_POINTS = 2_000, 200


@dataclass(frozen=True)
class Estimates:
    """μ, B, V and E."""

    mean: NDArray[np.float64]
    shared: NDArray[np.float64]
    by_label: NDArray[np.float64]
    within: NDArray[np.float64]

    def to_vector(self) -> NDArray[np.float64]:
        """μ and the lower triangles of the others, one after the other."""
        matrices = (self.shared, self.by_label, self.within)
        return np.concatenate([self.mean, *(triangle(one) for one in matrices)])


@dataclass(frozen=True)
class Clients:
    """How many there are, and the means over them of Σ_l (n_l / n)², 1 / n and L_i / n."""

    n_clients: float
    squared_shares: float
    inverse_size: float
    labels_per_point: float
    n_labels: int

    @property
    def n_points(self) -> int:
        """The points of a client like the mean one, as far as they matter: from 2 to 200."""
        return max(2, round(1 / max(self.inverse_size, 1 / _MOST_POINTS)))

    def shares(self) -> NDArray[np.float64]:
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


Solve: TypeAlias = Callable[[NDArray[np.float64], int], Estimates]


def standard_errors(
    fitted: Estimates,
    clients: Clients,
    sums: NDArray[np.float64],
    sigmas: NDArray[np.float64] | None,
    solve: Solve,
    *,
    radius: float,
    clip: float,
) -> StyleErrors:
    """The errors of μ, B, V and E: √(sampling² + noise² + what clipping takes away²).

    Parameters
    ----------
    fitted : Estimates
        Covariances without negative eigenvalues.
    clients : Clients
    sums : float array of shape (n_numbers,)
        What the estimates were made of.
    sigmas : float array of shape (n_numbers,), optional
        The standard deviation of the noise in each of them.
    solve : function of (sums, n_directions)
    radius, clip : float
        Where points are clipped, and clients' second moments.
    """
    m = len(fitted.mean)
    n_used = 5 + m + 3 * (m * (m + 1) // 2)
    used = sums[:n_used]
    square_errors = _of_sampling(fitted, clients, used, solve)
    if sigmas is not None:
        jacobian = _jacobian(used, solve, m)
        square_errors += (jacobian**2) @ sigmas[:n_used] ** 2
    square_errors += _of_clipping(fitted, clients, solve, radius=radius, clip=clip) ** 2
    errors = np.sqrt(square_errors)
    shared, by_label, within = (square(one, m) for one in np.split(errors[m:], 3))
    far = 0.0 if sigmas is None else float(sigmas[4]) / clients.n_clients
    return StyleErrors(errors[:m], shared, by_label, within, far_share=far)


def _jacobian(sums: NDArray[np.float64], solve: Solve, m: int) -> NDArray[np.float64]:
    """How the estimates change with each sum, shape (n_estimates, n_sums)."""
    columns = []
    for i in range(len(sums)):
        step = np.zeros_like(sums)
        step[i] = _STEP * max(abs(sums[i]), _STEP * abs(sums[0]))
        rise = solve(sums + step, m).to_vector() - solve(sums - step, m).to_vector()
        columns.append(rise / (2 * step[i]))
    return np.column_stack(columns)


def _of_sampling(
    fitted: Estimates, clients: Clients, sums: NDArray[np.float64], solve: Solve
) -> NDArray[np.float64]:
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
    # Around the mean: the equations take μμ' away from T1, and what is left does not depend on μ.
    centred = sums.copy()
    centred[5 : 5 + m] = 0.0
    centred[5 + m : 5 + m + n_lower] = n * triangle(one)
    jacobian = _jacobian(centred, solve, m)[:, 5:]
    squares = np.einsum("ij,jk,ik->i", jacobian, n * covariance, jacobian)
    return np.asarray(np.maximum(squares, 0.0))


def _pairs(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """⟨X⟩ of two lower triangles, shape (n_lower, n_lower)."""
    rows, columns = np.tril_indices(len(matrix))
    straight = matrix[np.ix_(rows, rows)] * matrix[np.ix_(columns, columns)]
    crossed = matrix[np.ix_(rows, columns)] * matrix[np.ix_(columns, rows)]
    return np.asarray(straight + crossed)


def _of_clipping(
    fitted: Estimates, clients: Clients, solve: Solve, *, radius: float, clip: float
) -> NDArray[np.float64]:
    """How much clipping moves the estimates: clients of the fitted law, clipped and not.

    The same simulated clients are in both, so that the difference has hardly any chance in it.
    """
    rng = np.random.default_rng(0)
    m, shares = len(fitted.mean), clients.shares()
    per_label = np.maximum(1, np.rint(clients.n_points * shares).astype(int))
    per_label[0] = max(
        2, per_label[0]
    )  # the most frequent: without two of a label nothing is solved
    roots = [np.linalg.eigh(one) for one in (fitted.shared, fitted.by_label, fitted.within)]
    b, v, e = (vectors * np.sqrt(np.maximum(values, 0.0)) for values, vectors in roots)
    normal = rng.standard_normal
    client = fitted.mean + normal((_SIMULATED, 1, m)) @ b.T
    label = client + normal((_SIMULATED, len(per_label), m)) @ v.T
    points = np.repeat(label, per_label, axis=1)
    points += normal((_SIMULATED, per_label.sum(), m)) @ e.T
    lengths = np.linalg.norm(points, axis=2, keepdims=True)
    clipped = points * np.minimum(1.0, radius / np.maximum(lengths, 1e-300))
    free = solve(_sums(points, per_label, math.inf), m)
    return np.asarray(solve(_sums(clipped, per_label, clip), m).to_vector() - free.to_vector())


def _sums(
    points: NDArray[np.float64], per_label: NDArray[np.int64], clip: float
) -> NDArray[np.float64]:
    """What simulated clients of the same label counts send, as a vector without ties."""
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

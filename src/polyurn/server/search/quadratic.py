"""A running quadratic model of the log-likelihood over cohorts.

Each cohort says its slope g and its curvature H where it was asked: g + H (x - x_asked) is its slope
nearby. The mean of these over the cohorts is nearly the slope of all their clients together, wherever
each of them was asked, so its root is nearly the maximum of them all. EM steps, which can be a hundred
times shorter than the way that is left, play no part. Nothing is asked here.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Cohort n counts in proportion to n² until this one, and all that follow count as much as it does: the
# first ones were asked too far away.
_FULL_WEIGHT = 20
# No parameter's logarithm moves further than this in a round.
_LONGEST = 0.5


@dataclass(frozen=True)
class Quadratic:
    """The mean of the cohorts' quadratic models: its slope at x is `curvature @ x - pull`.

    Attributes
    ----------
    curvature : float array of shape (n, n)
    pull : float array of shape (n,)
    n_cohorts : int
    n_clients : float
        Of all cohorts together.
    weight : float
        Likewise, the first cohorts counting for less.
    """

    curvature: NDArray[np.float64]
    pull: NDArray[np.float64]
    n_cohorts: int = 0
    n_clients: float = 0.0
    weight: float = 0.0

    @classmethod
    def empty(cls, n: int) -> "Quadratic":
        """The model before the first cohort."""
        return cls(np.zeros((n, n)), np.zeros(n))

    def blend(
        self,
        x: NDArray[np.float64],
        slope: NDArray[np.float64],
        curvature: NDArray[np.float64],
        n_clients: float,
    ) -> "Quadratic":
        """The model with one more cohort, asked at x; slope and curvature are means over its clients."""
        n = self.n_cohorts + 1
        new = min(n / _FULL_WEIGHT, 1.0) ** 2
        share = new / (self.weight + new)
        pull = curvature @ x - slope
        return Quadratic(
            (1 - share) * self.curvature + share * curvature,
            (1 - share) * self.pull + share * pull,
            n,
            self.n_clients + n_clients,
            self.weight + new,
        )

    def after(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where to ask next, from x: uphill to the model's root, whatever the curvature's signs.

        Directions in which all the clients together say little are damped: what one client would say
        there counts as known.
        """
        values, axes = np.linalg.eigh(self.curvature)
        along = axes.T @ (self.curvature @ x - self.pull)
        step = axes @ (along / (np.abs(values) + 1.0 / self.n_clients))
        return np.asarray(x + step * min(1.0, _LONGEST / max(float(np.abs(step).max()), 1e-300)))

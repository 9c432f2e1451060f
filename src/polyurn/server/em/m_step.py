"""The M-step of the alphas, solved on the server from one round's sums.

At fixed responsibilities the expected log-likelihood of component k is Σ_j F_j(α_j) - F_0(α_0), where
F(α) = Σ_i ω_i Σ_{m<c_i} log(α + m). The clients send the weight of its first term (how often the
category is present) and F′ and F″ where they were asked. All other terms are stood for by a single one:
the surrogate w log α + v log(α + q) has the same first term, F′ and F″. This module does not know how
weights and sizes are updated.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyurn.server.em.m_step_kernel import MAX_CONCENTRATION, maximised
from polyurn.wire import ExpectStatistics


@dataclass(frozen=True)
class Surrogate:
    """w log α + v log(α + q) for each category, and in the last column for the total.

    Attributes
    ----------
    present, weight, shift : float arrays of shape (..., n_components, n_categories + 1)
        w, v and q.
    """

    present: NDArray[np.float64]
    weight: NDArray[np.float64]
    shift: NDArray[np.float64]

    @classmethod
    def of(cls, alphas: NDArray[np.float64], sums: ExpectStatistics) -> "Surrogate":
        """The surrogate of a round's sums, per client, at the alphas (..., K, C) that were sent."""
        n = np.asarray(sums.n_clients)[..., None, None]
        joined = sums.size_counts.sum(axis=-1)  # every client holds at least one point
        return cls._matching(
            _with_total(alphas),
            _joined(sums.present, joined) / n,
            _joined(sums.tables, sums.total_tables) / n,
            _joined(sums.spread, sums.total_spread) / n,
        )

    def blend(self, new: "Surrogate", alphas: NDArray[np.float64], step: float) -> "Surrogate":
        """(1 - step) of this and `step` of the new one, exact to second order at `alphas`."""
        a = _with_total(alphas)
        pairs = zip(self._sums(a), new._sums(a), strict=True)
        return self._matching(a, *((1 - step) * old + step * more for old, more in pairs))

    def maximise(
        self, alphas: NDArray[np.float64], *, category_prior: float
    ) -> NDArray[np.float64]:
        """The alphas that maximise Σ_j F_j(α_j) - F_0(α_0) + category_prior Σ_j log α_j.

        Newton's method on a diagonal plus a rank-one matrix (Minka, 2000); where a step does not help,
        the paper's fixed point, which always does. A component without clients stays where it was.

        Parameters
        ----------
        alphas : float array of shape (..., n_components, n_categories)
            Where to begin.
        category_prior : float
            Pseudo-tables per category and client.
        """
        c = alphas.shape[-1]
        present = self.present.copy()
        present[..., :c] += category_prior
        functions = (f.reshape(-1, c + 1) for f in (present, self.weight, self.shift))
        return np.asarray(maximised(*functions, alphas.reshape(-1, c))).reshape(alphas.shape)

    def _sums(self, a: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """w, α F′ and -α² F″ at any alphas."""
        ratio = a / (a + self.shift)
        first = self.present + self.weight * ratio
        return self.present, first, self.present + self.weight * ratio**2

    @classmethod
    def _matching(
        cls,
        a: NDArray[np.float64],
        present: NDArray[np.float64],
        tables: NDArray[np.float64],
        spread: NDArray[np.float64],
    ) -> "Surrogate":
        """The v and q with w + v α/(α + q) = tables and w + v α²/(α + q)² = spread."""
        more, less = tables - present, spread - present
        # Counts of at most one leave nothing beyond the first term; what is left then is rounding.
        rounding = np.finfo(float).eps ** 0.75 * tables
        some = (more > rounding) & (less > rounding)
        ratio = np.where(some, more / np.where(some, less, 1.0), 2.0)  # (α + q)/α
        ratio = np.maximum(ratio, 1.0)
        return cls(present, np.where(some, more * ratio, 0.0), a * (ratio - 1.0))


def capped(alphas: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same proportions, with no concentration beyond the cap."""
    return np.asarray(
        alphas / np.maximum(alphas.sum(axis=-1, keepdims=True) / MAX_CONCENTRATION, 1)
    )


def _with_total(alphas: NDArray[np.float64]) -> NDArray[np.float64]:
    return _joined(alphas, alphas.sum(axis=-1))


def _joined(categories: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([categories, total[..., None]], axis=-1)

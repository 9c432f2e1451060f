"""The M-step of the alphas, solved on the server from one round's sums.

At fixed responsibilities the expected log-likelihood of component k is Σ_j F_j(α_j) - F_0(α_0), where
F(α) = Σ_i ω_i Σ_{m<c_i} log(α + m): a sum of logarithms with poles of F′ at 0, -1, -2, ... The weight
of the pole at 0 is known (how often the category is present), and all the others are stood for by a
single one whose weight and place reproduce F′ and F″ where the clients were asked. So three numbers
for each category, whatever its counts, give F near there to second order, and its shape far away.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyurn.server.search.m_step_kernel import MAX_CONCENTRATION, maximised
from polyurn.wire import ExpectStatistics


@dataclass(frozen=True)
class Poles:
    """F of each category and of the total: w log α + v log(α + q).

    Attributes
    ----------
    present, weight, place : float arrays of shape (n_components, n_categories)
        w, v and q of each category.
    total_present, total_weight, total_place : float arrays of shape (n_components,)
    """

    present: NDArray[np.float64]
    weight: NDArray[np.float64]
    place: NDArray[np.float64]
    total_present: NDArray[np.float64]
    total_weight: NDArray[np.float64]
    total_place: NDArray[np.float64]

    def flat(self) -> "Poles":
        """The functions of many models, whose arrays have one more axis, as those of one."""
        c = self.present.shape[-1]
        categories = (self.present, self.weight, self.place)
        totals = (self.total_present, self.total_weight, self.total_place)
        return Poles(*(f.reshape(-1, c) for f in categories), *(f.reshape(-1) for f in totals))


def poles(alphas: NDArray[np.float64], sums: ExpectStatistics) -> Poles:
    """The poles that reproduce a round's sums at the alphas that were sent.

    Parameters
    ----------
    alphas : float array of shape (n_components, n_categories), or one more axis for many models
    sums : ExpectStatistics
    """
    weight, place = _second_pole(alphas, sums.present, sums.tables, sums.spread)
    joined = sums.size_counts.sum(axis=-1)  # every client holds at least one point
    alpha_0 = alphas.sum(axis=-1)
    total = _second_pole(alpha_0, joined, sums.total_tables, sums.total_spread)
    return Poles(sums.present, weight, place, joined, *total)


def blend(old: Poles, new: Poles, alphas: NDArray[np.float64], step: float) -> Poles:
    """(1 - step) F_old + step F_new, as poles that are exact to second order at `alphas`.

    This is how earlier cohorts keep counting: a running average of the functions that their sums
    stand for.
    """

    def both(name: str) -> NDArray[np.float64]:
        return np.asarray((1 - step) * getattr(old, name) + step * getattr(new, name))

    def sums(p: Poles) -> tuple[NDArray[np.float64], ...]:
        a_0 = alphas.sum(axis=1)
        r, r_0 = alphas / (alphas + p.place), a_0 / (a_0 + p.total_place)
        return (
            p.present + p.weight * r,
            p.present + p.weight * r**2,
            p.total_present + p.total_weight * r_0,
            p.total_present + p.total_weight * r_0**2,
        )

    mixed = [(1 - step) * a + step * b for a, b in zip(sums(old), sums(new), strict=True)]
    present, total_present = both("present"), both("total_present")
    weight, place = _second_pole(alphas, present, mixed[0], mixed[1])
    total = _second_pole(alphas.sum(axis=1), total_present, mixed[2], mixed[3])
    return Poles(present, weight, place, total_present, *total)


def scaled(functions: Poles, by: float) -> Poles:
    """The same functions times a number."""
    f = functions
    return Poles(
        f.present * by,
        f.weight * by,
        f.place,
        f.total_present * by,
        f.total_weight * by,
        f.total_place,
    )


def maximise(
    functions: Poles, alphas: NDArray[np.float64], *, category_prior: float
) -> NDArray[np.float64]:
    """The alphas that maximise Σ_j F_j(α_j) - F_0(α_0) + category_prior Σ_j log α_j.

    Newton's method with the Hessian's structure (a diagonal and a rank-one part); where a step does
    not help, the paper's fixed point, which always does.

    Parameters
    ----------
    functions : Poles
    alphas : float array of shape (n_components, n_categories)
        Where to begin.
    category_prior : float
        Pseudo-tables per category; keeps a category that a component never saw above zero.

    Returns
    -------
    float array of shape (n_components, n_categories)
        A component that no client supports is left where it was.
    """
    f = functions
    after = maximised(
        f.present + category_prior, f.weight, f.place,
        f.total_present, f.total_weight, f.total_place, alphas,
    )  # fmt: skip
    return np.asarray(after)


def _second_pole(
    alphas: NDArray[np.float64],
    present: NDArray[np.float64],
    tables: NDArray[np.float64],
    spread: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The v and q with w + v α/(α + q) = tables and w + v α²/(α + q)² = spread."""
    more, less = tables - present, spread - present
    # Counts of at most one leave nothing beyond the pole at 0; what is left then is rounding.
    some = (more > 1e-12 * tables) & (less > 1e-12 * tables)
    ratio = np.where(some, more / np.where(some, less, 1.0), 2.0)  # (α + q)/α
    ratio = np.maximum(ratio, 1.0)
    return np.where(some, more * ratio, 0.0), alphas * (ratio - 1.0)


def multinomial(alphas: NDArray[np.float64]) -> tuple[int, ...]:
    """Components whose concentration is at the cap: plain multinomials, up to about n²/cap nats."""
    at_cap = alphas.sum(axis=1) >= 0.99 * MAX_CONCENTRATION
    return tuple(int(k) for k in np.flatnonzero(at_cap))


def capped(alphas: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same proportions, with no concentration beyond the cap."""
    over = np.maximum(alphas.sum(axis=-1, keepdims=True) / MAX_CONCENTRATION, 1.0)
    return np.asarray(alphas / over)

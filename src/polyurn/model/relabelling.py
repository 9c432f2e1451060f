"""The clients of one federation with the labels of another: merging and splitting categories, and sizes.

Dirichlet-multinomials are closed under merging: the counts of merged categories have the sums of their
alphas. Splitting a category among labels divides its alpha, so that merging them again gives the model
that was split. A rule says which category becomes which label; `relabelled` says what each rule keeps.
"""

from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from polyurn.errors import ParameterError
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.typed.arrays import floats
from polyurn.typed.declared import Between, Floats
from polyurn.wording import counted

Rule: TypeAlias = Literal["rank", "random", "marginal"]
MeanSize: TypeAlias = Annotated[float, Between(1, 2**31 - 1)]

# Proportional fitting ends when no share is off by more; it converges linearly.
_TOLERANCE, _MOST_STEPS = 1e-12, 100_000
# The mean of scaled sizes, which are whole numbers, is met to this part of it.
_MEAN_TOLERANCE, _SCALINGS = 1e-3, 40


def label_shares(shares: ArrayLike | None, n_labels: int) -> Floats | None:
    """The shares of the labels, checked and summing to one."""
    if shares is None:
        return None
    given = floats(shares, "shares")
    if given.shape != (n_labels,) or not ((given >= 0).all() and np.isfinite(given.sum())):
        raise ParameterError(
            f"expected {counted(n_labels, 'share')} of at least 0, one for each label, got shape "
            f"{given.shape}"
        )
    if np.count_nonzero(given) < 2:
        raise ParameterError("expected labels of which two at least have points")
    return np.asarray(given / given.sum())


def destinations(marginal: Floats, shares: Floats, rule: Rule, rng: np.random.Generator) -> Floats:
    """Which part of each category's points becomes which label, shape (n_categories, n_labels).

    Categories and labels are put in order, of decreasing shares or at random, and the longer list is
    dealt out to the shorter one in turn. Labels without points get nothing.
    """
    present = np.flatnonzero(shares)
    if rule == "random":
        source, target = rng.permutation(len(marginal)), rng.permutation(present)
    else:
        source = np.argsort(-marginal, kind="stable")
        target = present[np.argsort(-shares[present], kind="stable")]
    parts = np.zeros((len(marginal), len(shares)))
    if len(source) >= len(target):
        parts[source, target[np.arange(len(source)) % len(target)]] = 1.0
    else:
        of_label = source[np.arange(len(target)) % len(source)]
        parts[of_label, target] = shares[target]
        parts /= parts.sum(axis=1, keepdims=True)
    return parts


def with_marginal(alphas: Floats, masses: Floats, shares: Floats) -> Floats:
    """Alphas of the same concentrations whose means, weighted by `masses`, are these shares.

    Iterative proportional fitting (Deming and Stephan 1940): the odds ratios of components and labels
    stay as they are. `masses`, of shape (n_components,), are each component's part of all points.
    """
    concentrations = alphas.sum(axis=1)
    joint = (masses / masses.sum())[:, None] * alphas / concentrations[:, None]
    rows = joint.sum(axis=1)
    for _ in range(_MOST_STEPS):
        now = joint.sum(axis=0)
        if np.abs(now - shares).max() <= _TOLERANCE:
            means = joint / joint.sum(axis=1, keepdims=True)
            return np.asarray(concentrations[:, None] * means)
        with np.errstate(invalid="ignore"):
            joint = joint * np.where(now > 0, shares / now, 0.0)
        joint *= (rows / joint.sum(axis=1))[:, None]
    raise ParameterError(
        "no mixture with these kinds of clients has the labels' shares: match by 'rank' instead"
    )


def scaled_sizes(sizes: Sizes, weights: Floats, mean: float) -> Sizes:
    """The same sizes in another unit, so that a client holds `mean` points in the mean."""
    factor = mean / float(weights @ sizes.mean())
    for _ in range(_SCALINGS):  # sizes are whole and at least 1, so that no formula has the factor
        scaled = _times(sizes, factor)
        found = float(weights @ scaled.mean())
        if abs(found / mean - 1) <= _MEAN_TOLERANCE:
            break
        factor *= (mean / found) if found > 1 else 0.5
    return scaled


def _times(sizes: Sizes, factor: float) -> Sizes:
    """Every size times a factor, rounded, and at least 1."""
    fine = sizes.bins.fine
    edges = np.maximum(np.rint(factor * (fine - 0.5) + 0.5), 1).astype(np.int64)
    edges = np.union1d([1, max(edges[-1], 2)], edges)
    centres = np.rint(factor * (fine[:-1] + fine[1:] - 1) / 2)
    where = np.searchsorted(edges, np.clip(centres, 1, edges[-1] - 1), side="right") - 1
    masses = np.zeros((sizes.n_components, len(edges) - 1))
    np.add.at(masses.T, where, sizes.fine_masses().T)
    return Sizes(SizeBins(edges), masses / masses.sum(axis=1, keepdims=True))

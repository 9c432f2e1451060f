"""How much clients differ in the features of their points, given the labels, against the noise floor.

With r the residual of a point, its features less the mean of its label, a client of n points has the
index n |mean r|² / tr Cov(r): 1 on average for clients whose points are drawn at random given their
labels, and more for clients that differ in style. The same goes for the points of one client and label.
Nothing is fitted or drawn here.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from polyurn.comparison.estimates import Estimate, mean_estimate, resample_weights
from polyurn.errors import ParameterError
from polyurn.model.style_coordinates import StyleSpace, feature_rows, label_codes
from polyurn.typed.arguments import checked
from polyurn.typed.arrays import finite_array, ids_of
from polyurn.typed.declared import Floats, Ints, Seed


@checked
@dataclass(frozen=True)
class StyleDispersion:
    """How much clients differ in style; 1 is the noise floor.

    Attributes
    ----------
    n_clients : int
    by_client : Estimate
        ``n |mean r|² / tr Cov(r)``, averaged over clients.
    by_label : Estimate
        The same for the points of each client and label, where there are two or more; tr Cov(r) is that
        of the label. Averaged over clients and labels; resampled by client.
    """

    n_clients: int
    by_client: Estimate
    by_label: Estimate


@dataclass(frozen=True)
class StyleRow:
    """How much the clients of one population differ: in the style's directions, and in all features."""

    name: str
    directions: StyleDispersion
    features: StyleDispersion

    @classmethod
    def of(cls, name: str, *points: ArrayLike, space: StyleSpace, rng: int) -> "StyleRow":
        """Measure the features, labels and clients of points, as in `style_dispersion`."""
        in_space = style_dispersion(*points, space=space, rng=rng)
        return cls(name, in_space, style_dispersion(*points, rng=rng))


@checked
def style_dispersion(
    features: ArrayLike,
    labels: ArrayLike,
    clients: ArrayLike,
    *,
    space: StyleSpace | None = None,
    n_bootstrap: int = 200,
    rng: Seed = None,
) -> StyleDispersion:
    """Measure how much clients differ in the features of points of the same label.

    Parameters
    ----------
    features : array of shape (n_points, ...)
    labels : int array of shape (n_points,)
    clients : array of shape (n_points,)
        Whose point it is. Of a partition of proxy points these are `features[parts.indices]`,
        `labels[parts.indices]` and `parts.clients`.
    space : StyleSpace, optional
        Coordinates to measure in; the features themselves by default.
    n_bootstrap : int
        Bootstrap samples of clients.
    rng : int or numpy.random.Generator

    Returns
    -------
    StyleDispersion

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> owner, label = np.repeat(np.arange(50), 20), rng.integers(2, size=1000)
    >>> alike = rng.normal(size=(1000, 2))
    >>> differing = alike + rng.normal(size=(50, 2))[owner]
    >>> found = [style_dispersion(f, label, owner, rng=0).by_client.value for f in (alike, differing)]
    >>> np.round(found, 1).tolist()
    [0.9, 10.4]
    """
    rows = (
        finite_array(feature_rows(features), "features")
        if space is None
        else space.coordinates(features, labels)
    )
    codes = label_codes(labels, len(rows), n_labels=None if space is None else space.n_labels)
    whose = ids_of(clients, "clients")
    if whose.shape != (len(rows),):
        raise ParameterError(
            f"expected a client for each of {len(rows)} points, got shape {whose.shape}"
        )
    if len(rows) < 2:
        raise ParameterError(f"expected at least two points, got {len(rows)}")
    rng = np.random.default_rng(rng)
    owner = np.unique(whose, return_inverse=True)[1]
    n_clients, n_labels = int(owner.max()) + 1, int(codes.max()) + 1
    n_points, centres = _means(rows, codes, n_labels)
    residuals = rows - centres[codes]
    squares = np.bincount(codes, np.square(residuals).sum(axis=1), minlength=n_labels)
    spreads = squares / np.maximum(n_points, 1)  # tr Cov(r) of each label
    weights = resample_weights(n_clients, n_bootstrap, rng=rng)
    sizes, means = _means(residuals, owner, n_clients)
    total = float(np.mean(np.square(residuals).sum(axis=1)))
    by_client = sizes * np.square(means).sum(axis=1) / total if total > 0 else np.ones(n_clients)
    n_held, by_cell = _means(residuals, owner * n_labels + codes, n_clients * n_labels)
    index = (n_held * np.square(by_cell).sum(axis=1)).reshape(n_clients, n_labels)
    counts = n_held.reshape(n_clients, n_labels)
    enough = (counts >= 2) & (spreads > 0)
    index = np.where(enough, index / np.where(spreads > 0, spreads, 1.0), 0.0)
    return StyleDispersion(
        n_clients=n_clients,
        by_client=mean_estimate(by_client, weights),
        by_label=_ratio_estimate(index.sum(axis=1), enough.sum(axis=1), weights),
    )


def _means(rows: Floats, groups: Ints, n_groups: int) -> tuple[Ints, Floats]:
    """The size and the mean of each group; 0 for one without points."""
    sizes = np.bincount(groups, minlength=n_groups)
    sums = [np.bincount(groups, column, minlength=n_groups) for column in rows.T]
    return sizes, np.stack(sums, axis=1) / np.maximum(sizes, 1)[:, None]


def _ratio_estimate(sums: Floats, counts: Ints, weights: Floats) -> Estimate:
    """Σ sums / Σ counts over clients, with its bootstrap interval; NaN if there is nothing to count."""
    if not counts.any():
        return Estimate(np.nan, np.nan, np.nan)
    drawn = weights @ counts
    draws = weights[drawn > 0] @ sums / drawn[drawn > 0]
    low, high = np.quantile(draws, [0.025, 0.975])
    return Estimate(float(sums.sum() / counts.sum()), float(low), float(high))

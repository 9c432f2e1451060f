"""Hypothesis strategies that the tests share: size bins, mixtures and tables of histograms.

Everything drawn is valid. What is not valid stands in the test that refuses it.
"""

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from numpy.typing import NDArray

from polyurn.model.mdm import MDM
from polyurn.model.sizes import SizeBins, Sizes

_ALPHAS = st.floats(1e-3, 1e3)
_MASSES = st.floats(1e-3, 1.0)


@st.composite
def size_bins(draw: DrawFn, max_size: int) -> SizeBins:
    """Bins that end at `max_size`: exact, one for all sizes, or anything between."""
    inner = draw(st.sets(st.integers(2, max_size))) if max_size > 1 else set()
    return SizeBins([1, *sorted(inner), max_size + 1])


def mdms(
    max_components: int = 4, max_categories: int = 6, max_size: int = 30
) -> SearchStrategy[MDM]:
    """Mixtures in which every category and every size up to the MDM's own max_size is possible."""
    return _mdms(max_components, max_categories, max_size, _ALPHAS, _MASSES)


def mdms_with_zeros(
    max_components: int = 4, max_categories: int = 6, max_size: int = 30
) -> SearchStrategy[MDM]:
    """Mixtures whose components may lack categories and sizes."""
    zero = st.just(0.0)
    return _mdms(max_components, max_categories, max_size, zero | _ALPHAS, zero | _MASSES)


@st.composite
def counts(
    draw: DrawFn, n_categories: int, max_clients: int = 8, max_size: int = 30
) -> NDArray[np.int64]:
    """A dense table of at least one client, each with 1 to `max_size` points."""
    points = st.lists(st.integers(0, n_categories - 1), min_size=1, max_size=max_size)
    clients = draw(st.lists(points, min_size=1, max_size=max_clients))
    return np.array([np.bincount(client, minlength=n_categories) for client in clients])


@st.composite
def _mdms(
    draw: DrawFn,
    max_components: int,
    max_categories: int,
    max_size: int,
    alphas: SearchStrategy[float],
    masses: SearchStrategy[float],
) -> MDM:
    n_components = draw(st.integers(1, max_components))
    n_categories = draw(st.integers(2, max_categories))
    bins = draw(size_bins(draw(st.integers(1, max_size))))
    weights = np.array(draw(st.lists(_MASSES, min_size=n_components, max_size=n_components)))
    return MDM(
        weights / weights.sum(),
        draw(_rows(alphas, n_components, n_categories)),
        Sizes(bins, _normalised(draw(_rows(masses, n_components, bins.n_bins)))),
    )


def _rows(values: SearchStrategy[float], n_rows: int, width: int) -> SearchStrategy[list]:
    """Rows of values, each with something positive in it."""
    row = st.lists(values, min_size=width, max_size=width).filter(any)
    return st.lists(row, min_size=n_rows, max_size=n_rows)


def _normalised(rows: list[list[float]]) -> NDArray[np.float64]:
    table = np.array(rows)
    return table / table.sum(axis=1, keepdims=True)

"""Bins that turn a continuous feature into a categorical one.

The server gives the edges; the client finds the bin of each of its values.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from polyurn.errors import CountsError, ParameterError
from polyurn.typed.arguments import checked
from polyurn.typed.arrays import FrozenArrays, floats, numbers
from polyurn.typed.declared import Floats, Ints

# A feature with more bins is not categorical.
_MOST_BINS = 1_000_000


@checked
@dataclass(frozen=True, eq=False)
class Bins(FrozenArrays):
    """Half-open intervals [edges[j], edges[j + 1]).

    Parameters
    ----------
    edges : float array of shape (n_bins + 1,)
        Increasing; the first may be -inf and the last inf.

    Examples
    --------
    The 41 income bins of the paper, [0, 5000) … [195000, 200000), [200000, ∞):

    >>> income = Bins.of_width(5_000, stop=200_000)
    >>> income.n_bins, income.locate([0, 4_999.99, 5_000, 1_423_000]).tolist()
    (41, [0, 0, 1, 40])
    """

    edges: Floats

    def __init__(self, edges: ArrayLike) -> None:
        values = floats(edges, "bin edges")
        if values.ndim != 1 or len(values) < 3 or not (values[1:] > values[:-1]).all():
            raise ParameterError("expected at least three increasing bin edges")
        self._freeze({"edges": values})

    @classmethod
    def of_width(cls, width: float, *, start: float = 0.0, stop: float) -> "Bins":
        """Bins of equal width from `start` to `stop`, and a last one for everything beyond."""
        n = (stop - start) / width if width > 0 else 0.0
        if not 0.5 < n < _MOST_BINS or not np.isclose(n, round(n), rtol=1e-9, atol=0.0):
            raise ParameterError(
                f"expected a whole number of bins of width {width:g} from {start:g} to {stop:g}, "
                f"fewer than {_MOST_BINS}"
            )
        return cls(np.append(np.linspace(start, stop, round(n) + 1), np.inf))

    @classmethod
    def at_quantiles(cls, values: ArrayLike, *, n_bins: int) -> "Bins":
        """Bins that hold equal shares of the server's own `values`, open at both ends."""
        if not 2 <= n_bins <= _MOST_BINS:
            raise ParameterError(f"expected n_bins from 2 to {_MOST_BINS}, got {n_bins}")
        values = floats(values, "values")
        if values.size == 0 or not np.isfinite(values).all():
            raise ParameterError("expected at least one value, none of them missing or infinite")
        inner = np.quantile(values, np.arange(1, n_bins) / n_bins)
        return cls(np.concatenate([[-np.inf], np.unique(inner), [np.inf]]))

    @property
    def n_bins(self) -> int:
        return len(self.edges) - 1

    def locate(self, values: ArrayLike) -> Ints:
        """The bin of each value; -1 for NaN and outside the edges. Texts are a `CountsError`."""
        values = numbers(values, "values to put into bins", error=CountsError)
        values = values.astype(np.float64, copy=False)
        bins = np.searchsorted(self.edges, values, side="right") - 1
        # searchsorted puts inf after a last edge of inf, and NaN after everything.
        at_open_end = np.isposinf(values) & np.isposinf(self.edges[-1])
        bins = np.where(at_open_end, self.n_bins - 1, bins)
        return np.where((bins >= self.n_bins) | np.isnan(values), -1, bins)

    def labels(self) -> tuple[str, ...]:
        """A name for each bin, such as "[0, 5000)"."""
        pairs = zip(self.edges[:-1], self.edges[1:], strict=True)
        return tuple(f"[{low:.12g}, {high:.12g})" for low, high in pairs)

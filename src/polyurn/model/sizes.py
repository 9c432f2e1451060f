"""How many points a client holds: π of equation (2), exact or in bins.

The paper's Π is a histogram over every size from 1 to N. On real data most sizes occur once or
never, so a size that was not seen gets probability zero and a client whose size is rare sees its own
last posterior again. Bins cure both: π_k(n) = mass_k(bin of n) P(n | bin of n), where only the first
factor is the component's own. The second is the profile of all clients together, so that sizes which
many clients have are drawn as often; without a profile every size of a bin is equally likely. The
paper's histogram is the case of bins of width one. How masses and profiles are learned is `server/`.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from polyurn.errors import ParameterError, SizeError
from polyurn.memory import check_memory
from polyurn.typed.arguments import checked
from polyurn.typed.arrays import EqualArrays, floats, numbers
from polyurn.typed.declared import AtLeast, Between, Floats, Ints, Seed
from polyurn.wording import counted

# Probabilities may miss one by accumulated rounding over a few thousand bins, not by more.
SUM_TOLERANCE = 1e-9

# Counts are 32-bit whole numbers; no client holds two billion points.
_LARGEST = 2**31 - 1

# Exact sizes are one number per size and component, in each message of each client.
_MOST_EXACT = 10_000_000


@checked
@dataclass(frozen=True, eq=False)
class SizeBins(EqualArrays):
    """Half-open bins of whole sizes, from 1 to `max_size`, and how sizes are spread inside each.

    Parameters
    ----------
    edges : int array of shape (n_bins + 1,)
        Increasing; bin b holds the sizes edges[b] <= n < edges[b + 1]. Starts at 1 and ends at
        max_size + 1.
    fine : int array of shape (n_fine + 1,), optional
        The edges of finer bins, all of `edges` among them; `edges` themselves by default.
    shares : float array of shape (n_fine,), optional
        The profile: the probability of each finer bin given the bin that it lies in. Inside a finer
        bin every size is equally likely.

    Examples
    --------
    >>> SizeBins([1, 2, 5, 11]).locate([1, 4, 10]).tolist()
    [0, 1, 2]
    >>> spiked = SizeBins([1, 5], fine=[1, 4, 5], shares=[0.25, 0.75])
    >>> np.exp(spiked.log_inside([3, 4])).round(3).tolist()
    [0.083, 0.75]
    """

    edges: Ints
    fine: Ints
    shares: Floats

    def __init__(
        self, edges: ArrayLike, fine: ArrayLike | None = None, shares: ArrayLike | None = None
    ) -> None:
        coarse = _edges(edges, "size edges")
        if (fine is None) != (shares is None):
            raise ParameterError("expected both the finer size edges and their shares, or neither")
        finer = coarse if fine is None else _edges(fine, "finer size edges")
        given = np.ones(len(coarse) - 1) if shares is None else floats(shares, "size shares")
        if shares is not None:
            _check_profile(coarse, finer, given)
        self._freeze({"edges": coarse, "fine": finer, "shares": given})

    @classmethod
    def exact(cls, max_size: int) -> "SizeBins":
        """One bin per size: the paper's Π."""
        n_bins = _size(max_size)
        if n_bins > _MOST_EXACT:
            raise ParameterError(
                f"expected max_size of at most {_MOST_EXACT} for exact sizes, got {max_size}; "
                "use bins (SizeBins.logarithmic, or --sizes binned on the command line)"
            )
        return cls(np.arange(1, n_bins + 2))

    @classmethod
    def logarithmic(
        cls, max_size: int, *, per_doubling: Annotated[int, Between(1, 1_000)] = 4
    ) -> "SizeBins":
        """Bins whose widths grow in proportion to the size; every size is a bin of its own at first.

        Examples
        --------
        >>> SizeBins.logarithmic(20, per_doubling=2).edges.tolist()
        [1, 2, 3, 4, 6, 8, 11, 16, 21]
        """
        end = _size(max_size) + 1
        steps = np.arange(np.ceil(per_doubling * np.log2(end)) + 1)
        edges = np.unique(np.rint(2.0 ** (steps / per_doubling)).astype(np.int64))
        return cls(np.append(edges[edges < end], end))

    @property
    def n_bins(self) -> int:
        return len(self.edges) - 1

    @property
    def max_size(self) -> int:
        return int(self.edges[-1]) - 1

    @property
    def widths(self) -> Ints:
        return np.diff(self.edges)

    @property
    def bin_of_fine(self) -> Ints:
        """The bin that each finer bin lies in, shape (n_fine,)."""
        return np.searchsorted(self.edges, self.fine[:-1], side="right") - 1

    def means(self) -> Floats:
        """Expected size in each bin, shape (n_bins,)."""
        centres = (self.fine[:-1] + self.fine[1:] - 1) / 2
        return np.add.reduceat(self.shares * centres, np.searchsorted(self.fine, self.edges[:-1]))

    def log_inside(self, sizes: ArrayLike) -> Floats:
        """Log P(n | bin of n) of each size."""
        self.locate(sizes)  # which checks them
        within = np.searchsorted(self.fine, np.asarray(sizes), side="right") - 1
        with np.errstate(divide="ignore"):  # a profile may rule a size out
            return np.asarray((np.log(self.shares) - np.log(np.diff(self.fine)))[within])

    def locate(self, sizes: ArrayLike) -> Ints:
        """The bin of each size; a `SizeError` if one is no whole number, 0, or beyond `max_size`."""
        sizes = numbers(sizes, "sizes")
        if (sizes != np.rint(sizes)).any():  # NaN is not
            raise SizeError("expected sizes as whole numbers, got fractions or NaN")
        if sizes.size and sizes.max() > self.max_size:
            raise SizeError(
                f"a client holds {counted(sizes.max(), 'point')} but max_size is {self.max_size:,}; "
                "fit with a larger max_size, or cap clients with histogram(..., cap=max_size)"
            )
        if sizes.size and sizes.min() < 1:
            raise SizeError("a client holds no points; drop empty clients first")
        return np.searchsorted(self.edges, sizes, side="right") - 1

    def __repr__(self) -> str:
        return f"SizeBins(n_bins={self.n_bins}, max_size={self.max_size})"


@checked
@dataclass(frozen=True, eq=False)
class Sizes(EqualArrays):
    """The distribution of a client's size in each component: Π of the paper.

    Parameters
    ----------
    bins : SizeBins
    masses : float array of shape (n_components, n_bins)
        Probability of each bin; rows sum to one. Inside a bin, sizes follow the profile of `bins`.

    Examples
    --------
    >>> sizes = Sizes(SizeBins([1, 2, 5]), [[0.4, 0.6]])
    >>> sizes.table().round(3).tolist()
    [[0.0, 0.4, 0.2, 0.2, 0.2]]
    """

    bins: SizeBins
    masses: Floats

    def __init__(self, bins: SizeBins, masses: ArrayLike) -> None:
        values = floats(masses, "size probabilities")
        if values.ndim != 2 or values.shape[1] != bins.n_bins:
            raise ParameterError(
                f"expected size probabilities of shape (n_components, {bins.n_bins}), "
                f"got {values.shape}"
            )
        if not (values >= 0).all():  # NaN fails too
            raise ParameterError("expected size probabilities of at least 0")
        off = np.abs(values.sum(axis=1) - 1).max(initial=0.0)
        if off > SUM_TOLERANCE:
            raise ParameterError(
                f"expected the size probabilities of each component to sum to 1, off by {off:.3g}"
            )
        self._freeze({"bins": bins, "masses": values})

    @classmethod
    def unchecked(cls, bins: SizeBins, masses: Floats) -> "Sizes":
        """Probabilities that were worked out as such, taken as they are: fits make them by the hundred.

        The array becomes read-only.
        """
        sizes = cls.__new__(cls)
        sizes._freeze({"bins": bins, "masses": masses})
        return sizes

    @classmethod
    def from_table(cls, table: ArrayLike) -> "Sizes":
        """Exact sizes from Π as an array of shape (n_components, max_size + 1); column 0 is 0."""
        values = floats(table, "sizes")
        if values.ndim != 2 or values.shape[1] < 2:
            raise ParameterError(
                f"expected sizes of shape (n_components, max_size + 1), got {values.shape}"
            )
        if values[:, 0].any():
            raise ParameterError("expected probability 0 for clients without points (column 0)")
        return cls(SizeBins.exact(values.shape[1] - 1), values[:, 1:])

    @classmethod
    def constant(cls, size: int, *, n_components: Annotated[int, AtLeast(1)] = 1) -> "Sizes":
        """Every client holds exactly `size` points."""
        bins = SizeBins.exact(size)
        _check_table(n_components, bins.n_bins)
        masses = np.zeros((n_components, bins.n_bins))
        masses[:, -1] = 1.0
        return cls(bins, masses)

    @property
    def n_components(self) -> int:
        return len(self.masses)

    @property
    def max_size(self) -> int:
        return self.bins.max_size

    def table(self) -> Floats:
        """Π: column n is the probability of holding n points, shape (n_components, max_size + 1)."""
        _check_table(self.n_components, self.max_size + 1)
        widths = np.diff(self.bins.fine)
        inside = np.repeat(self.fine_masses() / widths, widths, axis=1)
        return np.concatenate([np.zeros((self.n_components, 1)), inside], axis=1)

    def logpmf(self, sizes: ArrayLike) -> Floats:
        """Log π_k(n) for each size and component, shape (n_clients, n_components)."""
        bins = self.bins.locate(sizes)
        with np.errstate(divide="ignore"):  # an empty bin has log-probability -inf
            log_masses = np.log(self.masses)
        return np.asarray(log_masses.T[bins] + self.bins.log_inside(sizes)[..., None])

    def mean(self) -> Floats:
        """Expected size in each component, shape (n_components,)."""
        return np.asarray(self.masses @ self.bins.means())

    def sample(self, components: ArrayLike, *, rng: Seed = None) -> Ints:
        """Draw a size for each given component index, shape (n_clients,)."""
        rng = np.random.default_rng(rng)
        components = numbers(components, "components")
        if components.ndim != 1 or not np.isin(components, np.arange(self.n_components)).all():
            raise ParameterError(f"expected a list of components from 0 to {self.n_components - 1}")
        cumulative = np.cumsum(self.fine_masses(), axis=1)
        cumulative /= cumulative[:, -1:]
        u = rng.random(len(components))
        drawn = np.empty(len(components), dtype=np.int64)
        for k in range(self.n_components):
            mine = components == k
            drawn[mine] = np.searchsorted(cumulative[k], u[mine], side="right")
        return rng.integers(self.bins.fine[drawn], self.bins.fine[drawn + 1])

    def fine_masses(self) -> Floats:
        """Probability of each finer bin, shape (n_components, n_fine)."""
        return np.asarray(self.masses[:, self.bins.bin_of_fine] * self.bins.shares)

    def __repr__(self) -> str:
        return f"Sizes(n_components={self.n_components}, {self.bins!r})"


def _edges(edges: ArrayLike, name: str) -> Ints:
    given = numbers(edges, name)
    listed = given.ndim == 1 and len(given) > 1 and given.dtype.kind != "b"
    if not listed or (given != np.rint(given)).any():
        raise ParameterError(f"expected {name} as a list of at least two whole numbers")
    if given[0] != 1 or not (given[1:] > given[:-1]).all() or given[-1] > _LARGEST + 1:
        raise ParameterError(
            f"expected {name} that start at 1, increase and end at {_LARGEST + 1} or "
            f"before, got {given.tolist()[:8]}"
        )
    return given.astype(np.int64)


def _check_profile(edges: Ints, fine: Ints, shares: Floats) -> None:
    if fine[-1] != edges[-1] or not np.isin(edges, fine).all():
        raise ParameterError("expected finer size edges that have all size edges among them")
    if shares.shape != (len(fine) - 1,) or not (shares >= 0).all():  # NaN is not
        raise ParameterError(
            f"expected {len(fine) - 1} size shares of at least 0, got shape {shares.shape}"
        )
    off = np.abs(np.add.reduceat(shares, np.searchsorted(fine, edges[:-1])) - 1).max()
    if off > SUM_TOLERANCE:
        raise ParameterError(
            f"expected the size shares inside each bin to sum to 1, off by {off:.3g}"
        )


def _check_table(n_components: int, n_sizes: int) -> None:
    what = f"the probabilities of {n_sizes:,} sizes in {n_components:,} components"
    check_memory(8 * n_components * n_sizes, what, "take fewer components, or size bins")


def _size(max_size: int) -> int:
    if not 1 <= max_size <= _LARGEST or int(max_size) != max_size:  # NaN fails the first
        raise ParameterError(f"expected max_size from 1 to {_LARGEST}, got {max_size}")
    return int(max_size)

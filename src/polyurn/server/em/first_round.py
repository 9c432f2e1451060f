"""The first round: what is asked before there are parameters, and the profile of sizes that it gives.

Components differ in the masses of coarse size bins; which sizes occur inside a bin is learned once, from
the first round's counts in finer bins, so that spikes are reproduced. The counts of a bin are taken for
those of a Pólya urn whose concentration all bins share. It is fitted to the counts (empirical Bayes), so
that a profile without spikes stays even, and one with spikes follows them. What the other sums of the
round are good for is `search/starts.py`.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from polyurn.model.rising_factorials import log_rising
from polyurn.model.sizes import SizeBins
from polyurn.wire import Survey

# A client is asked for its exact size if there are no more sizes than this: a tenth of an upload.
_MOST_SIZES = 4_096
# Otherwise for a bin: widths of 0.3 %, 1 % and 4 % of the size, where the bins of components have 19 %.
_PER_DOUBLING = 256, 64, 16
# Beyond these a concentration per size is as good as none, or as an even profile.
_LOG_CONCENTRATIONS = np.log(1e-6), np.log(1e6)


def survey(n_categories: int, bins: SizeBins, *, max_upload: int) -> Survey:
    """The first round's question: all covariances if a client may send that many numbers.

    Sizes are asked for in the finest bins that leave room for them.
    """
    for pairs in (True, False):
        for fine in _finer_bins(bins):
            question = Survey(n_categories, fine, pairs=pairs)
            if question.n_numbers <= max_upload:
                return question
    return question


def _finer_bins(bins: SizeBins) -> Iterator[SizeBins]:
    """Bins to count clients in, the finest first and `bins` last; all have the edges of `bins`."""
    if bins.max_size <= _MOST_SIZES:
        yield SizeBins.exact(bins.max_size)
    for per_doubling in _PER_DOUBLING:
        more = SizeBins.logarithmic(bins.max_size, per_doubling=per_doubling)
        yield SizeBins(np.union1d(bins.edges, more.edges))
    yield bins


def with_profile(
    bins: SizeBins, fine: SizeBins, counts: NDArray[np.float64], *, size_prior: float
) -> SizeBins:
    """The same bins, with the profile of the clients that were counted in finer ones.

    Parameters
    ----------
    bins, fine : SizeBins
        The edges of `bins` are among those of `fine`.
    counts : float array of shape (n_fine,)
        How many clients have a size of each finer bin.
    size_prior : float
        Pseudo-clients per bin, at least, that are spread evenly over its sizes.

    Examples
    --------
    >>> bins, counts = SizeBins([1, 45, 51]), np.zeros(50)
    >>> counts[49] = 400  # everybody holds 50 points
    >>> spiked = with_profile(bins, SizeBins.exact(50), counts, size_prior=1.0)
    >>> np.exp(spiked.log_inside([49, 50])).round(4).tolist()
    [0.0004, 0.9979]
    """
    within = bins.locate(fine.edges[:-1])
    in_bin = np.asarray(np.bincount(within, counts, minlength=bins.n_bins), np.float64)
    evenly = fine.widths / bins.widths[within]
    concentration = _concentration(counts, fine.widths, in_bin, bins.widths)
    prior = np.maximum(concentration * fine.widths, size_prior * evenly)
    total = in_bin + np.bincount(within, prior, minlength=bins.n_bins)
    return SizeBins(bins.edges, fine.edges, (counts + prior) / total[within])


def _concentration(
    counts: NDArray[np.float64],
    widths: NDArray[np.int64],
    in_bin: NDArray[np.float64],
    bin_widths: NDArray[np.int64],
) -> float:
    """The concentration per size, equal in all bins, under which the counts are likeliest."""

    def surprise(log_concentration: float) -> float:
        a = np.exp(log_concentration)
        inside = log_rising(a * widths, counts, scale=a).sum()
        return float(log_rising(a * bin_widths, in_bin, scale=a).sum() - inside)

    found = minimize_scalar(surprise, bounds=_LOG_CONCENTRATIONS, method="bounded")
    return float(np.exp(found.x))

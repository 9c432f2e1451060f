"""Records → counts: the histogram of one feature, client by client.

Categories are declared, never discovered: a value outside them is an error that names the value's
position and not the value. `storage/table_files.py` reads files; `tables.py` counts data frames.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from polyurn.client.bins import Bins
from polyurn.counts import Counts, client_sizes
from polyurn.errors import CountsError, ParameterError
from polyurn.typed.arguments import checked
from polyurn.typed.arrays import ids_of, numbers, plain_array
from polyurn.typed.declared import Ints, Seed

# How many categories (values 0, 1, ...), their names, or the bins of a continuous feature.
Categories: TypeAlias = int | Sequence[str] | Bins

# A column with more values has ids or continuous values, and is not a categorical feature.
_MOST_CATEGORIES = 1_000_000


@checked
@dataclass(frozen=True, eq=False)
class Histograms:
    """The histograms of many clients.

    Attributes
    ----------
    counts : csr_array of shape (n_clients, n_categories)
    clients : array of shape (n_clients,)
        The client ids, one per row.
    categories : tuple of str
        The name of each category, one per column.
    """

    counts: sparse.csr_array = field(repr=False)
    clients: NDArray[Any] = field(repr=False)
    categories: tuple[str, ...] = field(repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """(n_clients, n_categories)."""
        return self.counts.shape


@checked
def histogram(
    values: ArrayLike, *, categories: Categories, cap: int | None = None, rng: Seed = None
) -> Ints:
    """One client's histogram.

    Parameters
    ----------
    values : array of shape (n_points,)
        The modelled feature of each of the client's points.
    categories : int, sequence of str, or Bins
        C for values 0 to C - 1; the category names; or the bins of a continuous feature.
    cap : int, optional
        Keep at most this many points, drawn at random.
    rng : int or numpy.random.Generator
        For `cap`.

    Returns
    -------
    int array of shape (n_categories,)

    Examples
    --------
    >>> histogram(["cat", "dog", "cat"], categories=["bird", "cat", "dog"]).tolist()
    [0, 2, 1]
    >>> histogram([1_000, 62_000, 250_000], categories=Bins.of_width(5_000, stop=200_000)).sum()
    np.int64(3)
    """
    codes = encode(values, categories)
    counts = np.bincount(codes, minlength=len(category_names(categories)))
    return counts if cap is None else cap_sizes(counts[None], cap, rng=rng)[0]


@checked
def histograms(clients: ArrayLike, values: ArrayLike, *, categories: Categories) -> Histograms:
    """The histograms of many clients from one row per point.

    Parameters
    ----------
    clients, values : arrays of shape (n_points,)
        The client of each point, and the modelled feature.
    categories : int, sequence of str, or Bins

    Examples
    --------
    >>> found = histograms(["a", "b", "a"], [2, 0, 2], categories=3)
    >>> found.clients.tolist(), found.counts.toarray().tolist()
    (['a', 'b'], [[0, 0, 2], [1, 0, 0]])
    """
    whose = ids_of(clients, "clients", error=CountsError)
    ids, owner = np.unique(whose, return_inverse=True)
    codes = encode(values, categories)
    if len(owner) != len(codes):
        raise CountsError(f"expected a client for each value, got {len(owner)} and {len(codes)}")
    return tally(owner, codes, np.ones(len(codes), np.int64), clients=ids, categories=categories)


def tally(
    owner: NDArray[np.integer[Any]], codes: NDArray[np.integer[Any]],
    count: NDArray[np.integer[Any]], *, clients: NDArray[Any], categories: Categories,
) -> Histograms:  # fmt: skip
    """Add up counts by client and code."""
    if len(codes) == 0:
        raise CountsError("expected at least one row, got an empty table")
    names = category_names(categories)
    cells = sparse.coo_array((count, (owner, codes)), shape=(len(clients), len(names)))
    counts = cells.tocsr()
    counts.eliminate_zeros()
    return Histograms(counts, clients, names)


def encode(values: ArrayLike, categories: Categories) -> Ints:
    """The code of each value; an error names the position of an undeclared value, not the value."""
    codes = located(values, categories)
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        raise CountsError(
            f"{len(unknown)} of {len(codes)} values are not in the declared categories, the first "
            f"at position {unknown[0]}; declare all categories, or map the others to one of them"
        )
    return codes


def located(values: ArrayLike, categories: Categories) -> Ints:
    """The code of each value; -1 for a value that is not a category."""
    given = plain_array(values, "values", error=CountsError)
    if given.ndim != 1:
        raise CountsError(f"expected values of shape (n_points,), got shape {given.shape}")
    names = category_names(categories)
    match categories:
        case Bins():
            return categories.locate(given)
        case int() | np.integer():
            return _whole_numbers(given, len(names))
        case _:
            return _positions(ids_of(values, "values", error=CountsError), np.asarray(names))


def category_names(categories: Categories) -> tuple[str, ...]:
    """The name of each category; fewer than two, too many, or duplicates are refused."""
    match categories:
        case Bins():
            names = categories.labels()
        case int() | np.integer():
            names = tuple(str(j) for j in range(min(int(categories), _MOST_CATEGORIES + 1)))
        case _:
            names = tuple(str(name) for name in categories)
    if len(names) < 2:
        raise CountsError(f"expected at least two categories, got {len(names)}: nothing to model")
    if len(names) > _MOST_CATEGORIES:
        raise CountsError(
            f"expected at most {_MOST_CATEGORIES} categories, got more; declare the categories by "
            "name (--categories on the command line), or put the values into bins"
        )
    if len(set(names)) < len(names):
        raise ParameterError("expected category names that differ")
    return names


def cap_sizes(counts: Counts, cap: int, *, rng: Seed = None) -> Ints:
    """Histograms of at most `cap` points each, drawn at random; shape (n_clients, n_categories)."""
    if cap < 1:
        raise ParameterError(f"expected a cap of at least 1, got {cap}")
    rng = np.random.default_rng(rng)
    capped = np.asarray(counts.toarray() if sparse.issparse(counts) else counts).astype(np.int64)
    for client in np.flatnonzero(client_sizes(capped) > cap):
        capped[client] = rng.multivariate_hypergeometric(capped[client], cap, method="marginals")
    return capped


def _whole_numbers(values: NDArray[Any], n_categories: int) -> Ints:
    what = f"category numbers 0 to {n_categories - 1}"
    values = numbers(values, what, error=CountsError, advice="pass the category names instead")
    with np.errstate(invalid="ignore"):  # NaN becomes a number that the next line refuses
        codes = values.astype(np.int64)
    return np.where((values == codes) & (codes >= 0) & (codes < n_categories), codes, -1)


def _positions(values: NDArray[Any], names: NDArray[Any]) -> Ints:
    values = values.astype(str)
    order = np.argsort(names)
    at = np.minimum(np.searchsorted(names, values, sorter=order), len(names) - 1)
    return np.where(names[order[at]] == values, order[at], -1)

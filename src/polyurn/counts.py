"""What may stand for a table of histograms: a dense integer array or a scipy.sparse matrix.

`check_counts` checks every histogram that comes from outside; it does not copy arrays of integers.
`client/counting.py` counts records.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy  # `scipy.sparse` is loaded when it is used: showing a file does not wait for it
from numpy.typing import NDArray

from polyurn.errors import CountsError, ParameterError
from polyurn.typed.arrays import numbers
from polyurn.typed.declared import Floats, Ints

if TYPE_CHECKING:
    Counts: TypeAlias = NDArray[np.integer[Any]] | scipy.sparse.csr_array[Any]
else:
    Counts = Any

# Counts beyond this would overflow the 32-bit tables of the kernels; no client holds two billion points.
_LARGEST = 2**31 - 1
# Cells (clients x categories) that are handled at once: 32 MB of float64, whatever the table's size.
_BLOCK_CELLS = 4_000_000


def check_counts(
    counts: object, *, n_categories: int | None = None, allow_empty: bool = False
) -> Counts:
    """The same histograms as a two-dimensional integer array or a canonical `csr_array`.

    They have shape (n_clients, n_categories) or (n_categories,), and whole numbers, in a float array
    too. With `allow_empty` a client may hold no points: a histogram of size 0 has probability one given
    its size. Negative, fractional, missing or overflowing counts, no clients, one category, a client
    without points, and another number of categories than `n_categories`, if it is declared, are a
    `CountsError`.

    >>> check_counts([1, 0, 2]).shape
    (1, 3)
    """
    table = _table(counts)
    n_clients, width = table.shape
    if n_clients == 0:
        raise CountsError("expected at least one client, got an empty table")
    if n_categories is not None and width != n_categories:
        raise CountsError(f"expected {n_categories} categories, got histograms of {width}")
    if width < 2:
        raise CountsError(f"expected at least two categories, got {width}: nothing to model")
    if isinstance(table, np.ndarray):
        check_values(table)
        table = _as_integers(table)
    else:
        values = numbers(table.data, "counts", error=CountsError)
        check_values(values)
        table = scipy.sparse.csr_array(
            (_as_integers(values), table.indices, table.indptr), shape=table.shape
        )
    empty = 0 if allow_empty else int((client_sizes(table) == 0).sum())
    if empty:
        raise CountsError(
            f"{empty} of {n_clients} clients hold no points; drop them first "
            "(drop_empty(counts), or --drop-empty on the command line)"
        )
    return table


def check_values(values: NDArray[Any]) -> None:
    """Raise a `CountsError` unless these numbers are whole, not negative and not too large."""
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise CountsError("expected whole numbers as counts, got NaN or infinity")
        if (values != np.rint(values)).any():
            raise CountsError(
                "expected whole numbers as counts, got fractions; pass counts, not proportions"
            )
    if values.size and values.min() < 0:
        raise CountsError(f"expected counts of at least 0, got {values.min()}")
    if values.size and values.max() > _LARGEST:
        raise CountsError(f"a count of {values.max()} is beyond the largest supported, {_LARGEST}")


def client_sizes(counts: Counts) -> Ints:
    """How many points each client holds, shape (n_clients,)."""
    return np.asarray(counts.sum(axis=1, dtype=np.int64)).reshape(-1)


def distinct(keys: NDArray[np.integer[Any]]) -> tuple[Ints, Ints]:
    """The distinct keys in increasing order, shape (n_values,), and the index of each key in them, (n,).

    `np.unique(keys, return_inverse=True)` without the sort where keys, at least 0, are dense enough.

    >>> [a.tolist() for a in distinct(np.array([7, 2, 7]))]
    [[2, 7], [1, 0, 1]]
    """
    end = int(keys.max(initial=0)) + 1
    if end > 4 * len(keys):
        values, which = np.unique(keys, return_inverse=True)
        return values.astype(np.int64), which.astype(np.int64)
    present = np.zeros(end, dtype=bool)
    present[keys] = True
    rank = np.cumsum(present) - 1
    return np.flatnonzero(present), rank[keys]


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Slices of the rows of a table, of so many cells at most whatever its size."""
    step = max(1, _BLOCK_CELLS // n_columns)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def gathered(rows: "scipy.sparse.csr_array[Any]", terms: Callable[[Ints, Ints], Floats]) -> Floats:
    """Sums of terms over the entries of each row, shape (n_rows, K), each distinct term worked out once.

    `terms` of columns and values, of shape (n_pairs,) both, has shape (n_pairs, K) and may be -inf.
    """
    stride = int(rows.data.max(initial=0)) + 1
    pairs, which_pair = distinct(rows.indices.astype(np.int64) * stride + rows.data)
    values = terms(*np.divmod(pairs, stride))
    impossible = np.isneginf(values)
    gather = scipy.sparse.csr_array(
        (np.ones(len(which_pair)), which_pair, rows.indptr), shape=(rows.shape[0], len(pairs))
    )
    out = np.asarray(gather @ np.where(impossible, 0.0, values))
    if impossible.any():
        out[gather @ impossible.astype(np.float64) > 0] = -np.inf
    return out


def digest(counts: Counts) -> str:
    """A SHA-256 digest of these histograms, the same for dense and sparse ones.

    >>> digest(np.array([[1, 0], [2, 3]])) == digest(scipy.sparse.csr_array([[1, 0], [2, 3]]))
    True
    """
    table = _canonical(scipy.sparse.csr_array(counts))
    parts = (np.array(table.shape), table.indptr, table.indices, table.data)
    return hashlib.sha256(b"".join(p.astype(np.int64).tobytes() for p in parts)).hexdigest()


def drop_empty(counts: object) -> tuple[Counts, Ints]:
    """The clients that hold points, and their indices.

    Parameters
    ----------
    counts : array-like or scipy.sparse of shape (n_clients, n_categories)

    Returns
    -------
    counts : array or csr_array of shape (n_kept, n_categories)
    kept : int array of shape (n_kept,)

    Examples
    --------
    >>> kept_counts, kept = drop_empty([[1, 2], [0, 0], [3, 0]])
    >>> kept.tolist()
    [0, 2]
    """
    table = check_counts(counts, allow_empty=True)
    kept = np.flatnonzero(client_sizes(table))
    return table[kept], kept


def check_texts(texts: Iterable[str], what: str) -> None:
    """Raise a `ParameterError` for a text with half a surrogate pair, which no file can hold."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ParameterError(f"expected {what} in Unicode, got {text!a}") from error


def _table(counts: object) -> Counts:
    return _canonical(_sound(counts)) if scipy.sparse.issparse(counts) else _two_dimensional(counts)


def _sound(counts: Any) -> Any:
    """The same sparse matrix, constructed again: its arrays may have been changed since it was built.

    scipy does not check for an index out of range, and would read or write beyond the array.
    """
    parts: Any
    match counts.format:
        case "csr" | "csc" | "bsr":
            parts = counts.data, counts.indices, counts.indptr
        case "coo":
            parts = counts.data, (counts.row, counts.col) if counts.ndim == 2 else counts.coords
        case "dia":
            parts = counts.data, counts.offsets
        case _:  # dok and lil consist of Python's lists and dictionaries
            parts = counts
    try:
        again = type(counts)(parts, shape=counts.shape)
        if hasattr(again, "check_format"):
            again.check_format(full_check=True)
        rows = scipy.sparse.csr_array(again.reshape(1, -1) if again.ndim == 1 else again)
        rows.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise CountsError(
            f"expected a sparse matrix in order, got one that is not: {error}"
        ) from error
    return rows


def _canonical(counts: Any) -> "scipy.sparse.csr_array[Any]":
    table = scipy.sparse.csr_array(counts)
    if not table.has_canonical_format or (table.data == 0).any():
        # Narrow integers would overflow where duplicates are added.
        table = table.astype(np.int64) if table.dtype.kind in "biu" else table.copy()
        table.sum_duplicates()
        table.eliminate_zeros()
    return table


def _two_dimensional(counts: object) -> NDArray[Any]:
    table = numbers(counts, "counts", error=CountsError)
    if table.ndim == 1 and table.size:
        table = table[np.newaxis]
    if table.ndim != 2 and table.size:
        raise CountsError(
            f"expected counts of shape (n_clients, n_categories), got shape {table.shape}"
        )
    return table.reshape(0, 2) if table.size == 0 else table


def _as_integers(values: NDArray[Any]) -> NDArray[np.integer[Any]]:
    # What is added to uint64 would become a float.
    whole = values.dtype.kind in "iu" and values.dtype != np.uint64
    return values if whole else values.astype(np.int64)

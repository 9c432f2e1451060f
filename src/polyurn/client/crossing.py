"""Several columns as one category: their values joined by " × ", so that a route is "EWR × ATL".

Two different combinations never get the same name. Continuous numbers are not crossed: put them into
bins first. `layout.py` finds the columns to cross.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.errors import CountsError
from polyurn.model.names import SIGN
from polyurn.typed.arguments import checked
from polyurn.typed.arrays import ids_of
from polyurn.typed.declared import Ints

_NUMBER = re.compile("[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?")


@checked
def crossed(*columns: ArrayLike) -> NDArray[np.str_]:
    """Several columns as one: the texts of each row, joined by " × ".

    Parameters
    ----------
    *columns : arrays of shape (n_points,)
        Texts or whole numbers; at least two columns.

    Returns
    -------
    str array of shape (n_points,)

    Raises
    ------
    CountsError
        Columns of different lengths, continuous numbers, or a value with the word "×" in it: two
        combinations could then have the same name.

    Examples
    --------
    >>> import polyurn as pu
    >>> routes = crossed(["EWR", "JFK", "EWR"], ["ATL", "ATL", "BOS"])
    >>> routes.tolist()
    ['EWR × ATL', 'JFK × ATL', 'EWR × BOS']
    >>> pu.histograms(["a", "b", "a"], routes, categories=sorted(set(routes))).counts.toarray().tolist()
    [[1, 1, 0], [0, 0, 1]]
    """
    if len(columns) < 2:
        raise CountsError(f"expected at least two columns to cross, got {len(columns)}")
    names = [f"number {i}" for i in range(len(columns))]
    both = zip(columns, names, strict=True)
    values = [ids_of(one, f"column {name}", error=CountsError) for one, name in both]
    found = [np.unique(one, return_inverse=True) for one in values]
    parts = [(distinct.tolist(), which) for distinct, which in found]
    lengths = {len(which) for _, which in parts}
    if len(lengths) > 1:
        raise CountsError(f"expected columns of one length to cross, got {sorted(lengths)}")
    shown, which = cross(parts, names)
    return np.asarray(shown, dtype=np.str_)[which]


def cross(
    parts: Sequence[tuple[Sequence[object], NDArray[np.integer[Any]]]], names: Sequence[str]
) -> tuple[list[str], Ints]:
    """The combinations that occur, sorted, and each row's; a part is a column's values and codes."""
    joined, which = [""], np.zeros(len(parts[0][1]), np.int64)
    for i, ((values, code), name) in enumerate(zip(parts, names, strict=True)):
        texts = _texts(values, name)
        cells, which = np.unique(which * len(texts) + code, return_inverse=True)
        rows = [divmod(cell, len(texts)) for cell in cells.tolist()]
        joined = [f"{joined[before]}{SIGN if i else ''}{texts[last]}" for before, last in rows]
    order = np.array(sorted(range(len(joined)), key=joined.__getitem__))
    return [joined[j] for j in order], np.argsort(order)[which.reshape(-1)]


def _texts(values: Sequence[object], name: str) -> list[str]:
    """The values of one column as texts for the names of combinations."""
    texts = [
        str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        for value in values
    ]
    numbers = all(_NUMBER.fullmatch(text) for text in texts)
    if numbers and not all(float(text).is_integer() for text in texts):
        raise CountsError(
            f"expected texts or whole numbers to cross, got continuous numbers in column {name}; put "
            "them into bins first"
        )
    # A name can be split at its words "×" in one way only if no value has such a word.
    if any(SIGN in f" {text} " for text in texts):
        raise CountsError(
            f"a value of column {name} has '×' as a word, which joins the names of crossed "
            "categories; write it differently"
        )
    return texts

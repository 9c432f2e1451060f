"""The modelled category of each point of a sweep's data, as a number: of one column, or of several.

Names are found in the MDM files of the sweep. Remarks say what is left out. Who
holds the points is `inputs.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.client.crossing import crossed
from polyurn.client.layout import category_columns
from polyurn.errors import CountsError, ParameterError
from polyurn.model.names import SIGN, Match, Side, in_words, positions, renamed
from polyurn.training.examples import class_labels
from polyurn.typed.arrays import ids_of
from polyurn.typed.declared import Bools, Floats, Ints

# If the MDM knows less than this share of the data, or the data have less than this share of what
# clients ask for, they do not belong together.
_LEAST_KNOWN = 0.5


@dataclass(frozen=True, eq=False)
class Coded:
    """The modelled category of each point, shape (n_points,), and what a user should know about it.

    `names` are those of the categories; a number, or None, if they have none.
    """

    codes: Ints
    remarks: tuple[str, ...] = ()
    names: Side | None = None


def modelled_names(
    names: Sequence[str], category: str | Sequence[str], *, where: str
) -> tuple[str, ...]:
    """The columns that [data] category names, found as `--category` is.

    >>> modelled_names(["origin", "dest"], "Origin, dest", where="points.npz")
    ('origin', 'dest')
    """
    try:
        found = category_columns(names, category, option="[data] category")
    except CountsError as error:
        raise ParameterError(f"{where}: [data] category: {error}") from error
    return (found,) if isinstance(found, str) else found


def agreed(files: Iterable[tuple[str, str, Side]]) -> Side | None:
    """The categories of all files, by name in one order; None without files.

    `files` are (population, file, names or their number). Those that differ are a `ParameterError`.

    >>> agreed([("mdm", "mdm.json", ["cat", "dog"]), ("styled", "style.json", ["cat", "dog"])])
    ['cat', 'dog']
    """
    known: Side | None = None
    first = ""
    for population, file, side in files:
        if known is None:
            known, first = side, file
        elif side != known and not (isinstance(side, int) and isinstance(known, int)):
            raise ParameterError(
                f"[clients.{population}] expected {file} with the categories of {first}, in their "
                f"order: {in_words(known)}, got {in_words(side)}"
            )
    return known


def modelled_column(columns: Mapping[str, NDArray[Any]], *, where: str) -> NDArray[Any]:
    """The modelled feature of each point: the only column, or all of them crossed.

    >>> columns = {"origin": np.array(["EWR", "JFK"]), "dest": np.array(["ATL", "ATL"])}
    >>> modelled_column(columns, where="points.npz").tolist()
    ['EWR × ATL', 'JFK × ATL']
    """
    if len(columns) == 1:
        return next(iter(columns.values()))
    try:
        return crossed(*columns.values())
    except CountsError as error:
        raise ParameterError(f"{where}: [data] category: {error}") from error


def category_codes(
    values: NDArray[Any], what: str, categories: Side | None, match: Match | None = None
) -> Coded:
    """Categories as numbers: as they are without a model, or where they are among the model's.

    Of crossed columns, combinations are rare that no fitted client had: they come after the known ones.
    A `ParameterError` if a category of a single column, or most combinations, are not the MDM's.
    """
    given = ids_of(values, what)
    if given.dtype.kind in "biuf":
        given = class_labels(given, what).astype(np.int64)
        if match is None and not isinstance(categories, Sequence):
            return Coded(given)
    shown, which = np.unique(given, return_inverse=True)
    names = shown.astype(str).tolist()
    if categories is None:
        return Coded(which.astype(np.int64), names=names)
    if isinstance(categories, int) or not any(SIGN in name for name in categories):
        try:
            return Coded(positions(names, categories, match)[which], names=categories)
        except CountsError as error:
            raise ParameterError(f"[data] {what!r}: {error}") from None
    names = renamed(names, match)
    texts = np.array(names)[which]
    code_of = {name: code for code, name in enumerate(categories)}
    unknown = [name for name in names if name not in code_of]
    n_unknown = int(np.isin(texts, unknown).sum()) if unknown else 0
    if n_unknown > (1 - _LEAST_KNOWN) * len(texts):
        raise ParameterError(
            f"the MDM knows the categories of {len(texts) - n_unknown:,} of {len(texts):,} points only, "
            f"{what!r} is {unknown[0]!r} for one of the others; expected the columns that it was "
            f"fitted to, in their order (such as {categories[0]!r})"
        )
    code_of |= {name: len(code_of) + i for i, name in enumerate(unknown)}
    codes = np.array([code_of[name] for name in names], np.int64)[which]
    remark = f"{n_unknown:,} of {len(texts):,} points have categories that the MDM does not have"
    return Coded(codes, (f"{remark}: it never draws them",) if unknown else (), categories)


def lacking_categories(asked: Floats, there: Bools, names: Side | None) -> str:
    """The message about categories that clients ask for and the data lack; "" without any.

    How much of each is asked for, and whether it is there, have shape (n_categories,). A
    `ParameterError` if most of it is not.
    """
    missing = np.flatnonzero((asked > 0) & ~there)
    if len(missing) == 0:
        return ""
    share = float(asked[missing].sum() / asked.sum())
    most = int(missing[asked[missing].argmax()])
    named = repr(names[most]) if isinstance(names, Sequence) else str(most)
    if share > 1 - _LEAST_KNOWN:
        raise ParameterError(
            f"{share:.0%} of what the clients hold are categories that the data have no points of, "
            f"{named} most of all; expected data with the categories that were modelled"
        )
    return (
        f"{share:.2%} of the points that they ask for are left out: the data have none of "
        f"{len(missing):,} categories, {named} most of all"
    )

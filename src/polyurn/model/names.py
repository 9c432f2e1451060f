"""Where names of categories meet: a model that is laid over labels, and one table over another.

A side has the names of its categories, or only their number. Texts, a ClassLabel, `Histograms` and the
columns of a data frame are names, and a model has those it was fitted to. Integers and arrays of counts
have none: their categories are called by their numbers, "0", "1", .... So integer labels fit names that
are numbers, number by number, and two sides without names go by position. Nothing else does in silence.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import Literal, TypeAlias

import numpy as np
import scipy  # `scipy.sparse` is loaded when it is used

from polyurn.counts import Counts, check_counts, check_texts
from polyurn.errors import CountsError, ParameterError
from polyurn.typed.declared import Ints
from polyurn.wording import listed

# How one side's names become the other's: {old: new}, the same where it has none; or both in order.
Match: TypeAlias = Mapping[str, str] | Literal["position"]
# The names of categories, or how many they are where they have none.
Side: TypeAlias = Sequence[str] | int

_MISSING = ("na", "n/a", "nan", "null", "none")
SIGN = " × "  # joins the values of crossed columns


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels as codes, shape (n_points,), with the names of their categories, a ClassLabel's own in its
    order: what `partition` takes as it takes texts.
    """

    labels: Ints = field(repr=False)
    categories: tuple[str, ...]


def names_of(owner: object) -> tuple[str, ...] | None:
    """The names of the categories of a model, a table or an aggregator; None if it has none."""
    names = getattr(owner, "categories", None)
    if isinstance(names, tuple | list):
        return tuple(names)
    columns = getattr(owner, "columns", None)  # of a data frame
    if not isinstance(columns, Iterable) or not all(isinstance(name, str) for name in columns):
        return None
    return tuple(columns)


def side_of(owner: object, n_categories: int) -> Side:
    """The names of the categories of an owner of so many, or their number if they are its numbers."""
    names = names_of(owner)
    return n_categories if names is None or [*names] == _texts(n_categories) else names


def check_names(categories: Sequence[str] | None, n_categories: int) -> tuple[str, ...] | None:
    """The names of the categories, checked: one text for each, all different; None if they have none."""
    if categories is None:
        return None
    if isinstance(categories, str) or not all(isinstance(name, str) for name in categories):
        raise ParameterError("expected category names as a list of texts")
    if not len(categories) == len(set(categories)) == n_categories:
        raise ParameterError(
            f"expected {n_categories} different category names, got {len(categories)} names, "
            f"{len(set(categories))} of them different"
        )
    check_texts(categories, "category names")
    return tuple(map(str, categories))


def missing_remark(side: Side) -> str:
    """A remark on names that often stand for missing values; empty if there are none."""
    found = [name for name in _texts(side) if name.casefold() in _MISSING]
    return f"taken as labels, and not as missing values: {listed(found)}" if found else ""


def check_own(
    given: Sequence[str] | None, owner: object, n_categories: int
) -> tuple[str, ...] | None:
    """The names that a caller gives the categories of an owner, or its own: they may not differ."""
    names, own = check_names(given, n_categories), names_of(owner)
    if names is not None and own is not None and names != own:
        raise ParameterError(
            f"expected its own names of categories, {listed(own)}, got {listed(names)}; leave "
            "them out"
        )
    return own if names is None else names


def positions(theirs: Side, ours: Side, match: Match | None = None) -> Ints:
    """The position of each of their categories among ours, shape (n_theirs,).

    By position, numbers from 0 are positions themselves, and need not all be there.

    >>> positions(["dog", "owl"], ["cat", "dog"], {"owl": "cat"}).tolist()
    [1, 0]
    >>> positions(["dog", "owl"], ["cat", "dog"], "position").tolist()
    [0, 1]
    >>> positions(2, ["1", "0"]).tolist()
    [1, 0]
    """
    names, known = _texts(theirs), {name: j for j, name in enumerate(_texts(ours))}
    if match == "position":
        numbers = {str(j): j for j in range(len(known))}
        if len(names) == len(known):
            return np.arange(len(names))
        found, unknown = numbers, [] if "0" in names and numbers.keys() >= {*names} else names
    else:
        names = renamed(names, match)
        found, unknown = known, [name for name in names if name not in known]
    if unknown:
        which = f", where {listed(unknown)} do not match" if [*unknown] != [*_texts(theirs)] else ""
        raise CountsError(
            f"expected {in_words(ours)}, got {in_words(theirs)}{which}; say what they are called "
            "(match={'theirs': 'ours'}, --map OLD=NEW,...), or take as many, in the same order "
            "(match='position', --map by-position); polyurn.zoo.like(mdm, labels) lays a mixture over "
            "other labels"
        )
    return np.array([found[name] for name in names], np.int64)


def renamed(names: Sequence[str], match: Match | None) -> list[str]:
    """Their names as we call them; a part of a crossed name may be called otherwise, too.

    >>> renamed(["EWR × ATL", "JFK × ATL"], {"ATL": "Atlanta", "JFK × ATL": "other"})
    ['EWR × Atlanta', 'other']
    """
    new: Mapping[str, str] = match if isinstance(match, Mapping) else {}
    return [new.get(name) or SIGN.join(new.get(p, p) for p in name.split(SIGN)) for name in names]


def laid(
    counts: object, ours: Side, match: Match | None = None, *, allow_empty: bool = False
) -> Counts:
    """Histograms with a column for each of our categories, found by its name, and checked.

    Those with names may lack some of our categories: nobody holds any of them.

    >>> laid([[3, 1]], 2).tolist()
    [[3, 1]]
    >>> laid([[3, 1]], ["cat", "dog"], {"0": "dog", "1": "cat"}).tolist()
    [[1, 3]]
    """
    n_ours = n_of(ours)
    n_categories = None if names_of(counts) else n_ours
    table, theirs = columns_of(counts, n_categories, allow_empty=allow_empty)
    at = positions(theirs or table.shape[1], ours, match)
    if np.array_equal(at, np.arange(n_ours)):
        return table
    one_each = np.ones(len(at), np.int64)
    into = scipy.sparse.csr_array((one_each, (np.arange(len(at)), at)), (len(at), n_ours))
    return check_counts(table @ into, allow_empty=allow_empty)


def columns_of(
    counts: object, n_categories: int | None = None, *, allow_empty: bool = False
) -> tuple[Counts, tuple[str, ...] | None]:
    """Checked histograms, and the names of their columns if they have some."""
    bare = counts.counts if is_dataclass(counts) and hasattr(counts, "counts") else counts
    table = check_counts(bare, n_categories=n_categories, allow_empty=allow_empty)
    return table, check_names(names_of(counts), table.shape[1])


def n_of(side: Side) -> int:
    """How many categories a side has."""
    return len(_texts(side))


def _texts(side: Side) -> Sequence[str]:
    return side if isinstance(side, Sequence) else [str(j) for j in range(side)]


def in_words(side: Side) -> str:
    """A side of an error about names."""
    if isinstance(side, Sequence):
        return f"the {len(side):,} categories {listed(side)}"
    return f"{side:,} categories without names, 0 to {side - 1}"

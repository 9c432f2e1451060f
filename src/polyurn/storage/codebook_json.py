"""A codebook as a JSON file: versioned, and equal to the last bit when it is read back.

What a codebook is, is `model/codebooks.py`; how a file gets to its place whole is `atomic.py`.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.counts import check_names, check_texts
from polyurn.errors import FileError, InputError, ParameterError
from polyurn.model.codebooks import Codebook
from polyurn.storage.atomic import AGAIN, load_record, save_record
from polyurn.storage.provenance import checked_made
from polyurn.typed.records import Count, Finite, read_record, shown

_VERSION = 1


@dataclass(frozen=True)
class SavedCodebook:
    """What a codebook file holds.

    Attributes
    ----------
    book : Codebook
    labels : tuple of str, or None
        The name of each label; without them labels are numbers.
    features : tuple of str, or None
        The columns of a table with the features: one for each, or one that has lists.
    """

    book: Codebook
    labels: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None

    @property
    def categories(self) -> tuple[str, ...]:
        """The name of each category: "apple × style 7", "apple × other"."""
        return self.book.categories if self.labels is None else self.book.named(self.labels)

    def label_of(self, categories: Sequence[str]) -> NDArray[np.int64]:
        """The label of some categories, by their names, shape (n_named,).

        Raises
        ------
        ParameterError
            One of them is no category of the book.
        """
        known = dict(zip(self.categories, self.book.label_of.tolist(), strict=True))
        if missing := [name for name in categories if name not in known]:
            raise ParameterError(
                f"expected categories of the codebook, such as {self.categories[0]!r}, got "
                f"{missing[0]!r}"
            )
        return np.array([known[name] for name in categories], np.int64)


def save_codebook(
    book: Codebook,
    path: str | os.PathLike[str],
    *,
    labels: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    made: Mapping[str, Any] | None = None,
) -> None:
    """Write a codebook as JSON.

    Parameters
    ----------
    book : Codebook
    path : path
    labels : sequence of str, optional
        The name of each label.
    features : sequence of str, optional
        The columns of a table with the features: one for each, or one that has lists.
    made : mapping, optional
        How it came about, as for `save`.
    """
    names = check_names(labels, book.n_labels) or (None,) * book.n_labels
    styles = np.split(book.centres, np.cumsum(book.n_styles)[:-1])
    records = [
        {"name": name, "reach": float(reach), "centres": mine.tolist()}
        for name, reach, mine in zip(names, book.reach, styles, strict=True)
    ]
    record = {
        "n_features": book.n_features,
        "n_categories": book.n_categories,
        "features": _columns(features, book),
        "labels": records,
    }
    save_record(
        record, path, kind="codebook", version=_VERSION, made=checked_made(dict(made or {}))
    )


def load_codebook(path: str | os.PathLike[str]) -> SavedCodebook:
    """Read what `save_codebook` wrote; the book is equal to the last bit.

    Raises
    ------
    FileError
        The file cannot be read, is damaged, or a later version wrote it.
    """
    record = load_record(path, kind="codebook", version=_VERSION)
    try:
        kept = read_record(_BookRecord, record)
        book = _book(kept)
        return SavedCodebook(book, _names(kept), _columns(kept.features, book))
    except (FileError, InputError) as error:
        raise FileError(f"{path} is damaged: {error}; {AGAIN}") from error


@dataclass(frozen=True)
class _LabelRecord:
    """A label as the file has it: how far its styles reach (a squared distance), and their centres."""

    reach: Finite
    centres: Sequence[Sequence[Finite]]
    name: str | None = None


@dataclass(frozen=True)
class _BookRecord:
    n_features: Count
    n_categories: Count
    labels: Sequence[_LabelRecord]
    features: Sequence[str] | None = None


def _names(kept: _BookRecord) -> tuple[str, ...] | None:
    """The names of labels: of all of them, or of none."""
    names = [label.name for label in kept.labels if label.name is not None]
    return check_names(names, len(kept.labels)) if names else None


def _columns(names: Sequence[str] | None, book: Codebook) -> tuple[str, ...] | None:
    if names is None:
        return None
    check_texts(names, "names of features")
    if len(names) not in (1, book.n_features):
        raise ParameterError(
            f"expected a column for each of {book.n_features} features, or one with lists, got "
            f"{len(names)}"
        )
    return tuple(names)


def _book(kept: _BookRecord) -> Codebook:
    centres = [centre for label in kept.labels for centre in label.centres]
    widths = {len(centre) for centre in centres}
    if not widths <= {kept.n_features}:
        raise FileError(f"expected centres of {kept.n_features} features, got {shown(widths)}")
    book = Codebook(
        np.array(centres, np.float64).reshape(len(centres), kept.n_features),
        np.array([len(label.centres) for label in kept.labels], np.int64),
        [label.reach for label in kept.labels],
    )
    if book.n_categories != kept.n_categories:
        raise FileError(
            f"expected n_categories as {book.n_categories}, got {shown(kept.n_categories)}"
        )
    return book

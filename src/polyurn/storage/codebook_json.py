"""A codebook as a JSON file: versioned, and equal to the last bit when it is read back.

What a codebook is, is `model/codebooks.py`; how a file gets to its place whole is `atomic.py`.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyurn.errors import FileError, InputError
from polyurn.model.codebooks import Codebook
from polyurn.storage.atomic import AGAIN, load_record, save_record
from polyurn.storage.provenance import checked_made
from polyurn.typed.records import Count, Finite, read_record, shown

_VERSION = 1


def save_codebook(
    book: Codebook, path: str | os.PathLike[str], *, made: Mapping[str, Any] | None = None
) -> None:
    """Write a codebook as JSON.

    Parameters
    ----------
    book : Codebook
    path : path
    made : mapping, optional
        How it came about, as for `save`.
    """
    styles = np.split(book.centres, np.cumsum(book.n_styles)[:-1])
    labels = [
        {"reach": float(reach), "centres": mine.tolist()}
        for reach, mine in zip(book.reach, styles, strict=True)
    ]
    record = {"n_features": book.n_features, "n_categories": book.n_categories, "labels": labels}
    save_record(
        record, path, kind="codebook", version=_VERSION, made=checked_made(dict(made or {}))
    )


def load_codebook(path: str | os.PathLike[str]) -> Codebook:
    """Read the codebook that `save_codebook` wrote, equal to the last bit.

    Raises
    ------
    FileError
        The file cannot be read, is damaged, or a later version wrote it.
    """
    record = load_record(path, kind="codebook", version=_VERSION)
    try:
        return _book(read_record(_BookRecord, record))
    except (FileError, InputError) as error:
        raise FileError(f"{path} is damaged: {error}; {AGAIN}") from error


@dataclass(frozen=True)
class _LabelRecord:
    """A label as the file has it: how far its styles reach (a squared distance), and their centres."""

    reach: Finite
    centres: Sequence[Sequence[Finite]]


@dataclass(frozen=True)
class _BookRecord:
    n_features: Count
    n_categories: Count
    labels: Sequence[_LabelRecord]


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

"""What a codebook looks like: a table for a person, and a record for JSON.

Only shows numbers; where they came from is not asked.
"""

from typing import Any

import numpy as np
from rich.table import Table

from polyurn.model.codebooks import Codebook
from polyurn.storage.models import Saved, codes_of
from polyurn.wording.numbers import counted


def book_table(saved: Saved[Codebook]) -> Table:
    """One row per label: how many styles it has, and how far from their centres points may be."""
    book = saved.model
    table = Table(
        title=f"codebook of {counted(book.n_labels, 'label')} and "
        f"{counted(book.n_features, 'feature')}: {counted(book.n_categories, 'category')}"
    )
    table.caption = "a point farther from every centre of its label is 'other'"
    table.add_column("label")
    for heading in ("styles", "farthest"):
        table.add_column(heading, justify="right")
    for name, n_styles, reach in zip(_labels(saved), book.n_styles, book.reach, strict=True):
        table.add_row(name, str(n_styles), f"{np.sqrt(reach):.4g}" if n_styles else "–")
    return table


def book_record(saved: Saved[Codebook]) -> dict[str, Any]:
    """The same numbers and more, for JSON."""
    book = saved.model
    return {
        "n_labels": book.n_labels,
        "n_features": book.n_features,
        "n_categories": book.n_categories,
        "labels": list(_labels(saved)),
        "features": None if saved.features is None else list(saved.features),
        "categories": list(codes_of(saved)),
        "n_styles": book.n_styles.tolist(),
        "reach": np.sqrt(book.reach).tolist(),
    }


def _labels(saved: Saved[Codebook]) -> tuple[str, ...]:
    return saved.categories or tuple(str(label) for label in range(saved.model.n_labels))

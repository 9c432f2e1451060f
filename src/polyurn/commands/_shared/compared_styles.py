"""Styles of held-out clients beside those of clients cut from proxy data, as `compare` shows them.

What is measured is `comparison/styles.py`'s.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from rich.table import Table

from polyurn.client.columns import as_arrow
from polyurn.client.record_tables import table_records
from polyurn.client.tables import category_codes
from polyurn.commands._shared.client_tables import ClientTable, naming
from polyurn.commands._shared.point_styles import read_point_styles, style_columns
from polyurn.commands._shared.record_tables import check_n_features
from polyurn.comparison.styles import StyleDispersion, style_dispersion
from polyurn.errors import ParameterError, StyleWarning
from polyurn.model.mdm import MDM
from polyurn.model.style_coordinates import StyleSpace
from polyurn.partitioning.assign import partition
from polyurn.storage.tables import read_table
from polyurn.typed.records import to_record

LABELS_ONLY = "labels only"


@dataclass(frozen=True)
class StyleRow:
    """How much the clients of one population differ: in the style's directions, and in all features."""

    name: str
    directions: StyleDispersion
    features: StyleDispersion


def compared_styles(
    style: Path | None,
    columns: str | None,
    proxy: Path | None,
    held_out: ClientTable,
    mdms: Mapping[str, MDM],
    *,
    n_clients: int,
    seed: int,
) -> list[StyleRow]:
    """The held-out clients, and of each MDM clients of this style, and of none; nothing without a style.

    Raises
    ------
    ParameterError
        The held-out table has counts instead of points, or several columns that are crossed.
    """
    if style is None or proxy is None:
        return []
    label, client = held_out.columns.category, held_out.columns.client
    by_point = held_out.columns.count in (None, "1")
    if not (isinstance(label, str) and isinstance(client, str) and by_point):
        raise ParameterError(
            f"expected {held_out.path} with one row per point, a label and features, for --style"
        )
    points = as_arrow(read_table(proxy))
    found, features = read_point_styles(style, columns, points, proxy, held_out.categories)
    known = held_out.categories or found.space.n_labels
    with naming(proxy):
        labels = category_codes(points, known, category=label)
    with naming(held_out.path):
        records = table_records(
            read_table(held_out.path), label=label, categories=known,
            features=style_columns(style, columns, held_out.path), client=client,
        )  # fmt: skip
    check_n_features(records.n_features, held_out.path, found.space.n_features, style)
    held = records.of(np.arange(records.n_clients))
    rows = [_row("true", held.features, held.labels, held.owner, found.space, seed)]
    for name, mdm in mdms.items():
        counts = mdm.sample(n_clients, rng=np.random.default_rng(seed))
        with catch_warnings():
            simplefilter("ignore", StyleWarning)  # whoever partitions is told
            styled = partition(labels, counts, style=found, features=features, rng=seed)
        plain = partition(labels, counts, rng=seed)
        for called, parts in ((name, styled), (f"{name}, {LABELS_ONLY}", plain)):
            where = parts.indices
            rows.append(
                _row(called, features[where], labels[where], parts.clients, found.space, seed)
            )
    return rows


def styles_tables(rows: list[StyleRow]) -> list[Table]:
    """One table with a line per population, if there are any."""
    if not rows:
        return []
    table = Table(title="how much clients differ in style; 1 is chance")
    table.add_column("clients")
    heads = ("by client", "by label", "with labels (chance)")
    for where in ("directions", "features"):
        for head in heads:
            table.add_column(f"{head}, {where}", justify="right")
    for row in rows:
        cells = []
        for found in (row.directions, row.features):
            tie = f"{found.tie:.2f} ({found.tie_floor:.2f})"
            cells += [f"{found.by_client:.2f}", f"{found.by_label:.2f}", tie]
        table.add_row(row.name, *cells)
    return [table]


def styles_record(rows: list[StyleRow]) -> dict[str, Any]:
    """The rows as JSON has them, by name, under "styles", if there are any."""
    found = {row.name: {k: v for k, v in to_record(row).items() if k != "name"} for row in rows}
    return {"styles": found} if rows else {}


def _row(
    name: str, features: Any, labels: Any, clients: Any, space: StyleSpace, seed: int
) -> StyleRow:
    return StyleRow(
        name,
        style_dispersion(features, labels, clients, space=space, rng=seed),
        style_dispersion(features, labels, clients, rng=seed),
    )

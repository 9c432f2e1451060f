"""Proxy points and the clients that are to hold them, as `partition` takes them.

Both have the same categories; with a codebook these are its codes. Which points a client is given is
`partitioning/assign.py`'s.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polyurn.client.histogram import category_names
from polyurn.client.layout import category_columns, column_text
from polyurn.client.tables import (
    category_codes,
    known_codes,
    observed_categories,
    table_layout,
)
from polyurn.commands._shared.client_tables import (
    Declared,
    Reading,
    Say,
    naming,
    read_clients,
    shown_categories,
)
from polyurn.commands._shared.model_files import read_model
from polyurn.commands._shared.record_tables import is_archive, read_point_table
from polyurn.errors import CountsError, FileError, ParameterError, ShortfallError, SizeError
from polyurn.model.populations import Oracle, Population
from polyurn.storage.tables import read_table
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    from polyurn.commands._shared.code_models import CodeModel
    from polyurn.model.style import Style


@dataclass(frozen=True)
class ProxyClients:
    """Proxy data and the clients that are to hold them.

    Attributes
    ----------
    points : pyarrow.Table
        The proxy data.
    labels : int array of shape (n_points,)
    positions : int array of shape (n_points,)
        The rows of the proxy data that they stand in.
    categories : tuple of str
    population : MDM, or function (n_clients, rng) -> counts
        For a table of clients, a random choice of them, unless others are to take their place.
    counts : csr_array of shape (n_clients, n_categories), or None for an MDM
    clients : array of shape (n_clients,), or None for an MDM
        Their ids.
    """

    points: Any
    labels: NDArray[np.int64]
    positions: NDArray[np.int64]
    categories: tuple[str, ...]
    population: Population
    counts: Any = None
    clients: NDArray[Any] | None = None

    def with_style(
        self, style: Path, columns: str | None, where: Path
    ) -> "tuple[Style, NDArray[np.float64]]":
        """The style of a file, and the features of the points."""
        from polyurn.commands._shared.point_styles import read_point_styles

        found, features = read_point_styles(style, columns, self.points, where, self.categories)
        return found, features[self.positions]

    def with_codes(
        self, model: "CodeModel", where: Path, say: Say, rng: np.random.Generator
    ) -> "ProxyClients":
        """The same clients with codes in place of labels, drawn given their label totals."""
        points = self.points.take(self.positions)
        codes = model.codes_of(points, where, self.labels, self.categories)
        known = np.flatnonzero(codes >= 0)
        if len(known) < len(codes):
            left_out = counted(len(codes) - len(known), "proxy point")
            say(f"left out {left_out} of codes that are no category of {model.mdm_path}")
        given = model.given_labels(self.population, self.categories, codes[known])
        counts = None
        if self.counts is not None:
            try:
                counts = given.fill(self.counts, rng=rng)
            except ShortfallError as error:
                raise error.named(self.categories) from None
            except (CountsError, SizeError) as error:
                raise CountsError(f"clients that {model.mdm_path} cannot have: {error}") from None
        return replace(
            self, labels=codes[known], positions=self.positions[known],
            categories=model.categories, population=given, counts=counts,
        )  # fmt: skip


def read_proxy(
    labels: Path,
    label_column: str | None,
    clients: Path,
    reading: Reading,
    declared: Declared,
    covers: bool,
    redraw_from: Path | None,
) -> ProxyClients:
    """The proxy data's labels, and clients with the same categories.

    `clients` may be an MDM file if they are drawn (`covers`); `redraw_from` is one.
    """
    if is_archive(labels) and label_column is not None:
        raise ParameterError(
            "--label-column has no effect with a .npz file, whose array is called labels: leave it out"
        )
    points = read_point_table(labels, say=reading.say)
    if clients.suffix == ".json":
        if not covers:
            raise FileError(
                f"{clients} is not a table of clients; draw them with `polyurn sample`, or use --cover"
            )
        return _for_model(points, labels, label_column, clients, reading)
    others: Population | None = None
    naming_columns = reading
    if redraw_from is not None:
        saved = read_model(redraw_from)
        others, declared = saved.model, saved.categories or saved.model.n_categories
        naming_columns = reading.like(saved)
    with naming(labels):
        column = _label_column(points.column_names, label_column, naming_columns)
    if declared is None:
        declared = _categories_of_both(points, labels, column, clients, reading)
    with naming(labels):
        codes, positions = _held(points, declared, column, reading.say)
    read = read_clients(clients, reading, declared)
    population = Oracle(read.counts) if others is None else others
    return ProxyClients(
        points, codes, positions, read.categories, population, read.counts, read.clients
    )


def _for_model(
    points: Any, labels: Path, label_column: str | None, model: Path, reading: Reading
) -> ProxyClients:
    """The labels of the proxy data for clients that are drawn from an MDM file."""
    saved = read_model(model)
    known = saved.categories or saved.model.n_categories
    with naming(labels):
        column = _label_column(points.column_names, label_column, reading.like(saved))
        codes, positions = _held(points, known, column, reading.say)
    return ProxyClients(points, codes, positions, category_names(known), saved.model)


def _categories_of_both(
    points: Any, labels: Path, column: str | tuple[str, ...], clients: Path, reading: Reading
) -> int | tuple[str, ...]:
    """The categories that the proxy data and the clients show together, which is said."""
    with naming(labels):
        of_points = observed_categories(points, category=column)
    with naming(clients):
        table = read_table(clients)
        of_clients = shown_categories(table, table_layout(table, reading.asked))
    found = _both(of_points, of_clients)
    n = found if isinstance(found, int) else len(found)
    reading.say(f"{counted(n, 'category')}, from the tables; declare them with --categories")
    return found


def _label_column(
    names: Sequence[str], asked: str | None, reading: Reading
) -> str | tuple[str, ...]:
    """The column of the proxy data with the category, or those that are crossed.

    Asked for, or remembered by an MDM file, or called "label".
    """
    option = "--label-column"
    if asked is None and reading.remembered.category is not None:
        with suppress(CountsError):
            found = category_columns(names, reading.remembered.category, option=option)
            reading.say(f"the category is in column {column_text(found)!r}")
            return found
    return category_columns(names, "label" if asked is None else asked, option=option)


def _held(
    points: Any, categories: int | tuple[str, ...], column: str | tuple[str, ...], say: Say
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The category of each proxy point that a client can hold, and the rows in which they stand.

    A value that is no category is more likely a mistake, and an error. A combination of crossed columns
    that no client has is not: such points are left out, and that is said.
    """
    if not isinstance(column, tuple):
        codes = category_codes(points, categories, category=column)
        return codes, np.arange(len(codes))
    codes = known_codes(points, categories, category=column)
    positions = np.flatnonzero(codes >= 0)
    if len(positions) == 0:
        category_codes(points, categories, category=column)  # which says why
    if len(positions) < len(codes):
        left_out = counted(len(codes) - len(positions), "proxy point")
        say(f"left out {left_out} of combinations that are no category of the clients")
    return codes[positions], positions


def _both(a: int | tuple[str, ...], b: int | tuple[str, ...]) -> int | tuple[str, ...]:
    """The categories of two tables together: numbers with numbers, names with names."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    names = [names for names in (a, b) if not isinstance(names, int)]
    return tuple(sorted(set().union(*names)))

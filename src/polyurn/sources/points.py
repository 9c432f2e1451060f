"""Where points come from: a table, or a NumPy archive, with the label and the features of each.

A message says what was taken from a file because it was not named. An archive has the arrays features,
labels and clients; its labels and clients are read like columns of a table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from polyurn.client.columns import as_arrow, column_ids, distinct_values
from polyurn.client.counting import category_names
from polyurn.client.layout import category_columns, find_column
from polyurn.client.record_tables import list_columns, number_columns, table_features_of
from polyurn.client.records import Records
from polyurn.client.tables import category_codes, known_codes, observed_categories
from polyurn.errors import CountsError, FileError, ParameterError, RowError
from polyurn.model.names import in_words
from polyurn.model.style import Style
from polyurn.model.style_coordinates import feature_rows, label_codes
from polyurn.sources.clients import Declared, Say
from polyurn.storage.models import Saved, load_saved
from polyurn.storage.npz_files import read_arrays
from polyurn.storage.table_files import arrow, naming, read_table
from polyurn.typed.arrays import ids_of
from polyurn.typed.declared import Ints
from polyurn.wording import counted

if TYPE_CHECKING:
    from polyurn.federation.folder import Federation


@dataclass(frozen=True, eq=False)
class PointFile:
    """A file of points as a pyarrow.Table; the features of an archive are `array`, (n_points, ...)."""

    path: Path
    table: Any
    array: NDArray[Any] | None = None

    @classmethod
    def read(cls, path: Path, say: Say | None = None) -> Self:
        """Read a file, and check what an archive has."""
        if not is_archive(path):
            return cls(path, as_arrow(read_table(path, on_remark=say)))
        arrays = read_arrays(path, needed=("features", "labels"))
        features = arrays["features"]
        try:
            labels = label_codes(arrays["labels"], len(feature_rows(features)), n_labels=None)
            columns: dict[str, Any] = {"label": labels}
            if "clients" in arrays:
                columns["client"] = ids_of(arrays["clients"], "clients")
        except ParameterError as error:
            raise CountsError(f"{path}: {error}") from None
        if any(len(column) != len(labels) for column in columns.values()):
            raise CountsError(f"{path}: expected a client for each of {len(labels):,} points")
        return cls(path, arrow("reading points").table(columns), features)

    @property
    def columns(self) -> list[str]:
        return list(self.table.column_names)

    def refuse_names(self, asked: Mapping[str, object]) -> None:
        """Refuse options that name columns of an archive, which has none."""
        given = [option for option, value in asked.items() if value is not None]
        if self.array is not None and given:
            raise ParameterError(
                f"{given[0]} has no effect with .npz files, whose arrays are called features, labels "
                "and clients: leave it out"
            )

    def label_column(self, asked: str | None) -> str:
        """The column with the label: the one that the option names, or "label"."""
        name = asked or "label"
        if "," in name:  # several columns, which are crossed
            return name
        with naming(self.path):
            return find_column(self.columns, name, option="--category")

    def client_column(self, asked: str | None) -> str:
        """The column with the client: the one that the option names, or "client"."""
        if self.array is not None and "client" not in self.columns:
            raise FileError(
                f"{self.path}: expected an array 'clients', which says whose each point is"
            )
        with naming(self.path):
            return find_column(self.columns, asked or "client", option="--client")

    def shown_labels(self, column: str | Sequence[str]) -> int | tuple[str, ...]:
        """The labels of the points: their number, or their names."""
        if self.array is not None:
            return max(2, int(np.max(self.table["label"], initial=0)) + 1)
        with naming(self.path):
            return observed_categories(self.table, category=column)

    def labelled(self, asked: str | None) -> tuple[int | tuple[str, ...], Ints]:
        """The labels in the column of the option, or in "label", by number or name, and each point's."""
        self.refuse_names({"--category": asked})
        with naming(self.path):
            column = category_columns(self.columns, asked or "label", option="--category")
        labels = self.shown_labels(column)
        return labels, self.codes(labels, column)

    def codes(
        self, declared: int | tuple[str, ...], column: str | Sequence[str], lacks: str = "",
        advice: str = "take proxy points of every label",
    ) -> Ints:  # fmt: skip
        """The number of each point's label, shape (n_points,).

        `lacks` begins the error about an undeclared label, and `advice` ends it.
        """
        with naming(self.path):
            if lacks:
                codes = known_codes(self.table, declared, category=column)
                unknown = np.flatnonzero(codes < 0)
                if len(unknown):
                    raise RowError(
                        f"column {column!r}: {lacks} of the labels of {len(unknown):,} of "
                        f"{len(codes):,} rows, the first",
                        int(unknown[0]),
                        f"; leave these rows out, or {advice}",
                    )
            return category_codes(self.table, declared, category=column)

    def rows(self) -> Any:
        """All rows as a table, the features of an archive in the column "features"."""
        if self.array is None:
            return self.table
        features = arrow("writing tables").array([*feature_rows(self.array)])
        return self.table.append_column("features", features)

    def texts(self, name: str) -> list[str]:
        """A column of texts, such as the paths of files."""
        with naming(self.path):
            column = find_column(self.columns, name, option="--files")
        return [str(value) for value in self.table[column].to_pylist()]

    def features(self, names: Sequence[str] | None) -> NDArray[Any]:
        """The features of all points, shape (n_points, n_features); of these columns of a table."""
        if self.array is not None:
            return feature_rows(self.array)
        with naming(self.path):
            return table_features_of(self.table, names or ())

    def feature_columns(
        self, asked: Sequence[str] | None, *, leave_out: Sequence[str], say: Say
    ) -> tuple[str, ...] | None:
        """The columns with features: those of the option, else all with numbers, with a message."""
        if asked is not None or self.array is not None:
            return None if asked is None else tuple(asked)
        with naming(self.path):
            found, lists = number_columns(self.table, leave_out=leave_out), list_columns(self.table)
            if not found and lists:
                raise CountsError(
                    "expected columns of numbers, got none; take the column of lists: --features "
                    f"{lists[0]}"
                )
        say(f"{counted(len(found), 'feature')}, from {self.path}; name them with --features")
        left = [name for name in self.columns if name not in (*leave_out, *found)]
        if left:
            say(
                f"not taken as features, because not all values are finite numbers: {', '.join(left)}"
            )
        return found

    def check_n_features(self, features: NDArray[Any], expected: int, like: Path) -> None:
        """Refuse points with another number of features than those of another file."""
        if features.shape[1] != expected:
            raise CountsError(
                f"{self.path}: expected points of {counted(expected, 'feature')}, as in {like}, got "
                f"{features.shape[1]:,}"
            )

    def records(
        self, declared: int | tuple[str, ...], label: str, client: str, features: NDArray[Any]
    ) -> Records:
        """The points as records of their clients."""
        labels = self.codes(declared, label)
        with naming(self.path):
            ids, owner = distinct_values(column_ids(self.table, client))
            n_labels = len(category_names(declared))
            return Records(features, labels, ids[owner], n_labels=n_labels)


@dataclass(frozen=True, eq=False)
class Points:
    """Points with features of shape (n_points, n_features), labels, and the names of both, if any."""

    features: NDArray[Any]
    labels: Ints
    declared: int | tuple[str, ...]
    columns: tuple[str, ...] | None


def read_records(
    proxy: Path, clients: Path, *, label: str | None, client: str | None,
    features: Sequence[str] | None, declared: Declared, say: Say,
) -> tuple[Points, Records]:  # fmt: skip
    """Proxy points, and clients' records with the same labels and features.

    Labels and features that are not named are found in the proxy file.
    """
    if is_archive(proxy) != is_archive(clients):
        raise FileError(f"expected two tables or two .npz files, got {proxy} and {clients}")
    file = PointFile.read(proxy, say)
    file.refuse_names({"--category": label, "--client": client, "--features": features})
    if file.array is not None and isinstance(declared, tuple):
        raise ParameterError("expected --categories as a number with .npz files, whose labels are")
    column = file.label_column(label)
    labels = file.shown_labels(column) if declared is None else declared
    codes = file.codes(labels, column)
    names = file.feature_columns(features, leave_out=(column, client or "client"), say=say)
    points = Points(file.features(names), codes, labels, names)
    held = PointFile.read(clients, say)
    column, whose = held.label_column(label), held.client_column(client)
    if declared is None:
        held.codes(labels, column, lacks=f"{proxy} has no point")
    rows = held.features(names)
    held.check_n_features(rows, points.features.shape[1], proxy)
    return points, held.records(labels, column, whose, rows)


def styled_features(
    file: PointFile, path: Path, columns: str | None, categories: Sequence[str]
) -> tuple[Style, NDArray[Any]]:
    """The style in a file, if its labels are these categories, and the points' features for it."""
    saved = load_saved(path, Style)
    if saved.categories is not None and saved.categories != tuple(categories):
        raise ParameterError(
            f"expected clients with the labels of {path}, in their order: {in_words(saved.categories)}, "
            f"got {in_words(categories)}; "
            "measure the style with the same labels (style --categories)"
        )
    file.refuse_names({"--features": columns})
    features = file.features(style_columns(path, columns, file.path))
    file.check_n_features(features, saved.model.space.n_features, path)
    return saved.model, features


def style_columns(path: Path, columns: str | None, where: Path) -> Sequence[str]:
    """The columns in which a style is measured: those of the option, or those in its file."""
    if is_archive(where):
        return ()
    if columns is not None:
        return [name.strip() for name in columns.split(",")]
    names = load_saved(path, Style).features
    if names is None:
        raise ParameterError(
            f"expected --features, columns of {where}: {path} does not say what its features are called"
        )
    return names


def federation_points(
    path: Path, federation: "Federation", *, label: str | None, features: Sequence[str] | None,
    say: Say,
) -> Points:  # fmt: skip
    """Proxy points whose labels are the federation's categories, and features the declared ones."""
    file = PointFile.read(path, say)
    file.refuse_names({"--category": label, "--features": features})
    column, n_labels = label or "label", federation.n_categories
    advice = (
        f"take the federation's {counted(n_labels, 'category')}, in an archive as numbers from 0"
    )
    lacks = "the federation has no category"
    codes = file.codes(federation.declared, column, lacks=lacks, advice=advice)
    columns = federation.features
    if file.array is None:
        columns = file.feature_columns(features or columns, leave_out=(column, "client"), say=say)
        federation.check_features(columns or ())
    rows = file.features(columns)
    n_features = rows.shape[1]
    if columns is not None and len(columns) not in (1, n_features):
        raise FileError(
            f"{path}: expected {counted(len(columns), 'feature')}, as the federation has declared, got "
            f"{n_features}"
        )
    if columns is not None and len(columns) < n_features:  # a column of lists
        columns = None
    return Points(rows, codes, federation.declared, columns)


def read_pictures(
    path: Path, style: Saved[Style], *, label: str | None, features: Sequence[str] | None
) -> tuple[NDArray[Any], Ints]:
    """Points as a report shows them, shape (n_points, ...): those of an archive may be pictures."""
    file = PointFile.read(path)
    file.refuse_names({"--features": features})
    lacks = label not in file.columns and "label" in file.columns
    column = "label" if label is None or lacks else label
    if file.array is not None:  # its labels are numbers, even if they have names elsewhere
        return file.array, file.codes(style.model.space.n_labels, column)
    codes = file.codes(style.declared, column)
    names = features or style.features
    names = names or number_columns(file.table, leave_out=(column, "client"))
    return file.features(names), codes


def is_archive(path: Path) -> bool:
    """Whether a file is a NumPy archive, by its name."""
    return path.suffix == ".npz"

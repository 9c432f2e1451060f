"""Records as the commands take them: proxy points, and clients' records with the same labels.

What is taken from the proxy data instead of being declared is said.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polyurn.client.columns import as_arrow
from polyurn.client.histogram import category_names
from polyurn.client.layout import find_column
from polyurn.client.record_tables import number_columns, table_features_of, table_records
from polyurn.client.records import Records
from polyurn.client.tables import category_codes, known_codes, observed_categories
from polyurn.commands._shared.client_tables import naming
from polyurn.errors import CountsError, FileError, ParameterError, RowError
from polyurn.model.style_coordinates import feature_rows, label_codes
from polyurn.storage.record_files import RecordArrays, read_record_arrays
from polyurn.storage.tables import read_table
from polyurn.wording.numbers import counted

Say: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Points:
    """Points of a file, with their labels.

    Attributes
    ----------
    features : array of shape (n_points, n_features)
    labels : int array of shape (n_points,)
    declared : int or tuple of str
        How many labels there are, or their names.
    columns : tuple of str, or None
        The columns of the table that hold the features: one each, or one with lists.
    """

    features: NDArray[Any]
    labels: NDArray[np.int64]
    declared: int | tuple[str, ...]
    columns: tuple[str, ...] | None

    @property
    def n_features(self) -> int:
        return int(self.features.shape[1])


@dataclass(frozen=True, eq=False)
class ProxyAndRecords:
    """Proxy points, and clients' records with the same labels and features.

    Attributes
    ----------
    features, labels : arrays
        Of the proxy points.
    records : Records
    categories : tuple of str
        The names of the labels.
    feature_names : tuple of str, or None
        The columns, if each feature is one.
    """

    features: NDArray[Any]
    labels: NDArray[np.int64]
    records: Records
    categories: tuple[str, ...]
    feature_names: tuple[str, ...] | None


def read_records(
    proxy: Path,
    clients: Path,
    *,
    label: str | None,
    client: str | None,
    features: Sequence[str] | None,
    declared: int | tuple[str, ...] | None,
    say: Say,
) -> ProxyAndRecords:
    """Both files, tables or archives; what the options do not name is taken from the proxy file."""
    if is_archive(proxy) != is_archive(clients):
        raise FileError(f"expected two tables or two .npz files, got {proxy} and {clients}")
    if is_archive(clients):
        refuse_columns(label, client, features)
    points = read_points(
        proxy, label=label, client=client, features=features, declared=declared, say=say
    )
    if is_archive(clients):
        records = _archive_records(clients, points)
    else:
        held = as_arrow(read_table(clients, on_remark=say))
        with naming(clients):
            column = label_column(held, label)
            whose = find_column(held.column_names, client or "client", option="--client")
            if declared is None:
                check_labels(held, points.declared, column, f"{proxy} has no point")
            records = table_records(
                held, label=column, categories=points.declared, features=points.columns or (),
                client=whose,
            )  # fmt: skip
    check_n_features(records.n_features, clients, points.n_features, proxy)
    names = points.columns
    if names is not None and len(names) != points.n_features:
        names = None
    return ProxyAndRecords(
        points.features, points.labels, records, category_names(points.declared), names
    )


def read_points(
    path: Path,
    *,
    label: str | None,
    client: str | None,
    features: Sequence[str] | None,
    declared: int | tuple[str, ...] | None,
    say: Say,
) -> Points:
    """The points of a table or an archive; what is taken from it instead of being named is said.

    Parameters
    ----------
    path : Path
        CSV, Parquet or .npz.
    label, features : str and sequence of str, optional
        Columns of a table: "label", and all that hold numbers, by default.
    client : str, optional
        A column that holds no feature: "client" by default.
    declared : int or tuple of str, optional
        How many labels there are, or their names.
    """
    if is_archive(path):
        refuse_columns(label, client, features)
        return _archive_points(path, declared)
    points, client = as_arrow(read_table(path, on_remark=say)), client or "client"
    with naming(path):
        label = label_column(points, label)
        if declared is None:
            declared = observed_categories(points, category=label)
        codes = category_codes(points, declared, category=label)
        if features is None:
            features = proxy_columns(points, path, leave_out=(label, client), say=say)
        return Points(table_features_of(points, features), codes, declared, tuple(features))


def label_column(table: Any, asked: str | None) -> str:
    """The column of a table with the label: the one that is asked for, or "label"."""
    name = asked or "label"
    if "," in name:  # several, which are crossed
        return name
    return find_column(table.column_names, name, option="--label")


def is_archive(path: Path) -> bool:
    """Whether a file is a NumPy archive, by its name."""
    return path.suffix == ".npz"


def refuse_columns(label: str | None, client: str | None, features: Sequence[str] | None) -> None:
    """Refuse names of columns for archives, which have none."""
    if label is not None or client is not None or features is not None:
        raise ParameterError(
            "--label, --client and --features have no effect with .npz files, whose arrays are "
            "called features, labels and clients: leave them out"
        )


def proxy_columns(
    points: Any, proxy: Path, *, leave_out: Sequence[str], say: Say
) -> tuple[str, ...]:
    """The columns of proxy points that are features because nobody named others; that is said."""
    features = number_columns(points, leave_out=leave_out)
    say(f"{counted(len(features), 'feature')}, from {proxy}; name them with --features")
    if left := set(points.column_names) - {*leave_out, *features}:
        listed = ", ".join(name for name in points.column_names if name in left)
        say(f"no features, because not all values are finite numbers: {listed}")
    return features


def check_labels(table: object, known: int | tuple[str, ...], label: str, lacks: str) -> None:
    """Stop at a label that is not known, and that nobody has declared either.

    Parameters
    ----------
    table : pyarrow.Table
    known : int or tuple of str
    label : str
        The column.
    lacks : str
        Who does not know it, "proxy.csv has no point" say.
    """
    codes = known_codes(table, known, category=label)
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        raise RowError(
            f"column {label!r}: {lacks} of the labels of {len(unknown):,} of {len(codes):,} rows, "
            "the first",
            int(unknown[0]),
            "; leave these rows out, or take proxy points of every label",
        )


def check_n_features(n_features: int, path: Path, expected: int, like: Path) -> None:
    """Stop at points that have more features, or fewer, than those of another file."""
    if n_features != expected:
        raise CountsError(
            f"{path}: expected points of {counted(expected, 'feature')}, as in {like}, got "
            f"{n_features:,}"
        )


def archive_arrays(path: Path, n_labels: int | None) -> tuple[RecordArrays, Points]:
    """What an archive holds, and its points, checked; without `n_labels`, of those that it shows."""
    held = read_record_arrays(path)
    try:
        rows = feature_rows(held.features)
        codes = label_codes(held.labels, len(rows), n_labels=n_labels)
    except ParameterError as error:
        raise CountsError(f"{path}: {error}") from None
    n_shown = max(2, int(codes.max(initial=0)) + 1) if n_labels is None else n_labels
    return held, Points(rows, codes, n_shown, None)


def _archive_points(path: Path, declared: int | tuple[str, ...] | None) -> Points:
    if isinstance(declared, tuple):
        raise ParameterError("expected --categories as a number with .npz files, whose labels are")
    return archive_arrays(path, declared)[1]


def _archive_records(path: Path, like: Points) -> Records:
    n_labels = len(category_names(like.declared))
    held, points = archive_arrays(path, n_labels)
    if held.clients is None:
        raise FileError(f"{path}: expected an array 'clients', which says whose each point is")
    return Records(points.features, points.labels, held.clients, n_labels=n_labels)

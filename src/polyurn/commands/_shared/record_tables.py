"""Records as the commands take them: proxy points, and clients' records with the same labels.

What is taken from the proxy data instead of being declared is said.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polyurn.client.histogram import category_names
from polyurn.client.record_tables import number_columns, table_features_of, table_records
from polyurn.client.records import Records
from polyurn.client.tables import category_codes, known_codes, observed_categories
from polyurn.commands._shared.client_tables import naming
from polyurn.errors import CountsError, FileError, ParameterError, RowError
from polyurn.storage.record_files import RecordArrays, read_record_arrays
from polyurn.storage.tables import read_table
from polyurn.wording.numbers import counted

Say: TypeAlias = Callable[[str], None]


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
    archives = [path.suffix == ".npz" for path in (proxy, clients)]
    if any(archives):
        if not all(archives):
            raise FileError(f"expected two tables or two .npz files, got {proxy} and {clients}")
        if label is not None or client is not None or features is not None:
            raise ParameterError(
                "--label, --client and --features have no effect with .npz files, whose arrays are "
                "called features, labels and clients: leave them out"
            )
        return _of_archives(proxy, clients, declared)
    label, client = label or "label", client or "client"
    points, held = read_table(proxy, on_remark=say), read_table(clients, on_remark=say)
    with naming(proxy):
        of_proxy = declared is None
        if declared is None:
            declared = observed_categories(points, category=label)
        codes = category_codes(points, declared, category=label)
        if features is None:
            features = proxy_columns(points, proxy, leave_out=(label, client), say=say)
        values = table_features_of(points, features)
    with naming(clients):
        if of_proxy:
            _check_labels(held, declared, label, proxy)
        records = table_records(
            held, label=label, categories=declared, features=features, client=client
        )
    names = tuple(features) if len(features) == values.shape[1] else None
    return ProxyAndRecords(values, codes, records, category_names(declared), names)


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


def _check_labels(held: object, of_proxy: int | tuple[str, ...], label: str, proxy: Path) -> None:
    """Stop at a client's label of which there is no proxy point, which nobody has declared either."""
    codes = known_codes(held, of_proxy, category=label)
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        raise RowError(
            f"column {label!r}: {proxy} has no point of the labels of {len(unknown):,} of "
            f"{len(codes):,} rows, the first",
            int(unknown[0]),
            "; leave these rows out, or take proxy points of every label",
        )


def _of_archives(
    proxy: Path, clients: Path, declared: int | tuple[str, ...] | None
) -> ProxyAndRecords:
    points, held = read_record_arrays(proxy), read_record_arrays(clients)
    if held.clients is None:
        raise FileError(f"{clients}: expected an array 'clients', which says whose each point is")
    if isinstance(declared, tuple):
        raise ParameterError("expected --categories as a number with .npz files, whose labels are")
    n_labels = _n_labels(points, proxy) if declared is None else declared
    records = Records(held.features, held.labels, held.clients, n_labels=n_labels)
    flat = points.features.reshape(len(points.features), -1)
    codes = np.asarray(points.labels).astype(np.int64)
    return ProxyAndRecords(flat, codes, records, category_names(n_labels), None)


def _n_labels(points: RecordArrays, path: Path) -> int:
    if points.labels.dtype.kind not in "iu" or not points.labels.size or points.labels.min() < 0:
        raise CountsError(f"{path}: expected labels as whole numbers from 0")
    return max(2, int(points.labels.max()) + 1)

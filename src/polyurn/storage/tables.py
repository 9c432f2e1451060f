"""Tables as CSV, TSV and Parquet files: any table read, histograms written one row per non-zero cell.

Reads and writes through Arrow, which is imported when it is needed. What a table means is
`client/tables.py`.
"""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from polyurn.counts import check_counts, check_names
from polyurn.errors import FileError, MissingDependencyError, ParameterError
from polyurn.storage.atomic import check_place, write_whole
from polyurn.typed.arguments import Json, checked
from polyurn.typed.arrays import ids_of

if TYPE_CHECKING:
    import pyarrow as pa

_DELIMITERS = {"csv": ",", "tsv": "\t"}


def read_table(path: str | os.PathLike[str]) -> "pa.Table":
    """Read a CSV or TSV (also .gz) or Parquet file as an Arrow table.

    CSV and TSV give text, as it stands: "01" is not 1 and "NA" is a name. A cell without anything in
    it, not even quotes, is missing.

    Raises
    ------
    FileError
        The file cannot be read, or is none of them.
    """
    path = Path(path)
    pa = arrow("reading tables")
    kind = _kind(path)
    try:
        return pa.parquet.read_table(path) if kind == "parquet" else _read_text(pa, path, kind)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        if "Empty CSV" in str(error):
            raise FileError(f"{path} is empty: expected a header and at least one row") from error
        raise FileError(f"{path} is not a readable {kind} file: {_reason(error)}") from None
    except OSError as error:
        reason = error.strerror or str(error).splitlines()[0]
        raise FileError(f"cannot read {path}: {reason}") from error


@checked
def write_histograms(
    counts: object,
    path: str | os.PathLike[str],
    *,
    clients: Sequence[Any] | None = None,
    categories: Sequence[str] | None = None,
    made: Json | None = None,
) -> None:
    """Write histograms as a long table (client, category, count), Parquet or CSV by the suffix.

    Parameters
    ----------
    counts : int array or csr_array of shape (n_clients, n_categories)
    path : path ending in .parquet, .csv, .csv.gz, .tsv or .tsv.gz
    clients : sequence of length n_clients, optional
        Client ids; 0, 1, ... by default.
    categories : sequence of str, optional
        Category names; their numbers by default.
    made : mapping, optional
        How it came about; kept in a Parquet file's metadata. CSV has no place for it.
    """
    from polyurn import __version__

    path = Path(path)
    pa = arrow("writing tables")
    kind = _kind(path)
    table = long_table(counts, clients=clients, categories=categories)
    if kind == "parquet":
        note = json.dumps({"polyurn": __version__, **(made or {})})
        table = table.replace_schema_metadata({"polyurn": note})
        write_whole(path, lambda file: pa.parquet.write_table(table, file))
    else:
        options = pa.csv.WriteOptions(delimiter=_DELIMITERS[kind])
        packing = "gzip" if path.suffix == ".gz" else None

        def write(file: IO[bytes]) -> None:
            with pa.output_stream(file, compression=packing) as stream:
                pa.csv.write_csv(table, stream, options)

        write_whole(path, write)


def check_table_place(path: str | os.PathLike[str]) -> None:
    """`check_place` for `write_histograms`, which goes by the suffix."""
    _kind(Path(path))
    check_place(path)


def csv_text(
    counts: object,
    *,
    clients: Sequence[Any] | None = None,
    categories: Sequence[str] | None = None,
) -> bytes:
    """What `write_histograms` writes to a .csv file."""
    pa = arrow("writing tables")
    stream = pa.BufferOutputStream()
    pa.csv.write_csv(long_table(counts, clients=clients, categories=categories), stream)
    return bytes(stream.getvalue())


def long_table(
    counts: object,
    *,
    clients: Sequence[Any] | None = None,
    categories: Sequence[str] | None = None,
) -> "pa.Table":
    """Histograms as an Arrow table with one row per non-zero cell."""
    pa = arrow("writing tables")
    rows = sparse.csr_array(check_counts(counts, allow_empty=True))
    known = np.arange(rows.shape[0]) if clients is None else ids_of(clients, "client ids")
    if len(known) != rows.shape[0]:
        raise ParameterError(f"expected {rows.shape[0]} client ids, got {len(known)}")
    labels = check_names(categories, rows.shape[1])
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    ids = pa.array(known).take(pa.array(owner))
    codes = pa.array(rows.indices.astype(np.int32))
    names = codes if labels is None else pa.array(labels).take(codes)
    return pa.table({"client": ids, "category": names, "count": rows.data.astype(np.int64)})


def arrow(purpose: str) -> Any:
    """The pyarrow package, or an error that says which extra brings it and what for."""
    try:
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "tables", purpose) from error
    return pa


def _kind(path: Path) -> str:
    kinds = {".parquet": "parquet", ".csv": "csv", ".tsv": "tsv"}
    packed = path.suffix == ".gz"
    kind = kinds.get(path.with_suffix("").suffix if packed else path.suffix)
    if kind is None or (packed and kind == "parquet"):
        raise FileError(f"expected a .parquet, .csv or .tsv file, got {path.name!r}")
    return kind


def _read_text(pa: Any, path: Path, kind: str) -> "pa.Table":
    one_thread = pa.csv.ReadOptions(use_threads=False)  # only then do errors name the row
    parse = pa.csv.ParseOptions(delimiter=_DELIMITERS[kind])
    with pa.csv.open_csv(path, one_thread, parse) as first_rows:
        names = first_rows.schema.names
    convert = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    return pa.csv.read_csv(path, one_thread, parse, convert)


def _reason(error: ValueError) -> str:
    """What is wrong with a table, without the row that is: it is a client's."""
    if isinstance(error, UnicodeDecodeError) or "UTF8" in str(error):
        return "expected UTF-8; save it as UTF-8"
    return re.sub("(columns, got [0-9]+).*", r"\1", str(error), flags=re.DOTALL).splitlines()[0]

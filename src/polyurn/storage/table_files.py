"""Tables to CSV, TSV and Parquet files: which kind a file's name says it is, and how one is written.

Arrow is imported when it is needed. What is in a table, and how one is read, is `tables.py`'s.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from polyurn.errors import FileError, MissingDependencyError
from polyurn.storage.atomic import check_place, write_whole

if TYPE_CHECKING:
    import pyarrow as pa

DELIMITERS = {"csv": ",", "tsv": "\t"}


def write_table(
    table: "pa.Table", path: str | os.PathLike[str], *, made: Mapping[str, Any] | None = None
) -> None:
    """Write an Arrow table, whole or not at all, as what the suffix says.

    Parameters
    ----------
    table : pyarrow.Table
    path : path ending in .parquet, .csv, .csv.gz, .tsv or .tsv.gz
    made : mapping, optional
        How it came about; kept in a Parquet file's metadata. CSV has no place for it.
    """
    from polyurn import __version__

    path = Path(path)
    pa = arrow("writing tables")
    kind = table_kind(path)
    if kind == "parquet":
        note = json.dumps({"polyurn": __version__, **(made or {})})
        noted = table.replace_schema_metadata({"polyurn": note})
        write_whole(path, lambda file: pa.parquet.write_table(noted, file))
        return
    options = pa.csv.WriteOptions(delimiter=DELIMITERS[kind])
    packing = "gzip" if path.suffix == ".gz" else None

    def write(file: IO[bytes]) -> None:
        with pa.output_stream(file, compression=packing) as stream:
            pa.csv.write_csv(table, stream, options)

    write_whole(path, write)


def table_text(table: "pa.Table") -> bytes:
    """What `write_table` writes to a .csv file."""
    pa = arrow("writing tables")
    stream = pa.BufferOutputStream()
    pa.csv.write_csv(table, stream)
    return bytes(stream.getvalue())


def check_table_place(path: str | os.PathLike[str]) -> None:
    """`check_place` for `write_table`, which goes by the suffix."""
    table_kind(Path(path))
    check_place(path)


def arrow(purpose: str) -> Any:
    """The pyarrow package, or an error that says which extra brings it and what for."""
    try:
        import pyarrow as pa
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "tables", purpose) from error
    return pa


def table_kind(path: Path) -> str:
    """What the suffix says: "parquet", "csv" or "tsv".

    Raises
    ------
    FileError
        It is another, or the name is not UTF-8.
    """
    kinds = {".parquet": "parquet", ".csv": "csv", ".tsv": "tsv"}
    packed = path.suffix == ".gz"
    kind = kinds.get(path.with_suffix("").suffix if packed else path.suffix)
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError as error:  # Arrow opens files by names that are UTF-8
        raise FileError(f"cannot use {path.name!a}: its name is not UTF-8; rename it") from error
    if kind is None and os.path.isdir(path):  # pathlib stops at a name that is too long
        raise FileError(
            f"expected a .parquet, .csv or .tsv file, got the folder {path.name!r}; if it holds tables "
            "of clients, `polyurn pack` makes a folder of them that fit, select, score and compare read"
        )
    if kind is None or (packed and kind == "parquet"):
        raise FileError(
            f"expected a .parquet, .csv or .tsv file, got {path.name!r}; save it as one of them"
        )
    return kind

"""The only reader and writer of our formats.

An MDM is JSON: readable, exact (floats keep every bit), versioned, its sizes stored sparsely.
Histograms are long tables (client, category, count) as Parquet or CSV. Every file is written beside
its place and moved there when it is whole. What a table means is `client/tables.py`.
"""

import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from polyurn.counts import Counts
from polyurn.errors import FileError, InputError, MissingDependencyError, ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.storage.provenance import Made, checked_made

if TYPE_CHECKING:
    import pyarrow as pa

_VERSION = 1
_DELIMITERS = {"csv": ",", "tsv": "\t"}


@dataclass(frozen=True)
class SavedMDM:
    """What an MDM file holds.

    Attributes
    ----------
    mdm : MDM
    categories : tuple of str, or None
        The name of each category.
    made : Made
        How the file came about: version, seed, command, rounds.
    """

    mdm: MDM
    categories: tuple[str, ...] | None = None
    made: Made = field(default_factory=Made)


def save(
    mdm: MDM,
    path: str | os.PathLike[str],
    *,
    categories: Sequence[str] | None = None,
    made: Mapping[str, Any] | None = None,
) -> None:
    """Write an MDM as JSON.

    Parameters
    ----------
    mdm : MDM
    path : path
    categories : sequence of str, optional
        The name of each category.
    made : mapping, optional
        How it came about, e.g. {"seed": 1, "command": "..."}; kept as it is. See `Made`.
    """
    from polyurn import __version__

    names = _names(categories, mdm.n_categories)
    record = {
        "format": "polyurn.mdm",
        "version": _VERSION,
        "made": checked_made({"polyurn": __version__, **(made or {})}),
        "n_components": mdm.n_components,
        "n_categories": mdm.n_categories,
        "max_size": mdm.max_size,
        "categories": names,
        "components": [_component_record(mdm, k) for k in range(mdm.n_components)],
        "size_edges": _edges_record(mdm.sizes.bins),
    }
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
    write_whole(Path(path), lambda file: file.write((text + "\n").encode()))


def save_record(
    record: Mapping[str, Any],
    path: str | os.PathLike[str],
    *,
    kind: str,
    version: int,
    made: Mapping[str, Any] | None = None,
) -> None:
    """Write a result as versioned JSON, of the format "polyurn.<kind>".

    Parameters
    ----------
    record : mapping
        What JSON can hold; no infinities.
    path : path
    kind : str
    version : int
    made : mapping, optional
        How it came about, as for `save`.
    """
    from polyurn import __version__

    head = {"format": f"polyurn.{kind}", "version": version}
    whole = {**head, "made": {"polyurn": __version__, **(made or {})}, **record}
    text = json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False)
    write_whole(Path(path), lambda file: file.write((text + "\n").encode()))


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise a `FileError` where nothing can be written: before the work, not after it."""
    if os.path.isdir(path):
        raise FileError(f"cannot write {path}: Is a directory")
    try:
        if os.path.isfile(path) or not os.path.exists(path):  # a pipe or device is there already
            TemporaryFile(dir=os.path.dirname(os.path.realpath(path))).close()
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}") from error


def check_table_place(path: str | os.PathLike[str]) -> None:
    """`check_place` for `write_histograms`, which goes by the suffix."""
    _kind(Path(path))
    check_place(path)


def load(path: str | os.PathLike[str]) -> MDM:
    """Read the MDM that `save` wrote, equal to the last bit."""
    return load_saved(path).mdm


def load_saved(path: str | os.PathLike[str]) -> SavedMDM:
    """Read an MDM file with all that stands in it.

    Raises
    ------
    FileError
        The file cannot be read, is damaged, or was written by a later version.
    """
    record = load_record(path, kind="mdm", version=_VERSION)
    try:
        return _saved(record)
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError, FileError) as error:
        detail = (
            str(error)
            if isinstance(error, InputError | FileError)
            else f"missing or malformed {error}"
        )
        raise FileError(f"{path} is damaged: {detail}") from error


def load_record(path: str | os.PathLike[str], *, kind: str, version: int) -> dict[str, Any]:
    """Read what `save_record` wrote: a JSON file of the format "polyurn.<kind>".

    Raises
    ------
    FileError
        The file cannot be read, is something else, or was written by a later version.
    """
    name = "an MDM file" if kind == "mdm" else f"a {kind} file"
    try:
        record = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is not {name}, or was cut off: {error}") from error
    if not isinstance(record, dict) or record.get("format") != f"polyurn.{kind}":
        raise FileError(f"{path} is not {name}: expected format 'polyurn.{kind}'")
    found = record.get("version")
    if not isinstance(found, int) or found < 1:
        raise FileError(f"{path} has no valid format version")
    if found > version:
        raise FileError(f"{path} has format version {found}, newer than {version}: upgrade polyurn")
    return record


def format_of(path: str | os.PathLike[str]) -> str | None:
    """The "format" that a JSON file says it has; None if it does not say, or is not JSON."""
    try:
        record = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError):
        return None
    return str(record["format"]) if isinstance(record, dict) and "format" in record else None


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


def write_histograms(
    counts: Counts,
    path: str | os.PathLike[str],
    *,
    clients: Sequence[Any] | None = None,
    categories: Sequence[str] | None = None,
    made: Mapping[str, Any] | None = None,
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


def csv_text(
    counts: Counts,
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
    counts: Counts,
    *,
    clients: Sequence[Any] | None = None,
    categories: Sequence[str] | None = None,
) -> "pa.Table":
    """Histograms as an Arrow table with one row per non-zero cell."""
    pa = arrow("writing tables")
    rows = sparse.csr_array(counts)
    if clients is not None and len(clients) != rows.shape[0]:
        raise ParameterError(f"expected {rows.shape[0]} client ids, got {len(clients)}")
    labels = _names(categories, rows.shape[1])
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    ids = pa.array(owner) if clients is None else pa.array(clients).take(pa.array(owner))
    codes = pa.array(rows.indices.astype(np.int32))
    names = codes if labels is None else pa.array(labels).take(codes)
    return pa.table({"client": ids, "category": names, "count": rows.data.astype(np.int64)})


def _component_record(mdm: MDM, k: int) -> dict[str, Any]:
    masses = mdm.sizes.masses[k]
    held = np.flatnonzero(masses)
    first_sizes = mdm.sizes.bins.edges[:-1]
    return {
        "weight": float(mdm.weights[k]),
        "alpha": mdm.alphas[k].tolist(),
        "sizes": {str(first_sizes[b]): float(masses[b]) for b in held},
    }


def _edges_record(bins: SizeBins) -> list[int] | None:
    """None says one bin per size: a list of all the numbers up to N would only be noise."""
    return None if bins.n_bins == bins.max_size else bins.edges.tolist()


def _saved(record: dict[str, Any]) -> SavedMDM:
    edges = record["size_edges"]
    bins = SizeBins.exact(record["max_size"]) if edges is None else SizeBins(edges)
    components = record["components"]
    masses = np.zeros((len(components), bins.n_bins))
    for k, component in enumerate(components):
        sizes = component["sizes"]
        masses[k, bins.locate([int(size) for size in sizes])] = list(sizes.values())
    mdm = MDM(
        [component["weight"] for component in components],
        [component["alpha"] for component in components],
        Sizes(bins, masses),
    )
    for name in ("n_components", "n_categories", "max_size"):
        if record[name] != getattr(mdm, name):
            raise InputError(f"{name} is {record[name]}, but the rest has {getattr(mdm, name)}")
    names = _names(record["categories"], mdm.n_categories)
    return SavedMDM(mdm, names, Made.from_record(record["made"]))


def _names(categories: Sequence[str] | None, n_categories: int) -> tuple[str, ...] | None:
    if categories is None:
        return None
    if isinstance(categories, str) or not all(isinstance(name, str) for name in categories):
        raise ParameterError("expected category names as a list of texts")
    if not len(categories) == len(set(categories)) == n_categories:
        raise ParameterError(
            f"expected {n_categories} different category names, got {len(categories)} names, "
            f"{len(set(categories))} of them different"
        )
    return tuple(categories)


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


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write to a neighbour and move it into place, so that nothing half-written is ever seen.

    A link is followed to its file; a pipe or a device is written to as it is.
    """
    try:
        if path.exists() and not path.is_file():
            with open(path, "wb") as file:
                write(file)
            return
        place = os.path.realpath(path)
        neighbour = Path(place).with_name(f".polyurn-{secrets.token_hex(8)}")
        try:
            with open(neighbour, "xb") as file:
                write(file)
            if os.path.exists(place):
                shutil.copymode(place, neighbour)
            os.replace(neighbour, place)
        finally:
            neighbour.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}") from error


def arrow(purpose: str) -> Any:
    """The pyarrow package, or an error that says which extra brings it and what for."""
    try:
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "tables", purpose) from error
    return pa

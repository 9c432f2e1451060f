"""The only reader and writer of our formats.

An MDM is JSON: readable, exact (floats keep every bit), versioned, its sizes stored sparsely.
Histograms are long tables (client, category, count) as Parquet or CSV. Every file is written beside
its place and moved there when it is whole. What a table means is `client/tables.py`.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from polyurn.counts import Counts
from polyurn.errors import FileError, InputError, MissingDependencyError
from polyurn.mdm import MDM
from polyurn.sizes import SizeBins, Sizes

if TYPE_CHECKING:
    import pyarrow as pa

_FORMAT, _VERSION = "polyurn.mdm", 1


@dataclass(frozen=True)
class SavedMDM:
    """What an MDM file holds.

    Attributes
    ----------
    mdm : MDM
    categories : tuple of str, or None
        The name of each category.
    made : dict
        How the file came about: version, seed, command.
    """

    mdm: MDM
    categories: tuple[str, ...] | None = None
    made: Mapping[str, Any] = field(default_factory=dict)


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
        How it came about, e.g. {"seed": 1, "command": "..."}; kept as it is.
    """
    from polyurn import __version__

    record = {
        "format": _FORMAT,
        "version": _VERSION,
        "made": {"polyurn": __version__, **(made or {})},
        "n_components": mdm.n_components,
        "n_categories": mdm.n_categories,
        "max_size": mdm.max_size,
        "categories": None if categories is None else list(categories),
        "components": [_component_record(mdm, k) for k in range(mdm.n_components)],
        "size_edges": _edges_record(mdm.sizes.bins),
    }
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
    _write_whole(Path(path), lambda file: file.write((text + "\n").encode()))


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
    path = Path(path)
    try:
        record = json.loads(path.read_bytes())
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise FileError(f"{path} is not an MDM file, or was cut off: {error}") from error
    if not isinstance(record, dict) or record.get("format") != _FORMAT:
        raise FileError(f"{path} is not an MDM file: expected format {_FORMAT!r}")
    version = record.get("version")
    if not isinstance(version, int) or version < 1:
        raise FileError(f"{path} has no valid format version")
    if version > _VERSION:
        raise FileError(
            f"{path} has format version {version}, newer than {_VERSION}: upgrade polyurn"
        )
    try:
        return _saved(record)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        detail = str(error) if isinstance(error, InputError) else f"missing or malformed {error}"
        raise FileError(f"{path} is damaged: {detail}") from error


def read_table(path: str | os.PathLike[str]) -> "pa.Table":
    """Read a CSV (also .gz) or Parquet file as an Arrow table.

    Raises
    ------
    FileError
        The file cannot be read, or is neither.
    """
    path = Path(path)
    pa = _pyarrow("reading tables")
    kind = _kind(path)
    try:
        if kind == "parquet":
            return pa.parquet.read_table(path)
        return pa.csv.read_csv(
            path, parse_options=pa.csv.ParseOptions(delimiter="\t" if kind == "tsv" else ",")
        )
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            raise FileError(f"{path} is empty: expected a header and at least one row") from error
        first_line = str(error).splitlines()[0]
        raise FileError(f"{path} is not a readable {kind} file: {first_line}") from error
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
    pa = _pyarrow("writing tables")
    kind = _kind(path)
    table = long_table(counts, clients=clients, categories=categories)
    if kind == "parquet":
        note = json.dumps({"polyurn": __version__, **(made or {})})
        table = table.replace_schema_metadata({"polyurn": note})
        _write_whole(path, lambda file: pa.parquet.write_table(table, file))
    else:
        options = pa.csv.WriteOptions(delimiter="\t" if kind == "tsv" else ",")
        packing = "gzip" if path.suffix == ".gz" else None

        def write(file: IO[bytes]) -> None:
            with pa.output_stream(file, compression=packing) as stream:
                pa.csv.write_csv(table, stream, options)

        _write_whole(path, write)


def long_table(
    counts: Counts,
    *,
    clients: Sequence[Any] | None = None,
    categories: Sequence[str] | None = None,
) -> "pa.Table":
    """Histograms as an Arrow table with one row per non-zero cell."""
    pa = _pyarrow("writing tables")
    rows = sparse.csr_array(counts)
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    ids = pa.array(owner) if clients is None else pa.array(clients).take(pa.array(owner))
    codes = pa.array(rows.indices.astype(np.int32))
    names = codes if categories is None else pa.array(list(categories)).take(codes)
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
    categories = record["categories"]
    if categories is not None and len(categories) != mdm.n_categories:
        raise InputError(f"{len(categories)} category names for {mdm.n_categories} categories")
    return SavedMDM(mdm, None if categories is None else tuple(categories), dict(record["made"]))


def _kind(path: Path) -> str:
    kinds = {".parquet": "parquet", ".csv": "csv", ".tsv": "tsv"}
    packed = path.suffix == ".gz"
    kind = kinds.get(path.with_suffix("").suffix if packed else path.suffix)
    if kind is None or (packed and kind == "parquet"):
        raise FileError(f"expected a .parquet, .csv or .tsv file, got {path.name!r}")
    return kind


def _write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write to a neighbour and move it into place, so that nothing half-written is ever seen."""
    temporary = None
    try:
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = file.name
            write(file)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            os.unlink(temporary)


def _pyarrow(purpose: str) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "tables", purpose) from error
    return pa


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

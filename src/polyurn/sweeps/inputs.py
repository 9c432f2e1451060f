"""What a TOML file names, read: the points, and the populations of clients who hold them.

Simulated clients are drawn anew for each seed, from the seed. Nothing is trained here.
"""

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from warnings import catch_warnings, simplefilter, warn
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyurn.client.layout import column_text
from polyurn.client.tables import table_histograms
from polyurn.datasets.installed import digits
from polyurn.errors import FileError, ParameterError, StyleWarning
from polyurn.model.populations import Oracle
from polyurn.model.style import Style
from polyurn.partitioning.assign import in_stock, partition, stocked
from polyurn.partitioning.result import Partition
from polyurn.storage.files import open_regular
from polyurn.storage.models import load_saved
from polyurn.storage.partitions import load_partition
from polyurn.storage.tables import read_table
from polyurn.sweeps.baselines import baseline
from polyurn.sweeps.categories import (
    agreed_names,
    category_codes,
    modelled_column,
    modelled_names,
    out_of_stock,
)
from polyurn.sweeps.clients import streams
from polyurn.sweeps.config import ClientsConfig, DataConfig, SweepConfig
from polyurn.training.examples import Examples, check_clients, class_labels
from polyurn.typed.arrays import ids_of
from polyurn.typed.records import shown
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    from polyurn.training.losses import PerExample

# The clients that a seed has.
ClientsOfSeed: TypeAlias = Callable[[int], Partition]

_SPLIT_SEED = 0  # which points are held out for testing never changes


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a sweep works on.

    Attributes
    ----------
    data : Examples
    populations : dict of name to a function of the seed that returns a Partition
    class_counts : int array of shape (n_classes,), or None
        How many points of each class the clients of `weighted_to` hold, under all seeds.
    remarks : tuple of str
        What a user should know: points that no client of a population will hold.
    """

    data: Examples
    populations: Mapping[str, ClientsOfSeed]
    class_counts: NDArray[np.int64] | None = None
    remarks: tuple[str, ...] = ()

    def metrics(self) -> dict[str, "PerExample"]:
        """Accuracy on the test as it is, and on one whose classes are as frequent as the clients'.

        Raises
        ------
        ParameterError
            The clients hold a class that the test does not have.
        """
        from polyurn.training.losses import accuracy, weighted

        if self.class_counts is None:
            return {"accuracy": accuracy}
        try:
            fair = weighted(accuracy, to=self.class_counts, of=self.data.test_labels)
        except ParameterError as error:
            raise ParameterError(f"weighted_to: {error}") from error
        return {"accuracy": accuracy, "weighted accuracy": fair}


@dataclass(frozen=True, eq=False)
class _Table:
    """Columns of points, before some are held out."""

    features: NDArray[Any]
    columns: Mapping[str, NDArray[Any]]
    test: tuple[NDArray[Any], NDArray[Any]] | None
    where: str

    def column(self, name: str) -> NDArray[Any]:
        if name not in self.columns:
            raise ParameterError(
                f"{self.where} has no {name!r}; expected one of {', '.join(self.columns)}"
            )
        column = self.columns[name]
        if column.shape[:1] != (len(self.features),):
            raise ParameterError(
                f"{self.where}: expected {name!r} with {len(self.features)} rows, one for each point, "
                f"got shape {column.shape}"
            )
        return column


def read_inputs(config: SweepConfig) -> Inputs:
    """Read the data and the clients that a file names."""
    owners = {entry.column for entry in config.clients.values()}
    table = _points(config.data, config.folder, owners)
    chosen, held_out = _split(table, config.data)
    labels = class_labels(table.column(config.data.label), config.data.label)
    test = table.test or (table.features[held_out], labels[held_out])
    data = Examples(table.features[chosen], labels[chosen], *test)
    names = _category_names(config)
    feature = config.data.category or config.data.label
    parts = modelled_names([*table.columns], feature, where=table.where)
    taken = [name for name in parts if config.data.category is not None and name in owners]
    if taken:
        raise ParameterError(
            f"{table.where}: expected another column for [data] category than the clients', got "
            f"{taken[0]!r}"
        )
    columns = {name: table.column(name) for name in parts}
    coded = category_codes(modelled_column(columns, where=table.where), column_text(parts), names)
    codes, remarks = coded.codes[chosen], [*coded.remarks]
    populations: dict[str, ClientsOfSeed] = {}
    for name, entry in config.clients.items():
        try:
            populations[name] = _clients(name, entry, config, table, chosen, codes, populations)
            remarks += _left_out(name, entry, config, codes, names)
        except ParameterError as error:
            raise ParameterError(f"[clients.{name}] {error}") from error
    weighted = config.weighted_to
    counts = None if weighted is None else _class_counts(data, populations[weighted], config)
    return Inputs(data, populations, counts, tuple(remarks))


def _class_counts(data: Examples, clients: ClientsOfSeed, config: SweepConfig) -> NDArray[np.int64]:
    """The classes that clients hold, which need not be the modelled categories."""
    n_classes = 1 + max(int(data.labels.max()), int(data.test_labels.max()))
    held = np.concatenate([data.labels[clients(seed).indices] for seed in config.seeds])
    return np.bincount(held, minlength=n_classes)


def _left_out(
    name: str,
    entry: ClientsConfig,
    config: SweepConfig,
    codes: NDArray[np.int64],
    names: tuple[str, ...] | None,
) -> list[str]:
    """What to say about an MDM's categories of which the data have no points."""
    if entry.mdm is None:
        return []
    asked = load_saved(config.folder / entry.mdm).model.mean()
    text = out_of_stock(asked, stocked(codes, len(asked)), names)
    return [f"[clients.{name}] {text}"] if text else []


def _clients(
    name: str,
    entry: ClientsConfig,
    config: SweepConfig,
    table: _Table,
    chosen: NDArray[np.int64],
    codes: NDArray[np.int64],
    earlier: Mapping[str, ClientsOfSeed],
) -> ClientsOfSeed:
    """The clients of one entry, which the data or a file may have for every seed."""
    if entry.column is not None:
        owners = ids_of(table.column(entry.column), f"the column {entry.column!r}")
        owned = Partition.by_owner(owners[chosen])
        return lambda _: owned
    if entry.partition is not None:
        if len(chosen) != len(table.features):
            raise ParameterError("a partition needs data with test points of their own")
        kept = load_partition(config.folder / entry.partition)
        check_clients(kept, n_points=len(codes), name=entry.partition)
        return lambda _: kept
    counts = _counts(entry, config, codes, earlier)
    style = None if entry.style is None else load_saved(config.folder / entry.style, Style).model
    features = None if style is None else _style_features(entry, table)[chosen]

    def drawn(seed: int) -> Partition:
        drawing, cutting = streams(name, seed)
        asked = sparse.csr_array(in_stock(counts(seed, drawing), codes))
        shape = asked.shape[0], max(asked.shape[1], int(codes.max()) + 1)
        wide = sparse.csr_array((asked.data, asked.indices, asked.indptr), shape)
        with catch_warnings():
            simplefilter("ignore", StyleWarning)  # it does not know whose clients they are
            done = partition(codes, wide, style=style, features=features, rng=cutting)
        report = None if done.report is None else done.report.style
        if report is not None and report.remark is not None:
            warn(f"[clients.{name}] {report.remark}", StyleWarning, stacklevel=2)
        return done

    return drawn


def _style_features(entry: ClientsConfig, table: _Table) -> NDArray[Any]:
    """The features in which a style is measured, of all points."""
    name = entry.style_features
    return table.features if name is None else table.column(name)


def _counts(
    entry: ClientsConfig,
    config: SweepConfig,
    codes: NDArray[np.int64],
    earlier: Mapping[str, ClientsOfSeed],
) -> Callable[[int, np.random.Generator], object]:
    """A function of the seed and of a random stream that returns histograms of clients."""
    n_categories, n_clients = _n_categories(config, codes), entry.n_clients
    if entry.mdm is not None:
        mdm = load_saved(config.folder / entry.mdm).model
        return lambda _, rng: mdm.sample(n_clients or 1, rng=rng)
    path = config.folder / str(entry.oracle)
    if entry.oracle is not None and path.suffix in (".csv", ".tsv", ".gz", ".parquet"):
        names = _category_names(config)
        known = table_histograms(read_table(path), categories=names or n_categories).counts
        return lambda _, rng: _some_of(known, n_clients, rng)
    if not isinstance(entry.like, str):
        alone = baseline(entry, codes, n_categories=n_categories, like=None)
        return lambda _, rng: alone.sample(n_clients or 1, rng=rng)
    other = _earlier(entry.like, earlier)
    if entry.oracle is not None:
        return lambda seed, rng: _some_of(
            other(seed).histograms(codes, n_categories), n_clients, rng
        )

    def drawn(seed: int, rng: np.random.Generator) -> object:
        like = other(seed)
        population = baseline(entry, codes, n_categories=n_categories, like=like)
        return population.sample(n_clients or len(like), rng=rng)

    return drawn


def _some_of(counts: object, n_clients: int | None, rng: np.random.Generator) -> object:
    """All of these clients in their order, or so many of them at random."""
    return counts if n_clients is None else Oracle(counts).sample(n_clients, rng=rng)


def _earlier(name: str, earlier: Mapping[str, ClientsOfSeed]) -> ClientsOfSeed:
    if name not in earlier:
        known = f"one of {', '.join(earlier)}" if earlier else "one that stands above it"
        raise ParameterError(
            f"no population {name!r} stands before it in the file; expected {known}"
        )
    return earlier[name]


def _points(asked: DataConfig, folder: Path, owners: set[str | None]) -> _Table:
    if asked.builtin is not None:
        found = digits().train
        pictures = _shaped(np.asarray(found.features).reshape(-1, 1, 8, 8), asked)
        return _Table(pictures, {asked.label: found.labels}, None, "the digits data")
    path = folder / str(asked.file)
    if path.suffix == ".parquet":
        return _from_parquet(asked, path, owners)
    if path.suffix != ".npz":
        raise FileError(f"expected an .npz or .parquet file of points, got {path.name!r}")
    return _from_npz(asked, path)


def _from_npz(asked: DataConfig, path: Path) -> _Table:
    arrays = _arrays(path)
    tests = {"test_features", "test_labels"} & set(arrays)
    if len(tests) == 1:
        raise ParameterError(f"{path}: expected both test_features and test_labels, or neither")
    for name in ("features", asked.label, *tests):
        if name not in arrays:
            raise ParameterError(f"{path} has no array {name!r}; it has {', '.join(arrays)}")
        if arrays[name].ndim == 0:
            raise ParameterError(f"{path}: expected {name!r} as an array, got a single value")
    features = _shaped(arrays.pop("features"), asked)
    test = None
    if tests:
        test_labels = class_labels(arrays.pop("test_labels"), "test_labels")
        test = (_shaped(arrays.pop("test_features"), asked), test_labels)
    return _Table(features, arrays, test, str(path))


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file by their names."""
    try:
        with open_regular(
            path
        ) as content:  # numpy leaves a damaged file open that it opened itself
            file = np.load(content, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError("it is a single array")
            arrays = {name: file[name] for name in file.files}
        for name, array in arrays.items():  # numpy gives bytes for what is no array
            if not isinstance(array, np.ndarray):
                raise ValueError(f"{shown(name)} is no array")
    except FileError:
        raise
    except (ValueError, OSError, RuntimeError, EOFError, BadZipFile, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(
            f"{path} is not an .npz file of plain arrays: {reason}; expected arrays of numbers or texts "
            "that numpy.savez wrote"
        ) from error
    return arrays


def _from_parquet(asked: DataConfig, path: Path, owners: set[str | None]) -> _Table:
    table = read_table(path)
    columns = {name: table[name].to_numpy() for name in table.column_names}
    modelled = modelled_names([*columns], asked.category or asked.label, where=str(path))
    not_features = {asked.label, *modelled, *owners, "client"}
    features = [
        column
        for name, column in columns.items()
        if name not in not_features and column.dtype.kind in "biuf"
    ]
    if not features:
        raise ParameterError(
            f"{path}: expected at least one column of numbers that is no label, category or client, "
            f"to use as features, got {shown([*columns])}"
        )
    return _Table(_shaped(np.column_stack(features), asked), columns, None, str(path))


def _shaped(features: NDArray[Any], asked: DataConfig) -> NDArray[Any]:
    values = features.astype(np.float32) if features.dtype.kind in "bui" else features
    if asked.shape is None:
        return values
    n_numbers = math.prod(values.shape[1:])
    if math.prod(asked.shape) != n_numbers:
        raise ParameterError(
            f"expected [data] shape for points of {counted(n_numbers, 'number')} each, "
            f"got {shown(list(asked.shape))}"
        )
    return values.reshape(len(values), *asked.shape)


def _split(table: _Table, asked: DataConfig) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    n_points = len(table.features)
    if table.test is not None:
        return np.arange(n_points), np.empty(0, np.int64)
    order = np.random.default_rng(_SPLIT_SEED).permutation(n_points)
    n_test = round(asked.test_share * n_points)
    if not 0 < n_test < n_points:
        raise ParameterError(
            f"[data] test_share = {asked.test_share:g} holds out {n_test} of "
            f"{counted(n_points, 'point')}; expected at least one to test on, and one to train on"
        )
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def _category_names(config: SweepConfig) -> tuple[str, ...] | None:
    """The names of the categories that MDM and style files have; None without any."""
    found: list[tuple[str, str, Sequence[str] | None]] = []
    for name, entry in config.clients.items():
        if entry.mdm is not None:
            found.append((name, entry.mdm, load_saved(config.folder / entry.mdm).categories))
        if entry.style is not None:
            found.append(
                (name, entry.style, load_saved(config.folder / entry.style, Style).categories)
            )
    return agreed_names(found)


def _n_categories(config: SweepConfig, codes: NDArray[np.int64]) -> int:
    for entry in config.clients.values():
        if entry.mdm is not None:
            known = load_saved(config.folder / entry.mdm).model.n_categories
            return max(known, int(codes.max()) + 1)
    return int(codes.max()) + 1

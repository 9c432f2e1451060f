"""What a TOML file names, read: the points, and the populations of clients who hold them.

Simulated clients are drawn anew for each seed, from the seed. Nothing is trained here.
"""

import math
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from warnings import catch_warnings, simplefilter, warn
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyurn.client.layout import column_text
from polyurn.datasets.sklearn_digits import digits
from polyurn.errors import FileError, ParameterError, StyleWarning
from polyurn.model.mdm import MDM
from polyurn.model.style import Style
from polyurn.partitioning.assign import partition
from polyurn.partitioning.result import Partition
from polyurn.partitioning.stock import in_stock, stocked
from polyurn.storage.mdm_json import load_saved
from polyurn.storage.partitions import load_partition
from polyurn.storage.places import open_regular
from polyurn.storage.style_json import load_style
from polyurn.storage.tables import read_table
from polyurn.sweeps.categories import (
    Coded,
    agreed_names,
    category_codes,
    modelled_column,
    modelled_names,
    out_of_stock,
)
from polyurn.sweeps.clients import streams
from polyurn.sweeps.config import DataConfig, SweepConfig
from polyurn.sweeps.kinds import ByColumn, ByPartition, Drawn, OfMDM, OfOracle, Proxy
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
    owners = {entry.column for entry in config.clients.values() if isinstance(entry, ByColumn)}
    table = _points(config.data, config.folder, owners)
    chosen, held_out = _split(table, config.data)
    labels = class_labels(table.column(config.data.label), config.data.label)
    test = table.test or (table.features[held_out], labels[held_out])
    data = Examples(table.features[chosen], labels[chosen], *test)
    mdms, styles, names = _files(config)
    coded = _coded(table, config.data, owners, names)
    codes, remarks = coded.codes[chosen], [*coded.remarks]
    widest = next((mdm.n_categories for mdm in mdms.values()), 0)
    proxy = Proxy(codes, max(widest, int(codes.max()) + 1), names, config.folder, mdms)
    populations: dict[str, ClientsOfSeed] = {}
    for name, entry in config.clients.items():
        try:
            match entry:
                case ByColumn():
                    owner = ids_of(table.column(entry.column), f"the column {entry.column!r}")
                    populations[name] = _always(Partition.by_owner(owner[chosen]))
                case ByPartition():
                    if len(chosen) != len(table.features):
                        raise ParameterError("a partition needs data with test points of their own")
                    kept = load_partition(config.folder / entry.partition)
                    check_clients(kept, n_points=len(codes), name=entry.partition)
                    populations[name] = _always(kept)
                case Drawn():
                    style = styles.get(entry.style or "")
                    of = entry.style_features
                    features = table.features if of is None else table.column(of)
                    populations[name] = _drawn(
                        name, entry, proxy, populations, style=style, features=features[chosen]
                    )
            if isinstance(entry, OfMDM):
                asked = mdms[entry.mdm].mean()
                text = out_of_stock(asked, stocked(codes, len(asked)), names)
                remarks += [f"[clients.{name}] {text}"] if text else []
        except ParameterError as error:
            raise ParameterError(f"[clients.{name}] {error}") from error
    weighted = config.weighted_to
    counts = None if weighted is None else _class_counts(data, populations[weighted], config)
    return Inputs(data, populations, counts, tuple(remarks))


def _always(clients: Any) -> Callable[[int], Any]:
    return lambda _: clients


def _drawn(
    name: str,
    entry: Drawn,
    proxy: Proxy,
    earlier: Mapping[str, ClientsOfSeed],
    *,
    style: Style | None,
    features: NDArray[Any],
) -> ClientsOfSeed:
    """Clients that are drawn from the seed, perhaps like those of a population above in the file."""
    table = entry.table(proxy) if isinstance(entry, OfOracle) else None
    other: Callable[[int], Any] = _always(table)
    if table is None and isinstance(entry.like, str):
        if entry.like not in earlier:
            known = f"one of {', '.join(earlier)}" if earlier else "one that stands above it"
            raise ParameterError(
                f"no population {entry.like!r} stands before it in the file; expected {known}"
            )
        other = earlier[entry.like]

    def drawn(seed: int) -> Partition:
        drawing, cutting = streams(name, seed)
        counts = entry.counts(proxy, other(seed), drawing)
        asked = sparse.csr_array(in_stock(counts, proxy.codes))
        shape = asked.shape[0], max(asked.shape[1], int(proxy.codes.max()) + 1)
        wide = sparse.csr_array((asked.data, asked.indices, asked.indptr), shape)
        with catch_warnings():
            simplefilter("ignore", StyleWarning)  # it does not know whose clients they are
            done = partition(
                proxy.codes,
                wide,
                style=style,
                features=None if style is None else features,
                rng=cutting,
            )
        report = None if done.report is None else done.report.style
        if report is not None and report.remark is not None:
            warn(f"[clients.{name}] {report.remark}", StyleWarning, stacklevel=2)
        return done

    return drawn


def _files(
    config: SweepConfig,
) -> tuple[dict[str, MDM], dict[str, Style], tuple[str, ...] | None]:
    """The MDM and style files that clients name, read once each, and the categories of them all."""
    mdms: dict[str, MDM] = {}
    styles: dict[str, Style] = {}
    known: list[tuple[str, str, Sequence[str] | None]] = []
    for name, entry in config.clients.items():
        if isinstance(entry, OfMDM):
            saved = load_saved(config.folder / entry.mdm)
            mdms[entry.mdm] = saved.mdm
            known.append((name, entry.mdm, saved.categories))
        if isinstance(entry, Drawn) and entry.style is not None:
            kept = load_style(config.folder / entry.style)
            styles[entry.style] = kept.style
            known.append((name, entry.style, kept.categories))
    return mdms, styles, agreed_names(known)


def _coded(
    table: _Table, asked: DataConfig, owners: Collection[str], names: tuple[str, ...] | None
) -> Coded:
    """The modelled category of each point."""
    parts = modelled_names([*table.columns], asked.category or asked.label, where=table.where)
    taken = [name for name in parts if asked.category is not None and name in owners]
    if taken:
        raise ParameterError(
            f"{table.where}: expected another column for [data] category than the clients', got "
            f"{taken[0]!r}"
        )
    columns = {name: table.column(name) for name in parts}
    return category_codes(modelled_column(columns, where=table.where), column_text(parts), names)


def _class_counts(data: Examples, clients: ClientsOfSeed, config: SweepConfig) -> NDArray[np.int64]:
    """The classes that clients hold, which need not be the modelled categories."""
    n_classes = 1 + max(int(data.labels.max()), int(data.test_labels.max()))
    held = np.concatenate([data.labels[clients(seed).indices] for seed in config.seeds])
    return np.bincount(held, minlength=n_classes)


def _points(asked: DataConfig, folder: Path, owners: Collection[str]) -> _Table:
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


def _from_parquet(asked: DataConfig, path: Path, owners: Collection[str]) -> _Table:
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

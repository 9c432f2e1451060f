"""What a TOML file names, read: the points with their categories, and the populations who hold them.

Names of categories are found in the MDM files of the sweep. Who holds which points is
`sweep_clients.py`; nothing is trained here.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polyurn.client.crossing import crossed
from polyurn.client.layout import category_columns, column_text
from polyurn.comparison.client_splits import split_rows
from polyurn.datasets.dataset import digits
from polyurn.errors import CountsError, FileError, ParameterError
from polyurn.model.names import SIGN, Match, Side, positions, renamed
from polyurn.storage.npz_files import read_arrays
from polyurn.storage.table_files import read_table
from polyurn.sweeps.config import DataConfig, SweepConfig
from polyurn.sweeps.sweep_clients import LEAST_KNOWN, ClientsOfSeed, CodedPoints, read_models
from polyurn.training.examples import Examples, class_labels
from polyurn.typed.arrays import ids_of
from polyurn.typed.declared import Ints
from polyurn.typed.json_form import shown
from polyurn.wording import counted

if TYPE_CHECKING:
    from polyurn.training.losses import PerExample

_SPLIT_SEED = 0  # which points are held out for testing never changes


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a sweep works on.

    `data` is None if a trainer of the user's reads them. A population is a function of the seed.
    `class_counts`, of shape (n_classes,), is how many points of each class the clients of `weighted_to`
    hold, under all seeds. `remarks` say which points no client of a population will hold.
    """

    data: Examples | None
    labels: NDArray[Any]
    populations: Mapping[str, ClientsOfSeed]
    class_counts: Ints | None = None
    remarks: tuple[str, ...] = ()

    def metrics(self) -> dict[str, "PerExample"]:
        """Accuracy on the test as it is, and on one whose classes are as frequent as the clients'."""
        from polyurn.training.losses import accuracy, weighted

        if self.class_counts is None or self.data is None:
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
    only_labels = config.trainer is not None
    table = _points(config.data, config.folder, owners, only_labels=only_labels)
    if only_labels:
        chosen, data = np.arange(len(table.features)), None
        labels = table.column(config.data.label)
    else:
        chosen, held_out = _split(table, config.data)
        labels = class_labels(table.column(config.data.label), config.data.label)
        test = table.test or (table.features[held_out], labels[held_out])
        data = Examples(table.features[chosen], labels[chosen], *test)
    models = read_models(config)
    feature = config.data.category or config.data.label
    parts = modelled_names([*table.columns], feature, where=table.where)
    taken = [name for name in parts if config.data.category is not None and name in owners]
    if taken:
        raise ParameterError(
            f"{table.where}: expected another column for [data] category than the clients', got "
            f"{taken[0]!r}"
        )
    columns = {name: table.column(name) for name in parts}
    values = modelled_column(columns, where=table.where)
    codes, names, remarks = category_codes(
        values, column_text(parts), models.categories, config.data.match
    )
    is_whole = len(chosen) == len(table.features)
    there = CodedPoints(codes[chosen], names, models, config.folder, is_whole)
    populations: dict[str, ClientsOfSeed] = {}
    for name, entry in config.populations.items():
        try:
            owners_of = None
            if entry.column is not None:
                whose = table.column(entry.column)
                owners_of = ids_of(whose, f"the column {entry.column!r}")[chosen]
            of_style = entry.style_features
            features = table.features if of_style is None else table.column(of_style)
            given = features[chosen] if entry.style else None
            populations[name] = there.clients(name, entry, owners_of, given, populations)
            if text := there.lacking(name):
                remarks.append(f"[clients.{name}] {text}")
        except ParameterError as error:
            raise ParameterError(f"[clients.{name}] {error}") from error
    weighted = config.weighted_to
    counts = None
    if weighted is not None and data is not None:
        counts = _class_counts(data, populations[weighted], config)
    return Inputs(data, labels[chosen], populations, counts, tuple(remarks))


def _class_counts(data: Examples, clients: ClientsOfSeed, config: SweepConfig) -> Ints:
    """The classes that clients hold, which need not be the modelled categories."""
    n_classes = 1 + max(int(data.labels.max()), int(data.test_labels.max()))
    held = np.concatenate([data.labels[clients(seed).indices] for seed in config.seeds])
    return np.bincount(held, minlength=n_classes)


def _points(
    asked: DataConfig, folder: Path, owners: set[str | None], *, only_labels: bool
) -> _Table:
    """The points of the data; a trainer of the user's reads their features itself."""
    if asked.builtin is not None:
        found = digits().train
        pictures = _shaped(np.asarray(found.features).reshape(-1, 1, 8, 8), asked)
        return _Table(pictures, {asked.label: found.labels}, None, "the digits data")
    path = folder / str(asked.file)
    if path.suffix == ".npz":
        return _from_npz(asked, path)
    if path.suffix != ".parquet" and not only_labels:
        raise FileError(f"expected an .npz or .parquet file of points, got {path.name!r}")
    table = read_table(path)
    columns = {name: table[name].to_numpy() for name in table.column_names}
    features = np.empty((table.num_rows, 0))
    if not only_labels:
        modelled = modelled_names([*columns], asked.category or asked.label, where=str(path))
        others = columns.keys() - {asked.label, *modelled, *owners, "client"}
        numeric = [columns[n] for n in columns if n in others and columns[n].dtype.kind in "biuf"]
        if not numeric:
            raise ParameterError(
                f"{path}: expected at least one column of numbers that is no label, category or client, "
                f"to use as features, got {shown([*columns])}"
            )
        features = _shaped(np.column_stack(numeric), asked)
    return _Table(features, columns, None, str(path))


def _from_npz(asked: DataConfig, path: Path) -> _Table:
    arrays = read_arrays(path)
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


def _split(table: _Table, asked: DataConfig) -> tuple[Ints, Ints]:
    n_points = len(table.features)
    if table.test is not None:
        return np.arange(n_points), np.empty(0, np.int64)
    n_test = round(asked.test_share * n_points)
    if not 0 < n_test < n_points:
        raise ParameterError(
            f"[data] test_share = {asked.test_share:g} holds out {n_test} of "
            f"{counted(n_points, 'point')}; expected at least one to test on, and one to train on"
        )
    return split_rows(n_points, held_out=asked.test_share, rng=_SPLIT_SEED)


# ------------------------------------------------------------------------ the modelled categories


def modelled_names(
    names: Sequence[str], category: str | Sequence[str], *, where: str
) -> tuple[str, ...]:
    """The columns that [data] category names, found as `--category` is."""
    try:
        found = category_columns(names, category, option="[data] category")
    except CountsError as error:
        raise ParameterError(f"{where}: [data] category: {error}") from error
    return (found,) if isinstance(found, str) else found


def modelled_column(columns: Mapping[str, NDArray[Any]], *, where: str) -> NDArray[Any]:
    """The modelled feature of each point: the only column, or all of them crossed."""
    if len(columns) == 1:
        return next(iter(columns.values()))
    try:
        return crossed(*columns.values())
    except CountsError as error:
        raise ParameterError(f"{where}: [data] category: {error}") from error


def category_codes(
    values: NDArray[Any], what: str, categories: Side | None, match: Match | None = None
) -> tuple[Ints, Side | None, list[str]]:
    """Categories as numbers: as they are without a model, or where they are among the model's.

    Returns the category of each point, shape (n_points,), the names of the categories (a number, or None
    if they have none), and what a user should know. Of crossed columns, combinations are rare that no
    fitted client had: they come after the known ones.
    A `ParameterError` if a category of a single column, or most combinations, are not the MDM's.
    """
    given = ids_of(values, what)
    if given.dtype.kind in "biuf":
        given = class_labels(given, what).astype(np.int64)
        if match is None and not isinstance(categories, Sequence):
            return given, None, []
    shown, which = np.unique(given, return_inverse=True)
    names = shown.astype(str).tolist()
    if categories is None:
        return which.astype(np.int64), names, []
    if isinstance(categories, int) or not any(SIGN in name for name in categories):
        try:
            return positions(names, categories, match)[which], categories, []
        except CountsError as error:
            raise ParameterError(f"[data] {what!r}: {error}") from None
    names = renamed(names, match)
    texts = np.array(names)[which]
    code_of = {name: code for code, name in enumerate(categories)}
    unknown = [name for name in names if name not in code_of]
    n_unknown = int(np.isin(texts, unknown).sum()) if unknown else 0
    if n_unknown > (1 - LEAST_KNOWN) * len(texts):
        raise ParameterError(
            f"the MDM knows the categories of {len(texts) - n_unknown:,} of {len(texts):,} points only, "
            f"{what!r} is {unknown[0]!r} for one of the others; expected the columns that it was "
            f"fitted to, in their order (such as {categories[0]!r})"
        )
    code_of |= {name: len(code_of) + i for i, name in enumerate(unknown)}
    codes = np.array([code_of[name] for name in names], np.int64)[which]
    remark = f"{n_unknown:,} of {len(texts):,} points have categories that the MDM does not have"
    return codes, categories, [f"{remark}: it never draws them"] if unknown else []

"""What a TOML file names, read: the points with their categories, and the populations who hold them.

Names of categories are found in the MDM files of the sweep. Nothing is trained here.
"""

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter, warn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyurn.client.crossing import crossed
from polyurn.client.layout import category_columns, column_text
from polyurn.comparison.client_splits import split_rows
from polyurn.comparison.summaries import fitted_dirichlet
from polyurn.datasets.dataset import digits
from polyurn.errors import CountsError, FileError, ParameterError, StyleWarning
from polyurn.model.mdm import MDM
from polyurn.model.names import SIGN, Match, Side, in_words, positions, renamed
from polyurn.model.populations import (
    IID,
    Dirichlet,
    Oracle,
    Pathological,
    Population,
    QuantitySkew,
    Shards,
    SizesLike,
)
from polyurn.model.style import Style
from polyurn.partitioning.assign import has_points, held_categories, partition
from polyurn.partitioning.result import Partition
from polyurn.sources.clients import Reading, read_clients
from polyurn.storage.models import Saved, load_saved
from polyurn.storage.npz_files import read_arrays
from polyurn.storage.partitions import load_partition
from polyurn.storage.table_files import naming, read_table
from polyurn.sweeps.config import ClientsConfig, DataConfig, SweepConfig
from polyurn.sweeps.run_scores import base_of
from polyurn.sweeps.sweep_clients import ClientsOfSeed, streams
from polyurn.training.examples import Examples, check_clients, class_labels
from polyurn.typed.arrays import ids_of
from polyurn.typed.declared import Bools, Floats, Ints
from polyurn.typed.json_form import shown
from polyurn.wording import counted

if TYPE_CHECKING:
    from polyurn.training.losses import PerExample

_SPLIT_SEED = 0  # which points are held out for testing never changes
# If the MDM knows less than this share of the data, or the data have less than this share of what
# clients ask for, they do not belong together.
_LEAST_KNOWN = 0.5
_TABLES = (".csv", ".tsv", ".gz", ".parquet")


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
    where: Path

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
    with naming(table.where):
        parts = modelled_names([*table.columns], feature)
        columns = [table.column(name) for name in parts]
        values = columns[0] if len(columns) == 1 else crossed(*columns)
    taken = [name for name in parts if config.data.category is not None and name in owners]
    if taken:
        raise ParameterError(
            f"{table.where}: expected another column for [data] category than the clients', got "
            f"{taken[0]!r}"
        )
    codes, names, remarks = category_codes(
        values, column_text(parts), models.categories, config.data.match
    )
    there = CodedPoints(table, chosen, codes[chosen], names, models, config.folder)
    populations: dict[str, ClientsOfSeed] = {}
    for name, entry in config.populations.items():
        try:
            populations[name] = there.clients(name, entry, populations)
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
        return _Table(pictures, {asked.label: found.labels}, None, Path("digits"))
    path = folder / str(asked.file)
    if path.suffix == ".npz":
        return _from_npz(asked, path)
    if path.suffix != ".parquet" and not only_labels:
        raise FileError(f"expected an .npz or .parquet file of points, got {path.name!r}")
    table = read_table(path)
    columns = {name: table[name].to_numpy() for name in table.column_names}
    features = np.empty((table.num_rows, 0))
    if not only_labels:
        with naming(path):
            modelled = modelled_names([*columns], asked.category or asked.label)
        others = columns.keys() - {asked.label, *modelled, *owners, "client"}
        numeric = [columns[n] for n in columns if n in others and columns[n].dtype.kind in "biuf"]
        if not numeric:
            raise ParameterError(
                f"{path}: expected at least one column of numbers that is no label, category or client, "
                f"to use as features, got {shown([*columns])}"
            )
        features = _shaped(np.column_stack(numeric), asked)
    return _Table(features, columns, None, path)


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
    return _Table(features, arrays, test, path)


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


def modelled_names(names: Sequence[str], category: str | Sequence[str]) -> tuple[str, ...]:
    """The columns that [data] category names, found as `--category` is."""
    found = category_columns(names, category, option="[data] category")
    return (found,) if isinstance(found, str) else found


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
    if n_unknown > (1 - _LEAST_KNOWN) * len(texts):
        raise ParameterError(
            f"the MDM knows the categories of {len(texts) - n_unknown:,} of {len(texts):,} points only, "
            f"{what!r} is {unknown[0]!r} for one of the others; expected the columns that it was "
            f"fitted to, in their order (such as {categories[0]!r})"
        )
    code_of |= {name: len(code_of) + i for i, name in enumerate(unknown)}
    codes = np.array([code_of[name] for name in names], np.int64)[which]
    remark = f"{n_unknown:,} of {len(texts):,} points have categories that the MDM does not have"
    return codes, categories, [f"{remark}: it never draws them"] if unknown else []


# ------------------------------------------------------------------------ entries of a TOML file


@dataclass(frozen=True)
class Models:
    """The MDM and style files that the entries of a sweep name, by entry, and their categories."""

    mdms: Mapping[str, Saved[MDM]]
    styles: Mapping[str, Saved[Style]]
    categories: Side | None


def read_models(config: SweepConfig) -> Models:
    """Read the files, whose categories have to have the same names in one order."""
    mdms: dict[str, Saved[MDM]] = {}
    styles: dict[str, Saved[Style]] = {}
    found: list[tuple[str, str, Side]] = []
    for name, entry in config.populations.items():
        if entry.mdm is not None:
            mdms[name] = mdms.get(base_of(name)) or load_saved(config.folder / entry.mdm)
            found.append((name, entry.mdm, mdms[name].side))
        if entry.style is not None:
            styles[name] = load_saved(config.folder / entry.style, Style)
            found.append((name, entry.style, styles[name].side))
    for name, entry in config.clients.items():
        if entry.plausible:
            drawn = enumerate(_plausible(mdms[name].model, name, entry.plausible), start=1)
            mdms |= {f"{name}~{i}": replace(mdms[name], model=one) for i, one in drawn}
    _, first, known = found[0] if found else ("", "", None)
    for name, file, side in found:
        if side != known and not (isinstance(side, int) and isinstance(known, int)):
            raise ParameterError(
                f"[clients.{name}] expected {file} with the categories of {first}, in their order: "
                f"{in_words(known or 0)}, got {in_words(side)}"
            )
    return Models(mdms, styles, known)


def _plausible(mdm: MDM, name: str, n: int) -> tuple[MDM, ...]:
    try:
        return mdm.draws(n, rng=zlib.crc32(name.encode()))
    except ParameterError as error:
        raise ParameterError(f"[clients.{name}] plausible: {error}") from error


@dataclass(frozen=True, eq=False)
class CodedPoints:
    """The points that clients are given: rows of a table, and the category of each.

    `names` are those of the categories, if they have some.
    """

    table: _Table
    rows: Ints
    codes: Ints
    names: Side | None
    models: Models
    folder: Path

    def clients(
        self, name: str, entry: ClientsConfig, earlier: Mapping[str, ClientsOfSeed]
    ) -> ClientsOfSeed:
        """The clients of one entry, which the data or a file may have for every seed."""
        if entry.column is not None:
            whose = ids_of(self.table.column(entry.column), f"the column {entry.column!r}")
            owned = Partition.by_owner(whose[self.rows])
            return lambda _: owned
        if entry.partition is not None:
            if len(self.rows) < len(self.table.features):
                raise ParameterError("a partition needs data with test points of their own")
            kept = load_partition(self.folder / entry.partition)
            check_clients(kept, n_points=len(self.codes), name=entry.partition)
            return lambda _: kept
        features = None
        if entry.style is not None:
            of_style = entry.style_features
            measured = self.table.features if of_style is None else self.table.column(of_style)
            features = measured[self.rows]
        style = self.models.styles[name].model if name in self.models.styles else None
        fixed = self._fixed(name, entry)
        other = earlier.get(str(entry.like)) if fixed is None else None
        if other is None and fixed is None:
            others = f"one of {', '.join(earlier)}" if earlier else "one that stands above it"
            raise ParameterError(
                f"no population {entry.like!r} stands before it in the file; expected {others}"
            )

        def drawn(seed: int) -> Partition:
            drawing, cutting, _ = streams(name, seed)
            like = None if other is None else other(seed)
            population = fixed
            if population is None:
                population = _baseline(entry, self.codes, self.n_categories, like)
            if entry.n_clients is None and isinstance(population, Oracle):
                counts = population.counts  # all, in their order
            else:
                n_like = 1 if like is None else len(like)
                counts = population.sample(entry.n_clients or n_like, rng=drawing)
            asked = sparse.csr_array(held_categories(counts, self.codes))
            shape = asked.shape[0], max(asked.shape[1], int(self.codes.max()) + 1)
            wide = sparse.csr_array((asked.data, asked.indices, asked.indptr), shape)
            with catch_warnings():
                simplefilter("ignore", StyleWarning)  # it does not know whose clients they are
                done = partition(self.codes, wide, style=style, features=features, rng=cutting)
            report = None if done.report is None else done.report.style
            if report is not None and report.remark is not None:
                warn(f"[clients.{name}] {report.remark}", StyleWarning, stacklevel=2)
            return done

        return drawn

    def lacking(self, name: str) -> str:
        """The message about categories of an MDM of which the data have no points; "" without any."""
        if name not in self.models.mdms:
            return ""
        asked = self.models.mdms[name].model.mean()
        return lacking_categories(asked, has_points(self.codes, len(asked)), self.names)

    @property
    def n_categories(self) -> int:
        known = [saved.model.n_categories for saved in self.models.mdms.values()]
        return max([int(self.codes.max()) + 1, *known])

    def _fixed(self, name: str, entry: ClientsConfig) -> Population | None:
        """The population of an entry that does not depend on another's clients under a seed."""
        if name in self.models.mdms:
            return self.models.mdms[name].model
        path = self.folder / str(entry.oracle)
        if entry.oracle is not None and path.suffix in _TABLES:
            names = self.names
            declared = tuple(names) if isinstance(names, Sequence) else self.n_categories
            return Oracle(read_clients(path, Reading(lambda _: None, over=True), declared).counts)
        if isinstance(entry.like, str):
            return None
        return _baseline(entry, self.codes, self.n_categories, None)


def _baseline(
    entry: ClientsConfig, codes: Ints, n_categories: int, like: Partition | None
) -> Population:
    """Clients made from the data's categories; like others, or as large as the entry says."""
    sizes: SizesLike = [int(entry.like or 0)] if like is None else like.sizes
    available = np.bincount(codes, minlength=n_categories)
    if like is not None and entry.kind in ("fitted", "oracle", "iid"):
        make = {"fitted": fitted_dirichlet, "oracle": Oracle, "iid": IID.like}[entry.kind]
        return make(like.histograms(codes, n_categories))
    if entry.hsu is not None:
        return Dirichlet.hsu(available, sizes, alpha=entry.hsu)
    if entry.pathological is not None:
        return Pathological(entry.pathological, available, sizes)
    if entry.shards is not None:
        return Shards(entry.shards, available)
    if entry.quantity_skew is not None:
        return QuantitySkew(entry.quantity_skew, available)
    if entry.kind != "dirichlet":
        return IID.proxy(codes, n_categories=n_categories, sizes=sizes)
    assert entry.dirichlet is not None
    alpha = entry.dirichlet * (available > 0)  # of the categories that the data have points of
    return Dirichlet(alpha, sizes)


def lacking_categories(asked: Floats, there: Bools, names: Side | None) -> str:
    """The message about categories that clients ask for and the data lack; "" without any.

    How much of each is asked for, and whether it is there, have shape (n_categories,). A
    `ParameterError` if most of it is not.
    """
    missing = np.flatnonzero((asked > 0) & ~there)
    if len(missing) == 0:
        return ""
    share = float(asked[missing].sum() / asked.sum())
    most = int(missing[asked[missing].argmax()])
    named = repr(names[most]) if isinstance(names, Sequence) else str(most)
    if share > 1 - _LEAST_KNOWN:
        raise ParameterError(
            f"{share:.0%} of what the clients hold are categories that the data have no points of, "
            f"{named} most of all; expected data with the categories that were modelled"
        )
    return (
        f"{share:.2%} of the points that they ask for are left out: the data have none of "
        f"{len(missing):,} categories, {named} most of all"
    )

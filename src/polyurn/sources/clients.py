"""Where clients come from: a table, or a folder of packed ones, read as histograms.

A message says what was taken from a table because it was not declared. An error in a table names the
file and the line.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from scipy import sparse

from polyurn.client.bins import Bins
from polyurn.client.columns import as_arrow, check_missing, without_missing
from polyurn.client.counting import Histograms, category_names
from polyurn.client.layout import NO_COLUMNS, Columns, Layout, column_text
from polyurn.client.tables import (
    by_position,
    check_wide,
    layout_histograms,
    observed_categories,
    table_layout,
    with_names,
)
from polyurn.counts import check_counts, client_sizes, digest, drop_empty
from polyurn.errors import CountsError, FileError, ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.names import Match, laid
from polyurn.storage.models import Saved
from polyurn.storage.provenance import DataProvenance
from polyurn.storage.shards import ShardFolder, draw_clients, is_shard_folder, open_shards
from polyurn.storage.table_files import naming, read_table
from polyurn.typed.declared import Bools, Ints
from polyurn.wording import counted, listed

if TYPE_CHECKING:
    from polyurn.wire import Aggregator

Say: TypeAlias = Callable[[str], None]
Declared: TypeAlias = int | tuple[str, ...] | None

_TOGETHER = 65_536  # packed clients that are scored together
_COMPARED = 50_000  # packed clients that stand for all of them, at the most
_FEWEST_HELD_OUT = 10  # fewer are too few to compare with
_SAME = 1e-9  # relative; means of the same likelihoods differ by less, in another order


@dataclass(frozen=True)
class Reading:
    """How to read tables.

    `asked` are the columns that options name, `remembered` those of a model file or an earlier table,
    and `elsewhere` those with another use, such as features. `over` says that the declared categories
    are those of a model or a federation; `match` maps the table's names of categories to them.
    """

    say: Say
    asked: Columns = NO_COLUMNS
    remembered: Columns = NO_COLUMNS
    drop_empty: bool = False
    elsewhere: Sequence[str] = ()
    drop_missing: bool = False
    match: Match | None = None
    over: bool = False

    def like(self, saved: Saved[MDM]) -> "Reading":
        """The same reading, with the columns of the table that an MDM was fitted to."""
        data, read = saved.provenance.data, replace(self, over=True)
        if not isinstance(data, DataProvenance):
            return read
        return replace(read, remembered=Columns(data.client, data.category, data.count))

    def after(self, table: "ClientTable") -> "Reading":
        """The same reading, for tables that need not have the columns of the first table."""
        return replace(self, asked=NO_COLUMNS, remembered=table.columns, elsewhere=(), match=None)

    def with_other_category(self) -> "Reading":
        """The same reading, for a table in which the category's column may have another name."""
        remembered = replace(self.remembered, category=self.asked.category)
        return replace(self, asked=replace(self.asked, category=None), remembered=remembered)

    def whole_rows(self, table: Any, columns: Sequence[str]) -> tuple[Any, Ints | None]:
        """A table, in whose columns no value is missing; and which rows are left, if rows may go."""
        arrow = as_arrow(table)
        if not self.drop_missing:
            check_missing(arrow, columns)
            return arrow, None
        whole, kept = without_missing(arrow, columns)
        n_rows = len(arrow)
        self.say(f"left out {n_rows - len(kept):,} of {n_rows:,} rows, with missing values")
        return whole, kept


@dataclass(frozen=True, eq=False)
class ClientTable(Histograms):
    """The histograms of a table's clients; without `named`, their ids are not known."""

    path: Path
    columns: Columns
    named: bool = True

    @property
    def n_points(self) -> int:
        return int(client_sizes(self.counts).sum())

    @property
    def max_size(self) -> int:
        """The most points of a client."""
        return int(client_sizes(self.counts).max())

    @property
    def digest(self) -> str:
        """A checksum of the histograms."""
        return digest(self.counts)

    def blocks(self) -> Iterator["sparse.csr_array[Any]"]:
        """The histograms, in one piece."""
        yield self.counts


@dataclass(frozen=True, eq=False)
class PackedClients:
    """All clients of a folder of shards, with the interface of a `ClientTable`."""

    folder: ShardFolder
    path: Path
    columns: Columns
    shape: tuple[int, int]
    categories: tuple[str, ...]
    n_points: int
    max_size: int
    digest: str

    @classmethod
    def of(cls, folder: ShardFolder) -> Self:
        """The clients of a folder that has been opened."""
        columns, totals = Columns(folder.client, folder.category, folder.count), folder.totals
        shape = folder.n_clients, folder.n_categories
        sums = totals.n_points, totals.max_size
        return cls(folder, folder.path, columns, shape, folder.categories, *sums, folder.digest)

    def blocks(self) -> Iterator["sparse.csr_array[Any]"]:
        """The histograms, block by block."""
        for i, shard in enumerate(self.folder.shards):
            rows = self.folder.rows(i)
            for start in range(0, shard.n_clients, _TOGETHER):
                some = np.arange(start, min(start + _TOGETHER, shard.n_clients), dtype=np.uint32)
                yield rows.counts_of(some)


def read_clients(path: Path, reading: Reading, declared: Declared = None) -> ClientTable:
    """The histograms of a table's clients, checked."""
    if is_shard_folder(path):
        raise FileError(f"{path} holds packed clients: fit, score and compare read them")
    read = histograms_of(read_table(path, on_remark=reading.say), path, reading, declared)
    with naming(path):
        if reading.drop_empty:
            counts, kept = drop_empty(read.counts)
            reading.say(f"left out {counted(read.shape[0] - len(kept), 'client')} without points")
            read = replace(read, counts=sparse.csr_array(counts), clients=read.clients[kept])
        check_counts(read.counts)
    return read


def read_all(
    path: Path, reading: Reading, declared: Declared = None
) -> "ClientTable | PackedClients":
    """The clients of a table, or of a folder of packed ones."""
    if not is_shard_folder(path):
        return read_clients(path, reading, declared)
    return PackedClients.of(_opened(path, reading, declared))


def play(
    read: ClientTable | PackedClients, *, seed: int, sampling: Any, threads: int,
    scheduler: str | None = None,
) -> "Aggregator":  # fmt: skip
    """The clients, played in this process, or packed ones on a cluster."""
    if isinstance(read, ClientTable):
        from polyurn.aggregate.local import LocalAggregator

        if scheduler is not None:
            raise ParameterError(
                "--scheduler has no effect with a table: pack it with `polyurn pack`"
            )
        return LocalAggregator(read.counts, rng=seed, sampling=sampling, n_threads=threads)
    if scheduler is not None:
        from polyurn.aggregate.dask import connected

        return connected(scheduler, read.folder, rng=seed, sampling=sampling)
    from polyurn.aggregate.shard_aggregator import ShardAggregator

    return ShardAggregator(read.folder, rng=seed, sampling=sampling, n_threads=threads)


def some_of(read: "ClientTable | PackedClients", say: Say, *, seed: int) -> ClientTable:
    """A table as it is; of packed clients some, drawn at random, whose ids are their positions."""
    if isinstance(read, ClientTable):
        return read
    n = min(_COMPARED, read.shape[0])
    counts, positions = draw_clients(read.folder, n, rng=seed)
    if n < read.shape[0]:
        some = f"{counted(n, 'client')} of {read.shape[0]:,}"
        say(f"{read.path}: {some}, drawn at random, stand for all")
    return ClientTable(counts, positions, read.categories, read.path, read.columns, named=False)


def true_clients(
    read: ClientTable | PackedClients, models: Sequence[Saved[MDM]], *, say: Say, seed: int = 0
) -> tuple[ClientTable, Bools | None, str]:
    """The clients that none of these models was fitted to, as their files say; all, if these are few.

    With them, who was fitted of those that are returned, None if it is not known; and that in words.
    """
    some, name = some_of(read, say, seed=seed), read.path.name
    known = [who for one in models if (who := _fitted(one, read)) is not None]
    fitted = np.logical_or.reduce([np.zeros(read.shape[0], dtype=bool), *known])
    fitted = fitted if some is read else fitted[some.clients]
    rest, n = np.flatnonzero(~fitted), counted(len(fitted), "client")
    text = f"{name}: {fitted.sum():,} of {n} were fitted"
    if _FEWEST_HELD_OUT <= len(rest) < len(fitted):
        text = f"{name}: the {len(rest):,} of {n} that were held out are taken"
        some = replace(some, counts=some.counts[rest], clients=some.clients[rest])
        fitted = fitted[rest]
    if not known or len(known) < len(models):
        return some, None, f"{name}: polyurn cannot tell which clients were fitted"
    return some, fitted, text


def _fitted(saved: Saved[MDM], read: ClientTable | PackedClients) -> Bools | None:
    """Which clients a model was fitted to, shape (n_clients,); None if its file does not say.

    Those who judged the model are drawn again, and have to be as likely as the file says. Packed clients
    may be too many for that, and the file of a sampled cohort states no likelihood of all.
    """
    origin, data, fit = saved.provenance, saved.provenance.data, saved.provenance.fit
    if not isinstance(data, DataProvenance) or fit is None or not fit.rounds:
        return None
    if data != data_provenance(read, held_out=data.held_out):
        return None
    judges: Bools = np.ones(read.shape[0], dtype=bool)
    if fit.joined:
        fitted, n, stated = judges, fit.n_clients, fit.joined[-1]
    elif fit.chosen is None:
        fitted, n, stated = judges, fit.n_clients, fit.rounds[-1].log_likelihood
    elif data.held_out is not None and isinstance(origin.seed, int):
        clients: Any = play(read, seed=origin.seed, sampling="fixed", threads=1)
        judges = np.asarray(clients.held_out(data.held_out))
        fitted, n, stated = ~judges, fit.n_held_out, fit.held_out_log_likelihood
    else:
        return None
    if isinstance(read, ClientTable) and n == judges.sum():
        mean = saved.model.logpmf(replace(read, counts=read.counts[judges])).mean()  # by name
        return fitted if np.isclose(mean, stated, rtol=_SAME) else None
    return fitted if n <= judges.sum() else None


def histograms_of(
    table: Any, path: Path, reading: Reading, declared: Declared | Bins = None
) -> ClientTable:
    """The histograms of a table that was read from `path`; by default with its own categories."""
    with naming(path):
        layout = table_layout(
            table, reading.asked, remembered=reading.remembered, declared=declared,
            elsewhere=reading.elsewhere, match=reading.match,
        )  # fmt: skip
        for remark in layout.remarks:
            reading.say(remark)
        table, kept = reading.whole_rows(table, layout.read)
    with naming(path, kept):
        shown = declared
        if shown is None:
            reading.say(_shown(shown := shown_categories(table, layout)))
        column, match = layout.category, reading.match
        if match is not None and column is not None:
            table, column = with_names(table, column, shown, match, reading.say)
        elif match == "position":
            names = category_names(shown)
            reading.say(by_position(dict(zip(layout.wide, names, strict=True))))
        layout = replace(layout, category=column)
        found = layout_histograms(table, layout, shown, match, say=reading.say)
        if reading.over and column is None and not isinstance(shown, Bins):
            check_wide(table, layout, category_names(shown), match)
            by_name = laid(found, shown, allow_empty=True)
            found = replace(found, counts=sparse.csr_array(by_name))
        n_clients, n_categories = found.shape
        if declared is None and isinstance(shown, int) and not found.counts[:, [0]].sum():
            reading.say(
                "no client holds category 0: declare categories that begin at 1 by their names"
            )
        if declared is None and n_categories > n_clients:
            reading.say(
                f"more categories ({n_categories:,}) than clients ({n_clients:,}): see that --client "
                "and --category are not exchanged"
            )
    return ClientTable(found.counts, found.clients, found.categories, path, layout.columns)


def shown_categories(table: Any, layout: Layout) -> int | tuple[str, ...]:
    """The categories that occur in a table."""
    column = layout.category
    return layout.wide if column is None else observed_categories(table, category=column)


def data_provenance(
    read: "ClientTable | PackedClients", *, held_out: float | None = None
) -> DataProvenance:
    """What a model that is fitted to them keeps of them: names and sums, no client."""
    category = read.columns.category
    return DataProvenance(
        file=read.path.name, n_clients=read.shape[0], n_categories=read.shape[1],
        n_points=read.n_points, client=read.columns.client,
        category=None if category is None else column_text(category), count=read.columns.count,
        held_out=held_out,
    )  # fmt: skip


def _opened(path: Path, reading: Reading, declared: Declared) -> ShardFolder:
    """The folder, if its categories are the declared ones and no option is for tables only."""
    asked = {
        "--client": reading.asked.client, "--category": reading.asked.category,
        "--count": reading.asked.count, "--drop-empty": reading.drop_empty or None,
        "--drop-missing": reading.drop_missing or None, "--map": reading.match or None,
    }  # fmt: skip
    for option, value in asked.items():
        if value is not None:
            raise ParameterError(
                f"{option} has no effect with packed clients, {path}: leave it out"
            )
    folder = open_shards(path)
    if declared is None:
        reading.say(f"{counted(folder.n_categories, 'category')}, as {path} was packed")
        return folder
    packed, names = folder.categories, category_names(declared)
    by_name = reading.over or isinstance(declared, tuple)
    if packed != names and (by_name or len(packed) != len(names)):
        raise CountsError(
            f"{path}: expected the {len(names)} declared categories {listed(names)}, got packed "
            f"clients of {len(packed)} that are not the same, or in another order: "
            f"{listed(packed)}; pack the tables with --categories"
        )
    return folder


def _shown(categories: int | tuple[str, ...]) -> str:
    """The message about categories that were not declared."""
    n, where = len(category_names(categories)), ", from the table"
    if isinstance(categories, tuple) and all(name.isdecimal() for name in categories):
        where = (
            " from the table, whose numbers are taken as names, because most numbers up to the largest "
            "do not occur"
        )
    return f"{counted(n, 'category')}{where}; declare them with --categories"

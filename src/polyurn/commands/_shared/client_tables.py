"""Tables of clients as the commands take them: their histograms, and the bounds that were not declared.

What is taken from a table instead of being declared is said.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from scipy import sparse

from polyurn.client.bins import Bins
from polyurn.client.histogram import Histograms
from polyurn.client.layout import UNSAID, Columns, Layout, column_text
from polyurn.client.tables import layout_histograms, observed_categories, table_layout
from polyurn.counts import check_counts, client_sizes, digest, drop_empty
from polyurn.errors import CountsError, FileError, RowError
from polyurn.model.mdm import MDM
from polyurn.storage.models import Saved
from polyurn.storage.provenance import DataRecord
from polyurn.storage.shards import is_shard_folder
from polyurn.storage.tables import place_of_row, read_table
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    from polyurn.aggregate.local import LocalAggregator

Say: TypeAlias = Callable[[str], None]
Declared: TypeAlias = int | tuple[str, ...] | None


@dataclass(frozen=True)
class Reading:
    """How tables are to be read.

    Attributes
    ----------
    say : function of a sentence
    asked : Columns
        What the options name.
    remembered : Columns
        What a model file, or a table that was read before, names.
    drop_empty : bool
        Whether clients without points are left out.
    elsewhere : sequence of str
        Columns that are read for something else, as features.
    """

    say: Say
    asked: Columns = UNSAID
    remembered: Columns = UNSAID
    drop_empty: bool = False
    elsewhere: Sequence[str] = ()

    def like(self, saved: Saved[MDM]) -> "Reading":
        """The same, with the columns of the table that an MDM was fitted to."""
        data = saved.made.data
        if not isinstance(data, DataRecord):
            return self
        return replace(self, remembered=Columns(data.client, data.category, data.count))

    def after(self, table: "ClientTable") -> "Reading":
        """The same, for tables that need not have the columns of the first."""
        return replace(self, asked=UNSAID, remembered=table.columns, elsewhere=())


@dataclass(frozen=True, eq=False)
class ClientTable(Histograms):
    """The histograms of a table's clients, and the names of its columns.

    Without `named` the ids of the clients are not known.
    """

    path: Path
    columns: Columns
    named: bool = True

    @property
    def max_size(self) -> int:
        """The most points of a client."""
        return int(client_sizes(self.counts).max())

    @property
    def digest(self) -> str:
        """A name for the histograms that others are not expected to have."""
        return digest(self.counts)

    def aggregator(self, *, seed: int, sampling: Any, threads: int) -> "LocalAggregator":
        """The clients, played in this process."""
        from polyurn.aggregate.local import LocalAggregator

        return LocalAggregator(self.counts, rng=seed, sampling=sampling, n_threads=threads)

    def blocks(self) -> Iterator["sparse.csr_array[Any]"]:
        """The histograms, in one piece."""
        yield self.counts

    @property
    def record(self) -> DataRecord:
        """What was read, for the file that is made of it: names and three sums, no client."""
        n_clients, n_categories = self.shape
        category = self.columns.category
        return DataRecord(
            file=self.path.name,
            n_clients=n_clients,
            n_categories=n_categories,
            n_points=int(client_sizes(self.counts).sum()),
            client=self.columns.client,
            category=None if category is None else column_text(category),
            count=self.columns.count,
        )


def read_clients(path: Path, reading: Reading, declared: Declared = None) -> ClientTable:
    """The histograms of a table's clients, checked."""
    if is_shard_folder(path):
        raise FileError(f"{path} holds packed clients: fit, select, score and compare read them")
    read = histograms_of(read_table(path, on_remark=reading.say), path, reading, declared)
    with naming(path):
        if reading.drop_empty:
            counts, kept = drop_empty(read.counts)
            reading.say(f"left out {counted(read.shape[0] - len(kept), 'client')} without points")
            read = replace(read, counts=sparse.csr_array(counts), clients=read.clients[kept])
        check_counts(read.counts)
    return read


def histograms_of(
    table: Any, path: Path, reading: Reading, declared: Declared | Bins = None
) -> ClientTable:
    """The histograms of a table that was read from `path`; without `declared`, of what it shows."""
    with naming(path):
        layout = layout_of(table, reading, declared)
        if declared is None:
            declared = shown_categories(table, layout)
            reading.say(_shown(declared))
        made = layout_histograms(table, layout, declared)
    return ClientTable(made.counts, made.clients, made.categories, path, layout.columns)


def layout_of(table: Any, reading: Reading, declared: Declared | Bins = None) -> Layout:
    """Which columns mean what; what had to be guessed is said."""
    found = table_layout(
        table, reading.asked, remembered=reading.remembered, declared=declared,
        elsewhere=reading.elsewhere,
    )  # fmt: skip
    for remark in found.remarks:
        reading.say(remark)
    return found


def shown_categories(table: Any, layout: Layout) -> int | tuple[str, ...]:
    """The categories that a table shows."""
    if layout.category is None:
        return layout.wide
    return observed_categories(table, category=layout.category)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """What is wrong with a table, with the name of its file and the line."""
    try:
        yield
    except RowError as error:
        raise CountsError(f"{path}: {error.at(place_of_row(path, error.row))}") from None
    except CountsError as error:
        raise CountsError(f"{path}: {error}") from None


class HasSizes(Protocol):
    """Clients whose largest size is known."""

    @property
    def max_size(self) -> int: ...


def largest_size(declared: int | None, read: HasSizes, say: Say) -> int:
    """The declared largest size, or the clients' own, and then it is said."""
    if declared is not None:
        return declared
    say(f"max_size {read.max_size}, from the table; declare it with --max-size")
    return read.max_size


def _shown(categories: int | tuple[str, ...]) -> str:
    """What to say about categories that were not declared."""
    if isinstance(categories, tuple) and all(name.isdecimal() for name in categories):
        return (
            f"{counted(len(categories), 'category')} from the table, whose numbers are taken as names, "
            "because most numbers up to the largest do not occur; declare them with --categories"
        )
    n = categories if isinstance(categories, int) else len(categories)
    return f"{counted(n, 'category')}, from the table; declare them with --categories"

"""The options that several commands share, each declared once; those that belong together are a group.

A group has methods for what its options stand for together. Nothing is fitted or printed here.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from polyurn.commands.console import say
from polyurn.commands.declare import Needs, Unless, option
from polyurn.errors import FileError, ParameterError

if TYPE_CHECKING:
    from polyurn.client.bins import Bins
    from polyurn.sources.clients import Reading

DIRECTIONS = 4  # of style, where none are asked for and there are as many features


# ------------------------------------------------------------------------- what is read and written


def _check_seed(seed: int) -> int:
    if seed < 0:
        raise ParameterError(f"expected a seed of at least 0, got {seed}")
    return seed


def _writable(path: Path) -> None:
    from polyurn.storage.atomic import check_place

    check_place(path)


def _writable_json(path: Path) -> None:
    if path.suffix != ".json":
        raise FileError(f"expected a .json file to write, got {path.name!r}")
    _writable(path)


def _writable_table(path: Path) -> None:
    from polyurn.storage.table_files import check_table_place

    check_table_place(path)


def _writable_partition(path: Path) -> None:
    from polyurn.storage.partitions import check_partition_place

    check_partition_place(path)


def _output(check: Callable[[Path], None]) -> Any:
    """`--output`, whose place is checked before the work and not after it."""

    def checked(path: Path | None) -> Path | None:
        if path is not None:
            check(path)
        return path

    return typer.Option("--output", "-o", callback=checked, help="File to write.")


Output = Annotated[Path | None, _output(_writable)]
JsonOutput = Annotated[Path | None, _output(_writable_json)]
TableOutput = Annotated[Path | None, _output(_writable_table)]
PartitionOutput = Annotated[Path | None, _output(_writable_partition)]
Seed = Annotated[int, typer.Option(callback=_check_seed, help="Seed of everything that is random.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
Threads = Annotated[int, typer.Option(help="Threads.")]
TableArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="CSV or Parquet: (client, category, count), one row per point, or one per client; or a "
        "folder that `pack` wrote.",
    ),
]
PointsArgument = Annotated[
    Path,
    typer.Argument(
        metavar="PROXY", help="CSV, Parquet or .npz: the server's own points, one row each."
    ),
]
Checkpoint = Annotated[
    Path | None, typer.Option(help="Folder that keeps each round, so that a stopped run goes on.")
]

# ---------------------------------------------------------------------------- how tables are read

Client = Annotated[
    str | None, typer.Option(help="Column with the client's id, unless its name is 'client'.")
]
Count = Annotated[
    str | None,
    typer.Option(help="Column with counts: 'count' if there is one; 1 if every row is one point."),
]
Categories = Annotated[
    str | None,
    typer.Option(help="Declared categories: a number C (0 to C-1), or names, comma-separated."),
]
DropEmpty = Annotated[bool, typer.Option("--drop-empty", help="Leave out clients without points.")]
Features = Annotated[
    str | None,
    typer.Option(
        help="Columns of numbers, comma-separated, or one with lists; all numbers by default."
    ),
]
Label = Annotated[
    str | None, typer.Option(help="Column with the label, unless its name is 'label'.")
]
Cap = Annotated[
    int | None, typer.Option(help="Largest number of points of a client; drawn at random.")
]


@dataclass(frozen=True)
class ColumnOptions:
    """Which columns of a table of clients mean what."""

    client: Client = None
    category: str | None = option(
        None,
        "Column with the category, unless its name is 'category'; several, with commas "
        "between, are crossed.",
    )
    count: Count = None

    def reading(self, **more: Any) -> "Reading":
        """How tables are to be read."""
        from polyurn.client.layout import Columns
        from polyurn.sources.clients import Reading

        return Reading(say, Columns(self.client, self.category, self.count), **more)


@dataclass(frozen=True)
class TableOptions(ColumnOptions):
    """Which columns mean what, what categories there are, and whether clients may be empty."""

    categories: Categories = None
    drop_empty: DropEmpty = False

    def reading(self, **more: Any) -> "Reading":
        return super().reading(drop_empty=self.drop_empty, **more)

    def declared(self) -> int | tuple[str, ...] | None:
        """How many categories are declared, or their names."""
        return declared_categories(self.categories)


@dataclass(frozen=True)
class BinOptions:
    """The bins of a continuous feature."""

    edges: str | None = option(
        None, "Bin edges, comma-separated and increasing; -inf and inf are allowed."
    )
    width: float | None = option(None, "Width of equal bins.")
    start: float = option(0.0, "Where bins of equal width begin.", Needs("width"))
    stop: float | None = option(
        None, "Where bins of equal width end; one more bin holds all beyond."
    )

    def declared(self) -> "Bins | None":
        """The bins that the options stand for, if they stand for any."""
        from polyurn.client.bins import Bins

        if (self.width is None) != (self.stop is None):
            raise ParameterError("expected --width and --stop together")
        if self.edges is not None and self.width is not None:
            raise ParameterError("expected one of --edges, --width and --quantiles, got two")
        if self.width is not None and self.stop is not None:
            return Bins.of_width(self.width, start=self.start, stop=self.stop)
        if self.edges is None:
            return None
        try:
            edges = [float(edge) for edge in self.edges.split(",")]
        except ValueError:
            raise ParameterError(
                f"expected --edges as numbers, such as 0,10,inf, got {self.edges!r}"
            ) from None
        return Bins(edges)


# ------------------------------------------------------------------------------- fits and privacy


@dataclass(frozen=True)
class SearchOptions:
    """A search with exact sums; the fields are the parameters of `learn`."""

    held_out: float = option(
        0.2, "Share of the clients that scores and is never fitted.", Unless("epsilon")
    )
    max_rounds: int = option(
        50,
        "Maximum number of rounds; the paper's method uses all of them.",
        "--rounds",
        Unless("epsilon"),
    )
    tol: float = option(
        1e-3,
        "Stop when less is left to gain, in nats per client.",
        Unless("epsilon"),
        Unless("method", "paper"),
    )
    patience: int = option(
        3,
        "Rounds without a gain before the search stops; 0 is the fastest.",
        Unless("epsilon"),
        Unless("method", "paper"),
    )
    max_upload: int = option(
        50_000,
        "Numbers that a client may send in a round.",
        Unless("epsilon"),
        Unless("method", "paper"),
    )


Epsilon = Annotated[
    float | None,
    typer.Option(help="Fit with differential privacy: epsilon, for one client added or removed."),
]
Delta = Annotated[
    float | None,
    typer.Option(help="With --epsilon: delta, well below one over the number of clients."),
]


@dataclass(frozen=True)
class PrivacyOptions:
    """A guarantee to clients who are played in this process."""

    epsilon: Epsilon = None
    delta: Annotated[Delta, Needs("epsilon")] = None
    ledger: Path | None = option(
        None, "With --epsilon: file that adds up what is spent on these clients.", Needs("epsilon")
    )
    ledger_epsilon: float | None = option(
        None,
        "With --ledger: its whole budget; that of this fit if the file is new.",
        Needs("epsilon"),
        Needs("ledger"),
    )

    def budget(self) -> dict[str, Any]:
        """Epsilon, delta and the ledger; nothing if no guarantee is asked for."""
        if self.epsilon is None:
            return {}
        if self.delta is None:
            raise ParameterError(
                "expected --delta with --epsilon, well below one over the number of clients: 1e-6, say"
            )
        budget: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta}
        if self.ledger is not None:
            from polyurn.storage.ledger_file import open_ledger

            whole = self.ledger_epsilon or self.epsilon
            budget["ledger"] = open_ledger(self.ledger, epsilon=whole, delta=self.delta)
        return budget


@dataclass(frozen=True)
class FederationPrivacyOptions:
    """A guarantee to the clients of a federation; to have none is a decision, and not a default."""

    epsilon: Annotated[Epsilon, Unless("no_privacy")] = None
    delta: Annotated[Delta, Unless("no_privacy")] = None
    trust: Literal["distributed", "central", "local"] | None = option(
        None,
        "With --epsilon: who adds the noise; distributed, central if --plain.",
        Unless("no_privacy"),
    )
    ledger_epsilon: float | None = option(
        None,
        "With --epsilon: budget of all runs together; that of the first by default.",
        Unless("no_privacy"),
    )
    no_privacy: bool = option(
        False, "Without a guarantee: exact sums are released.", "--no-privacy"
    )


@dataclass(frozen=True)
class NodeOptions:
    """How the nodes of a federation are asked."""

    plain: bool = option(False, "Without masks: the server sees every node's numbers.", "--plain")
    min_nodes: int = option(3, "Fewest nodes that a sum may be over.")
    min_fraction: float = option(0.7, "Smallest share of the nodes that a sum may be over.")
    timeout: float = option(60.0, "Seconds that a node has for a reply.")
    settling: float = option(60.0, "Longest wait for all nodes before the first round, in seconds.")
    dropout: float = option(0.3, "Share of nodes that may leave during a secure sum.")

    def of_job(self, privacy: FederationPrivacyOptions) -> dict[str, Any]:
        """The fields of a job that say how nodes are asked, and what is guaranteed to clients."""
        asked = asdict(self) | {"secure": not self.plain}
        del asked["plain"]
        if privacy.no_privacy:
            return asked
        if privacy.epsilon is None or privacy.delta is None:
            raise ParameterError(
                "expected --epsilon and --delta (1 and 1e-6, say: `polyurn privacy plan` shows what "
                "they cost), or --no-privacy, which releases exact sums over the clients"
            )
        guarantee = asdict(privacy)
        del guarantee["no_privacy"]
        guarantee["trust"] = privacy.trust or ("central" if self.plain else "distributed")
        return asked | guarantee


@dataclass(frozen=True)
class SpaceOptions:
    """In which directions styles are measured."""

    directions: int | None = option(
        None, f"Number of directions of style, m; by default {DIRECTIONS}, or that of the features."
    )
    radius: float | None = option(
        None, "Where points are clipped; by default 99 % of the proxy points are within."
    )
    ties: bool = option(False, "Ask for label shares too: style and label go together.", "--ties")


# -------------------------------------------------------------------------- what texts stand for


def declared_categories(text: str | None) -> int | tuple[str, ...] | None:
    """C, or the names of the categories."""
    if text is None:
        return None
    return int(text) if text.isdecimal() else tuple(name.strip() for name in text.split(","))


def listed_names(text: str | None) -> list[str] | None:
    """Names of columns with commas between."""
    return None if text is None else [name.strip() for name in text.split(",")]


def component_numbers(text: str) -> tuple[int, ...] | Literal["auto"]:
    """The numbers of components that `3`, `1:6`, `2,4,8` or `auto` stand for."""
    if text == "auto":
        return "auto"
    try:
        if ":" in text:
            first, last = (int(part) for part in text.split(":"))
            numbers = tuple(range(first, last + 1))
        else:
            numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(
            f"expected --components as 3, 1:6, 2,4,8 or auto, got {text!r}"
        ) from None
    if not numbers:
        raise ParameterError(f"expected --components from few to many, got {text!r}")
    return numbers

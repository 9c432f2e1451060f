"""The options that several commands share, each declared once; those that belong together are a group.

Methods of a group turn its options into values of the library. Nothing is fitted or printed here.
"""

import csv
import os
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_type_hints

import polyurn as pu
from polyurn.commands.console import say, warn
from polyurn.commands.declare import Needs, Unless, also, argument, option
from polyurn.errors import CountsError, FileError, ParameterError
from polyurn.wording import listed

if TYPE_CHECKING:
    from polyurn.model.names import Match
    from polyurn.sources.clients import Reading
    from polyurn.sources.points import Points
    from polyurn.storage.models import Saved
    from polyurn.wire import Aggregator

T = TypeVar("T")

DIRECTIONS = 4  # of style, by default; fewer if there are fewer features
_SHOWN = 5  # labels in a sentence


# ------------------------------------------------------------------------- what is read and written


def _output(check: str, suffix: str = "", what: str = "File to write.") -> Any:
    """`--output`, a path that a function of `storage` checks before the work and not after it."""

    def checked(path: Path | None) -> Path | None:
        if path is not None:
            if suffix and path.suffix != suffix:
                raise FileError(f"expected a {suffix} file to write, got {path.name!r}")
            module, _, function = check.partition(" ")
            getattr(import_module(f"polyurn.storage.{module}"), function)(path)
        return path

    return option(None, what, "--output", "-o", callback=checked)


OUTPUT = _output("files check_writable")
JSON_OUTPUT = _output("files check_writable", ".json")
TABLE_OUTPUT = _output("table_files check_table_writable")
PARTITION_OUTPUT = _output("partitions check_partition_writable", what="A .json or .parquet file.")
SEED = option(0, "Seed of everything that is random.", min=0)
AS_JSON = option(False, "Print the result as JSON on stdout.", "--json")
THREADS = option(1, "Number of threads.")
SCHEDULER = option(None, "Address of a Dask cluster that plays packed clients: tcp://…:8786, say.")
START = option(
    None,
    "An earlier mixture's file, at which the search begins: fewer rounds, and its components keep "
    "their numbers.",
    Unless("method", "paper"),
    Unless("epsilon"),
)
CHECKPOINT = option(None, "Folder that keeps each round, so that a stopped run goes on.")
TABLE = argument(
    "TABLE",
    "CSV or Parquet: (client, category, count), one row per point, or one per client; or a folder "
    "that `pack` wrote.",
)
POINTS = argument("PROXY", "CSV, Parquet or .npz: the server's own points, one row each.")
FEDERATION = argument("DIR", "Folder that `polyurn federation init` made.")

# ---------------------------------------------------------------------------- how tables are read

CLIENT = option(None, "Column with the client's id, unless its name is 'client'.")
COUNT = option(None, "Column with counts; by default 'count' if there is one. 1: a row is a point.")
CATEGORIES = option(None, "Declared categories: a number C (0 to C-1), or names, comma-separated.")
VALUES = option(None, "Declared values of a column of texts, COLUMN=VALUES with commas; repeat it.")
DROP_EMPTY = option(False, "Leave out clients without points.", "--drop-empty")
DROP_MISSING = option(False, "Leave out rows in which a value is missing.", "--drop-missing")
MAP = option(None, "Rename the table's categories: OLD=NEW with commas, or by-position.", "--map")
FEATURES = option(
    None, "Columns of numbers, comma-separated, or one with lists; all numbers by default."
)
STYLE_FEATURES = option(
    None,
    "Columns in which the style is measured, comma-separated, or one with lists; those that the style "
    "file names by default.",
    Needs("style"),
)
LABEL = option(None, "Column with the category, unless its name is 'label'.", "--category")
CAP = option(None, "Maximum number of points of a client; those that stay are drawn at random.")
BINS = option(
    None,
    "Bins of numbers: START:STOP:WIDTH, and one more for all beyond; or edges, as in 0,10,inf, such as "
    "those that `describe --column` finds.",
)


@dataclass(frozen=True)
class ColumnOptions:
    """Which columns of a table of clients mean what."""

    client: str | None = CLIENT
    category: str | None = option(
        None,
        "Column with the category, unless its name is 'category', or of points 'label'; several, with "
        "commas between, are crossed.",
    )
    count: str | None = COUNT
    drop_missing: bool = DROP_MISSING

    def reading(self, **more: Any) -> "Reading":
        """How to read tables."""
        from polyurn.client.layout import Columns
        from polyurn.sources.clients import Reading

        asked = Columns(self.client, self.category, self.count)
        return Reading(say, asked, drop_missing=self.drop_missing, **more)


@dataclass(frozen=True)
class RelabelOptions:
    """Laid over other labels."""

    match: Literal["rank", "random", "marginal"] | None = option(
        None,
        "Which category of the mixture becomes which label: the most frequent the most frequent "
        "(rank, by default for zoo:NAME), at random, or by rank with the data's shares (marginal).",
    )
    mean_size: float | None = option(None, "Mean points per client, to which sizes are scaled.")

    def relabelled(
        self, saved: "Saved[pu.MDM]", labels: int | tuple[str, ...], codes: Any = None, *, seed: int
    ) -> "Saved[pu.MDM]":
        """A mixture with these labels, as frequent as their codes, and its sizes scaled."""
        from numpy import bincount

        n_labels = labels if isinstance(labels, int) else len(labels)
        shares = None if codes is None else bincount(codes, minlength=n_labels)
        mdm: Any = saved.model.relabelled(labels, self.match or "rank", shares=shares, rng=seed)
        return self.resized(replace(saved, model=mdm, categories=mdm.categories))

    def resized(self, saved: "Saved[pu.MDM]") -> "Saved[pu.MDM]":
        """A mixture with sizes of the mean that is asked for."""
        if self.mean_size is None:
            return saved
        mdm: Any = saved.model.resized(self.mean_size)
        return replace(saved, model=mdm)

    def asked(self, path: Path) -> bool:
        """Whether this model is to be laid over labels that are not its own."""
        return self.match is not None or path.name.startswith("zoo:")


@dataclass(frozen=True)
class JudgedOptions(ColumnOptions):
    """How to read a table whose categories are declared elsewhere."""

    drop_empty: bool = DROP_EMPTY
    renamed: str | None = MAP

    def reading(self, **more: Any) -> "Reading":
        return super().reading(match=name_map(self.renamed), drop_empty=self.drop_empty, **more)


@dataclass(frozen=True)
class TableOptions(ColumnOptions):
    """Which columns mean what, what categories there are, and whether clients may be empty."""

    categories: str | None = CATEGORIES
    drop_empty: bool = DROP_EMPTY

    def reading(self, **more: Any) -> "Reading":
        return super().reading(drop_empty=self.drop_empty, **more)

    def declared(self) -> int | tuple[str, ...] | None:
        """How many categories are declared, or their names."""
        return declared_categories(self.categories)


# ------------------------------------------------------------------------------- fits and privacy


@dataclass(frozen=True)
class SearchOptions:
    """A search with exact sums."""

    held_out: float | None = option(
        None,
        "Share of the clients that is scored and never fitted; default: none with one number of "
        "components; with several, 0.2, which are fitted once they have chosen.",
        Unless("epsilon"),
        Unless("start"),
    )
    shape: Literal["auto", "dirichlet", "tree", "laws"] = option(
        "auto",
        "What components are: Dirichlet-multinomials, splits on a tree of categories, or splits with "
        "laws, which clients follow that are more even than chance; auto: what held-out clients find "
        "clearly likelier.",
        Unless("epsilon"),
        Unless("start"),
        Unless("method", "paper"),
    )
    max_rounds: int | None = option(
        None,
        "Maximum number of rounds: by default 50, all of which the paper's method takes; 34 where auto "
        "asks a federation.",
        "--rounds",
        Unless("epsilon"),
    )
    search: str | None = option(
        None,
        "Settings of the search, NAME=VALUE with commas: tol=0.001, stop when less is left to gain, in "
        "nats per client; patience=3, rounds without a gain before it stops, 0 is the fastest; "
        "max_upload=50000, numbers that a client may send in a round; tree=FILE, a JSON file with the "
        "tree of the splits, lists in lists of the categories' names, which is learned by default.",
        Unless("epsilon"),
        Unless("method", "paper"),
    )

    def given(self, categories: tuple[str, ...], *, max_rounds: int = 50) -> dict[str, Any]:
        """The parameters of `learn`; `max_rounds` is the default."""
        from polyurn.storage.models import load_tree

        tuned = asdict(named_values(self.search, Tuning, "--search"))
        scoring = {} if self.held_out is None else {"held_out": self.held_out}
        rounds = max_rounds if self.max_rounds is None else self.max_rounds
        tuned["tree"] = tuned["tree"] and load_tree(tuned["tree"], categories)
        return {**scoring, "shape": self.shape, "max_rounds": rounds, **tuned}


@dataclass(frozen=True)
class Tuning:
    """What `--search` may set."""

    tol: float = 1e-3
    patience: int = 3
    max_upload: int = 50_000
    tree: Path | None = None


@dataclass(frozen=True)
class Draws:
    """What `--draws` may set."""

    clients: int | None = None
    max_clients: int = 2_000
    splits: int = 1_000


@dataclass(frozen=True)
class Priors:
    """What `--priors` may set; None is the method's own."""

    size: float | None = None
    category: float | None = None


EPSILON = option(None, "With differential privacy: epsilon, for one client added or removed.")
DELTA = option(None, "With --epsilon: delta, well below one over the number of clients.")
RENEW = option(
    None,
    "What a calendar day, month or year (UTC) may spend of the ledger's budget, which itself never "
    "renews: monthly:0.5, daily or yearly; monthly alone: as it says, at first this run's --epsilon.",
)


@dataclass(frozen=True)
class PrivacyOptions:
    """A guarantee to clients who are played in this process."""

    epsilon: float | None = EPSILON
    delta: float | None = also(DELTA, Needs("epsilon"))
    ledger: Path | None = option(
        None, "File that adds up the privacy that these clients spend, and lists exact releases."
    )
    ledger_epsilon: float | None = option(
        None,
        "With --ledger: its whole budget; by default, in a new file, that of this fit.",
        Needs("epsilon"),
        Needs("ledger"),
    )
    renew: str | None = also(RENEW, Needs("epsilon"), Needs("ledger"))

    def budget(self) -> dict[str, Any]:
        """Epsilon and delta; nothing if no guarantee is asked for."""
        if self.epsilon is None:
            return {}
        if self.delta is None:
            raise ParameterError(
                "expected --delta with --epsilon, well below one over the number of clients: 1e-6, say"
            )
        return {"epsilon": self.epsilon, "delta": self.delta}

    def asked(self, clients: "Aggregator") -> "Aggregator":
        """The same clients, behind their ledger; without a guarantee only if there is a file of it."""
        from polyurn.privacy.ledger import Renewal
        from polyurn.privacy.private_aggregator import ExactAggregator
        from polyurn.storage.ledger_file import LedgerFile

        entries = None if self.ledger is None else LedgerFile(self.ledger)
        if self.epsilon is None or self.delta is None:
            return clients if entries is None else ExactAggregator(clients, entries)
        kept = () if entries is None else entries.read()
        renewal = Renewal.of(self.renew, self.epsilon, kept)
        budget = self.ledger_epsilon or self.epsilon
        ledger = pu.PrivacyLedger(budget, self.delta, entries=entries, renewal=renewal)
        return pu.PrivateAggregator(clients, ledger=ledger)


@dataclass(frozen=True)
class FederationPrivacyOptions:
    """A guarantee to the clients of a federation; to release exact sums, the user has to say so."""

    epsilon: float | None = also(EPSILON, Unless("no_privacy"))
    delta: float | None = also(DELTA, Unless("no_privacy"))
    trust: Literal["distributed", "central", "local"] | None = option(
        None,
        "With --epsilon: who adds the noise; distributed, or with --plain central, by default.",
        Unless("no_privacy"),
    )
    ledger_epsilon: float | None = option(
        None,
        "With --epsilon: budget of all runs together; by default that of the first run.",
        Unless("no_privacy"),
    )
    renew: str | None = also(RENEW, Unless("no_privacy"))
    no_privacy: bool = option(False, "Release exact sums, without a guarantee.", "--no-privacy")


@dataclass(frozen=True)
class NodeOptions:
    """How the nodes of a federation are asked."""

    plain: bool = option(
        False, "Ask without masks: the server sees each node's numbers.", "--plain"
    )
    terms: str | None = option(
        None,
        "NAME=VALUE with commas: min_nodes=3 and min_fraction=0.7, fewest nodes and smallest share of "
        "them that a sum may be over; timeout=60, seconds that a node has for a reply; settling=60, "
        "longest wait for all nodes before the first round; dropout=0.3, share of nodes that may leave "
        "during a secure sum.",
    )

    def of_job(self, privacy: FederationPrivacyOptions) -> dict[str, Any]:
        """The fields of a job that say how nodes are asked, and what is guaranteed to clients."""
        from polyurn.federation.aggregator import Terms

        asked = asdict(named_values(self.terms, Terms, "--terms", secure=not self.plain))
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
        None, f"Directions of style, m; default: {DIRECTIONS}, or fewer with fewer features."
    )
    radius: float | None = option(
        None, "Radius at which points are clipped; by default 99 % of the proxy points are within."
    )
    label_effect: bool = option(
        False, "Ask for label shares, too, where style and label go together.", "--label-effect"
    )

    def space(self, path: Path, points: "Points") -> "pu.StyleSpace":
        """The style space of a file's points: there has to be one of every label."""
        from numpy import bincount, flatnonzero

        from polyurn.client.counting import category_names

        names = category_names(points.declared)
        held = bincount(points.labels, minlength=len(names))
        lacking, single = ([names[k] for k in flatnonzero(held == n)] for n in (0, 1))
        if lacking:
            raise CountsError(
                f"{path}: expected points of every label, got none of {listed(lacking, _SHOWN)}; take "
                "proxy points of them, or do not declare them"
            )
        if single:
            warn(
                f"one proxy point only: {listed(single, _SHOWN)}; how clients differ is then measured "
                "from that point, so take more"
            )
        most = min(DIRECTIONS, points.features.shape[1])
        try:
            return pu.style_space(
                points.features, points.labels, n_labels=len(names), radius=self.radius,
                n_directions=most if self.directions is None else self.directions,
            )  # fmt: skip
        except ParameterError as error:
            raise CountsError(f"{path}: {error}") from None


# -------------------------------------------------------------------------- what texts stand for


def declared_categories(text: str | None) -> int | tuple[str, ...] | None:
    """C, or the names of the categories."""
    if text is None:
        return None
    return int(text) if text.isdecimal() else tuple(name.strip() for name in text.split(","))


def declared_values(texts: list[str] | None) -> dict[str, tuple[str, ...]]:
    """The values of each column that `--values` declares."""
    named = [text.partition("=") for text in texts or ()]
    if not all(equals for _, equals, _ in named) or len({name for name, *_ in named}) < len(named):
        raise ParameterError("expected --values as COLUMN=VALUES with commas, once for each column")
    return {name.strip(): tuple(listed_names(values) or ()) for name, _, values in named}


def named_file(text: str) -> tuple[str, str]:
    """A name and its file: of NAME=FILE, or of a file, whose own name it is without the suffix.

    >>> named_file("iid=drawn.csv"), named_file("fits/mdm.json")
    (('iid', 'drawn.csv'), ('mdm', 'fits/mdm.json'))
    """
    name, equals, path = text.partition("=")
    if os.path.exists(text) or not equals:
        name, path = Path(text).stem, text
    if not (name and path):
        raise ParameterError(f"expected a population as a file or as NAME=FILE, got {text!r}")
    return name, path


def name_map(text: str | None) -> "Match | None":
    """The categories by their names in the table, as `--map` has them; or "position"."""
    if text is None or text == "by-position":
        return None if text is None else "position"
    parts = [part.rpartition("=") for part in next(csv.reader([text])) or [""]]
    if not all(old and new for old, _, new in parts):
        raise ParameterError(f"expected --map as OLD=NEW with commas, or by-position, got {text!r}")
    return {old.strip(): new.strip() for old, _, new in parts}


def named_values(text: str | None, kind: type[T], option: str, **more: object) -> T:
    """An object of the class with the values in `tol=0.01,patience=0`; `more` are other fields.

    >>> named_values("patience=0", Tuning, "--search")
    Tuning(tol=0.001, patience=0, max_upload=50000, tree=None)
    """
    types = {name: hint for name, hint in get_type_hints(kind).items() if hint is not bool}
    found = {}
    for part in text.split(",") if text else ():
        name, equals, value = (word.strip() for word in part.partition("="))
        if name not in types or not equals:
            raise ParameterError(
                f"expected {option} as NAME=VALUE with commas, of {', '.join(types)}, got {part!r}"
            )
        try:
            found[name] = {int: int, Path | None: Path}.get(types[name], float)(value)
        except ValueError:
            what = "a whole number" if types[name] is int else "a number"
            raise ParameterError(f"expected {name} in {option} as {what}, got {value!r}") from None
    return kind(**found, **more)


def declared_bins(text: str | None) -> "pu.Bins | None":
    """The bins of `--bins`."""
    if text is None:
        return None
    try:
        if ":" in text:
            start, stop, width = (float(part) for part in text.split(":"))
            return pu.Bins.of_width(width, start=start, stop=stop)
        edges = [float(edge) for edge in text.split(",")]
    except ValueError as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(
            f"expected --bins as 0:200000:5000 or 0,10,inf, got {text!r}"
        ) from None
    return pu.Bins(edges)


def drawn_cohort(text: str | None) -> tuple[int | None, Literal["fixed", "poisson"]]:
    """How many clients `1000` or `poisson:1000` stands for, and how they are drawn."""
    if text is None:
        return None, "fixed"
    kind, colon, number = text.rpartition(":")
    if (kind == "poisson" or not colon) and number.isdecimal() and len(number) < 20:
        return int(number), "poisson" if colon else "fixed"
    raise ParameterError(f"expected --cohort as 1000 or poisson:1000, got {text!r}")


def listed_names(text: str | None) -> list[str] | None:
    """Names of columns with commas between."""
    return None if text is None else [name.strip() for name in text.split(",")]


def component_numbers(text: str) -> tuple[int, ...] | Literal["auto"]:
    """The numbers of components that `3`, `1:6`, `2,4,8` or `auto` stand for."""
    if text == "auto":
        return "auto"
    try:
        numbers = tuple(int(part) for part in text.split(":" if ":" in text else ","))
        if ":" in text:
            first, last = numbers
            numbers = tuple(range(first, last + 1))
    except ValueError:
        raise ParameterError(
            f"expected --components as 3, 1:6, 2,4,8 or auto, got {text!r}"
        ) from None
    if not numbers:
        raise ParameterError(f"expected --components in increasing order, got {text!r}")
    return numbers

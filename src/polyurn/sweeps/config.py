"""A sweep as a TOML file: the same settings as in Python, under the same names.

    seeds = [0, 1, 2]
    model = "softmax"                        # or "mlp", "cnn"

    [data]
    builtin = "digits"                       # or file = "points.npz" / "points.parquet"

    [clients.true]                           # one table per population; "true" is compared with
    column = "client"                        # who holds each point, as the data say
    [clients.mdm]
    mdm = "mdm.json"                         # drawn anew for each seed
    n_clients = 500
    style = "style.json"                     # clients differ in style, too; for all that are drawn
    [clients.iid]
    iid = "true"                             # the sizes and the categories of these clients, pooled
    [clients.iid_proxy]
    iid_proxy = "true"                       # their sizes, and the categories of the data: the paper's
    [clients.dir]
    dirichlet = 0.1                          # one Dirichlet, as the field has it
    sizes = "true"
    [clients.oracle]
    oracle = "true"                          # the histograms of these clients; or a table's
    [clients.kept]
    partition = "partition.parquet"          # as `polyurn partition` wrote it

    [fedavg]                                 # the fields of FedAvg
    n_rounds = 100
    cohort_size = 50

    [grid]                                   # or [search], the fields of OptunaSearch
    local_learning_rate = [0.01, 0.1]

Only what the file says is read here; the data it names are read by `inputs.py`.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from polyurn.errors import FileError, ParameterError
from polyurn.storage.files import read_regular
from polyurn.sweeps.optuna_search import OptunaSearch
from polyurn.training.settings import EngineName, FedAvg, is_number
from polyurn.typed.records import shown

# TOML promises 64 bits; numpy recommends 128 for a seed.
_MOST_BITS = 128

KINDS = ("column", "partition", "mdm", "iid", "iid_proxy", "dirichlet", "oracle")
MARGINALS = ("flat", "clients", "proxy")


@dataclass(frozen=True)
class DataConfig:
    """Where the points come from.

    Attributes
    ----------
    builtin : str
        "digits": 8 x 8 images that scikit-learn carries.
    file : str
        An .npz with the arrays `features` and `labels`, perhaps `test_features` and `test_labels`; or a
        .parquet table, whose columns of numbers other than those named here are features.
    label : str
        The array or column of labels.
    category : str or list of str, optional
        The array or column with the modelled feature, which simulated clients match; the label's by
        default. Several are crossed: ["origin", "labels"], or "origin,labels".
    shape : list of int, optional
        The shape of a point's features, [1, 28, 28] say.
    test_share : float
        The share of points that is held out for testing, where no test points are given.
    """

    builtin: str | None = None
    file: str | None = None
    label: str = "labels"
    category: str | Sequence[str] | None = None
    shape: Sequence[int] | None = None
    test_share: float = 0.2

    def __post_init__(self) -> None:
        _check_texts(self, ("builtin", "file", "label"))
        if not _is_text_or_texts(self.category):
            raise ParameterError(
                f"expected category as a text or a list of texts, got {shown(self.category)}"
            )
        if (self.builtin is None) == (self.file is None):
            raise ParameterError("[data] needs either builtin or file")
        if self.builtin not in (None, "digits"):
            raise ParameterError(f"[data] builtin can only be 'digits', got {shown(self.builtin)}")
        if type(self.test_share) not in (int, float) or not 0 < self.test_share < 1:
            raise ParameterError(
                f"[data] test_share is between 0 and 1, got {shown(self.test_share)}"
            )
        if self.shape is not None and not (
            isinstance(self.shape, list | tuple) and all(_is_count(n) for n in self.shape)
        ):
            raise ParameterError(
                f"[data] shape is a list of whole numbers above 0, got {shown(self.shape)}"
            )


@dataclass(frozen=True)
class ClientsConfig:
    """Who the clients of one population are: exactly one of the first seven.

    Attributes
    ----------
    column : str
        The array or column of the data that says who holds each point.
    partition : str
        A file that `polyurn partition` wrote.
    mdm : str
        An MDM file.
    iid : str or int
        Fully IID clients with the sizes and the pooled categories of another population. With a number
        of points each there are no clients whose categories could be meant: those of the data.
    iid_proxy : str or int
        Fully IID clients with the sizes of another population, or of so many points each, and the
        categories of the data: the paper's baseline.
    dirichlet : float
        Clients of one Dirichlet with this concentration per category.
    oracle : str
        Conditionally IID clients with the histograms of another population, or of a table.
    sizes : str or int
        Of `dirichlet`: those of another population, or so many points each.
    marginal : {"flat", "clients", "proxy"}
        Of `dirichlet`: the same concentration for each category, the default, or in proportion to how
        frequent it is among the clients that `sizes` names, or in the data.
    n_clients : int, optional
        How many are drawn: needed for `mdm` and a number of points; else as many as there are. More
        than there are true clients is allowed, and better for a sparse mixture: 400 draws of one have
        a noisy marginal of their own.
    style : str, optional
        A style file: drawn clients are given points of a style of their own.
    style_features : str, optional
        The array of the data in which the style is measured; what is trained on by default.
    """

    column: str | None = None
    partition: str | None = None
    mdm: str | None = None
    iid: str | int | None = None
    iid_proxy: str | int | None = None
    dirichlet: float | None = None
    oracle: str | None = None
    sizes: str | int | None = None
    marginal: str | None = None
    n_clients: int | None = None
    style: str | None = None
    style_features: str | None = None

    @property
    def kind(self) -> str:
        return next(name for name in KINDS if getattr(self, name) is not None)

    def __post_init__(self) -> None:
        given = [name for name in KINDS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ParameterError(
                f"needs one of {', '.join(KINDS)}, got {', '.join(given) or 'none'}"
            )
        _check_texts(self, ("column", "partition", "mdm", "oracle", "style", "style_features"))
        for name in ("iid", "iid_proxy", "sizes"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str) and not _is_count(value):
                raise ParameterError(
                    f"{name} is a population or a number of points, got {shown(value)}"
                )
        if self.n_clients is not None and not _is_count(self.n_clients):
            raise ParameterError(
                f"n_clients is a whole number above 0, got {shown(self.n_clients)}"
            )
        self._check_dirichlet()
        drawn = self.mdm is not None or isinstance(self.like, int)
        if drawn and self.n_clients is None:
            raise ParameterError("needs n_clients: how many clients to draw")
        if self.kind in ("column", "partition"):
            for name in ("n_clients", "style"):
                if getattr(self, name) is not None:
                    raise ParameterError(f"{name} has no meaning with {self.kind}")
        if self.style_features is not None and self.style is None:
            raise ParameterError("style_features has no meaning without style")

    @property
    def like(self) -> str | int | None:
        """Whose sizes, or categories, drawn clients have: a population's, or so many points each."""
        return getattr(self, "sizes" if self.kind == "dirichlet" else self.kind, None)

    def _check_dirichlet(self) -> None:
        if self.dirichlet is None:
            for name in ("sizes", "marginal"):
                if getattr(self, name) is not None:
                    raise ParameterError(f"{name} has no meaning with {self.kind}")
            return
        if not is_number(self.dirichlet) or self.dirichlet <= 0:
            raise ParameterError(f"dirichlet is a number above 0, got {shown(self.dirichlet)}")
        if self.sizes is None:
            raise ParameterError("needs sizes: a population above it, or a number of points")
        if self.marginal is not None and self.marginal not in MARGINALS:
            raise ParameterError(
                f"marginal is one of {', '.join(MARGINALS)}, got {shown(self.marginal)}"
            )
        if self.marginal == "clients" and not isinstance(self.sizes, str):
            raise ParameterError(
                "marginal = 'clients' needs sizes as a population, whose clients are meant, "
                f"got {shown(self.sizes)}"
            )


@dataclass(frozen=True)
class SweepConfig:
    """What a TOML file asks for.

    Attributes
    ----------
    data : DataConfig
    clients : dict of str to ClientsConfig
    fedavg : FedAvg
    seeds : tuple of int
    model : str
    grid, search : dict, OptunaSearch
        One of them.
    engine : {"auto", "workers", "batched"}
    noise_floor : bool
        Whether the true clients are trained again in other cohorts.
    weighted_to : str, optional
        The population whose class frequencies the metric "weighted accuracy" is weighted to.
    folder : Path
        The file's, which paths in it start from.
    """

    data: DataConfig
    clients: Mapping[str, ClientsConfig]
    fedavg: FedAvg
    seeds: tuple[int, ...]
    folder: Path
    model: str = "softmax"
    grid: Mapping[str, Sequence[Any]] | None = None
    search: OptunaSearch | None = None
    engine: EngineName = "auto"
    noise_floor: bool = True
    weighted_to: str | None = None


def read_config(path: Path) -> SweepConfig:
    """Read a TOML file.

    Raises
    ------
    FileError
        The file cannot be read or is not TOML.
    ParameterError
        It asks for something that does not exist; the message names the nearest that does.
    """
    try:
        table = tomllib.loads(read_regular(path).decode())
    except UnicodeDecodeError as error:
        raise FileError(
            f"{path} is not TOML: expected UTF-8, got the byte {error.object[error.start]:#04x} at "
            f"position {error.start}; save the file as UTF-8"
        ) from error
    except RecursionError as error:
        raise FileError(f"{path} is not TOML: expected fewer brackets in brackets") from error
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{path} is not TOML: {error}") from error
    except ValueError as error:  # Python does not read so many digits
        raise FileError(f"{path}: expected numbers of at most {_MOST_BITS} bits") from error
    try:
        _check_integers(table)
        return parse_config(table, folder=path.parent)
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from error


def parse_config(table: Mapping[str, Any], *, folder: Path = Path()) -> SweepConfig:
    """The sweep that a table of TOML asks for.

    Examples
    --------
    >>> found = parse_config({
    ...     "seeds": [0], "data": {"builtin": "digits"}, "clients": {"iid": {"iid": 20, "n_clients": 9}},
    ...     "fedavg": {"n_rounds": 5, "cohort_size": 3}, "grid": {"local_epochs": [1, 2]},
    ... })
    >>> found.fedavg.n_rounds, found.clients["iid"].kind
    (5, 'iid')
    """
    known = ("seeds", "model", "engine", "noise_floor", "weighted_to", "data", "clients", "fedavg",
             "grid", "search")  # fmt: skip
    _check("the file", table, known)
    for name in ("seeds", "data", "clients", "fedavg"):
        if not table.get(name):
            raise ParameterError(f"{name} is missing")
    for name in ("data", "clients", "fedavg", "grid", "search"):
        if name in table and not isinstance(table[name], Mapping):
            raise ParameterError(f"expected [{name}] as a table")
    if ("grid" in table) == ("search" in table):
        raise ParameterError("expected either [grid] or [search]")
    seeds = table["seeds"]
    if not isinstance(seeds, list) or not all(type(seed) is int and seed >= 0 for seed in seeds):
        raise ParameterError("expected seeds as a list of whole numbers of at least 0")
    if not isinstance(table.get("model", ""), str):
        raise ParameterError(f"expected the name of a model, got {shown(table['model'])}")
    _check_measures(table)
    return SweepConfig(
        data=_made("[data]", DataConfig, table["data"]),
        clients={
            name: _made(f"[clients.{name}]", ClientsConfig, entry)
            for name, entry in table["clients"].items()
        },
        fedavg=FedAvg.from_record(table["fedavg"]),
        seeds=tuple(seeds),
        folder=folder,
        model=table.get("model", "softmax"),
        grid=table.get("grid"),
        search=_made("[search]", OptunaSearch, table["search"]) if "search" in table else None,
        engine=table.get("engine", "auto"),
        noise_floor=table.get("noise_floor", True),
        weighted_to=table.get("weighted_to"),
    )


def _check_measures(table: Mapping[str, Any]) -> None:
    """What is measured beside the runs that were asked for."""
    if type(table.get("noise_floor", True)) is not bool:
        raise ParameterError(
            f"expected noise_floor as true or false, got {shown(table['noise_floor'])}"
        )
    names, weighted_to = [*table["clients"]], table.get("weighted_to")
    if weighted_to is not None and weighted_to not in names:
        raise ParameterError(
            f"expected weighted_to as a population of the file, one of {', '.join(names)}, "
            f"got {shown(weighted_to)}"
        )


def _check_integers(value: Any) -> None:
    """Refuse integers that no computation has room for, wherever they stand."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise ParameterError(f"expected integers of at most {_MOST_BITS} bits, got {shown(value)}")
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            _check_integers(part)


def _check_texts(entry: object, names: Sequence[str]) -> None:
    for name in names:
        value = getattr(entry, name)
        if value is not None and not isinstance(value, str):
            raise ParameterError(f"expected {name} as a text, got {shown(value)}")


def _is_text_or_texts(value: object) -> bool:
    listed = value if isinstance(value, list | tuple) and value else [value]
    return value is None or all(isinstance(text, str) for text in listed)


def _is_count(value: object) -> bool:
    return type(value) is int and value > 0


def _made(where: str, kind: type[Any], entry: Mapping[str, Any]) -> Any:
    if not isinstance(entry, Mapping):
        raise ParameterError(f"expected {where} as a table")
    _check(where, entry, [item.name for item in fields(kind)])
    needed = [item.name for item in fields(kind) if item.default is item.default_factory is MISSING]
    missing = [name for name in needed if name not in entry]
    if missing:
        raise ParameterError(f"{where} needs {' and '.join(missing)}")
    try:
        return kind(**entry)
    except ParameterError as error:
        text = str(error)
        raise ParameterError(text if text.startswith(where) else f"{where} {text}") from error


def _check(where: str, entry: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in entry:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"expected {', '.join(known)}"
            raise ParameterError(f"{where} has no {shown(name)}; {hint}")

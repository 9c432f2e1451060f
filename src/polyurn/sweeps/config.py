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

A class for each table says its keys and their types; one reader walks them. What kinds of clients there
are, and how each is drawn, is `kinds.py`; the data that the file names are read by `inputs.py`.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeVar

from polyurn.errors import FileError, ParameterError
from polyurn.storage.places import read_regular
from polyurn.sweeps.kinds import KINDS, FileClients
from polyurn.sweeps.optuna_search import OptunaSearch
from polyurn.training.settings import EngineName, FedAvg
from polyurn.typed.arguments import checked
from polyurn.typed.records import Count, shown

# TOML promises 64 bits; numpy recommends 128 for a seed.
_MOST_BITS = 128

Table = TypeVar("Table")


@checked
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

    builtin: Literal["digits"] | None = None
    file: str | None = None
    label: str = "labels"
    category: str | Sequence[str] | None = None
    shape: Sequence[Count] | None = None
    test_share: float = 0.2

    def __post_init__(self) -> None:
        if (self.builtin is None) == (self.file is None):
            raise ParameterError("needs either builtin or file")
        if not 0 < self.test_share < 1:
            raise ParameterError(f"expected test_share between 0 and 1, got {self.test_share}")


@checked
@dataclass(frozen=True)
class SweepConfig:
    """What a TOML file asks for.

    Attributes
    ----------
    data : DataConfig
    clients : dict of str to a kind of clients
    fedavg : FedAvg
    seeds : tuple of int
    folder : Path
        The file's, which paths in it start from.
    model : str
    grid, search : dict, OptunaSearch
        One of them.
    engine : {"auto", "workers", "batched"}
    noise_floor : bool
        Whether the true clients are trained again in other cohorts.
    weighted_to : str, optional
        The population whose class frequencies the metric "weighted accuracy" is weighted to.
    """

    data: DataConfig
    clients: Mapping[str, FileClients]
    fedavg: FedAvg
    seeds: Sequence[Count]
    folder: Path
    model: str = "softmax"
    grid: Mapping[str, Any] | None = None
    search: OptunaSearch | None = None
    engine: EngineName = "auto"
    noise_floor: bool = True
    weighted_to: str | None = None

    def __post_init__(self) -> None:
        if (self.grid is None) == (self.search is None):
            raise ParameterError("expected either [grid] or [search]")
        if self.weighted_to not in (None, *self.clients):
            raise ParameterError(
                f"expected weighted_to as a population of the file, one of {', '.join(self.clients)}, "
                f"got {shown(self.weighted_to)}"
            )


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
    >>> found.fedavg.n_rounds, found.clients["iid"].n_clients
    (5, 9)
    """
    for name in ("seeds", "data", "clients", "fedavg"):
        if not table.get(name):
            raise ParameterError(f"{name} is missing")
    read: dict[str, Callable[[Any], Any]] = {
        "data": lambda entry: _read(DataConfig, entry, "[data] "),
        "clients": lambda entries: {
            name: _read_clients(entry, f"[clients.{name}] ") for name, entry in entries.items()
        },
        "fedavg": FedAvg.from_record,
        "search": lambda entry: _read(OptunaSearch, entry, "[search] "),
        "grid": dict,
    }
    given = {}
    for name, value in table.items():
        if name in read and not isinstance(value, Mapping):
            raise ParameterError(f"expected [{name}] as a table")
        given[name] = read[name](value) if name in read else value
    return _read(SweepConfig, {**given, "folder": folder}, "")


def _read_clients(entry: object, where: str) -> FileClients:
    """The clients of an entry, whose kind is the one key of those that name a kind."""
    if not isinstance(entry, Mapping):
        raise ParameterError(f"expected {where}as a table")
    found = [kind for kind in KINDS if kind in entry]
    all_keys = {item.name: None for kind in KINDS.values() for item in fields(kind)}
    _check_keys(entry, [*all_keys], where)
    if len(found) != 1:
        raise ParameterError(
            f"{where}needs one of {', '.join(KINDS)}, got {', '.join(found) or 'none'}"
        )
    kind = KINDS[found[0]]
    for name in entry:
        if name not in kind.__dataclass_fields__:
            raise ParameterError(f"{where}{name} has no meaning with {found[0]}")
    return _read(kind, entry, where)


def _read(kind: type[Table], entry: Mapping[str, Any], where: str) -> Table:
    """A table as its class, which checks what is in it; `where` is said before what is wrong."""
    items: Any = fields(kind)  # type: ignore[arg-type]
    _check_keys(entry, [item.name for item in items], where)
    needed = [item.name for item in items if item.default is item.default_factory is MISSING]
    missing = [name for name in needed if name not in entry]
    if missing:
        raise ParameterError(f"{where}needs {' and '.join(missing)}")
    try:
        return kind(**entry)
    except ParameterError as error:
        text = str(error).replace(" or None", "")  # which TOML does not have
        raise ParameterError(f"{where}{text}") from error


def _check_keys(entry: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for name in entry:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"expected {', '.join(known)}"
            raise ParameterError(f"{where or 'the file '}has no {shown(name)}; {hint}")


def _check_integers(value: Any) -> None:
    """Refuse integers that no computation has room for, wherever they stand."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise ParameterError(f"expected integers of at most {_MOST_BITS} bits, got {shown(value)}")
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            _check_integers(part)

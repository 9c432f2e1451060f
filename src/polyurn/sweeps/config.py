"""A sweep as a TOML file: the same settings as in Python, under the same names.

A class for each table declares its keys and their types; one reader walks them. docs/training.md has an
example with every table. `inputs.py` reads what the file names.
"""

import shlex
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from polyurn.errors import FileError, ParameterError
from polyurn.model.names import Match
from polyurn.storage.files import read_regular
from polyurn.sweeps.flower_run import as_run_config
from polyurn.sweeps.optuna_search import OptunaSearch
from polyurn.sweeps.trainers import CommandTrainer, doubled
from polyurn.training.fedavg import EngineName, FedAvg, Positive, check_names
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Above, Between
from polyurn.typed.json_form import Count, shown

# TOML promises 64 bits; numpy recommends 128 for a seed.
_MOST_BITS = 128

_FLOWER_FILES = " --partition {partition} --settings {settings} --seed {seed} --metrics {metrics}"

KINDS = (
    "column", "partition", "mdm", "iid", "iid_proxy", "dirichlet", "oracle", "fitted", "hsu",
    "pathological", "shards", "quantity_skew",
)  # fmt: skip
_WITH_SIZES = ("dirichlet", "hsu", "pathological")
_Share: TypeAlias = Annotated[float, Between(0, 1)]
Table = TypeVar("Table")


@checked
@dataclass(frozen=True)
class DataConfig:
    """The source of the points, from `builtin` or `file`.

    "digits" are 8 x 8 images that scikit-learn carries. A file is an .npz with the arrays `features` and
    the label's, perhaps `test_features` and `test_labels`; or a .parquet table, whose columns of numbers
    other than those named here are features. `category` is the array or column with the modelled
    feature, which simulated clients match; the label's by default. Several are crossed: ["origin",
    "labels"], or "origin,labels". `match` is what the data call the categories of the models: {theirs =
    "the model's"}; or "position", in their order. `shape` is that of a point's features, [1, 28, 28]
    say. `test_share` is the share of points that is held out for testing, where no test points are
    given.
    """

    builtin: Literal["digits"] | None = None
    file: str | None = None
    label: str = "labels"
    category: str | Sequence[str] | None = None
    match: Match | None = None
    shape: Sequence[Count] | None = None
    test_share: _Share = 0.2

    def __post_init__(self) -> None:
        if (self.builtin is None) == (self.file is None):
            raise ParameterError("needs either builtin or file")


@checked
@dataclass(frozen=True)
class ClientsConfig:
    """The clients of one population: one of the first twelve is given (docs/training.md has each).

    `dirichlet`, `hsu` and `pathological` need `sizes`: those of another population, or this many points
    each. `n_clients` is needed for `mdm`, `shards`, `quantity_skew` and a number of points; else they
    are as many as the other population has. A `style` is measured in the array `style_features`, by
    default the training features. `plausible` adds so many mixtures that are as plausible as `mdm`.
    """

    column: str | None = None
    partition: str | None = None
    mdm: str | None = None
    iid: str | Positive | None = None
    iid_proxy: str | Positive | None = None
    dirichlet: Annotated[float, Above(0)] | None = None
    oracle: str | None = None
    fitted: str | None = None
    hsu: float | None = None
    pathological: Count | None = None
    shards: Count | None = None
    quantity_skew: float | None = None
    sizes: str | Positive | None = None
    n_clients: Positive | None = None
    style: str | None = None
    style_features: str | None = None
    plausible: Positive | None = None

    @property
    def kind(self) -> str:
        return next(name for name in KINDS if getattr(self, name) is not None)

    @property
    def like(self) -> str | int | None:
        """The source of drawn clients' sizes or categories: a population, or a number of points each."""
        if self.kind in ("shards", "quantity_skew"):
            return None
        return getattr(self, "sizes" if self.kind in _WITH_SIZES else self.kind, None)

    def __post_init__(self) -> None:
        given = [name for name in KINDS if getattr(self, name) is not None]
        if len(given) != 1:
            got = ", ".join(given) or "none"
            raise ParameterError(f"needs one of {', '.join(KINDS)}, got {got}")
        without = [] if self.kind == "mdm" else ["plausible"]
        without += [] if self.kind in _WITH_SIZES else ["sizes"]
        if self.kind in ("column", "partition"):
            without += ["n_clients", "style", "style_features"]
        for name in without:
            if getattr(self, name) is not None:
                raise ParameterError(f"{name} has no meaning with {self.kind}")
        if self.kind in _WITH_SIZES and self.sizes is None:
            raise ParameterError("needs sizes: a population above it, or a number of points")
        whole = self.kind in ("shards", "quantity_skew")
        drawn = self.mdm is not None or whole or isinstance(self.like, int)
        if drawn and self.n_clients is None:
            raise ParameterError("needs n_clients: how many clients to draw")
        if self.style_features is not None and self.style is None:
            raise ParameterError("style_features has no meaning without style")


@checked
@dataclass(frozen=True)
class TrainerConfig:
    """A trainer of the user's: a `command`, or the folder of a `flower` app, with the settings as its
    run-config.

    The fields are those of `CommandTrainer`; `folder` is by default the file's.
    """

    command: str | None = None
    flower: str | None = None
    folder: str = "."
    partition: Literal["json", "parquet"] = "json"
    timeout: float | None = None

    def __post_init__(self) -> None:
        if (self.command is None) == (self.flower is None):
            raise ParameterError("needs either command or flower")

    def in_folder(self, folder: Path) -> CommandTrainer:
        """The trainer; its folders start from `folder`."""
        command, where = self.command, folder / self.folder
        if self.flower is not None:
            where = folder / self.flower
            ours = [sys.executable, "-m", "polyurn.sweeps.flower_run", str(where.resolve())]
            command = " ".join(shlex.quote(doubled(word)) for word in ours) + _FLOWER_FILES
        return CommandTrainer(
            str(command), folder=where, partition=self.partition, timeout=self.timeout
        )


@checked
@dataclass(frozen=True)
class SweepConfig:
    """What a TOML file asks for.

    `fedavg` are settings of our own engines; without them, a `trainer` is needed, and `settings` are
    those of it that the grid does not change. Paths start from `folder`, the file's. With `noise_floor`
    the true clients are trained again in other cohorts. `weighted_to` is the population whose class
    frequencies the metric "weighted accuracy" is weighted to, `client_test` the share of each client's
    points on which that client is tested.
    """

    data: DataConfig
    clients: Mapping[str, ClientsConfig]
    seeds: Sequence[Count]
    folder: Path
    fedavg: FedAvg | None = None
    trainer: TrainerConfig | None = None
    settings: Mapping[str, Any] | None = None
    model: str = "softmax"
    grid: Mapping[str, Any] | None = None
    search: OptunaSearch | None = None
    engine: EngineName = "auto"
    noise_floor: bool = True
    weighted_to: str | None = None
    client_test: _Share | None = None

    def __post_init__(self) -> None:
        if (self.grid is None) == (self.search is None):
            raise ParameterError("expected either [grid] or [search]")
        if (self.fedavg is None) == (self.trainer is None):
            raise ParameterError("expected either [fedavg] or [trainer]")
        if self.fedavg is not None and self.settings is not None:
            raise ParameterError("[settings] has no meaning without [trainer]")
        if self.trainer is not None and self.weighted_to is not None:
            raise ParameterError("weighted_to has no meaning with [trainer], which tests by itself")
        if self.weighted_to not in (None, *self.clients):
            raise ParameterError(
                f"expected weighted_to as a population of the file, one of {', '.join(self.clients)}, "
                f"got {shown(self.weighted_to)}"
            )
        n_plausible = sum(entry.plausible or 0 for entry in self.clients.values())
        if len(self.populations) < len(self.clients) + n_plausible:
            raise ParameterError(
                "expected no population of the file with the name of a plausible mixture, NAME~1"
            )

    @property
    def populations(self) -> dict[str, ClientsConfig]:
        """The entries, each before its plausible mixtures."""
        return {
            name: one
            for base, entry in self.clients.items()
            for name, one in [
                (base, entry),
                *((f"{base}~{i}", entry) for i in range(1, (entry.plausible or 0) + 1)),
            ]
        }


def read_config(path: Path) -> SweepConfig:
    """Read a TOML file.

    One that cannot be read or is not TOML is a `FileError`; one that asks for something that does not
    exist is a `ParameterError`, which names the nearest valid name.
    """
    try:
        table = tomllib.loads(read_regular(path).decode())
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: expected UTF-8 text: save it as UTF-8") from error
    except (ValueError, RecursionError) as error:  # numbers of too many digits, too; or no TOML
        raise FileError(f"{path}: expected TOML: {error}") from error
    try:
        _check_integers(table)
        return parse_config(table, folder=path.parent)
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from error


def parse_config(table: Mapping[str, Any], *, folder: Path = Path()) -> SweepConfig:
    """The sweep that a table of TOML asks for."""
    given = dict(table)
    kinds: dict[str, type[Any]] = {
        "data": DataConfig, "fedavg": FedAvg, "trainer": TrainerConfig, "search": OptunaSearch
    }  # fmt: skip
    for name in kinds.keys() & given.keys():
        given[name] = _read(kinds[name], given[name], f"[{name}] ")
    if isinstance(entries := given.get("clients"), Mapping):
        given["clients"] = {
            name: _read(ClientsConfig, entry, f"[clients.{name}] ")
            for name, entry in entries.items()
        }
    found = _read(SweepConfig, given | {"folder": folder}, "")
    return found if found.trainer is None else _of_app(found, found.trainer)


def _of_app(config: SweepConfig, trainer: TrainerConfig) -> SweepConfig:
    """The same sweep, with settings called as in the run-config of a Flower app, if it trains one."""
    if trainer.flower is None:
        return config
    named = partial(as_run_config, config.folder / trainer.flower)
    search = config.search
    return replace(
        config,
        settings=named(config.settings or {}),
        grid=None if config.grid is None else named(config.grid),
        search=None if search is None else replace(search, space=named(search.space)),
    )


def _read(kind: type[Table], entry: Mapping[str, Any], where: str) -> Table:
    """A table as its class, which checks the content; an error begins with `where`."""
    if not isinstance(entry, Mapping):
        raise ParameterError(f"expected {where}as a table")
    items: Any = fields(kind)  # type: ignore[arg-type]
    check_names(entry, [item.name for item in items], f"{where or 'the file '}has no")
    needed = [item.name for item in items if item.default is item.default_factory is MISSING]
    missing = [name for name in needed if name not in entry]
    if missing:
        raise ParameterError(f"{where}needs {' and '.join(missing)}")
    try:
        return kind(**entry)
    except ParameterError as error:
        text = str(error).replace(" or None", "")  # which TOML does not have
        raise ParameterError(f"{where}{text}") from error


def _check_integers(value: Any) -> None:
    """Refuse integers too large for any computation, anywhere in the file."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise ParameterError(f"expected integers of at most {_MOST_BITS} bits, got {shown(value)}")
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            _check_integers(part)

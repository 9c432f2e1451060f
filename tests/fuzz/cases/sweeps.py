"""Sweeps as TOML files with a few parts missing, foreign or out of range."""

import json
import tomllib

import numpy as np

from damage import damaged
from fuzz.case import Case, Ran, chance, one_of
from fuzz.material import SWEEP, arrays, packed, some
from fuzz.toml_text import toml_text

# Where something else of the right type is more likely to be believed: the place, and what to put there.
_OTHERS = (
    ("model", ("mlp", "cnn", "Softmax", "")),
    ("engine", ("workers", "batched", "fast", "")),
    ("seeds", ([0, 0], [0], [2**63], [2**32], [1, 0])),
    ("data.file", ("nothing.npz", "clients.csv", "simulated.parquet", "mdm.json", "", ".", "/dev/null")),
    ("data.label", ("features", "client", "x", "")),
    ("data.category", ("client", "features", "x", "", "client,labels", ["labels", "client"], ["labels"],
        "labels,features", ",", ["labels", 3], [])),
    ("data.shape", ([], [2, 2], [1, 2, 2], [5], [0], [4, 1], [2**40], [-1])),
    ("data.test_share", (0.001, 0.999, 1e-12, 0.5)),
    ("data.builtin", ("digits",)),
    ("clients.true.column", ("labels", "features", "x", "test_labels")),
    ("clients.mdm.mdm", ("mdm.json", "comparison.json", "nothing.json", "clients.csv", "")),
    ("clients.mdm.n_clients", (1, 2**31, 2**62, 10**10)),
    ("clients.iid.iid", ("iid", "oracle", "x", "", 2**62)),
    ("clients.paper", ({"iid_proxy": "true"}, {"iid_proxy": 5, "n_clients": 3}, {"iid_proxy": "x"},
        {"iid_proxy": 5})),
    ("clients.dir", ({"dirichlet": 0.1, "sizes": "true"}, {"dirichlet": 0.1},
        {"dirichlet": 1e-300, "sizes": 4, "n_clients": 3}, {"dirichlet": 1e300, "sizes": "true"},
        {"dirichlet": -1, "sizes": "true"}, {"dirichlet": 0.5, "sizes": "true", "iid": "x"})),
    ("clients.again", ({"column": "client"}, {"iid": "true"})),
    ("noise_floor", (False, True, 0, "no")),
    ("weighted_to", ("true", "few", "x", "", 3)),
    ("clients.few.iid", (1, 2**62, "true")),
    ("clients.oracle.oracle", ("clients.csv", "numbers.csv", "oracle", "nothing.csv",
        "simulated.parquet")),
    ("clients.kept", ({"partition": "partition.json"}, {"partition": "partition.parquet"},
        {"partition": "x"})),
    ("clients.", ({"iid": "true"}, {"column": "client"})),
    ("fedavg.cohort_size", (1, 1000, 2**62)),
    ("fedavg.batch_size", (1, 2**62)),
    ("fedavg.evaluate_every", (3, 2**62)),
    ("fedavg.local_learning_rate", (1e-300, 1e300, 1e30)),
    ("fedavg.weighting", ("points", "Uniform", "")),
    ("fedavg.server_optimizer", ("Adam", "LBFGS", "SparseAdam", "Optimizer", "__name__",
        "lr_scheduler", "sgd", "")),
    ("fedavg.server_options", ({"momentum": 2.0}, {"momentum": "x"}, {"params": 1},
        {"foreach": True}, {"x": 1}, {"weight_decay": -1}, {"nesterov": True})),
    ("grid.local_learning_rate", ([], [0.1, 0.1], [0.1, "x"], 0.1, [[0.1]])),
    ("grid.n_rounds", ([1, 2], [0], ["2"])),
    ("grid.server_optimizer", (["SGD", "Adam"], ["x"])),
    ("grid.server_options", ([{"momentum": 0.1}], [{"momentum": "x"}], [1])),
)  # fmt: skip

_SEARCHES = (
    {"n_trials": 2, "space": {"local_learning_rate": [0.01, 1.0]}},
    {"n_trials": 0},
    {"space": {}},
    {"n_trials": 2, "space": {"local_learning_rate": {"low": 0.01, "high": 1.0, "log": True}}},
)


def cases(rng: np.random.Generator) -> Case:
    """`polyurn sweep` with a file that asks for something else."""
    asked = tomllib.loads(SWEEP)
    for _ in range(int(rng.integers(1, 3))):
        if chance(rng, 0.5):
            asked = damaged(asked, rng=rng)
        elif isinstance(asked, dict):
            _put(asked, *one_of(rng, _OTHERS), rng)
    if isinstance(asked, dict) and chance(rng, 0.03):
        asked.pop("grid", None)
        asked["search"] = one_of(rng, _SEARCHES)
    files = some("points.npz", "plain.json", "mdm.json", "clients.csv", "numbers.csv")
    files |= some("simulated.parquet", "partition.json", "partition.parquet", "comparison.json")
    if chance(rng, 0.3):
        files["points.npz"] = packed(_with_test_points())
    files["sweep.toml"] = toml_text(asked)
    command = ("sweep", "sweep.toml", "-o", "swept", "--jobs", "1")
    return Case(command, files, keeps=("swept",), oracle=_trains(asked))


def _put(asked: dict, place: str, values: tuple, rng: np.random.Generator) -> None:
    """Another value at a place, if the tables around it are still there."""
    *folders, last = place.split(".")
    for name in folders:
        asked = asked.get(name)
        if not isinstance(asked, dict):
            return
    asked[last] = one_of(rng, values)


def _with_test_points() -> dict[str, np.ndarray]:
    given = arrays()
    return given | {"test_features": given["features"][:9], "test_labels": given["labels"][:9]}


def _trains(asked: dict):
    """Whether all that was asked for was trained, and nothing else."""

    def oracle(ran: Ran) -> str | None:
        lines = (ran.folder / "swept" / "runs.jsonl").read_text().splitlines()
        runs = [json.loads(line) for line in lines[1:]]  # the first says what the log is
        for name, value in asked["fedavg"].items():
            if name in asked.get("grid", {}):
                continue
            for run in runs:
                if run["settings"].get(name) != value and "search" not in asked:
                    return f"{name} is {run['settings'].get(name)!r}, the file says {value!r}"
        if "grid" not in asked:
            return None
        distinct = {json.dumps([r["population"], r["seed"], r["settings"]]) for r in runs}
        names = {*asked["clients"]}
        if "true" in names and asked.get("noise_floor", True):
            names.add("again")
        n = len({*asked["seeds"]}) * len(names)
        for values in asked["grid"].values():
            n *= len({json.dumps(value) for value in values})
        return None if len(distinct) == n else f"{len(distinct)} runs, the file asks for {n}"

    return oracle

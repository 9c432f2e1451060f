"""A valid call of everything public: tests replace one argument at a time and see what is said.

`VALID_CALLS[name]()` returns a function and its keyword arguments, made anew for each call. Files go
to a folder that is removed when the process ends.
"""

import itertools
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

import polyurn as pu
from polyurn.comparison.estimates import Estimate
from polyurn.model.style import StyleErrors
from polyurn.privacy.ledger import Charge
from polyurn.privacy.noise import discrete_gaussian
from polyurn.server.fit_settings import DEFAULT, Policy
from polyurn.storage.run_log import RunLog
from polyurn.wire import BoundedSurvey, Initialise, Noised

Call = tuple[Callable[..., Any], dict[str, Any]]

COUNTS = np.random.default_rng(0).multinomial(6, [0.5, 0.3, 0.2], size=40)
LABELS = np.tile([0, 1, 2, 0], 50)
FEATURES = np.random.default_rng(0).normal(size=(200, 4))
_folder = TemporaryDirectory(prefix="polyurn-api-")
_numbers = itertools.count()


def mdm() -> pu.MDM:
    return pu.MDM([0.6, 0.4], [[9.0, 1.0, 1.0], [1.0, 3.0, 9.0]], sizes())


def splits() -> pu.Splits:
    return pu.Splits(pu.Tree([[1, 4], [2, 3]]), [[[1.0, 2.0], [3.0, 0.5]]])


def sizes_of_one() -> pu.Sizes:
    return pu.Sizes.constant(9)


def sizes() -> pu.Sizes:
    return pu.Sizes(pu.SizeBins([1, 3, 5, 9]), [[0.2, 0.3, 0.5], [0.5, 0.5, 0.0]])


def parts() -> pu.Partition:
    return pu.Partition.by_owner(np.arange(200) % 20)


def space() -> pu.StyleSpace:
    return pu.style_space(FEATURES, LABELS, n_directions=2)


def style() -> pu.Style:
    one, shares = np.eye(2), [0.5, 0.3, 0.2]
    return pu.Style(
        space(), [0.1, 0.0], 0.3 * one, 0.2 * one, 0.5 * one, label_shares=shares,
        label_covariance=0.1 * np.eye(3), label_effect=np.zeros((3, 2)), n_clients=40, far_share=0.01,
        errors=StyleErrors(np.full(2, 0.1), 0.1 * one, 0.1 * one, 0.1 * one),
    )  # fmt: skip


def place(suffix: str = "") -> Path:
    """A place where nothing stands yet."""
    return Path(_folder.name) / f"{next(_numbers)}{suffix}"


def clients() -> pu.LocalAggregator:
    return pu.LocalAggregator(COUNTS, rng=1)


def query() -> Initialise:
    return Initialise(2, 3, pu.SizeBins.exact(9))


@cache
def packed() -> Path:
    """A folder of packed clients."""
    pu.write_histograms(COUNTS, table := place(".parquet"))
    folder: Path = pu.pack_shards(table, place(), categories=3, clients_per_shard=15).path
    return folder


def shards() -> pu.ShardAggregator:
    return pu.ShardAggregator(packed(), rng=1)


class HereAndNow:
    """Has the methods of a Dask cluster's client that we use, and does everything at once."""

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def nthreads(self) -> dict[str, int]:
        return {"here": 1}

    def submit(self, function: Callable[..., Any], *args: Any, pure: bool, **kwargs: Any) -> Any:
        named = {name: _result(value) for name, value in kwargs.items()}
        return HereAndNow(function(*map(_result, args), **named))

    def map(self, function: Callable[..., Any], *each: Any, **kwargs: Any) -> list[Any]:
        return [self.submit(function, *args, **kwargs) for args in zip(*each, strict=True)]

    def result(self) -> Any:
        return self.value


def _result(value: Any) -> Any:
    if isinstance(value, list):
        return [_result(one) for one in value]
    return value.value if isinstance(value, HereAndNow) else value


def _pack() -> Call:
    pu.write_histograms(COUNTS, table := place(".parquet"))
    return pu.pack_shards, {
        "tables": table, "folder": place(), "categories": 3, "client": "client",
        "category": "category", "count": "count", "cap": 9, "drop_empty": True,
        "clients_per_shard": 15, "memory": 2**28, "n_threads": 1, "rng": 0, "provenance": {"by": "hand"},
        "on_remark": lambda text: None, "on_progress": lambda done: None,
    }  # fmt: skip


@cache
def examples() -> pu.Examples:
    features = np.random.default_rng(0).normal(size=(240, 2))
    labels = (features[:, 0] > 0).astype(int)
    return pu.Examples(features[:200], labels[:200], features[200:], labels[200:])


@cache
def fitted() -> pu.Fit:
    return pu.fit(clients(), n_components=1, n_categories=3, max_size=9, max_rounds=3, rng=0)


@cache
def selection() -> pu.Fit:
    return pu.fit(
        clients(), n_components=[1], n_categories=3, max_size=9, max_rounds=4, held_out=0.5, rng=0
    )


@cache
def comparison() -> pu.Comparison:
    return pu.compare({"mdm": mdm()}, COUNTS, n_splits=100, n_folds=0, n_bootstrap=100, rng=0)


@cache
def run() -> pu.Run:
    return pu.train(settings(), "softmax", examples(), parts(), seed=0, n_workers=1)


def settings() -> pu.FedAvg:
    return pu.FedAvg(n_rounds=1, cohort_size=2, evaluate_every=1)


def record(population: str = "true", rate: float = 0.1, score: float = 0.5) -> pu.FinishedRun:
    tried = settings().with_changes({"local_learning_rate": rate}).to_json()
    curve, final = {"accuracy": [score]}, {"accuracy": score}
    return pu.FinishedRun(population, 0, tried, "batched", [1], [0.1], curve, final, None, 1.5)


def runs() -> list[pu.FinishedRun]:
    return [record(name, rate, rate) for name in ("true", "iid") for rate in (0.1, 0.2)]


def search() -> pu.OptunaSearch:
    return pu.OptunaSearch({"local_epochs": {"low": 1, "high": 2}}, n_trials=1)


def _fields(value: Any) -> Call:
    """The call that would make a dataclass again."""
    return type(value), {item.name: getattr(value, item.name) for item in fields(value)}


def _fit() -> Call:
    return pu.fit, {
        "clients": clients(), "n_components": 1, "n_categories": 3, "max_size": 9,
        "max_rounds": 3, "cohort_size": 30, "tol": 1e-3, "patience": 1, "max_upload": 50_000,
        "sizes": "binned", "size_prior": 1.0, "category_prior": 1e-3, "policy": DEFAULT, "rng": 0,
        "on_round": lambda done: None,
    }  # fmt: skip


def _fit_paper() -> Call:
    return pu.fit_paper, {
        "aggregator": clients(), "n_components": 1, "n_categories": 3, "max_size": 9, "n_rounds": 2,
        "cohort_size": 30, "sizes": "exact", "size_prior": 0.0, "category_prior": 0.0,
        "moments": "first", "on_round": lambda done: None,
    }  # fmt: skip


def _fit_private() -> Call:
    return pu.fit_private, {
        "aggregator": clients(), "epsilon": 1.0, "delta": 1e-6, "n_components": 1,
        "n_categories": 3, "max_size": 9, "sizes": "binned", "trust": "central",
        "ledger": pu.PrivacyLedger(1.0, 1e-6), "noise": _no_noise, "plan": None, "rng": 0,
        "on_round": lambda done: None,
    }  # fmt: skip


def records() -> pu.Records:
    features = np.random.default_rng(0).normal(size=(200, 4))
    return pu.Records(features, LABELS, np.arange(200) % 20)


def _fit_style() -> Call:
    return pu.fit_style, {
        "aggregator": pu.LocalAggregator(records()), "space": space(), "label_effect": True,
        "epsilon": 50.0, "delta": 1e-6, "clip": 3.0, "trust": "central",
        "ledger": pu.PrivacyLedger(50.0, 1e-6), "noise": _no_noise,
    }  # fmt: skip


def _no_noise(n_numbers: int, scale: float) -> Any:
    return np.zeros(n_numbers, np.int64)


def _compare() -> Call:
    return pu.compare, {
        "populations": {"mdm": mdm(), "table": COUNTS}, "to": COUNTS, "clients": list(range(40)),
        "fitted": list(range(40, 50)), "n_clients": 20, "max_clients": 30, "n_splits": 100,
        "n_directions": 3, "n_folds": 0, "n_bootstrap": 100, "rng": 0,
    }  # fmt: skip


def _styled_parts() -> pu.Partition:
    return pu.partition(LABELS, COUNTS, style=style(), features=FEATURES, rng=0)


def _partition() -> Call:
    return pu.partition, {
        "labels": LABELS, "clients": mdm(), "n_clients": 5, "replace": True,
        "shortfall": "resample", "population": mdm(), "style": style(), "features": FEATURES,
        "match": "position", "test": 0.2, "rng": 0,
    }  # fmt: skip


def _report_on() -> Call:
    return pu.report_on, {
        "model": mdm(), "categories": ["a", "b", "c"], "comparison": comparison(), "runs": runs(),
        "clients": {"true": COUNTS[:12]}, "true": "true", "metric": "accuracy", "title": "A page",
        "style": style(), "features": np.zeros((200, 4)), "labels": LABELS,
        "notes": [("data", "ours")], "rng": 0,
    }  # fmt: skip


def _train() -> Call:
    from polyurn.training.losses import accuracy, cross_entropy

    return pu.train, {
        "settings": settings(), "model": "softmax", "data": examples(), "clients": parts(),
        "seed": 0, "loss": cross_entropy, "metrics": {"accuracy": accuracy}, "n_workers": 1,
        "engine": "auto", "device": "cpu", "on_round": lambda done: None,
    }  # fmt: skip


def _sweep() -> Call:
    _, asked = _train()
    del asked["clients"], asked["seed"], asked["n_workers"], asked["on_round"]
    return pu.sweep, asked | {
        "populations": {"true": parts()}, "seeds": [0], "grid": {"local_epochs": [1]},
        "optuna": None, "n_clients": 5, "folder": place(), "n_jobs": 1, "true": "true",
        "noise_floor": False, "client_test": 0.2, "on_run": lambda done: None,
    }  # fmt: skip


def _sweep_trainer() -> Call:
    def trainer(clients: pu.Partition, settings: dict[str, Any], seed: int) -> dict[str, float]:
        return {"accuracy": settings["lr"]}

    asked = {name: value for name, value in _sweep()[1].items() if name in SWEEP}
    return pu.sweep_trainer, asked | {
        "trainer": trainer, "labels": [0, 1] * 100, "features": None, "settings": {"epochs": 1},
        "grid": {"lr": [0.5]},
    }  # fmt: skip


SWEEP = {
    "populations", "seeds", "optuna", "n_clients", "folder", "n_jobs", "true", "noise_floor",
    "client_test", "on_run",
}  # fmt: skip


def _load() -> Call:
    pu.save(mdm(), path := place(".json"))
    return pu.load, {"path": path}


def _read_table() -> Call:
    pu.write_histograms(COUNTS, path := place(".csv"))
    return pu.read_table, {"path": path}


def _load_partition() -> Call:
    pu.save_partition(parts(), path := place(".json"))
    return pu.load_partition, {"path": path}


def _read_runs() -> Call:
    folder = place()
    folder.mkdir()
    with RunLog(folder, {}) as log:
        log.append([record()])
    return pu.read_runs, {"folder": folder}


def _table_histograms() -> Call:
    table = pa.table({"client": ["a", "b"], "category": [0, 1], "count": [2, 3]})
    return pu.table_histograms, {
        "table": table, "categories": 3, "client": "client", "category": "category",
        "count": "count",
    }  # fmt: skip


def _heterogeneity() -> pu.Heterogeneity:
    return pu.Heterogeneity(*[Estimate(0.5, 0.4, 0.6)] * 4)


def _journal_append() -> Call:
    return pu.Journal(place(), {"seed": 1}).append, {"vector": np.zeros(3)}


def _recorded() -> pu.ReplayAggregator:
    return pu.ReplayAggregator(clients(), [])


def ledger() -> pu.PrivacyLedger:
    return pu.PrivacyLedger(2.0, 1e-6)


def private() -> pu.PrivateAggregator:
    return pu.PrivateAggregator(clients(), ledger=ledger())


def _guarantee() -> pu.Guarantee:
    return pu.Guarantee.of([Charge("survey", 9.0, 20)], 1e-6)


def _feature_differences() -> Call:
    players = pu.LocalAggregator(np.tile(COUNTS, 2), rng=0)
    sizes_ = {"n_labels": 2, "n_values": 3, "cohort_size": 30}
    return pu.feature_differences, {"aggregator": players, **sizes_}


def _table_features() -> Call:
    client = np.repeat(np.arange(12), 5)
    columns = {"client": client, "y": np.arange(60) % 3, "f": client % 2, "x": np.arange(60) / 8}
    table = pa.table({**columns, "n": np.full(60, 2)})
    return pu.table_features, {
        "table": table, "label": "y", "client": "client", "candidates": ["f", "x"], "count": "n",
        "bins": {"x": pu.Bins([0.0, 4.0, 8.0])}, "n_bins": 3, "proxy": table, "rng": 0,
    }  # fmt: skip


def _private_table_features() -> Call:
    function, given = _table_features()
    arguments = {name: given[name] for name in ("label", "client", "candidates", "bins")}
    return function, arguments | {
        "table": given["table"].drop_columns("n"), "categories": 3, "values": {"f": ["0", "1"]},
        "epsilon": 500.0, "delta": 1e-6, "through": lambda asked: asked,
    }  # fmt: skip


@cache
def _tabled() -> pu.TableFeatures:
    function, arguments = _table_features()
    return function(**arguments)


@cache
def _difference() -> pu.FeatureDifference:
    function, arguments = _feature_differences()
    return function(**arguments)


def _crossed(first: Any, second: Any) -> Any:
    """`crossed` takes any number of columns, which have no names."""
    return pu.crossed(first, second)


VALID_CALLS: dict[str, Callable[[], Call]] = {
    "Bins": lambda: (pu.Bins, {"edges": [0.0, 1.0, 2.0]}),
    "Bins.of_width": lambda: (pu.Bins.of_width, {"width": 1.0, "start": 0.0, "stop": 4.0}),
    "Bins.at_quantiles": lambda: (pu.Bins.at_quantiles, {"values": [1.0, 2.0, 3.0], "n_bins": 2}),
    "Bins.locate": lambda: (pu.Bins([0.0, 1.0, 2.0]).locate, {"values": [0.5]}),
    "ClientSplit": lambda: _fields(pu.split_clients(COUNTS, rng=0)),
    "Comparison": lambda: _fields(comparison()),
    "Comparison.from_dict": lambda: (pu.Comparison.from_dict, {"document": comparison().to_dict()}),
    "Dirichlet": lambda: (pu.Dirichlet, {"alpha": [0.1, 0.2], "sizes": [4, 9]}),
    "Dirichlet.like": lambda: (pu.Dirichlet.like, {"counts": COUNTS, "alpha": 0.1}),
    "Dirichlet.sample": lambda: (
        pu.Dirichlet([0.1, 0.2], [4]).sample, {"n_clients": 3, "rng": 0},
    ),
    "Examples": lambda: _fields(examples()),
    "FedAvg": lambda: _fields(settings()),
    "FedAvg.from_json": lambda: (
        pu.FedAvg.from_json, {"document": {"n_rounds": 1, "cohort_size": 2}},
    ),
    "FedAvg.with_changes": lambda: (settings().with_changes, {"changes": {"local_epochs": 2}}),
    "FedAvg.evaluates": lambda: (settings().evaluates, {"round_": 1}),
    "FeatureDifference": lambda: _fields(_difference()),
    "DaskAggregator": lambda: (
        pu.DaskAggregator,
        {"client": HereAndNow(), "shards": packed(), "rng": 0, "sampling": "fixed"},
    ),
    "DaskAggregator.aggregate": lambda: (
        pu.DaskAggregator(HereAndNow(), packed(), rng=0).aggregate,
        {"query": query(), "cohort_size": 5},
    ),
    "Fit": lambda: _fields(fitted()),
    "Guarantee": lambda: _fields(_guarantee()),
    "Guarantee.of": lambda: (
        pu.Guarantee.of,
        {"charges": [Charge("survey", 9.0, 20)], "delta": 1e-6, "earlier": []},
    ),
    "Heterogeneity": lambda: _fields(_heterogeneity()),
    "Histograms": lambda: _fields(pu.histograms(["a", "b"], [0, 1], categories=2)),
    "IID": lambda: (pu.IID, {"marginal": [5, 3], "sizes": [4, 9]}),
    "IID.like": lambda: (pu.IID.like, {"counts": COUNTS}),
    "IID.proxy": lambda: (
        pu.IID.proxy, {"labels": [0, 1, 1], "n_categories": 2, "sizes": [4, 9]},
    ),
    "Dirichlet.hsu": lambda: (
        pu.Dirichlet.hsu, {"available": [5, 3], "sizes": [4, 9], "alpha": 0.5},
    ),
    "Pathological": lambda: (
        pu.Pathological, {"k": 2, "available": [5, 0, 3], "sizes": [4, 9]},
    ),
    "Pathological.sample": lambda: (
        pu.Pathological(1, [5, 3], [4]).sample, {"n_clients": 3, "rng": 0},
    ),
    "QuantitySkew": lambda: (pu.QuantitySkew, {"beta": 0.5, "available": [5, 3]}),
    "QuantitySkew.sample": lambda: (
        pu.QuantitySkew(0.5, [5, 3]).sample, {"n_clients": 3, "rng": 0},
    ),
    "Shards": lambda: (pu.Shards, {"s": 2, "available": [5, 3]}),
    "Shards.sample": lambda: (pu.Shards(2, [5, 3]).sample, {"n_clients": 3, "rng": 0}),
    "IID.sample": lambda: (pu.IID([5, 3], [4]).sample, {"n_clients": 3, "rng": 0}),
    "Journal": lambda: (pu.Journal, {"folder": place(), "settings": {"seed": 1}}),
    "Journal.append": _journal_append,
    "LocalAggregator": lambda: (
        pu.LocalAggregator, {"counts": COUNTS, "rng": 0, "sampling": "fixed", "n_threads": 1},
    ),
    "LocalAggregator.aggregate": lambda: (
        clients().aggregate, {"query": query(), "cohort_size": 5},
    ),
    "MDM": lambda: (
        pu.MDM,
        {"weights": [0.6, 0.4], "alphas": [[9.0, 1.0], [1.0, 3.0]], "sizes": sizes()},
    ),
    "MDM with splits": lambda: (
        pu.MDM, {"weights": [1.0], "alphas": None, "sizes": sizes_of_one(), "splits": splits()},
    ),
    "Tree": lambda: (pu.Tree, {"children": [[1, 4], [2, 3]]}),
    "Tree.declared": lambda: (
        pu.Tree.declared, {"nested": [["a", "b"], "c"], "categories": ["a", "b", "c"]},
    ),
    "Tree.learned": lambda: (
        pu.Tree.learned, {"n_clients": 2.0, "first": [1.0, 0.5], "second": [[0.6, 0.2], [0.2, 0.2]]},
    ),
    "Tree.by_share": lambda: (pu.Tree.by_share, {"shares": [0.2, 0.8]}),
    "Laws": lambda: (pu.Laws, {"knots": [0, 1, 4], "values": np.zeros((1, 2, 2, 3))}),
    "Splits": lambda: (
        pu.Splits,
        {
            "tree": pu.Tree([[1, 4], [2, 3]]),
            "concentrations": [[[1.0, 2.0], [3.0, 0.5]]],
            "laws": pu.Laws([0, 1, 4], np.zeros((1, 2, 2, 3))),
        },
    ),
    "Splits.of_alphas": lambda: (
        pu.Splits.of_alphas, {"tree": pu.Tree([[1, 4], [2, 3]]), "alphas": [[1.0, 2.0, 3.0]]},
    ),
    "MDM.logpmf": lambda: (mdm().logpmf, {"counts": COUNTS}),
    "MDM.logpmf_given_size": lambda: (mdm().logpmf_given_size, {"counts": COUNTS}),
    "MDM.responsibilities": lambda: (mdm().responsibilities, {"counts": COUNTS}),
    "MDM.sample": lambda: (mdm().sample, {"n_clients": 3, "rng": 0}),
    "OptunaSearch": lambda: _fields(search()),
    "Oracle": lambda: (pu.Oracle, {"counts": COUNTS}),
    "Oracle.sample": lambda: (pu.Oracle(COUNTS).sample, {"n_clients": 3, "rng": 0}),
    "Partition": lambda: (
        pu.Partition,
        {"offsets": [0, 1, 3], "indices": [0, 2, 1], "report": None, "ids": ["a", "b"], "test": None},
    ),
    "Partition.by_owner": lambda: (pu.Partition.by_owner, {"owners": ["a", "b", "a"]}),
    "Partition.from_lists": lambda: (pu.Partition.from_lists, {"points": [[0, 2], [1]]}),
    "Partition.histograms": lambda: (
        parts().histograms, {"labels": LABELS, "n_categories": 3},
    ),
    "Partition.renumbered": lambda: (parts().renumbered, {"positions": np.arange(200)}),
    "style_dispersion": lambda: (pu.style_dispersion, {
        "features": FEATURES, "labels": LABELS, "clients": np.arange(200) % 20, "space": space(),
        "n_bootstrap": 10, "rng": 0,
    }),
    "Styled": lambda: (
        pu.Styled, {"population": mdm(), "style": style(), "features": FEATURES},
    ),
    "Styled.sample": lambda: (pu.Styled(mdm(), style()).sample, {"n_clients": 3, "rng": 0}),
    "Policy": lambda: _fields(Policy()),
    "PrivacyLedger": lambda: (pu.PrivacyLedger, {"epsilon": 1.0, "delta": 1e-6, "entries": None}),
    "PrivacyLedger.charge": lambda: (
        ledger().charge,
        {"what": "survey", "sigma": 9.0, "n_numbers": 20, "trust": "local", "change_norm": 1.0,
         "run": "first"},
    ),
    "PrivacyLedger.raise_to": lambda: (ledger().raise_to, {"epsilon": 3.0}),
    "PrivateAggregator": lambda: (
        pu.PrivateAggregator,
        {"aggregator": clients(), "ledger": ledger(), "trust": "distributed", "n_reporters": 5,
         "n_colluding": 1, "run": "first", "noise": discrete_gaussian},
    ),
    "PrivateAggregator.aggregate": lambda: (
        private().aggregate,
        {"query": Noised(BoundedSurvey(3, pu.SizeBins.logarithmic(9)), 9.0), "cohort_size": None},
    ),
    "Records": lambda: (pu.Records, {
        "features": np.zeros((200, 4)), "labels": LABELS, "clients": np.arange(200) % 20,
        "n_labels": 3,
    }),
    "ReplayAggregator": lambda: (
        pu.ReplayAggregator, {"aggregator": clients(), "answers": []},
    ),
    "ReplayAggregator.aggregate": lambda: (
        _recorded().aggregate, {"query": query(), "cohort_size": 5},
    ),
    "Round": lambda: _fields(fitted().rounds[-1]),
    "Run": lambda: _fields(run()),
    "FinishedRun": lambda: _fields(record()),
    "SizeBins": lambda: (pu.SizeBins, {"edges": [1, 2, 5]}),
    "SizeBins.exact": lambda: (pu.SizeBins.exact, {"max_size": 9}),
    "SizeBins.logarithmic": lambda: (
        pu.SizeBins.logarithmic, {"max_size": 9, "per_doubling": 2},
    ),
    "SizeBins.locate": lambda: (pu.SizeBins([1, 2, 5]).locate, {"sizes": [1, 4]}),
    "ShardAggregator": lambda: (
        pu.ShardAggregator,
        {"folder": packed(), "rng": 0, "sampling": "fixed", "n_threads": 1},
    ),
    "ShardAggregator.aggregate": lambda: (
        shards().aggregate, {"query": query(), "cohort_size": 5},
    ),
    "Sizes": lambda: (pu.Sizes, {"bins": pu.SizeBins([1, 2, 5]), "masses": [[0.5, 0.5]]}),
    "Sizes.constant": lambda: (pu.Sizes.constant, {"size": 4, "n_components": 2}),
    "Sizes.from_table": lambda: (pu.Sizes.from_table, {"table": [[0.0, 0.5, 0.5]]}),
    "Sizes.logpmf": lambda: (sizes().logpmf, {"sizes": [1, 2]}),
    "Sizes.sample": lambda: (sizes().sample, {"components": [0, 1], "rng": 0}),
    "Style": lambda: _fields(style()),
    "Style.clients": lambda: (style().clients, {"counts": COUNTS, "rng": 0}),
    "StyleSpace": lambda: _fields(space()),
    "StyleSpace.coordinates": lambda: (
        space().coordinates, {"features": np.zeros((200, 4)), "labels": LABELS},
    ),
    "style_space": lambda: (pu.style_space, {
        "features": np.random.default_rng(0).normal(size=(200, 4)), "labels": LABELS,
        "n_directions": 2, "radius": 3.0, "n_labels": 3,
    }),
    "Sweep": lambda: (pu.Sweep, {"runs": tuple(runs()), "folder": None}),
    "TableFeatures": lambda: _fields(_tabled()),
    "Verdict": lambda: _fields(pu.compare_sweeps(runs())),
    "Verdict.paired": lambda: (
        pu.compare_sweeps(runs()).paired, {"first": "iid", "second": "iid", "of": "regret"},
    ),
    "Verdict.pair_sentence": lambda: (
        pu.compare_sweeps(runs()).pair_sentence, {"first": "iid", "second": "iid"},
    ),
    "answer": lambda: (
        pu.answer,
        {"query": query(), "counts": COUNTS, "buckets": np.full(40, 0.5), "rng": 0, "n_threads": 1},
    ),
    "compare": _compare,
    "crossed": lambda: (_crossed, {"first": ["a", "b"], "second": [1, 2]}),
    "compare_parameters": lambda: (
        pu.compare_parameters, {"fitted": mdm(), "reference": mdm()},
    ),
    "compare_sweeps": lambda: (
        pu.compare_sweeps,
        {
            "runs": runs(), "true": "true", "metric": "accuracy", "last": 0.5, "target": 0.2,
        },
    ),
    "concentration": lambda: (pu.concentration, {"counts": COUNTS}),
    "fitted_dirichlet": lambda: (pu.fitted_dirichlet, {"counts": COUNTS}),
    "cover": lambda: (
        pu.cover,
        {"labels": LABELS, "population": mdm(), "style": style(), "features": FEATURES}
        | {"match": "position", "rng": 0},
    ),
    "dirichlet_multinomial_logpmf": lambda: (
        pu.dirichlet_multinomial_logpmf, {"counts": [1, 2, 3], "alpha": [3.0, 4.0, 5.0]},
    ),
    "drop_empty": lambda: (pu.drop_empty, {"counts": COUNTS}),
    "feature_differences": _feature_differences,
    "recommend_feature": lambda: (
        pu.recommend_feature, {"differences": {"f": _difference()}, "label": "y"},
    ),
    "fit": _fit,
    "fit_paper": _fit_paper,
    "fit_private": _fit_private,
    "fit_style": _fit_style,
    "heterogeneity": lambda: (pu.heterogeneity, {"counts": COUNTS, "n_bootstrap": 10, "rng": 0}),
    "histogram": lambda: (
        pu.histogram, {"values": [0, 1, 1], "categories": 2, "cap": 2, "rng": 0},
    ),
    "histograms": lambda: (
        pu.histograms, {"clients": ["a", "b"], "values": [0, 1], "categories": 2},
    ),
    "report_on": _report_on,
    "held_categories": lambda: (
        pu.held_categories,
        {"counts": COUNTS, "labels": list(range(COUNTS.shape[1]))},
    ),
    "load": _load,
    "load_partition": _load_partition,
    "pack_shards": _pack,
    "partition": _partition,
    "open_ledger": lambda: (
        pu.open_ledger, {"path": place(), "epsilon": 1.0, "delta": 1e-6},
    ),
    "read_runs": _read_runs,
    "read_table": _read_table,
    "save": lambda: (
        pu.save,
        {
            "model": mdm(), "path": place(".json"), "categories": ["a", "b", "c"],
            "provenance": {"seed": 1},
        },
    ),
    "save_partition": lambda: (
        pu.save_partition,
        {
            "partition": parts(), "path": place(".parquet"), "clients": list(range(20)),
            "provenance": {"seed": 1},
        },
    ),
    "split_clients": lambda: (pu.split_clients, {"counts": COUNTS, "held_out": 0.2, "rng": 0}),
    "sweep": _sweep,
    "sweep_trainer": _sweep_trainer,
    "FailedRun": lambda: _fields(pu.FailedRun("mdm", 0, {"lr": 0.1}, "no end within 2 s")),
    "CommandTrainer": lambda: (pu.CommandTrainer, {
        "command": "true {lr}", "folder": place(), "partition": "json", "timeout": 9.0,
    }),
    "CommandTrainer.check": lambda: (
        pu.CommandTrainer("true {lr}").check, {"settings": {"lr": 0.1}},
    ),
    "BestSettings": lambda: _fields(pu.best_settings([record("mdm"), record()])),
    "best_settings": lambda: (pu.best_settings, {
        "runs": [record("mdm"), record()], "metric": "accuracy", "true": "true",
    }),
    "Partition.with_test": lambda: (
        parts().with_test, {"share": 0.5, "labels": [0] * 200, "rng": 0},
    ),
    "table_features": _table_features,
    "table_features.private": _private_table_features,
    "table_histograms": _table_histograms,
    "table_records": lambda: (pu.table_records, {
        "table": pa.table({"client": ["a", "b"], "label": [0, 1], "pitch": [1.5, 2.5]}),
        "label": "label", "categories": 2, "features": ["pitch"], "client": "client",
    }),
    "train": _train,
    "weighted": lambda: (
        pu.weighted, {"metric": lambda outputs, labels: labels, "to": [1, 2], "of": [0, 1, 1]},
    ),
    "write_histograms": lambda: (
        pu.write_histograms,
        {
            "counts": COUNTS, "path": place(".parquet"), "clients": list(range(40)),
            "categories": ["a", "b", "c"], "provenance": {"seed": 1},
        },
    ),
}  # fmt: skip

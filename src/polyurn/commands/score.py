"""`polyurn score`: the mean log-likelihood of a table's clients under an MDM file."""

from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyurn.commands.console import print_data, print_json
from polyurn.commands.declare import argument
from polyurn.commands.looks import DriftOptions, drift_json, show_drift
from polyurn.commands.options import AS_JSON, SEED, TABLE, THREADS, JudgedOptions, PrivacyOptions
from polyurn.typed.declared import Floats

if TYPE_CHECKING:
    from polyurn.model.mdm import MDM
    from polyurn.sources.clients import ClientTable, PackedClients


def score_command(
    *,
    table: Path = TABLE,
    mdm: Path = argument("MDM", "File that `fit` wrote."),
    columns: JudgedOptions,
    drift: DriftOptions,
    privacy: PrivacyOptions,
    threads: int = THREADS,
    seed: int = SEED,
    as_json: bool = AS_JSON,
) -> None:
    """Measure how likely a table's clients are under an MDM, and whether they have drifted from it.

    One round of sums shows what has moved. With `--epsilon` these sums have noise, and the mean
    log-likelihood, which has none, is not shown.

    Example: `polyurn score held-out.csv mdm.json`
    """
    from polyurn.commands.views import check_order, read_model
    from polyurn.server import drift as drifts
    from polyurn.sources.clients import read_all

    check_order(table, [mdm])
    saved = read_model(mdm)
    budget, since = privacy.budget(), drift.since(saved.model)
    read = read_all(table, columns.reading().like(saved), saved.declared)
    result = {} if budget else _likelihoods(read, saved.model)
    clients = read.aggregator(seed=seed, sampling="fixed", threads=threads)
    asked = privacy.asked(clients)
    found = drifts.drift(asked, saved.model, since=since, level=drift.alarm, rng=seed, **budget)
    drift.keep(found, saved.model, table.name)
    if as_json:
        finite = {name: value if isfinite(value) else None for name, value in result.items()}
        print_json({**finite, "drift": drift_json(found)})
    else:
        for name, value in result.items():
            text = f"{value:,}" if name == "n_clients" else f"{value:.4f}"
            print_data([f"{name:<42} {text}\n".encode()])
        show_drift(found, statement=bool(budget))
    drift.end(found)


def _likelihoods(read: "ClientTable | PackedClients", mdm: "MDM") -> dict[str, Any]:
    """The number of clients, and mean log-likelihoods with their standard errors."""
    joint, given_size = _Mean(), _Mean()
    for counts in read.blocks():
        joint.add(mdm.logpmf(counts))
        given_size.add(mdm.logpmf_given_size(counts))
    return {
        "n_clients": read.shape[0],
        **joint.to_json("log_likelihood"),
        **given_size.to_json("log_likelihood_given_size"),
    }


class _Mean:
    """A mean over clients that come in blocks, and its standard error (Chan et al., 1979)."""

    def __init__(self) -> None:
        self._n, self._mean, self._squares = 0, 0.0, 0.0

    def add(self, values: "Floats") -> None:
        """Add a block of clients."""
        import numpy as np

        n, mean = len(values), float(values.mean())
        both = self._n + n
        with np.errstate(invalid="ignore"):  # an impossible client has log-likelihood -inf
            apart = float(np.subtract(mean, self._mean))
            self._squares += float(((values - mean) ** 2).sum()) + apart**2 * self._n * n / both
        self._mean = (self._mean * self._n + mean * n) / both if self._n else mean
        self._n = both

    def to_json(self, name: str) -> dict[str, float]:
        """The mean and its standard error, for JSON."""
        many = self._n > 1
        error = (self._squares / (self._n - 1) / self._n) ** 0.5 if many else nan
        return {name: self._mean, f"{name}_standard_error": error}

"""The clients of the training experiments: the true ones, and those that a server simulates.

A federation is a function of the seed: true clients that are drawn from a mixture are other ones under
every seed, natural clients always the same. Nothing is trained here.
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import polyurn as pu
from polyurn.training.examples import fingerprint

Counts: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Modelled:
    """The feature whose histograms the server learns: its category of each point, by name."""

    name: str
    codes: NDArray[np.int64]
    n_categories: int


@dataclass(frozen=True, eq=False)
class Federation:
    """Who truly holds which points, and which of them the server has of its own.

    A point may stand in `proxy` more than once, if several clients hold it.
    """

    true: pu.Partition
    proxy: NDArray[np.int64]

    def counts(self, modelled: Modelled) -> Counts:
        """The true clients' histograms of a feature, shape (n_clients, n_categories)."""
        return self.true.histograms(modelled.codes, modelled.n_categories)


FederationOf: TypeAlias = Callable[[int], Federation]  # of a seed
Clients: TypeAlias = Callable[[int], pu.Partition]  # of a seed
Make: TypeAlias = Callable[[Counts], pu.Population]  # of the true clients' histograms


def always(federation: Federation) -> FederationOf:
    """The same clients under every seed: natural ones."""
    return lambda _: federation


def true_clients(federation: FederationOf) -> Clients:
    """The true clients of a seed."""
    return lambda seed: federation(seed).true


def simulated(
    federation: FederationOf,
    modelled: Modelled,
    populations: Mapping[str, Make],
    *,
    n_clients: int | None = None,
) -> dict[str, Clients]:
    """Clients of populations, with points of the server's data, drawn anew for every seed.

    Parameters
    ----------
    federation : function of a seed
    modelled : Modelled
        What the populations are about.
    populations : mapping of name to a function of the true clients' histograms
    n_clients : int, optional
        How many are drawn; by default as many as there are true ones.
    """
    return {
        name: _drawn(federation, modelled, name, make, n_clients)
        for name, make in populations.items()
    }


def _drawn(
    federation: FederationOf, modelled: Modelled, name: str, make: Make, n_clients: int | None
) -> Clients:
    def clients(seed: int) -> pu.Partition:
        there = federation(seed)
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        counts = make(there.counts(modelled)).sample(n_clients or len(there.true), rng=rng)
        codes = modelled.codes[there.proxy]
        return pu.partition(codes, pu.held_categories(counts, codes), rng=rng).renumbered(
            there.proxy
        )

    return clients


def learned(folder: Path, feature: str, components: tuple[int, ...]) -> Make:
    """The MDM that `select` learns from clients' histograms, from the file where it is kept."""

    def make(counts: Counts) -> pu.MDM:
        path = folder / f"{feature}_{fingerprint(counts)}.json"
        if not path.exists():
            choice = pu.fit(
                pu.LocalAggregator(counts, rng=1),
                n_components=components,
                n_categories=counts.shape[1],
                max_size=int(counts.sum(axis=1).max()),
                rng=2,
            )
            folder.mkdir(parents=True, exist_ok=True)
            pu.save(choice.mdm, path, provenance={"n_rounds": choice.n_rounds})
        return pu.load(path)

    return make


def any_point(modelled: Modelled, proxy: NDArray[np.int64]) -> Make:
    """The paper's fully IID clients: a true size each, and any points of the server's data."""
    codes, n_categories = modelled.codes[proxy], modelled.n_categories
    return lambda counts: pu.IID.proxy(codes, n_categories=n_categories, sizes=counts.sum(axis=1))


def symmetric(alpha: float) -> Make:
    """Dirichlet(alpha) in every category, as the field has it, with the true clients' sizes."""
    return lambda counts: pu.Dirichlet.like(counts, alpha=alpha)


def around_marginal(alpha: float) -> Make:
    """As concentrated as Dirichlet(alpha), around the true clients' marginal: α_j = α C p_j."""
    return lambda counts: AroundMarginal(counts, alpha)


class AroundMarginal:
    """A Dirichlet around the pooled histogram of clients; a category that nobody has stays empty."""

    def __init__(self, counts: Counts, alpha: float) -> None:
        marginal = counts.sum(axis=0) / counts.sum()
        self.n_categories = len(marginal)
        self._held = np.flatnonzero(marginal)
        concentrations = alpha * self.n_categories * marginal[self._held]
        self._population = pu.Dirichlet(concentrations, counts.sum(axis=1))

    def sample(
        self, n_clients: int, *, rng: int | np.random.Generator | None = None
    ) -> NDArray[np.int64]:
        """The histograms of clients, shape (n_clients, n_categories)."""
        counts = np.zeros((n_clients, self.n_categories), np.int64)
        counts[:, self._held] = self._population.sample(n_clients, rng=rng)
        return counts


def differences(
    clients: pu.Partition, labels: NDArray[np.int64], features: NDArray[Any]
) -> dict[str, float]:
    """How much clients differ in their labels, and in their features given the label.

    The mean over clients of n ‖x̄_i - x̄‖² / tr Cov(x), with x the label's indicator, or the features less
    their mean over all points with that label: 1 where clients are IID, below 1 where they are more even
    than chance.
    """
    held = clients.indices
    flat = features.reshape(len(features), -1)
    rest = np.empty((len(held), flat.shape[1]))
    for label in np.unique(labels[held]):
        mine = labels[held] == label
        rest[mine] = flat[held[mine]] - flat[held[mine]].mean(axis=0)
    shown = {"labels": np.eye(int(labels.max()) + 1)[labels[held]], "rest": rest}
    return {name: _spread(values, clients.offsets[1:-1]) for name, values in shown.items()}


def _spread(values: NDArray[np.float64], ends: NDArray[np.int64]) -> float:
    centred = values - values.mean(axis=0)
    parts = np.split(centred, ends)
    squares = [len(part) * (part.mean(axis=0) ** 2).sum() for part in parts]
    return float(np.mean(squares) / (centred**2).sum(axis=1).mean())

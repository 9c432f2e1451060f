"""Clients with a style, for the experiments on what clients differ in besides their labels.

Natural clients are cut in two halves. One half are the clients; the points of the other half are all
that the server has, its pool, and their natural owners are the best that can be cut from that pool. No
client is in both. What a server learns is asked through the package: label histograms by `select`,
style by `fit_style`. Tables are made in `style_tables.py`.
"""

import math
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

import polyurn as pu
from polyurn.model.style import Style
from polyurn.model.style_coordinates import StyleSpace
from polyurn.sweeps.sweep_clients import in_another_order

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from training_clients import Clients, Make

LAST = 0.5  # the share of a run's evaluations that its score is the mean of
StyleOf: TypeAlias = Callable[[int], Style]  # of a seed
Record: TypeAlias = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Halves:
    """Natural clients in two halves.

    Attributes
    ----------
    data : Examples
        The points of both halves, and those to test on.
    n_labels : int
    features : array of shape (n_points, n_features)
        In which style is looked for.
    true : Partition
        The clients.
    natural : Partition
        The owners of the server's points.
    """

    data: pu.Examples
    n_labels: int
    features: NDArray[Any]
    true: pu.Partition
    natural: pu.Partition

    @property
    def pool(self) -> NDArray[np.int64]:
        """The server's points."""
        return np.sort(self.natural.indices)

    def with_features(self, features: NDArray[Any]) -> "Halves":
        """The same clients, with style looked for elsewhere."""
        return Halves(self.data, self.n_labels, features, self.true, self.natural)


def halves(owners: NDArray[np.int64], split: int) -> tuple[pu.Partition, pu.Partition]:
    """The clients and the owners of the pool, by a random half of the owners each."""
    n = int(owners.max()) + 1
    first = np.random.default_rng(split).permutation(n)[: n // 2]
    in_pool = np.isin(owners, first)
    parts = (np.flatnonzero(~in_pool), np.flatnonzero(in_pool))
    true, natural = (pu.Partition.by_owner(owners[at]).renumbered(at) for at in parts)
    return true, natural


# -------------------------------------------------------------------------------------- styles


def space_of(there: Halves, n_directions: int) -> StyleSpace:
    """A space made of the server's points."""
    pool = there.pool
    return pu.style_space(
        there.features[pool],
        there.data.labels[pool],
        n_directions=n_directions,
        n_labels=there.n_labels,
    )


def learned_style(there: Halves, n_directions: int, *, label_effect: bool = False) -> Style:
    """The clients' style, asked once."""
    return pu.fit_style(asked(there), space_of(there, n_directions), label_effect=label_effect)


def asked(there: Halves, clients: NDArray[np.int64] | None = None) -> pu.LocalAggregator:
    """The clients with their records; or some of them, a client that is there twice as two."""
    members = np.arange(len(there.true)) if clients is None else clients
    held = [there.true[i] for i in members.tolist()]
    points = np.concatenate(held)
    whose = np.repeat(np.arange(len(held)), [len(one) for one in held])
    records = pu.Records(
        there.features[points], there.data.labels[points], whose, n_labels=there.n_labels
    )
    return pu.LocalAggregator(records, rng=0)


def on_basis(there: Halves, n_directions: int) -> tuple[Halves, StyleSpace]:
    """The same coordinates of fewer features: those on the basis of the space. Saves memory."""
    space = space_of(there, n_directions)
    flat = there.features.reshape(len(there.features), -1)
    fewer = there.with_features(flat.astype(np.float64) @ space.basis)
    return fewer, StyleSpace(
        space.centres, np.eye(n_directions), space.whitening, space.radius, space.proxy_far_share
    )  # fmt: skip


def bootstrapped_style(
    there: Halves, space: StyleSpace, seed: int, n_clients: int, **private: float
) -> Style:
    """The style of so many clients, drawn from the true ones with replacement; with noise, if asked."""
    drawn = np.random.default_rng([seed, n_clients]).integers(len(there.true), size=n_clients)
    return pu.fit_style(asked(there, drawn), space, **private)


def client_directions(there: Halves, n_first: int, n_directions: int) -> Halves:
    """The same clients, with style looked for where they differ most.

    A first question in `n_first` principal directions gives B; its first eigenvectors, in whitened
    coordinates, are the directions in which clients differ most from their pool's variance.
    """
    style = learned_style(there, n_first)
    vectors = np.linalg.eigh(style.shared)[1][:, ::-1][:, :n_directions]
    located = style.space.coordinates(there.features, there.data.labels)
    return there.with_features(located @ vectors)


# ------------------------------------------------------------------------------------- clients


def simulated(there: Halves, name: str, make: Make, style: StyleOf | None = None) -> Clients:
    """Clients of a population of label histograms, with points of the pool, drawn anew for a seed."""
    pool = there.pool
    labels = there.data.labels[pool]
    counts = there.true.histograms(there.data.labels, there.n_labels)

    def clients(seed: int) -> pu.Partition:
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        drawn = pu.held_categories(make(counts).sample(len(there.true), rng=rng), labels)
        if style is None:
            return pu.partition(labels, drawn, rng=rng).renumbered(pool)
        made = pu.partition(
            labels, drawn, style=style(seed), features=there.features[pool], rng=rng
        )
        return made.renumbered(pool)

    return clients


def natural_clients(there: Halves) -> dict[str, Clients]:
    """The pool's owners; the same in other cohorts; and the true clients."""
    return {
        "natural": lambda _: there.natural,
        "again": lambda seed: in_another_order(there.natural, seed),
        "true": lambda _: there.true,
    }


# -------------------------------------------------------------------------------------- figures


def curves(
    settings: pu.FedAvg,
    model: Any,
    data: pu.Examples,
    clients: pu.Partition,
    *,
    seed: int,
    grid: Mapping[str, Sequence[float]],
    engine: str = "auto",
) -> list[dict[str, Any]]:
    """The test accuracies of each setting of a grid, evaluation after evaluation."""
    done = pu.sweep(
        settings, model, data, populations={"clients": clients}, grid=grid, seeds=[seed],
        n_jobs=1, noise_floor=False, engine=engine,
    )  # fmt: skip
    return [
        {name: run.settings[name] for name in grid}
        | {"curve": [round(value, 6) for value in run.metrics["accuracy"]]}
        for run in done.runs
    ]


def trained(*told: Any, **named: Any) -> list[dict[str, float]]:
    """What each setting scores: the mean of the last half of its evaluations, and the last of them."""
    found = []
    for run in curves(*told, **named):
        curve = run.pop("curve")
        n_last = math.ceil(len(curve) * LAST)
        found.append(run | {"score": float(np.mean(curve[-n_last:])), "final": curve[-1]})
    return found


class Settings(Protocol):
    """What experiments with several models on several splits have settings for."""

    @property
    def splits(self) -> tuple[int, ...]: ...
    @property
    def seeds(self) -> tuple[int, ...]: ...
    @property
    def n_rounds(self) -> int: ...
    @property
    def cohort_size(self) -> int: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def evaluate_every(self) -> int: ...
    @property
    def trained(self) -> tuple[tuple[str, int, tuple[float, ...]], ...]:
        """Models, their numbers of epochs and their local rates."""
        ...


def runs(settings: Settings, splits: Sequence[int], names: Sequence[str]) -> Iterator[Record]:
    """What is trained on these splits and populations, seed by seed."""
    for seed in settings.seeds:
        for split in splits:
            for name in names:
                for model, epochs, _ in settings.trained:
                    yield {
                        "split": split, "population": name, "seed": seed,
                        "model": model, "epochs": epochs,
                    }  # fmt: skip


def looks(settings: Settings, names: Sequence[str]) -> Iterator[Record]:
    """Which clients are looked at: those of one seed of each split."""
    for split in settings.splits:
        for name in names:
            yield {"split": split, "population": name, "seed": settings.seeds[0]}


def scored(
    settings: Settings,
    model: str,
    epochs: int,
    data: pu.Examples,
    clients: pu.Partition,
    seed: int,
) -> Record:
    """What the rates of a model and number of epochs score on clients."""
    rates = next(r for m, e, r in settings.trained if (m, e) == (model, epochs))
    fed_avg = pu.FedAvg(
        n_rounds=settings.n_rounds,
        cohort_size=settings.cohort_size,
        local_epochs=epochs,
        batch_size=settings.batch_size,
        evaluate_every=settings.evaluate_every,
    )
    grid = {"local_learning_rate": rates}
    return {"runs": trained(fed_avg, model, data, clients, seed=seed, grid=grid)}


def served(clients: pu.Partition) -> Record:
    """What the pool could serve of clients' styles; nothing if they have none."""
    report = None if clients.report is None else clients.report.style
    if report is None:
        return {}
    return {
        "directions": report.n_directions_used,
        "served": report.served,
        "effective": float(np.median(report.effective_median)),
    }


def spreads(clients: pu.Partition, labels: NDArray[np.int64], features: NDArray[Any]) -> float:
    """How much clients' features differ within a label: as `differences`, for each client and label."""
    held = clients.indices
    cells = clients.clients * (int(labels.max()) + 1) + labels[held]
    flat = np.asarray(features.reshape(len(features), -1)[held], np.float64)
    for label in np.unique(labels[held]):
        mine = labels[held] == label
        flat[mine] -= flat[mine].mean(axis=0)
        flat[mine] /= np.sqrt((flat[mine] ** 2).sum(axis=1).mean())
    _, cell, sizes = np.unique(cells, return_inverse=True, return_counts=True)
    sums = np.zeros((len(sizes), flat.shape[1]))
    np.add.at(sums, cell, flat)
    several = sizes > 1
    return float(((sums[several] ** 2).sum(axis=1) / sizes[several]).mean())


def tie(clients: pu.Partition, labels: NDArray[np.int64], located: NDArray[np.float64]) -> float:
    """How far clients' mean styles tell the share of their last label: the multiple correlation."""
    owner, held = clients.clients, clients.indices
    share = np.bincount(owner, labels[held] == labels.max()) / clients.sizes
    sums = np.zeros((len(clients), located.shape[1]))
    np.add.at(sums, owner, located[held])
    means = np.column_stack([np.ones(len(clients)), sums / clients.sizes[:, None]])
    fitted = means @ np.linalg.lstsq(means, share, rcond=None)[0]
    return float(np.sqrt(fitted.var() / share.var()))

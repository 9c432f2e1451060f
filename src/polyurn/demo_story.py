"""The whole story on built-in data: true clients, a federated fit, simulated clients, and their worth.

One function per stage, in the order of the flow; `commands/demo.py` tells it. Nothing is printed here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from polyurn.aggregate.local import LocalAggregator
from polyurn.comparison.comparison_results import Comparison
from polyurn.comparison.likeness import Compared, compare
from polyurn.datasets.dataset import Dataset, LabelledPoints, digits, flights
from polyurn.errors import MissingDependencyError, ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.paper_truths import truth
from polyurn.model.populations import IID, Population
from polyurn.partitioning.assign import held_categories, partition
from polyurn.partitioning.result import Partition
from polyurn.server.fit_results import Fit, Round
from polyurn.server.fit_settings import Settings
from polyurn.server.fitting import fit_sums
from polyurn.training.examples import Examples
from polyurn.training.fedavg import FedAvg

if TYPE_CHECKING:
    from polyurn.sweeps.grid import Sweep, SweepProgress

# The clients of a federation in three parts: live ones, ones that only judge, and ones whose records are
# the server's own data, their ids forgotten.
_SHARES = (0.6, 0.2, 0.2)
# A fifth of the clients judges; twenty of them can tell chance from difference at all.
_FEWEST_CLIENTS = 100
# Aeroplanes that left New York less often are left out, and of the others so many flights are taken.
_FEWEST_FLIGHTS, _MOST_FLIGHTS = 20, 60
_MOST_TEST_POINTS = 4_000
_CANDIDATES = (1, 2, 4, 8, 16, 32)
# Over a live federation a round takes seconds, and these need fewer rounds.
FEW_CANDIDATES = (1, 2, 3, 4)


@dataclass(frozen=True, eq=False)
class DemoFederation:
    """True clients, and what a server has of its own.

    Of the clients there are the records (`live`) and the histograms (`live_counts`), of those that are
    never fitted the histograms alone (`held_out`), all of shape (n_clients, n_categories). `proxy` are
    the server's records, without clients, `proxy_codes` their categories, and `test` the held-out
    clients' records. `categories` are those of the feature that is modelled, and no client can hold
    more than `max_size` points: that is known of the source, not measured from clients.
    """

    name: str
    story: str
    categories: tuple[str, ...] = field(repr=False)
    max_size: int
    live: LabelledPoints
    live_counts: NDArray[np.int64] = field(repr=False)
    held_out: NDArray[np.int64] = field(repr=False)
    proxy: LabelledPoints
    proxy_codes: NDArray[np.int64] = field(repr=False)
    test: LabelledPoints
    learning_rates: tuple[float, ...]


def federation(
    source: Literal["flights", "digits"] | None = None,
    *,
    n_clients: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> DemoFederation:
    """Natural clients from the flights data if they are installed, else digits cut by a hidden mixture.

    There are at most `n_clients`, all parts together; 100 or more.
    """
    if n_clients is not None and n_clients < _FEWEST_CLIENTS:
        raise ParameterError(
            f"expected at least {_FEWEST_CLIENTS} clients, of whom a fifth judges, got {n_clients:,}"
        )
    rng = np.random.default_rng(rng)
    if source is None:
        try:
            return _flights(n_clients, rng)
        except MissingDependencyError:
            return _digits(n_clients, rng)
    return _flights(n_clients, rng) if source == "flights" else _digits(n_clients, rng)


def split(there: DemoFederation, n_nodes: int) -> list[NDArray[np.int64]]:
    """The live clients' histograms, dealt to nodes of a federation as evenly as can be."""
    if not 3 <= n_nodes <= len(there.live_counts):
        raise ParameterError(
            f"expected 3 to {len(there.live_counts):,} nodes, each with a client, got {n_nodes:,}"
        )
    return [there.live_counts[i::n_nodes] for i in range(n_nodes)]


def learn(
    there: DemoFederation,
    *,
    max_rounds: int = 100,
    rng: int | np.random.Generator | None = None,
    on_round: Callable[[Round], None] | None = None,
) -> Fit:
    """Fit the live clients from sums, with the number of components chosen by some of them."""
    play, search = np.random.default_rng(rng).spawn(2)
    return fit_sums(
        LocalAggregator(there.live_counts, rng=play),
        _CANDIDATES,
        n_categories=len(there.categories),
        max_size=there.max_size,
        settings=Settings(max_rounds=max_rounds),
        rng=search,
        on_round=on_round,
    )


def simulate(
    there: DemoFederation, mdm: MDM, *, rng: int | np.random.Generator | None = None
) -> dict[str, NDArray[np.int64]]:
    """As many clients as there are live ones: from the model, and IID with their sizes and marginal."""
    n = len(there.live_counts)
    populations: dict[str, Population] = {"mdm": mdm, "iid": IID.like(there.live_counts)}
    drawn = zip(populations.items(), np.random.default_rng(rng).spawn(2), strict=True)
    return {
        name: np.asarray(held_categories(population.sample(n, rng=stream), there.proxy_codes))
        for (name, population), stream in drawn
    }


def judge(
    there: DemoFederation,
    mdm: MDM,
    clients: dict[str, NDArray[np.int64]],
    *,
    rng: int | np.random.Generator | None = None,
) -> Comparison:
    """How alike simulated clients are to true ones that were never fitted."""
    n = len(there.held_out)
    fitted, held_out = range(len(there.live_counts)), range(-n, 0)  # nobody is in both
    populations: dict[str, Compared] = {"mdm": mdm, "iid": clients["iid"]}
    return compare(
        populations, there.held_out, match="position", clients=held_out, fitted=fitted, rng=rng
    )


def tune(
    there: DemoFederation,
    mdm: MDM,
    *,
    n_rounds: int = 24,
    seeds: Sequence[int] = (0, 1, 2, 3),
    on_run: "Callable[[SweepProgress], object] | None" = None,
) -> "Sweep":
    """Train every learning rate on true clients and on simulated ones, drawn anew for each seed."""
    from polyurn.sweeps.own_engines import sweep

    live, proxy = there.live, there.proxy
    assert live.features is not None
    assert live.clients is not None
    assert proxy.features is not None
    assert there.test.features is not None
    data = Examples(
        np.concatenate([live.features, proxy.features]),
        np.concatenate([live.labels, proxy.labels]),
        there.test.features,
        there.test.labels,
    )
    at = np.arange(live.n_records, len(data))

    def clients(name: str) -> Callable[[int], Partition]:
        def held(seed: int) -> Partition:
            drawing, cutting = np.random.default_rng(seed).spawn(2)
            counts = simulate(there, mdm, rng=drawing)[name]
            return partition(there.proxy_codes, counts, rng=cutting).renumbered(at)

        return held

    return sweep(
        # Small cohorts and long local work: that is where clients who differ make training differ.
        FedAvg(n_rounds=n_rounds, cohort_size=10, local_epochs=5, batch_size=10, evaluate_every=2),
        "softmax",
        data,
        populations={
            "true": Partition.by_owner(live.clients), "mdm": clients("mdm"), "iid": clients("iid"),
        },
        seeds=seeds,
        grid={"local_learning_rate": there.learning_rates},
        on_run=on_run,
    )  # fmt: skip


def _flights(n_clients: int | None, rng: np.random.Generator) -> DemoFederation:
    """Aeroplanes; the model is of where a flight goes from and to, the network learns where to."""
    data, routes = flights(features="air_time"), flights(features="air_time", category="route")
    assert data.train.clients is not None
    rows = _some_of_each(data.train.clients, rng)
    flown = data.train.take(rows)
    chosen = rng.permutation(flown.n_clients)[:n_clients]
    part = np.full(flown.n_clients, -1)
    part[chosen] = _parts(len(chosen))
    assert flown.clients is not None
    of_row = part[flown.clients]
    live, held_out, proxy = (flown.take(np.flatnonzero(of_row == i)) for i in range(3))
    by_route = Dataset(routes.name, routes.categories, routes.train.take(rows))
    counts = by_route.histograms()
    return DemoFederation(
        name="flights",
        story=(
            f"{live.n_clients:,} aeroplanes that left New York in 2013 are the clients; a "
            f"category is one of {routes.n_categories} routes"
        ),
        categories=routes.categories,
        max_size=_MOST_FLIGHTS,
        live=live,
        live_counts=counts[part == 0],
        held_out=counts[part == 1],
        proxy=LabelledPoints(proxy.labels, proxy.features),
        proxy_codes=by_route.train.labels[of_row == 2],
        test=_some(held_out, rng),
        learning_rates=(0.3, 1.0, 3.0, 10.0),
    )


def _digits(n_clients: int | None, rng: np.random.Generator) -> DemoFederation:
    data = digits()
    hidden = truth("medium/3")
    n = 1_000 if n_clients is None else n_clients
    n_live, n_held_out = round(0.8 * n), n - round(0.8 * n)
    pictures = np.array_split(rng.permutation(data.train.n_records), 3)
    live, proxy, test = (data.train.take(rows) for rows in pictures)
    counts = hidden.sample(n_live, rng=rng)
    parts = partition(live.labels, counts, rng=rng)
    rows = parts.indices
    assert live.features is not None
    ids = np.array([str(i) for i in range(n_live)])
    return DemoFederation(
        name="digits",
        story=(
            f"{n_live:,} clients hold handwritten digits; who holds which follows a hidden mixture of "
            "three components"
        ),
        categories=data.categories,
        max_size=hidden.max_size,
        live=LabelledPoints(live.labels[rows], live.features[rows], parts.clients, ids),
        live_counts=counts,
        held_out=hidden.sample(n_held_out, rng=rng),
        proxy=proxy,
        proxy_codes=proxy.labels,
        test=test,
        learning_rates=(0.03, 0.1, 0.3, 1.0),
    )


def _parts(n_clients: int) -> NDArray[np.int64]:
    """Which part each client is in, shape (n_clients,); every part has its share."""
    ends = np.rint(np.cumsum(_SHARES) * n_clients).astype(np.int64)
    return np.repeat(np.arange(len(_SHARES)), np.diff(ends, prepend=0))


def _some_of_each(clients: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows, in order: some of each client that has enough, drawn at random."""
    order = rng.permutation(len(clients))
    order = order[np.argsort(clients[order], kind="stable")]
    sizes = np.bincount(clients)
    index = np.arange(len(clients)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    enough = np.repeat(sizes >= _FEWEST_FLIGHTS, sizes)
    return np.sort(order[enough & (index < _MOST_FLIGHTS)])


def _some(records: LabelledPoints, rng: np.random.Generator) -> LabelledPoints:
    rows = rng.permutation(records.n_records)[:_MOST_TEST_POINTS]
    return records.take(np.sort(rows))

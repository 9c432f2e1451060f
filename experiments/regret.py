"""What is lost by tuning on other clients than the true ones, where the best setting may differ.

    python experiments/regret.py            # resumes; writes results/regret/*, prints the table
    python experiments/regret.py --only high_1 high_2    # trains for these federations only
    python experiments/regret.py --draw     # only the table of what is kept; trains nothing

The design, fixed before any run of it: two grids with the same client computation for every setting.
*Local work*: 48 epochs of ten clients as 48 x 1, 12 x 4 or 4 x 12 (rounds x epochs), batches of 5 or 20,
four rates. *Server*: 240 client visits of two epochs in cohorts of 5 or 20, three server rates. All
under the fresh seeds 700 to 705. Populations: the true clients, again in other cohorts, mdm, iid, the
fitted Dirichlet, Dirichlet(0.1), two categories per client (pathological), two shards per client, and
sizes from Dirichlet(0.5) (quantity skew). Federations: digits by writer, census records by their
income (the modelled feature that gives the label), and flights by route, whose aeroplanes are split anew
twice (701, 702). A score is the mean of the last half of the evaluations.

Four more were added later, on the same grids and seeds, and fixed before any run of them: CIFAR-10 on a
frozen network as in `cifar10.py`, clients of one component of high heterogeneity and of two (high_1,
high_2), which are drawn anew for every seed; census records by race, which is the label; and airports,
where a client is a destination of flights from New York and the label the airline.
Clients of race and airports got a third of their points, for time, after 13 runs of true airports, whose
accuracies were seen; no population had been compared.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import polyurn as pu
import sources
from polyurn import datasets
from polyurn.comparison.summaries import concentration

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import census
import cifar10
import digits_by_writer
import features
import flights_by_plane
import training_clients as clients
import training_tables as tables

SEEDS = tuple(range(700, 706))
LOCAL = {48: 1, 12: 4, 4: 12}  # rounds: epochs
RATES = (0.03, 0.1, 0.3, 1.0)
FLIGHT_RATES = (0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True, eq=False)
class Case:
    """A federation to tune for."""

    data: pu.Examples
    federation: clients.FederationOf
    modelled: clients.Modelled
    components: tuple[int, ...]
    rates: tuple[float, ...]
    n_simulated: int | None = None  # as many as there are true clients


def digits() -> Case:
    """The writers of MNIST's training pictures."""
    settings = digits_by_writer.SETTINGS
    source = sources.mnist_by_writer(root=tables.FOLDER)
    data, made, modelled = digits_by_writer.federation(source, settings)
    return Case(data, clients.always(made), modelled, settings.components, RATES)


def census_income() -> Case:
    """PUMAs, whose income is modelled."""
    settings = census.SETTINGS
    data, made, modelled = census.federation(*census.census(), settings, disjoint=False)
    return Case(data, clients.always(made), modelled[0], settings.components, RATES)


def census_race() -> Case:
    """PUMAs, whose race is modelled and learned."""
    settings = replace(census.SETTINGS, train_share=0.1)
    source = sources.folktables(root=tables.FOLDER, feature="race", people="workers")
    codes = {"income": source.train.labels, "race": source.train.labels}
    data, made, modelled = census.federation(source.train, codes, settings, disjoint=False)
    return Case(data, clients.always(made), modelled[1], settings.components, RATES)


def flights(split: int) -> Case:
    """Aeroplanes, parted anew, whose routes are modelled."""
    settings = replace(flights_by_plane.SETTINGS, split=split)
    data, made, modelled = flights_by_plane.federation(
        datasets.flights(features="air_time"),
        datasets.flights(features="air_time", category="route"),
        settings,
    )
    made_of = clients.always(made)
    return Case(data, made_of, modelled[1], settings.components, FLIGHT_RATES)


def airports() -> Case:
    """Destinations, at most 60 flights of each, whose airlines are modelled and learned.

    Features are the hour of departure at each of New York's airports; the server has flights of its own.
    """
    source = datasets.flights()
    flown, names = source.train, np.array(source.feature_names)
    assert flown.features is not None
    airlines, froms = (
        flown.features[:, np.char.startswith(names, f"{word}=")].argmax(axis=1)
        for word in ("carrier", "origin")
    )
    hours = np.rint(flown.features[:, names == "hour"][:, 0] * 23).astype(np.int64)
    cells, code = np.unique(24 * froms + hours, return_inverse=True)
    rng = np.random.default_rng(0)
    owners = [rng.permutation(rows) for rows in pu.Partition.by_owner(flown.labels)]
    live = [rows[:60] for rows in owners if len(rows) >= 20]
    others = rng.permutation(np.concatenate([rows[60:] for rows in owners]))
    points, tested = np.eye(len(cells), dtype=np.float32)[code], others[:8_000]
    data = pu.Examples(points, airlines, points[tested], airlines[tested])
    made = clients.Federation(pu.Partition.from_lists(live), others[8_000:48_000])
    modelled = clients.Modelled("airline", airlines, int(airlines.max()) + 1)
    return Case(data, clients.always(made), modelled, (1, 2, 4, 8), FLIGHT_RATES)


def cifar(name: str) -> Case:
    """Clients with pictures, drawn anew for every seed from one of the paper's mixtures."""
    settings, source = cifar10.SETTINGS, sources.cifar10(root=tables.FOLDER)
    train, test = source.records("train"), source.records("test")
    assert train.features is not None
    assert test.features is not None
    (seen, _), (tested, _) = (features.embedded(part.features) for part in (train, test))
    points, test_points = features.projected(seen, tested, settings.n_features)
    return Case(
        pu.Examples(points, train.labels, test_points, test.labels),
        cifar10.federation(cifar10.TRUTHS[name], train.labels, settings),
        clients.Modelled("class", train.labels, 10),
        settings.components,
        RATES,
        settings.n_simulated,
    )


CASES: Mapping[str, Callable[[], Case]] = {
    "digits": digits,
    "census": census_income,
    "flights_701": lambda: flights(701),
    "flights_702": lambda: flights(702),
    "high_1": lambda: cifar("cifar10_high_1"),
    "high_2": lambda: cifar("cifar10_high_2"),
    "race": census_race,
    "airports": airports,
}


def populations(case: Case, folder: Path) -> dict[str, clients.Clients]:
    """Who is trained on, each drawn anew for each seed."""
    codes = case.modelled.codes[case.federation(SEEDS[0]).proxy]
    available = np.bincount(codes, minlength=case.modelled.n_categories)
    makers: dict[str, clients.Make] = {
        "mdm": clients.learned(folder, case.modelled.name, case.components),
        "iid": pu.IID.like,
        "fitted": _fitted,
        "dirichlet 0.1": clients.symmetric(0.1),
        "pathological": lambda counts: pu.Pathological(2, available, counts.sum(axis=1)),
        "shards": lambda counts: pu.Shards(2, available),
        "skew": lambda counts: pu.QuantitySkew(0.5, available),
    }
    of = case.federation
    drawn = clients.simulated(of, case.modelled, makers, n_clients=case.n_simulated)
    return {"true": clients.true_clients(of), **drawn}


def _fitted(counts: clients.Counts) -> pu.Population:
    pooled, n_categories = counts.sum(axis=0), counts.shape[1]
    alpha = concentration(counts) * n_categories * pooled / pooled.sum()
    return (
        pu.Dirichlet(alpha, counts.sum(axis=1)) if np.isfinite(alpha).all() else pu.IID.like(counts)
    )


def grids(rates: tuple[float, ...]) -> Iterator[tuple[str, pu.FedAvg, dict[str, Any]]]:
    """The sweeps of a design: what they are called, what is fixed, and what is varied."""
    for n_rounds, n_epochs in LOCAL.items():
        fixed = pu.FedAvg(
            n_rounds=n_rounds, cohort_size=10, local_epochs=n_epochs, evaluate_every=n_rounds // 4
        )
        varied = {"batch_size": (5, 20), "local_learning_rate": rates}
        yield f"local_{n_epochs}", fixed, varied
    for n_rounds, n_cohort in ((48, 5), (12, 20)):
        fixed = pu.FedAvg(
            n_rounds=n_rounds, cohort_size=n_cohort, local_epochs=2, evaluate_every=n_rounds // 4,
            local_learning_rate=rates[1],
        )  # fmt: skip
        yield f"server_{n_cohort}", fixed, {"server_learning_rate": (0.3, 1.0, 3.0)}


def swept(name: str, out: Path) -> None:
    """Run what is missing of one federation."""
    case = CASES[name]()
    who = populations(case, out / f"{name}_mdm")
    for called, fixed, varied in grids(case.rates):
        print(name, called, file=sys.stderr)
        pu.sweep(
            fixed, "softmax", case.data, populations=who, grid=varied, seeds=SEEDS, n_jobs=1,
            folder=out / f"{name}_{called}",
        )  # fmt: skip


def lines(out: Path) -> Iterator[str]:
    """A table for each federation and design: what clients of each population promise and lose."""
    for name in CASES:
        for design in ("local", "server"):
            folders = sorted(out.glob(f"{name}_{design}_*"))
            runs = [run for folder in folders for run in pu.read_runs(folder)]
            if {run.population for run in runs} <= {"true", "again"}:
                continue
            verdict = pu.compare_sweeps(runs)
            best = pu.best_settings(runs)
            yield f"\n**{name}, {design}**, {len(runs)} runs\n"
            yield "| clients | difference | regret | regret less mdm's | rank correlation |"
            yield "|---|---|---|---|---|"
            for found in verdict.populations:
                less = "–"
                if found.population not in ("mdm", "again"):
                    pair = verdict.paired(found.population, "mdm", of="regret")
                    less = f"{pair.scaled(100):.2f}"
                yield (
                    f"| {found.population} | {found.difference.scaled(100):.2f} "
                    f"| {found.regret.scaled(100):.2f} | {less} | {found.rank_correlation.value:.2f} |"
                )
            if best is not None:
                yield "\n" + "; ".join(best.sentences())


PEOPLE = {
    "again": "again (noise floor)",
    "mdm": "polyurn",
    "iid": "IID",
    "fitted": "fitted Dirichlet",
    "dirichlet 0.1": "Dirichlet(0.1)",
    "skew": "quantity skew",
    "shards": "shards",
    "pathological": "pathological",
}


def summary(names: Sequence[str], out: Path = tables.RESULTS / "regret") -> Iterator[str]:
    """The table of docs/results.md: local work on these federations, side by side."""
    found = {
        name: pu.compare_sweeps(
            run for folder in sorted(out.glob(f"{name}_local_*")) for run in pu.read_runs(folder)
        )
        for name in names
    }
    heads = [f"{name}: difference | regret" for name in names]
    yield f"| clients | {' | '.join(heads)} |"
    yield "|---" * (1 + 2 * len(names)) + "|"
    for who, shown in PEOPLE.items():
        cells = [shown]
        for verdict in found.values():
            own = who in ("again", "mdm")
            regret = verdict[who].regret if own else verdict.paired(who, "mdm", of="regret")
            text = f"{100 * regret.value:.2f} ± {50 * (regret.high - regret.low):.2f}"
            cells += [f"{100 * verdict[who].difference.value:.2f}", f"*{text}*" if own else text]
        yield f"| {' | '.join(cells)} |".replace("-", "−")


def main() -> None:
    """Run what is missing, then print the tables."""
    given = tables.arguments("What is lost by tuning on other clients.", cases=tuple(CASES))
    out = given.out / "regret"
    if not given.draw:
        for name in given.only:
            swept(name, out)
    text = "\n".join(lines(out))
    print(text)
    if not given.draw:
        (out / "regret.md").write_text(text + "\n")


if __name__ == "__main__":
    tables.or_exit(main)

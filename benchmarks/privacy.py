"""What differential privacy costs a fit: nats per client below the truth, or below the fit without it.

Every run is one JSON line in results/privacy.jsonl, written when it ends; a run that is there is not
repeated, so this can be stopped and goes on. Seeds start at 2000: none of them was used for tuning.

    python benchmarks/privacy.py                       # everything, most important bars first
    python benchmarks/privacy.py --only truths         # one part: truths growth tables own components
    python benchmarks/privacy.py --table               # no run: the table of what is there

Gaps are held-out means of log p(c | n): of 100,000 fresh clients for truths, of a quarter of the
clients for real tables, whose other clients are redrawn with replacement to the number in the row.
`+-` is the standard error of the worst gap, where the clients of a table are few.
Noise is a seeded normal rounded to the grid, so that a row can be made again; the package's own is
OpenDP's. `paper` rows are the paper's algorithms with noise on their scaled sums.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import polyurn as pu
from polyurn.model.paper_truths import truth
from polyurn.model.scores import Mixture, log_likelihoods
from polyurn.model.sizes import Sizes

DATA = Path(os.environ.get("POLYURN_DATA", Path(__file__).parents[2] / "shared" / "data"))
RECORDS = Path(__file__).parent / "results" / "privacy.jsonl"
FIRST_SEED = 2000
N_FRESH = 100_000

TABLES = {
    "ratings": ("insteval_lecturer", 3),
    "race": ("acs2024_race", 4),
    "income": ("acs2024_income", 3),
    "speech": ("speech_commands", 3),
    "flights": ("flights_plane_destination", 4),
}


@dataclass(frozen=True)
class Row:
    """Runs of one kind, and the bar that they have to meet.

    Attributes
    ----------
    part, data : str
        What is measured, and on which truth or table.
    n_clients : int
        0: as many as the table has.
    epsilon : float
    n_components : int
        0: chosen among 1 to 5.
    n_seeds : int
    bar : str
        In words, as the table shows it.
    """

    part: str
    data: str
    n_clients: int
    epsilon: float
    n_components: int
    n_seeds: int
    bar: str


ROWS = (
    Row("truths", "medium/3", 10_000, 1.0, 3, 10, "median <= .005, 9 of 10 < .05, weights <= .02"),
    Row("truths", "high/3", 10_000, 1.0, 3, 10, "median <= .005, 9 of 10 < .05, weights <= .02"),
    Row("tables", "race", 100_000, 1.0, 4, 5, "4 of 5 <= .05"),
    Row("tables", "ratings", 100_000, 1.0, 3, 5, "all <= .02"),
    Row("components", "high/3", 10_000, 1.0, 0, 10, "7 of 10 right"),
    Row("components", "medium/3", 10_000, 1.0, 0, 10, "9 of 10 right"),
    Row("components", "medium/2", 10_000, 1.0, 0, 10, "9 of 10 right"),
    Row("components", "medium/1", 10_000, 1.0, 0, 10, "9 of 10 right"),
    Row("truths", "high/3", 10_000, 0.5, 3, 10, "stretch: 9 of 10 < .05"),
    Row("tables", "income", 100_000, 1.0, 3, 5, "all <= .02"),
    Row("growth", "104", 100_000, 1.0, 3, 3, "all <= .01"),
    Row("truths", "medium/3", 100_000, 0.5, 3, 5, "all <= .002"),
    Row("truths", "high/3", 100_000, 0.5, 3, 5, "all <= .002"),
    Row("own", "race", 0, 2.0, 1, 5, "all <= .1"),
    Row("own", "ratings", 0, 2.0, 1, 5, "all <= .1"),
    Row("own", "income", 0, 2.0, 1, 5, "all <= .1"),
    Row("tables", "speech", 100_000, 1.0, 3, 3, "no worse than the private K=1"),
    Row("tables", "speech", 100_000, 1.0, 1, 1, "its K=1"),
    Row("tables", "flights", 100_000, 1.0, 4, 2, "no worse than the private K=1"),
    Row("tables", "flights", 100_000, 1.0, 1, 1, "its K=1"),
    Row("paper", "medium/3", 10_000, 1.0, 3, 3, "the paper's route, for comparison"),
    Row("paper", "high/3", 10_000, 1.0, 3, 3, "the paper's route, for comparison"),
    # For the picture: likelihood against epsilon and the number of clients.
    *(
        Row("picture", "medium/3", n, epsilon, 3, 3, "")
        for epsilon in (1.0, 0.25, 4.0, 0.5, 2.0)
        for n in (10_000, 1_000, 100_000)
    ),
)


def main() -> None:
    """Run what is not there yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="parts whose name contains this")
    parser.add_argument("--data", default="", help="truths and tables whose name contains this")
    parser.add_argument("--table", action="store_true", help="run nothing")
    options = parser.parse_args()
    done = {key(record): record for record in records()}
    for row in ROWS:
        if options.only not in row.part or options.data not in row.data or options.table:
            continue
        for seed in range(FIRST_SEED, FIRST_SEED + row.n_seeds):
            if key({**asdict(row), "seed": seed}) in done:
                continue
            record = {**asdict(row), "seed": seed, **run(row, seed)}
            with RECORDS.open("a") as file:
                file.write(json.dumps(record) + "\n")
            done[key(record)] = record
    show(list(done.values()))


def records() -> Iterator[dict[str, object]]:
    """The runs that are there."""
    if RECORDS.exists():
        yield from (json.loads(line) for line in RECORDS.read_text().splitlines())


def key(record: dict[str, object]) -> tuple[object, ...]:
    """What makes a run that run."""
    names = ("part", "data", "n_clients", "epsilon", "n_components", "seed")
    return tuple(record[name] for name in names)


# ------------------------------------------------------------------------------------------- runs


def run(row: Row, seed: int) -> dict[str, object]:
    """One run: the gap, the error of the weights, and how long it took."""
    clients, held_out, best = material(row, seed)
    bounds = {"n_categories": clients.shape[1], "max_size": largest(row, clients)}
    budget = {"epsilon": row.epsilon, "delta": len(clients) ** -1.1}
    aggregator = pu.LocalAggregator(clients, rng=seed)
    started, cpu = time.perf_counter(), time.process_time()
    found: dict[str, object] = {}
    if row.part == "components":
        choice = pu.fit_private(
            aggregator, n_components=range(1, 6), **budget, **bounds, noise=seeded(seed), rng=seed
        )
        done, found["chosen"] = choice, choice.n_components
        found["behind"] = [round(c.behind, 4) for c in choice.raced]
    elif row.part == "paper":
        done = paper(aggregator, row, budget, bounds, seed)
    else:
        sizes = "shared" if row.part in ("tables", "own") else "binned"
        done = pu.fit_private(
            aggregator, n_components=row.n_components, sizes=sizes, **budget, **bounds,
            noise=seeded(seed), rng=seed,
        )  # fmt: skip
    found["seconds"] = round(time.perf_counter() - started, 2)
    found["cpu_seconds"] = round(time.process_time() - cpu, 2)
    found["n_rounds"] = done.n_rounds
    found["n_numbers"] = sum(r.n_numbers for r in done.rounds)
    if isinstance(best, pu.MDM):
        gaps = best.logpmf_given_size(held_out) - done.mdm.logpmf_given_size(held_out)
        found["gap"] = float(gaps.mean())
        if done.mdm.n_components == best.n_components:
            found["weights"] = float(np.abs(done.mdm.weights - best.weights).max())
    else:
        mine = Mixture(done.mdm.weights, done.mdm.alphas)
        for name, some in (("gap", held_out), ("train_gap", table(row.data)[0])):
            apart = log_likelihoods(best, some) - log_likelihoods(mine, some)
            found[name] = float(apart.mean())
            found[f"{name}_error"] = float(apart.std(ddof=1) / np.sqrt(len(apart)))
    return found


def material(row: Row, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64], pu.MDM | Mixture]:
    """Clients, held-out clients, and what they are judged against."""
    rng = np.random.default_rng([seed, 17])
    if row.data in TABLES:
        train, held_out = table(row.data)
        best = without_privacy(row.data, row.n_components)
        if row.n_clients:
            train = train[rng.integers(len(train), size=row.n_clients)]
        return train, held_out, best
    known = random_truth(int(row.data), rng) if row.part == "growth" else truth(row.data)
    return known.sample(row.n_clients, rng=rng), known.sample(N_FRESH, rng=rng), known


def random_truth(n_categories: int, rng: np.random.Generator) -> pu.MDM:
    """Three components of many categories: means of Dirichlet(1), concentrations from 5 to 50."""
    means = rng.dirichlet(np.ones(n_categories), 3)
    alphas = means * np.exp(rng.uniform(np.log(5), np.log(50), (3, 1)))
    return pu.MDM([0.5, 0.3, 0.2], alphas, Sizes.constant(100, n_components=3))


def largest(row: Row, clients: NDArray[np.int64]) -> int:
    """The declared size: of a table, a power of two that nobody there is above."""
    if row.data not in TABLES:
        return 100 if row.part == "growth" else 20
    most = max(int(part.sum(axis=1).max()) for part in table(row.data))
    return 1 << (most - 1).bit_length()


def seeded(seed: int):
    """Noise that can be drawn again: a normal rounded to whole steps of the grid."""
    rng = np.random.default_rng([seed, 18])
    return lambda n, scale: np.rint(rng.standard_normal(n) * scale).astype(np.int64)


def paper(aggregator, row: Row, budget, bounds, seed: int) -> pu.Fit:
    """The paper's algorithms with noise on their scaled sums, ten rounds."""
    from paper_sums import PaperSums
    from polyurn.privacy.accounting import sigma_for
    from polyurn.privacy.ledger import PrivacyLedger
    from polyurn.privacy.private_aggregator import PrivateAggregator

    n_rounds = 10
    ledger = PrivacyLedger(budget["epsilon"], budget["delta"])
    layer = PrivateAggregator(aggregator, ledger=ledger, noise=seeded(seed))
    sums = PaperSums(layer, sigma=sigma_for(**budget) * np.sqrt(n_rounds + 1))
    return pu.fit_paper(
        sums, n_components=row.n_components, n_rounds=n_rounds, sizes="binned", size_prior=1.0,
        category_prior=0.01, moments="pooled", **bounds,
    )  # fmt: skip


@cache
def table(name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A real table's clients, three quarters and one."""
    folder = DATA / TABLES[name][0]
    n_categories = len((folder / "classes.csv").read_text().splitlines()) - 1
    read = pu.read_table(folder / "histograms.parquet")
    counts = pu.table_histograms(read, categories=n_categories, count="count").counts
    counts = np.asarray(counts.todense() if hasattr(counts, "todense") else counts)
    order = np.random.default_rng(0).permutation(len(counts))
    held_out, train = np.split(counts[order].astype(np.int64), [len(counts) // 4])
    return train, held_out


@cache
def without_privacy(name: str, n_components: int) -> Mixture:
    """The best of three fits of a table without privacy, with sizes that all components share."""
    train, _ = table(name)
    fits = [
        pu.fit(
            pu.LocalAggregator(train, rng=seed), n_components=n_components, sizes="shared",
            n_categories=train.shape[1], max_size=int(train.sum(axis=1).max()), rng=seed,
        )
        for seed in range(3)
    ]  # fmt: skip
    best = max(fits, key=lambda fit: fit.log_likelihoods.max()).mdm
    return Mixture(best.weights, best.alphas)


# -------------------------------------------------------------------------------------- the table


def show(done: list[dict[str, object]]) -> None:
    """One line for each row that has runs."""
    print(f"{'part':<11}{'data':<10}{'clients':>8}{'eps':>5}{'K':>3} {'runs':>4} {'median':>8} "
          f"{'worst':>8} {'+-':>6} {'<.05':>5} {'weights':>8} {'cpu s':>6} "
          f"{'right':>6}  bar")  # fmt: skip
    for row in ROWS:
        mine = [r for r in done if key({**r, "seed": 0}) == key({**asdict(row), "seed": 0})]
        if not mine or row.part == "picture":
            continue
        gaps = [float(r["gap"]) for r in mine]
        worst = max(mine, key=lambda r: float(r["gap"]))
        error = f"{worst['gap_error']:.3f}" if "gap_error" in worst else ""
        weights = [float(r["weights"]) for r in mine if "weights" in r]
        right = sum(r.get("chosen") == truth(row.data).n_components for r in mine) if (
            row.part == "components"
        ) else None  # fmt: skip
        print(f"{row.part:<11}{row.data:<10}{row.n_clients:>8}{row.epsilon:>5g}{row.n_components:>3} "
              f"{len(mine):>4} {statistics.median(gaps):>8.4f} {max(gaps):>8.4f} "
              f"{error:>6} "
              f"{sum(gap < 0.05 for gap in gaps):>5} "
              f"{statistics.median(weights) if weights else float('nan'):>8.4f} "
              f"{statistics.median(float(r['cpu_seconds']) for r in mine):>6.1f} "
              f"{'' if right is None else right:>6}  {row.bar}")  # fmt: skip


if __name__ == "__main__":
    main()

"""Rounds until a fit is within 1e-3 nats per client of the best optimum known.

The whole cohort answers every round, and every round counts, starts included. The fit under test
runs with its default settings and may stop by itself; if it stops short of the optimum, it has not
reached it. The optimum of a table is the best value met by any fit of it: long runs with other seeds,
the fits under test, and the paper's method where it ran. Values are means of log p(c | n) of the
parameters that the server holds after a round; sizes are shared, so they play no part.

    python benchmarks/rounds.py               # fresh draws of the paper's synthetic truths
    python benchmarks/rounds.py --real        # natural clients, from POLYURN_DATA or ../shared/data

A table, and one JSON object as the last line. The optima of real tables are kept in
results/optima.json and only ever improve.
"""

import argparse
import json
import multiprocessing
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import polyurn as pu
from polyurn.counts import Counts
from polyurn.model.paper_truths import NAMES, truth

DATA = Path(os.environ.get("POLYURN_DATA", Path(__file__).parents[2] / "shared" / "data"))
OPTIMA = Path(__file__).parent / "results" / "optima.json"
WITHIN = 1e-3
LONG = {"tol": 1e-7, "max_rounds": 60}


@dataclass(frozen=True)
class Synthetic:
    """Fresh draws of every truth, and what is required of them."""

    n_clients: int = 5_000
    n_fresh: int = 100_000  # clients that nothing was fitted to
    n_long: int = 3
    paper_seeds: int = 3
    paper_rounds: int = 300
    required_median: int = 12
    required_worst: int = 30


@dataclass(frozen=True)
class Real:
    """One table of natural clients."""

    name: str
    folder: str
    n_components: int
    max_rounds: int = 30
    required_share: float = 0.93


TABLES = (
    Real("ACS race, K=3", "acs2024_race", 3),
    Real("ACS race, K=7", "acs2024_race", 7),
    Real("ACS income, K=3", "acs2024_income", 3),
    Real("speech, K=3", "speech_commands", 3),
    Real("ratings, K=3", "insteval_lecturer", 3),
    Real("flights, K=3", "flights_plane_destination", 3),
)


@dataclass(frozen=True)
class Run:
    """A fit as this benchmark sees it: its value after each round, NaN while there is none."""

    values: tuple[float, ...]
    largest_upload: int
    mdm: pu.MDM

    @property
    def best(self) -> float:
        return float(np.nanmax(self.values))

    def reached(self, optimum: float) -> float:
        """The first round within reach of the optimum, infinity if none is."""
        near = np.flatnonzero(np.array(self.values) >= optimum - WITHIN)
        return float(near[0] + 1) if len(near) else float("inf")


def main() -> None:
    """Run one of the two halves and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--real", action="store_true", help="natural clients")
    parser.add_argument("--seeds", type=int, default=20, help="fits under test per row")
    parser.add_argument("--long", type=int, help="long runs per table; 100 real, 3 synthetic ones")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    with multiprocessing.Pool(options.processes) as pool:
        rows = real(options, pool.imap) if options.real else synthetic(options, pool.imap)
    print(json.dumps({"seeds": options.seeds, "rows": rows}))


Map = Callable[[Callable[[tuple], object], Iterable[tuple]], Iterable]


def synthetic(options: argparse.Namespace, parallel: Map) -> list[dict[str, object]]:
    """Every truth, one fresh draw per seed."""
    settings = Synthetic() if options.long is None else Synthetic(n_long=options.long)
    print(f"{settings.n_clients} clients, {options.seeds} draws each; optimum: best of "
          f"{settings.n_long} long runs, the fit under test and, for the first "
          f"{settings.paper_seeds} draws, the paper's method")  # fmt: skip
    print(f"{'truth':<12} {'median':>6} {'worst':>6} {'reached':>7} {'worst gap':>9} "
          f"{'stops, median':>13} {'worst':>6} {'run on':>7} {'upload':>7} {'held-out':>18} "
          f"{'paper':>22}  bars")  # fmt: skip
    rows = []
    for name in NAMES:
        if options.only not in name:
            continue
        draws = list(parallel(one_draw, [(name, s, settings) for s in range(options.seeds)]))
        row = summary(name, [d[0] for d in draws], [d[1] for d in draws])
        on = [d[2].reached(d[1]) for d in draws]
        row["reached_if_run_on"] = float(np.isfinite(on).mean())
        row["worst_if_run_on"] = shown(max(on))
        fresh = np.array([d[4] for d in draws])
        row["held_out"] = float(fresh.mean())
        row["held_out_error"] = float(fresh.std(ddof=1) / np.sqrt(len(fresh)))
        row["paper"] = [shown(d[3].reached(d[1])) for d in draws if d[3] is not None]
        row["met"] = bool(
            row["median"] <= settings.required_median
            and (
                (row["share"] == 1 and row["worst"] <= settings.required_worst)
                or row["held_out"] + 2 * row["held_out_error"] >= 0
            )
        )
        paper = ", ".join(
            f">{settings.paper_rounds}" if r is None else f"{r}" for r in row["paper"]
        )
        print(f"{name:<12} {row['median']:>6g} {row['worst']:>6g} {row['share']:>7.0%} "
              f"{row['worst_gap']:>9.1e} {row['stops_median']:>13g} {row['stops_worst']:>6g} "
              f"{row['reached_if_run_on']:>7.0%} {row['upload']:>7} "
              f"{row['held_out']:>+9.1e} ({row['held_out_error']:.0e}) {paper:>22}  "
              f"{'met' if row['met'] else 'MISSED'}", flush=True)  # fmt: skip
        rows.append({key: finite(value) for key, value in row.items()})
    print(f"median, worst: rounds to within {WITHIN:g}; worst gap: where the fit stopped; run on: "
          "share that reach it with tol 1e-7; held-out: nats per client by which fresh clients find the "
          "fit likelier than the one at the optimum (its standard error); paper: its rounds\n"
          f"bars: median <= {settings.required_median}, worst <= {settings.required_worst}, "
          "100 % reached or, held out, no less likely by two standard errors")  # fmt: skip
    return rows


def one_draw(task: tuple[str, int, Synthetic]) -> tuple[Run, float, Run, Run | None, float]:
    """The fit under test of one draw, the draw's optimum, the same fit run on, the paper's, and by how
    much fresh clients find the fit under test likelier than the one at the optimum.
    """
    name, seed, settings = task
    hidden = truth(name)
    counts = hidden.sample(settings.n_clients, rng=1_000 + seed)
    k = hidden.n_components
    tested = run(counts, k, seed=seed)
    on = run(counts, k, seed=seed, **LONG)
    others = [run(counts, k, seed=10_000 + 100 * seed + i, **LONG) for i in range(settings.n_long)]
    paper = None
    if seed < settings.paper_seeds:
        paper = run_paper(counts, k, seed=seed, n_rounds=settings.paper_rounds)
        others.append(paper)
    best = max((tested, on, *others), key=lambda r: r.best)
    fresh = hidden.sample(settings.n_fresh, rng=500_000 + seed)
    here, there = (r.mdm.logpmf_given_size(fresh).mean() for r in (tested, best))
    return tested, best.best, on, paper, float(here - there)


def real(options: argparse.Namespace, parallel: Map) -> list[dict[str, object]]:
    """Every real table that is there: long runs for the optimum, then the fits under test."""
    optima = json.loads(OPTIMA.read_text()) if OPTIMA.exists() else {}
    n_long = 100 if options.long is None else options.long
    print(f"{options.seeds} fits each, at most 30 rounds; optimum: best value ever met, "
          f"{n_long} long runs in this run")  # fmt: skip
    print(f"{'table':<16} {'optimum':>12} {'long':>5} {'same':>5} {'median':>6} {'worst':>6} "
          f"{'reached':>7} {'worst gap':>9} {'stops, median':>13} {'worst':>6} "
          f"{'upload':>7}  bar")  # fmt: skip
    rows = []
    for table in TABLES:
        if options.only not in table.name:
            continue
        if not (DATA / table.folder / "histograms.parquet").exists():
            print(f"{table.name}: no {table.folder} under {DATA}, skipped (set POLYURN_DATA)")
            continue
        known = optima.get(table.name, {"value": -np.inf, "long_runs": 0})
        first = 20_000 + known["long_runs"]
        tasks = [(table, s, False) for s in range(options.seeds)]
        tasks += [(table, first + i, True) for i in range(n_long)]
        runs = list(parallel(one_table, tasks))
        tested, long = runs[: options.seeds], runs[options.seeds :]
        value = max(known["value"], *(r.best for r in runs))
        optima[table.name] = {"value": value, "long_runs": known["long_runs"] + len(long)}
        OPTIMA.parent.mkdir(exist_ok=True)
        OPTIMA.write_text(json.dumps(optima, indent=1) + "\n")
        row = summary(table.name, tested, [value] * len(tested))
        row |= {"optimum": value, **{k: v for k, v in asdict(table).items() if k != "name"}}
        row |= {"long_runs": optima[table.name]["long_runs"]}
        row["long_runs_at_optimum"] = sum(r.best >= value - WITHIN for r in long)
        row["met"] = bool(row["share"] >= table.required_share)
        print(f"{table.name:<16} {value:>12.5f} {row['long_runs']:>5} "
              f"{row['long_runs_at_optimum']:>5} {row['median']:>6g} {row['worst']:>6g} "
              f"{row['share']:>7.0%} {row['worst_gap']:>9.1e} {row['stops_median']:>13g} "
              f"{row['stops_worst']:>6g} {row['upload']:>7}  "
              f"{'met' if row['met'] else 'MISSED'}", flush=True)  # fmt: skip
        rows.append({key: finite(value) for key, value in row.items()})
    print(f"long: long runs so far; same: those of this run within {WITHIN:g} of the optimum; median, "
          f"worst: rounds to within {WITHIN:g}\nbar: at least 93 % within 30 rounds")  # fmt: skip
    return rows


def one_table(task: tuple[Real, int, bool]) -> Run:
    """One fit of a real table, under test or long."""
    table, seed, long = task
    limits = LONG if long else {"max_rounds": table.max_rounds}
    return run(load(table.folder), table.n_components, seed=seed, **limits)


def load(folder: str) -> Counts:
    """The histograms of one folder."""
    path = DATA / folder
    n_categories = len((path / "classes.csv").read_text().splitlines()) - 1
    table = pu.read_table(path / "histograms.parquet")
    return pu.table_histograms(table, categories=n_categories, count="count").counts


def run(counts: Counts, n_components: int, *, seed: int, **settings: object) -> Run:
    """One fit, judged after each round by the parameters it then holds."""
    clients = pu.LocalAggregator(counts, rng=seed)
    return judged(
        pu.fit(clients, n_components=n_components, sizes="shared", rng=seed, **bounds(counts),
               **settings),
        counts,
    )  # fmt: skip


def run_paper(counts: Counts, n_components: int, *, seed: int, n_rounds: int) -> Run:
    """The same of the paper's fit, with sizes in the same bins."""
    clients = pu.LocalAggregator(counts, rng=seed)
    return judged(
        pu.fit_paper(clients, n_components=n_components, sizes="binned", n_rounds=n_rounds,
                     **bounds(counts)),
        counts,
    )  # fmt: skip


def bounds(counts: Counts) -> dict[str, int]:
    """The number of categories and the largest size of a table."""
    return {"n_categories": counts.shape[1], "max_size": int(counts.sum(axis=1).max())}


def judged(fit: pu.Fit, counts: Counts) -> Run:
    """The mean of log p(c | n) of the parameters after each round."""
    values: list[float] = []
    for before, after in zip((None, *fit.rounds), fit.rounds, strict=False):
        if after.mdm is None:
            values.append(float("nan"))
        elif before is not None and same(before.mdm, after.mdm):
            values.append(values[-1])
        else:
            values.append(float(after.mdm.logpmf_given_size(counts).mean()))
    return Run(tuple(values), max(r.n_numbers for r in fit.rounds), fit.mdm)


def same(a: pu.MDM | None, b: pu.MDM) -> bool:
    """Whether a round left the parameters as they were."""
    return a is not None and np.array_equal(a.alphas, b.alphas)


def summary(name: str, runs: list[Run], optima: list[float]) -> dict[str, object]:
    """One row of either table."""
    reached = [r.reached(o) for r, o in zip(runs, optima, strict=True)]
    stops = [len(r.values) for r in runs]
    return {
        "name": name,
        "median": float(np.median(reached)),
        "worst": max(reached),
        "share": float(np.isfinite(reached).mean()),
        "worst_gap": max(o - r.best for r, o in zip(runs, optima, strict=True)),
        "stops_median": float(np.median(stops)),
        "stops_worst": max(stops),
        "upload": max(r.largest_upload for r in runs),
        "rounds": [shown(r) for r in reached],
    }


def shown(rounds: float) -> int | None:
    """A number of rounds for JSON, which has no infinity."""
    return int(rounds) if np.isfinite(rounds) else None


def finite(value: object) -> object:
    """JSON has no infinity either way."""
    return None if isinstance(value, float) and not np.isfinite(value) else value


if __name__ == "__main__":
    main()

"""Is the spread over clients forecast as well as the mean?

    python experiments/client_spread.py          # resumes; writes results/client_spread/*
    python experiments/client_spread.py --draw   # only the tables of what is kept; trains nothing

The design, fixed before any run of it: the federations of `regret.py` (digits by writer, census records
by their income, flights by route under split 701) and six of its populations. A quarter of each
client's points is kept for testing that client. Softmax regression, 24 rounds of ten clients, two
epochs, batches of ten, four rates, the fresh seeds 800 to 805. *Mean* is the mean over clients of the
accuracy on their own points, *tenth* what nine of ten clients reach, *gap* the first less the second.
A score is the mean of the last half of the evaluations. The gap counts as forecast as well as the mean
where its absolute difference is not larger than the mean's by more than chance, seed by seed.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

import polyurn as pu
from polyurn.comparison.estimates import student_estimate
from polyurn.storage.run_log import FinishedRun

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import regret
import training_tables as tables

SEEDS = tuple(range(800, 806))
NAMES = ("digits", "census", "flights_701")
WHO = ("true", "mdm", "iid", "fitted", "dirichlet 0.1", "pathological")
SETTINGS = pu.FedAvg(n_rounds=24, cohort_size=10, local_epochs=2, evaluate_every=3)
MEAN, TENTH, GAP = "client accuracy", "client accuracy, 10th percentile", "gap"


def swept(name: str, out: Path) -> None:
    """Run what is missing of one federation."""
    case = regret.CASES[name]()
    who = regret.populations(case, out / f"{name}_mdm")
    print(name, file=sys.stderr)
    pu.sweep(
        SETTINGS, "softmax", case.data, populations={one: who[one] for one in WHO}, seeds=SEEDS,
        grid={"local_learning_rate": case.rates}, client_test=0.25, n_jobs=1, folder=out / name,
    )  # fmt: skip


def with_gap(run: FinishedRun) -> FinishedRun:
    """The same run, with the gap between mean and tenth percentile as a metric."""
    pairs = zip(run.metrics[MEAN], run.metrics[TENTH], strict=True)
    gap = [None if mean is None or tenth is None else mean - tenth for mean, tenth in pairs]
    final = gap[-1] if gap and not run.diverged else None
    return replace(run, metrics={**run.metrics, GAP: gap}, final={**run.final, GAP: final})


def lines(out: Path) -> Iterator[str]:
    """A table for each federation: how far each population is off, in points."""
    for name in NAMES:
        if not (out / name).exists():
            continue
        runs = [with_gap(run) for run in pu.read_runs(out / name)]
        verdicts = {metric: pu.compare_sweeps(runs, metric=metric) for metric in (MEAN, TENTH, GAP)}
        truth = {metric: np.mean(_scores(found, "true")) for metric, found in verdicts.items()}
        known = ", ".join(f"{words} {100 * truth[m]:.1f}" for m, words in _WORDS.items())
        yield f"\n**{name}**, {len(runs)} runs; the true clients: {known}\n"
        yield "| clients | mean | tenth | gap | gap, signed | gap less mean |"
        yield "|---|---|---|---|---|---|"
        for row in verdicts[GAP].populations:
            off = [f"{verdicts[m][row.population].difference.scaled(100):.2f}" for m in _WORDS]
            less = student_estimate(_off(verdicts[GAP], row.population, verdicts[MEAN])).scaled(100)
            signed = row.signed.scaled(100)
            yield f"| {row.population} | {' | '.join(off)} | {signed:.2f} | {less:.2f} |"


_WORDS = {MEAN: "mean", TENTH: "tenth", GAP: "gap"}


def _scores(verdict: pu.Verdict, population: str) -> list[float]:
    return [one for by in verdict.scores[population].values() for one in by.values()]


def _off(gap: pu.Verdict, population: str, mean: pu.Verdict) -> list[float]:
    """The absolute difference of the gap less that of the mean, seed by seed."""
    found = []
    for seed, settings in gap.scores[population].items():
        one, other = (
            [abs(v.scores[population][seed][s] - v.scores["true"][seed][s]) for s in settings]
            for v in (gap, mean)
        )
        found.append(float(np.mean(one) - np.mean(other)))
    return found


def main() -> None:
    """Run what is missing, then print the tables."""
    given = tables.arguments("Is the spread over clients forecast as well as the mean?")
    out = given.out / "client_spread"
    if not given.draw:
        for name in NAMES:
            swept(name, out)
    text = "\n".join(lines(out))
    print(text)
    if not given.draw:
        (out / "client_spread.md").write_text(text + "\n")


if __name__ == "__main__":
    tables.or_exit(main)

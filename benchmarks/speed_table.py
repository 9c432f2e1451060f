"""The table of docs/speed.md: a round, a fit, choosing K, a partition and a training run, beside others.

Processor seconds, so that other work on the machine counts little; of our own work the best of several
times, kernels compiled. Of training the best round by the clock: threads that wait spin. A peer that is
not installed is "not run here": R with DirichletMultinomial (`benchmarks/dmn.py` says how), pfl-research
and Flower (environments in build/peers, which `benchmarks/training_speed.py` makes).

    python benchmarks/speed_table.py            # prints the table; five minutes
    python benchmarks/speed_table.py --save     # also into docs/speed.md, between its marks
"""

import argparse
import os
import platform
import re
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
from scipy.stats import binom

import dmn
import fit_speed
import polyurn as pu
from polyurn.model.paper_truths import truth
from polyurn.reference import initialise
from polyurn.server.paper import update
from polyurn.wire import Update
from turns import load

PAGE = Path(__file__).parents[1] / "docs" / "speed.md"
MARKS = re.compile(r"(<!-- speed table -->\n)(.*?)(<!-- end of the speed table -->)", re.DOTALL)
MOST_ROUNDS, NEAR = 300, 1e-3  # of the NumPy EM: rounds, and nats per client below our fit
NOT_RUN = "not run here"


@dataclass(frozen=True)
class Row:
    """One line: the work, our processor seconds, and those of somebody else."""

    work: str
    ours: float
    other: str
    theirs: float | None
    remark: str = ""

    def cells(self) -> str:
        theirs = NOT_RUN if self.theirs is None else shown(self.theirs)
        ratio = "–" if self.theirs is None else f"{self.theirs / self.ours:,.1f}"
        parts = (self.work, shown(self.ours), self.other, theirs, ratio, self.remark)
        return f"| {' | '.join(parts)} |"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", action="store_true", help="also write it into docs/speed.md")
    save = parser.parse_args().save
    before, started = load(), time.perf_counter()
    lines = [
        "| work | polyurn, s | beside it | s | times | |",
        "|---|---|---|---|---|---|",
    ]
    for rows in (a_round(), a_fit(), choosing(), a_partition(), training()):
        for row in rows:
            lines.append(row.cells())
            print(lines[-1], flush=True)
    table = "\n".join(lines) + "\n\n" + (
        f"polyurn {pu.__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"{time.strftime('%d %B %Y')}; processor seconds, load average {before} before and {load()} "
        f"after, {time.perf_counter() - started:.0f} s in all.\n"
    )  # fmt: skip
    print(table)
    if save:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(MARKS.sub(lambda m: m[1] + table + m[3], text), encoding="utf-8")


def a_round() -> Iterator[Row]:
    """Algorithm 2's sums over 100,000 clients, on one thread."""
    mdm, counts = fit_speed.population(fit_speed.CASES[1], 1.0)
    clients = pu.LocalAggregator(counts, rng=0)
    fit_speed.check(clients.aggregate(Update(mdm), None), fit_speed.tuned_round(mdm, counts))
    ours = best(lambda: clients.aggregate(Update(mdm), None), 7)
    work = "a round: 100,000 clients x 62 categories, K = 3"
    yield Row(work, ours, "NumPy, plain", best(lambda: fit_speed.plain_round(mdm, counts), 1))
    yield Row(work, ours, "NumPy, tuned", best(lambda: fit_speed.tuned_round(mdm, counts), 1))


def a_fit() -> Iterator[Row]:
    """Three components and 10,000 clients, up to the same likelihood."""
    counts = clients_of_20()
    settings = {"n_components": 3, "n_categories": 10, "max_size": 20}
    done = pu.fit(pu.LocalAggregator(counts, rng=0), rng=0, **settings)
    ours = best(lambda: pu.fit(pu.LocalAggregator(counts, rng=0), rng=0, **settings), 3)
    goal = done.mdm.logpmf(counts).mean() - NEAR
    rounds = 0

    def em() -> None:
        nonlocal rounds
        start = initialise(counts, n_components=3, max_size=20, rng=0)
        mdm, rounds = pu.MDM(*start), 1
        while rounds < MOST_ROUNDS:
            sums = fit_speed.tuned_round(mdm, counts)
            if sums.log_likelihood / len(counts) >= goal:
                return
            mdm, rounds = update(mdm, sums), rounds + 1

    work = "a fit: 10,000 clients x 10, K = 3"
    theirs = best(em, 1)
    reached = f"{rounds} rounds" if rounds < MOST_ROUNDS else f"stopped after {rounds} rounds"
    yield Row(work, ours, "NumPy EM, one start", theirs, f"{reached}; ours {done.n_rounds}")
    yield Row(work, ours, "R's dmn", by_dmn(counts, [3]), "with R's start")


def choosing() -> Iterator[Row]:
    """Held-out clients choose among one to four components."""
    counts = clients_of_20()[:2_000]
    ours = best(lambda: pu.fit(counts, n_components=[1, 2, 3, 4], rng=0), 2)
    yield Row("choosing K from 1 to 4, 2,000 of these clients", ours, "R's dmn, four fits",
              by_dmn(counts, [1, 2, 3, 4]), "with R's start")  # fmt: skip


def a_partition() -> Iterator[Row]:
    """Dirichlet(0.3): 200,000 points to 2,000 clients, each point once."""
    work, n_clients = "a partition: 200,000 points, 100 labels, 2,000 clients", 2_000
    labels = np.random.default_rng(0).integers(0, 100, 200_000)
    sizes = 1 + binom.rvs(180, 0.5, size=n_clients, random_state=0)
    dirichlet = pu.Dirichlet([0.3] * 100, sizes=sizes)
    ours = best(lambda: pu.partition(labels, dirichlet, n_clients=n_clients, rng=1), 5)
    try:
        from flwr_datasets.partitioner import DirichletPartitioner

        from datasets import Dataset
    except ImportError:
        yield Row(work, ours, "flwr-datasets, DirichletPartitioner", None)
        return
    theirs = DirichletPartitioner(
        num_partitions=n_clients, partition_by="label", alpha=0.3, min_partition_size=0, seed=1
    )
    theirs.dataset = Dataset.from_dict({"label": labels})
    yield Row(
        work, ours, "flwr-datasets, DirichletPartitioner", best(lambda: theirs.num_partitions, 1)
    )


def training() -> Iterator[Row]:
    """Rounds of federated averaging of a perceptron: 50 clients, 100 points each."""
    import torch

    from peers.environments import FLOWER, FOLDER, PFL_PER_CORE, block
    from training_speed import check_same_work, fastest, warm_up
    from training_work import SMALL, opened

    torch.set_num_threads(1)
    case = next(case for case in SMALL if case.model == "mlp")
    work = FOLDER / "work" / "table.pt"
    with opened(case, "batched", 1) as ours:
        ours.save(work)
        warm_up(ours)
        mine = ours.block(n_warm_up=1, n_rounds=9)
        for peer, name in (
            (PFL_PER_CORE, "pfl-research, one thread"),
            (FLOWER, "Flower's simulation"),
        ):
            seconds = None
            if (peer.environment / "bin" / "python").exists():
                theirs = block(peer, work, n_warm_up=1, n_rounds=9, n_cores=1)
                check_same_work(peer, mine, theirs)
                seconds = fastest([theirs])
            yield Row("training: a round of 50 clients x 100 points, a perceptron",
                      fastest([mine]), name, seconds, "best of 9 rounds, by the clock")  # fmt: skip


def clients_of_20() -> np.ndarray:
    """10,000 clients of the paper's mixture of three components."""
    return truth("medium/3").sample(10_000, rng=0)


def by_dmn(counts: np.ndarray, numbers: list[int]) -> float | None:
    """Processor seconds of R's dmn over some numbers of components; None where it is not installed."""
    if dmn.what_is_missing() is not None:
        return None
    return best(lambda: [dmn.dmn(counts, k, seed=1) for k in numbers], 1)


def best(work: Callable[[], object], repeats: int) -> float:
    """Processor seconds of the best of some turns, after one that compiles where there are several."""
    if repeats > 1:
        work()
    took = []
    for _ in range(repeats):
        start = processor_time()
        work()
        took.append(processor_time() - start)
    return min(took)


def processor_time() -> float:
    """Of this process and of those that it has waited for."""
    times = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in times)


def shown(seconds: float) -> str:
    """Three digits."""
    return f"{seconds:,.3g}" if seconds < 1000 else f"{seconds:,.0f}"


if __name__ == "__main__":
    main()

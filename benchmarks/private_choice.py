"""Two rules for the private choice of K, on the same noised numbers.

A race of 1 to 4 components is run privately on clients of a truth of the paper, up to the round that
compares the numbers of components. What clients say there is kept without its noise, so that the noise
of that round can be drawn many times; each draw is given to both rules. Every race is one JSON line in
results/private_choice.jsonl, written when it ends; a race that is there is not repeated.

    python benchmarks/private_choice.py            # all races, then the table
    python benchmarks/private_choice.py --table    # no run

`first` is the rule before: the smallest K within two standard deviations of the best, however many K
between them are not. `downwards` is today's. `off` is the mean difference between the K that is chosen
and the one that is chosen without noise in that round.
"""

import argparse
import contextlib
import json
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

import polyurn as pu
from polyurn.model.paper_truths import NAMES, truth
from polyurn.model.scores import Mixture
from polyurn.privacy.accounting import sigma_for
from polyurn.server.fit_results import PrivateCandidate
from polyurn.server.private.plan import CHOOSING
from polyurn.server.private.private_fit import candidates_of, chosen_of
from polyurn.server.private.steps import Gains
from polyurn.wire.private_queries import Differences
from privacy import seeded

RECORDS = Path(__file__).parent / "results" / "private_choice.jsonl"
EPSILONS, N_CLIENTS, LARGEST, N_NOISES = (1.0, 4.0, 16.0), (1_000, 10_000), 4, 20
SEEDS = range(4000, 4005)


class ComparedError(Exception):
    """The clients have compared the numbers of components: what follows plays no part here."""


class UpToTheChoice:
    """An aggregator that stops at the comparison, and keeps what was asked and answered there."""

    def __init__(self, counts) -> None:
        self._inner = pu.LocalAggregator(counts, rng=0)
        self.query, self.values = None, None

    def aggregate(self, query, cohort_size):
        answer = self._inner.aggregate(query, cohort_size)
        if isinstance(query, Differences):
            self.query, self.values = query, answer.values
            raise ComparedError
        return answer


KEY = ("n_clients", "seed", "truth", "epsilon")


def main() -> None:
    """Run what is not there yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true", help="run nothing")
    parser.add_argument("--clients", type=int, default=0, help="only so many clients")
    parser.add_argument("--seeds", default="", help="only these, as 4000,4002")
    options = parser.parse_args()
    seeds = [int(seed) for seed in options.seeds.split(",") if seed] or list(SEEDS)
    done = {tuple(r[name] for name in KEY) for r in records()}
    for run in product(N_CLIENTS, seeds, NAMES, EPSILONS):
        if run in done or options.table or run[0] != (options.clients or run[0]):
            continue
        record = dict(zip(KEY, run, strict=True)) | race(*run)
        with RECORDS.open("a") as file:
            file.write(json.dumps(record) + "\n")
    show(list(records()))


def records() -> Iterator[dict]:
    """The races that are there."""
    if RECORDS.exists():
        yield from (json.loads(line) for line in RECORDS.read_text().splitlines())


def race(n_clients: int, seed: int, name: str, epsilon: float) -> dict:
    """One race: the gains of each K without noise, and the noise that they would have."""
    known, started = truth(name), time.process_time()
    clients = UpToTheChoice(known.sample(n_clients, rng=seed))
    delta = n_clients**-1.1
    with contextlib.suppress(ComparedError):
        pu.fit_private(
            clients, n_components=range(1, LARGEST + 1), epsilon=epsilon, delta=delta,
            noise=seeded(seed), n_categories=known.n_categories, max_size=known.max_size, rng=seed,
        )  # fmt: skip
    scale = np.array(clients.query.clips) * np.sqrt(len(clients.query.clips)) / n_clients
    sigma = sigma_for(epsilon, delta) * np.sqrt(CHOOSING.total / CHOOSING.choice)
    return {
        "numbers": [mixture.n_components for mixture in clients.query.mixtures],
        "coordinates": [mixture.n_coordinates for mixture in clients.query.mixtures],
        "gains": [0.0, *(clients.values * scale)],
        "noise": [0.0, *(sigma * scale)],
        "cpu_seconds": round(time.process_time() - started, 2),
    }


def first(table: tuple[PrivateCandidate, ...]) -> int:
    """The rule before."""
    return next(c.n_components for c in table if c.behind <= 2 * c.noise)


def choices(record: dict) -> tuple[np.ndarray, np.ndarray, int]:
    """What both rules choose for each draw of the noise, and what is chosen without noise."""
    noise, rng = np.array(record["noise"]), np.random.default_rng(record["seed"])
    n_clients = record["n_clients"]
    numbers = [
        Mixture(
            np.full(k, 1 / k), np.ones((k, d // k - 1))
        )  # what is counted of them are coordinates
        for k, d in zip(record["numbers"], record["coordinates"], strict=True)
    ]
    tables = [
        candidates_of(numbers, Gains(np.array(record["gains"]) + noise * draw, noise), n_clients)
        for draw in rng.standard_normal((N_NOISES, len(noise)))
    ]
    exact = candidates_of(numbers, Gains(np.array(record["gains"]), 0 * noise), n_clients)
    before, now = [first(table) for table in tables], [chosen_of(table) for table in tables]
    return np.array(before), np.array(now), chosen_of(exact)


def show(done: list[dict]) -> None:
    """A line for each truth and epsilon: how often each rule is right, and how far from noiseless."""
    print(f"{'clients':>7} {'truth':<12}{'K':>2}{'eps':>5}{'draws':>7}{'right: first':>14}"
          f"{'downwards':>11}{'off: first':>12}{'downwards':>11}{'differ':>8}")  # fmt: skip
    for n_clients, name, epsilon in product(N_CLIENTS, (*NAMES, "all"), EPSILONS):
        mine = [
            (truth(r["truth"]).n_components, *choices(r))
            for r in done
            if (r["n_clients"], r["epsilon"]) == (n_clients, epsilon)
            and name in (r["truth"], "all")
        ]
        if not mine:
            continue
        right, exact = (np.repeat([one[i] for one in mine], N_NOISES) for i in (0, 3))
        before, now = (np.concatenate([one[i] for one in mine]) for i in (1, 2))
        k = "" if name == "all" else right[0]
        print(f"{n_clients:>7} {name:<12}{k:>2}{epsilon:>5g}{len(now):>7}"
              f"{(before == right).mean():>14.0%}{(now == right).mean():>11.0%}"
              f"{np.abs(before - exact).mean():>12.2f}{np.abs(now - exact).mean():>11.2f}"
              f"{(before != now).mean():>8.1%}")  # fmt: skip


if __name__ == "__main__":
    main()

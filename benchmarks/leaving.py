"""Fits during which nodes leave, come back or take another's place: where they end, and when.

Eight nodes; in round r of a fit one of them leaves, for every r from 3 to 14. The optimum is that of the
clients who are there in the end: the best value of five long fits that had only them from the second
round on (the first round, which fixes the profile of sizes, is over those who were there then), or of a
fit under test. "Reached" is within 1e-3 nats per client of it. Fits that ended before anything happened
are not counted.

    python benchmarks/leaving.py               # a table, and one JSON object as the last line
    python benchmarks/leaving.py --select      # the same of selections: is the choice the same?

Census areas come from POLYURN_DATA or ../shared/data.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import polyurn as pu
from polyurn.client.answers import answer_rows
from polyurn.client.rows import pack
from polyurn.model.paper_truths import truth
from polyurn.wire import Query, S
from rounds import load

N_NODES = 8
WITHIN = 1e-3
EVENTS = range(3, 15)
N_LONG = 5
Table = NDArray[np.int64]
Who = Callable[[int], tuple[int, ...]]  # the nodes that are there in a round


@dataclass(frozen=True)
class Case:
    """Whose clients the nodes have, and how many components are fitted."""

    name: str
    n_components: int
    nodes: Callable[[int], list[Table]]  # of a seed


def alike(name: str, n_clients: int = 50) -> Callable[[int], list[Table]]:
    """Nodes of as many clients each, all of the same truth."""
    return lambda seed: np.split(truth(name).sample(n_clients * N_NODES, rng=seed), N_NODES)


def unlike(name: str, n_clients: int = 50) -> Callable[[int], list[Table]]:
    """The same, but every node has shares of its own of the components."""

    def nodes(seed: int) -> list[Table]:
        rng, mdm = np.random.default_rng(seed), truth(name)
        shares = rng.dirichlet(np.ones(mdm.n_components), size=N_NODES)
        return [pu.MDM(w, mdm.alphas, mdm.sizes).sample(n_clients, rng=rng) for w in shares]

    return nodes


def census(seed: int) -> list[Table]:
    """Census areas by race in the table's order: a node has areas of the same states."""
    table = load("acs2024_race").toarray()
    return [np.asarray(part) for part in np.array_split(table, N_NODES)]


CASES = (
    Case("medium/3", 3, alike("medium/3")),
    Case("high/3", 3, alike("high/3")),
    Case("medium/3, nodes differ", 3, unlike("medium/3")),
    Case("medium/3, screened", 3, alike("medium/3", 1_100)),
    Case("race, K=3", 3, census),
)
EVERY = tuple(range(N_NODES))


def happenings(r: int, seed: int) -> dict[str, Who]:
    """What may happen in round r."""
    return {
        "one leaves": lambda t: EVERY[1:] if t >= r else EVERY,
        "one leaves, comes back after 3 rounds": lambda t: EVERY[1:] if r <= t < r + 3 else EVERY,
        "two leave, 2 rounds apart": lambda t: EVERY[(t >= r) + (t >= r + 2) :],
        "one takes another's place": lambda t: EVERY[1:] if t >= r else EVERY[:-1],
        "in every round another is absent": lambda t: tuple(
            n for n in EVERY if t < r or n != np.random.default_rng([seed, t]).integers(N_NODES)
        ),
    }


class Changing:
    """Sums over the clients of the nodes that are there in a round."""

    def __init__(self, nodes: list[Table], who: Who) -> None:
        self.nodes, self.who, self.n_rounds = nodes, who, 0
        rng = np.random.default_rng([0, 1])  # other draws than the clients
        self._buckets = [rng.random(len(node)) for node in nodes]
        self._packed: dict[tuple[int, ...], object] = {}

    def aggregate(self, query: Query[S], cohort_size: int | None) -> S:
        """The sum of the answers of this round."""
        self.n_rounds += 1
        there = self.who(self.n_rounds)
        if there not in self._packed:
            self._packed[there] = pack(np.vstack([self.nodes[n] for n in there]))
        buckets = np.concatenate([self._buckets[n] for n in there])
        return answer_rows(query, self._packed[there], buckets=buckets)  # type: ignore[arg-type]


def fitted(case: Case, nodes: list[Table], who: Who, seed: int, **more: object) -> pu.Fit:
    """A fit over nodes that come and go."""
    return pu.fit(
        Changing(nodes, who), n_components=case.n_components, n_categories=nodes[0].shape[1],
        max_size=int(max(node.sum(axis=1).max() for node in nodes)), rng=seed,
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


def trials(case: Case, n_seeds: int) -> Iterator[dict[str, object]]:
    """Every happening in every round, and fits in which nothing happens."""
    for seed in range(n_seeds):
        nodes = case.nodes(seed)
        ends: dict[tuple, list[float]] = {}  # the values of all fits of the same clients in the end
        quiet = fitted(case, nodes, lambda t: EVERY, seed)
        runs = [("nothing", 0, (EVERY, EVERY), quiet)]
        for r in EVENTS:
            for name, who in happenings(r, seed).items():
                # Where another is absent in every round, all are judged by: it ends with no set.
                last = EVERY if name.startswith("in every") else who(1_000)
                done = fitted(case, nodes, who, seed)
                if done.n_rounds >= r:
                    runs.append((name, r, (who(1), last), done))
        for name, r, (first, last), done in runs:
            if (first, last) not in ends:
                ends[first, last] = [
                    value(fitted(case, nodes, lambda t, f=first, e=last: f if t == 1 else e, s,
                                 tol=1e-7), nodes, last)
                    for s in range(100, 100 + N_LONG)
                ]  # fmt: skip
            ends[first, last].append(value(done, nodes, last))
            yield {
                "case": case.name, "seed": seed, "what": name, "round": r,
                "value": value(done, nodes, last), "optimum": ends[first, last],
                "n_rounds": done.n_rounds, "converged": done.converged,
                "more_rounds": done.n_rounds - quiet.n_rounds,
            }  # fmt: skip


def value(done: pu.Fit, nodes: list[Table], last: tuple[int, ...]) -> float:
    """The mean log-likelihood of those who are there in the end."""
    return float(done.mdm.logpmf(np.vstack([nodes[n] for n in last])).mean())


def selections(n_seeds: int) -> Iterator[dict[str, object]]:
    """Selections during which a node leaves, and what is chosen if none does."""
    for name, nodes_of in (("appendix-a", alike), ("appendix-a, nodes differ", unlike)):
        for seed in range(n_seeds):
            nodes = nodes_of("appendix-a", 125)(seed)
            whos = {"nothing": {0: lambda t: EVERY}}
            for r in range(3, 20, 2):
                for what, who in list(happenings(r, seed).items())[:3]:
                    whos.setdefault(what, {})[r] = who
            for what, by_round in whos.items():
                for r, who in by_round.items():
                    done = pu.fit(
                        Changing(nodes, who),
                        n_components=range(1, 6),
                        n_categories=5,
                        max_size=100,
                        rng=seed,
                    )
                    if done.n_rounds < r:
                        continue
                    yield {
                        "case": name, "seed": seed, "what": what, "round": r,
                        "chosen": done.n_components, "unfinished": done.unfinished,
                        "n_rounds": done.n_rounds,
                        "value": value(done, nodes, who(1_000)),
                    }  # fmt: skip


def main() -> None:
    """Run all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2, help="draws of each case")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--select", action="store_true", help="selections")
    options = parser.parse_args()
    if options.select:
        selected(options.seeds)
        return
    print(f"{'case':<24} {'what happens':<38} {'fits':>4} {'reached':>7} {'mean gap':>9} "
          f"{'worst gap':>9} {'converged':>9} {'rounds':>6} {'worst':>5} {'more':>5}")  # fmt: skip
    records = []
    for case in CASES:
        if options.only not in case.name:
            continue
        found = list(trials(case, options.seeds))
        for record in found:
            record["gap"] = max(record.pop("optimum")) - record.pop("value")  # type: ignore[call-overload,operator]
        records += found
        for what in dict.fromkeys(str(r["what"]) for r in found):
            some = [r for r in found if r["what"] == what]
            gaps = np.array([r["gap"] for r in some])
            rounds = np.array([r["n_rounds"] for r in some])
            more = np.array([r["more_rounds"] for r in some])
            print(f"{case.name:<24} {what:<38} {len(some):>4} {(gaps < WITHIN).mean():>7.0%} "
                  f"{gaps.mean():>9.1e} {gaps.max():>9.1e} "
                  f"{np.mean([r['converged'] for r in some]):>9.0%} {np.median(rounds):>6g} "
                  f"{rounds.max():>5} {more.mean():>+5.1f}", flush=True)  # fmt: skip
    print(json.dumps(records))


def selected(n_seeds: int) -> None:
    """The table of selections."""
    found = list(selections(n_seeds))
    print(f"{'case':<24} {'what happens':<38} {'selections':>10} {'chosen: how often':>24} "
          f"{'all converged':>13} {'rounds':>6} {'worst':>5}")  # fmt: skip
    for case, what in dict.fromkeys((str(r["case"]), str(r["what"])) for r in found):
        some = [r for r in found if (r["case"], r["what"]) == (case, what)]
        chosen = [r["chosen"] for r in some]
        tally = ", ".join(f"{k}: {chosen.count(k)}" for k in sorted(set(chosen)))  # type: ignore[type-var]
        rounds = np.array([r["n_rounds"] for r in some])
        print(f"{case:<24} {what:<38} {len(some):>10} {tally:>24} "
              f"{np.mean([not r['unfinished'] for r in some]):>13.0%} {np.median(rounds):>6g} "
              f"{rounds.max():>5}")  # fmt: skip
    print(json.dumps(found))


if __name__ == "__main__":
    main()

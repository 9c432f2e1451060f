"""Digits by writer, beyond labels: what is chosen under a budget, with and without a style.

    python experiments/styled_budget.py           # resumes; writes results/styled_budget.jsonl
    python experiments/styled_budget.py --show    # the tables of what is kept; trains nothing

More local epochs in a round leave fewer rounds. With a budget of local epochs alone, all rounds cost
what their epochs cost; with a price of communication, a round costs as much as so many epochs more.
Epochs, local and server rates are chosen on each population and paid for on the pool's natural writers.
The grid and both budgets were fixed before any of these runs. Needs the extra `experiments`.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import polyurn as pu

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import style_tables as tables
import styled_digits
import styles
from records import run_all


@dataclass(frozen=True)
class Settings:
    """A perceptron, which feels style more than softmax regression does."""

    splits: tuple[int, ...] = (11, 12, 13)
    seeds: tuple[int, ...] = (500, 501, 502, 503, 504, 505)
    model: str = "mlp"
    epochs: tuple[int, ...] = (1, 2, 5, 10, 20)
    local_rates: tuple[float, ...] = (0.1, 0.3, 1.0)
    server_rates: tuple[float, ...] = (0.5, 1.0, 1.5)
    cohort_size: int = 10
    batch_size: int = 20
    budget: int = 40  # epochs of each client of a cohort, in all rounds together
    priced_budget: int = 120
    price: int = 5  # of one round's communication, in epochs

    def n_rounds(self, epochs: int) -> dict[str, int]:
        """How many rounds each budget has."""
        return {
            "of local epochs": self.budget // epochs,
            "with communication": self.priced_budget // (epochs + self.price),
        }


SETTINGS = Settings()
NAME = "styled_budget"
POPULATIONS = ("natural", "oracle", "style", "iid", "again")


def score(split: int, population: str, seed: int, model: str, epochs: int) -> dict[str, Any]:
    """One record: the curves of all rates with this number of epochs."""
    runs = styles.curves(
        pu.FedAvg(
            n_rounds=max(SETTINGS.n_rounds(epochs).values()),
            cohort_size=SETTINGS.cohort_size,
            local_epochs=epochs,
            batch_size=SETTINGS.batch_size,
            evaluate_every=1,
        ),
        model, styled_digits.federation(split).data, styled_digits.drawn(split, population, seed),
        seed=seed,
        grid={
            "local_learning_rate": SETTINGS.local_rates,
            "server_learning_rate": SETTINGS.server_rates,
        },
    )  # fmt: skip
    return {"runs": runs}


def main() -> None:
    """Run what is missing, then print the tables."""
    if not tables.arguments("A budget on writers with and without a style.").show:
        for _ in run_all(NAME, settings(), score):
            pass
    print("\n".join(lines()))


def settings() -> Iterator[dict[str, Any]]:
    """Seed by seed, so that a stop leaves whole comparisons."""
    for split in SETTINGS.splits:
        for seed in SETTINGS.seeds:
            for name in POPULATIONS:
                for epochs in SETTINGS.epochs:
                    yield {
                        "split": split, "population": name, "seed": seed,
                        "model": SETTINGS.model, "epochs": epochs,
                    }  # fmt: skip


# --------------------------------------------------------------------------------------- table

BUDGET = {
    "again": "natural writers, again",
    "iid": "IID",
    "oracle": "**label oracle** (the paper's)",
    "style": "**label MDM and style**, 4 directions",
}


def lines() -> Iterator[str]:
    """What is lost on natural writers by choosing on others, under two budgets."""
    for name in ("of local epochs", "with communication"):
        found = _spent(name)
        seeds = sorted(set.intersection(*(set(cells) for cells in found.values())))
        natural = _over(found["natural"], seeds)
        best = max(natural, key=natural.__getitem__)
        spread = tables.POINTS * (natural[best] - np.median(list(natural.values())))
        yield (
            f"Budget {name}: {len(natural)} settings, splits {seeds[0][0]} to {seeds[-1][0]}, seeds "
            f"{seeds[0][1]} to {seeds[-1][1]}; best "
            f"on natural writers {_chosen(best)} with {tables.POINTS * natural[best]:.1f} %, "
            f"{spread:.1f} above the median setting."
        )
        yield from (
            "",
            "| chosen on | epochs, local rate, server rate | regret | regret seed by seed | "
            "rank corr. | mean difference | difference at the best |",
            "|---|---|---|---|---|---|---|",
        )
        for population, words in BUDGET.items():
            yield _regret_row(words, found[population], found["natural"], seeds)
        yield ""


def _spent(budget: str) -> tables.Scores:
    """The accuracy when a budget is spent, for each population, pair and setting."""
    found: tables.Scores = defaultdict(lambda: defaultdict(dict))
    for record in tables.kept(NAME):
        told = record["settings"]
        last = SETTINGS.n_rounds(told["epochs"])[budget] - 1
        cell = found[told["population"]][told["split"], told["seed"]]
        for run in record["runs"]:
            rates = (run["local_learning_rate"], run["server_learning_rate"])
            cell[(told["epochs"], *rates)] = run["curve"][last]
    whole = max(len(cell) for cells in found.values() for cell in cells.values())
    return {
        population: {pair: cell for pair, cell in cells.items() if len(cell) == whole}
        for population, cells in found.items()
    }


def _over(
    cells: Mapping[tuple[int, int], Mapping[tables.Setting, float]],
    pairs: Sequence[tuple[int, int]],
) -> dict[tables.Setting, float]:
    return {s: float(np.mean([cells[pair][s] for pair in pairs])) for s in cells[pairs[0]]}


def _chosen(setting: tables.Setting) -> str:
    return ", ".join(f"{value:g}" for value in setting)


def _regret_row(words: str, mine: Any, natural: Any, pairs: Sequence[tuple[int, int]]) -> str:
    ours, paid = _over(mine, pairs), _over(natural, pairs)
    best, chosen = (max(scores, key=scores.__getitem__) for scores in (paid, ours))
    single = [paid[best] - paid[max(mine[pair], key=mine[pair].__getitem__)] for pair in pairs]
    settings = sorted(paid)
    ranks = [np.argsort(np.argsort([scores[s] for s in settings])) for scores in (ours, paid)]
    cells = (
        _chosen(chosen),
        f"{tables.POINTS * (paid[best] - paid[chosen]):.2f}",
        f"{tables.POINTS * float(np.mean(single)):.2f}",
        f"{np.corrcoef(*ranks)[0, 1]:.3f}",
        f"{tables.POINTS * float(np.mean([ours[s] - paid[s] for s in settings])):+.2f}",
        f"{tables.POINTS * (ours[best] - paid[best]):+.2f}",
    )
    return f"| {words} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()

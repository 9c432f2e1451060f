"""Digits by writer, beyond labels, with a convolutional network, which feels more of a style.

    python experiments/styled_network.py           # resumes; writes results/styled_network.jsonl
    python experiments/styled_network.py --show    # the tables of what is kept; trains nothing

The writers, splits and populations of `styled_digits.py`. Design, splits and seeds were fixed before any
of these runs. Needs the extra `experiments`.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import polyurn as pu
from polyurn.training.networks import convolutional

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import style_tables as tables
import styled_digits
import styles
from records import run_all


@dataclass(frozen=True)
class Settings:
    """The network of the trials that found the method; 12 s of one core for one run."""

    splits: tuple[int, ...] = (11, 12)
    seeds: tuple[int, ...] = (500, 501, 502, 503, 504, 505)
    channels: tuple[int, int] = (8, 16)
    hidden: int = 32
    n_rounds: int = 40
    cohort_size: int = 10
    epochs: int = 5
    rates: tuple[float, ...] = (0.1,)
    batch_size: int = 20
    evaluate_every: int = 4


SETTINGS = Settings()
NAME = "styled_network"
FIRST = ("natural", "oracle", "style 8", "style", "iid")
THEN = ("true", "again")


def score(split: int, population: str, seed: int, model: str, epochs: int) -> dict[str, Any]:
    """One record: what the network scores on these clients."""
    data = styled_digits.federation(split).data
    shape = data.features.shape[1:]
    network = partial(convolutional, shape, 10, channels=SETTINGS.channels, hidden=SETTINGS.hidden)
    runs = styles.trained(
        pu.FedAvg(
            n_rounds=SETTINGS.n_rounds,
            cohort_size=SETTINGS.cohort_size,
            local_epochs=epochs,
            batch_size=SETTINGS.batch_size,
            evaluate_every=SETTINGS.evaluate_every,
        ),
        network, data, styled_digits.drawn(split, population, seed),
        seed=seed, grid={"local_learning_rate": SETTINGS.rates}, engine="batched",
    )  # fmt: skip
    return {"runs": runs}


def main() -> None:
    """Run what is missing, then print the tables."""
    if not tables.arguments("A network on writers with and without a style.").show:
        for _ in run_all(NAME, settings(), score):
            pass
    print("\n".join(tables.network()))


def settings() -> Iterator[dict[str, Any]]:
    """What the bar is about first, one split after the other, seed by seed.

    A stop leaves whole comparisons.
    """
    first, second = SETTINGS.splits
    parts = ((first, FIRST[:3]), (first, FIRST[3:]), (second, FIRST), (first, THEN), (second, THEN))
    for split, names in parts:
        for seed in SETTINGS.seeds:
            for name in names:
                yield {
                    "split": split, "population": name, "seed": seed,
                    "model": "network", "epochs": SETTINGS.epochs,
                }  # fmt: skip


if __name__ == "__main__":
    main()

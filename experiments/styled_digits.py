"""Digits by writer, beyond labels: does a style asked once make the forecast that the labels cannot?

    python experiments/styled_digits.py           # resumes; writes results/styled_digits*.jsonl
    python experiments/styled_digits.py --show    # the tables of what is kept; trains nothing

539 writers are cut in two halves, three times. One half are the clients; the server has the other
half's pictures and none of the clients'. The reference is training on the natural writers of the
server's pictures: no clients that are cut from them can do better. Design, splits, seeds and settings
were fixed before any of these runs. Needs the extra `experiments`, and the pictures: see
sources.mnist_by_writer.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import polyurn as pu
import sources

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import features
import style_tables as tables
import styles
import training_clients as clients
from records import RESULTS, run_all
from training_tables import FOLDER


@dataclass(frozen=True)
class Settings:
    """The settings of the trials that found the method, with splits and seeds of our own."""

    splits: tuple[int, ...] = (11, 12, 13)
    seeds: tuple[int, ...] = (500, 501, 502, 503, 504, 505)
    pooled: int = 2  # pixels a side that become one
    n_rounds: int = 40
    cohort_size: int = 10
    batch_size: int = 20
    evaluate_every: int = 2
    trained: tuple[tuple[str, int, tuple[float, ...]], ...] = (
        ("softmax", 1, (0.1, 0.5)),
        ("softmax", 5, (0.1, 0.3)),
        ("softmax", 10, (0.1,)),
        ("mlp", 1, (0.1,)),
        ("mlp", 5, (0.1, 0.3)),
    )
    components: tuple[int, ...] = (1, 2, 3)
    n_directions: int = 4
    more_directions: int = 8
    n_private: int = 10_000
    epsilon: float = 1.0
    delta: float = 1e-6


SETTINGS = Settings()
NAME = "styled_digits"
FIRST = ("natural", "oracle", "style", "private", "iid", "true", "again")
THEN = ("not private", "style 8", "style redrawn", "oracle style", "mdm")
POPULATIONS = FIRST + THEN


@lru_cache(maxsize=1)
def pictures() -> tuple[pu.Examples, Any]:
    """Halved pictures to train and to test on, and whose the former are."""
    source = sources.mnist_by_writer(root=FOLDER)
    train, test = source.train, source.test
    small = [features.pooled(part.features, SETTINGS.pooled) for part in (train, test)]
    return pu.Examples(small[0], train.labels, small[1], test.labels), train.clients


@lru_cache
def federation(split: int) -> styles.Halves:
    """The writers of one split."""
    data, owners = pictures()
    return styles.Halves(data, 10, data.features, *styles.halves(owners, split))


@lru_cache
def populations(split: int) -> dict[str, clients.Clients]:
    """All clients of a split. A style is learned when it is first needed."""
    there = federation(split)
    mdm = clients.learned(RESULTS / f"{NAME}_mdm", f"split{split}", SETTINGS.components)
    four = lru_cache(maxsize=1)(lambda: styles.learned_style(there, SETTINGS.n_directions))
    eight = lru_cache(maxsize=1)(lambda: styles.learned_style(there, SETTINGS.more_directions))
    fewer, space = styles.on_basis(there, SETTINGS.n_directions)

    def many(**private: float) -> styles.StyleOf:
        n = SETTINGS.n_private
        return lambda seed: styles.bootstrapped_style(fewer, space, seed, n, **private)

    noised = many(epsilon=SETTINGS.epsilon, delta=SETTINGS.delta)
    return styles.natural_clients(there) | {
        "iid": styles.simulated(there, "iid", pu.IID.like),
        "oracle": styles.simulated(there, "oracle", pu.Oracle),
        "mdm": styles.simulated(there, "mdm", mdm),
        "style": styles.simulated(there, "style", mdm, lambda _: four()),
        "oracle style": styles.simulated(there, "oracle style", pu.Oracle, lambda _: four()),
        "style 8": styles.simulated(there, "style 8", mdm, lambda _: eight()),
        # The random stream of "style": the same label counts, and the same draws behind their styles.
        "private": styles.simulated(fewer, "style", mdm, noised),
        "not private": styles.simulated(fewer, "style", mdm, many()),
        "style redrawn": styles.simulated(there, "style redrawn", mdm, lambda _: four()),
    }


@lru_cache(maxsize=1)
def drawn(split: int, population: str, seed: int) -> pu.Partition:
    """Kept for all settings that are trained on the same clients."""
    return populations(split)[population](seed)


def score(split: int, population: str, seed: int, model: str, epochs: int) -> dict[str, Any]:
    """One record: what the rates of this model and number of epochs score on these clients."""
    made = drawn(split, population, seed)
    return styles.scored(SETTINGS, model, epochs, federation(split).data, made, seed)


def look(split: int, population: str, seed: int) -> dict[str, Any]:
    """One record: how much these clients differ, and what the pool could serve."""
    there, made = federation(split), drawn(split, population, seed)
    found: dict[str, Any] = clients.differences(made, there.data.labels, there.features)
    found["by label"] = styles.spreads(made, there.data.labels, there.features)
    found["distinct"] = len(np.unique(made.indices)) / len(there.pool)
    return found | styles.served(made)


def main() -> None:
    """Run what is missing, then print the tables."""
    if not tables.arguments("Training on writers with and without a style.").show:
        for _ in run_all(f"{NAME}_clients", looks(), look):
            pass
        for _ in run_all(NAME, settings(), score):
            pass
    print("\n".join(tables.digits()))


def looks() -> Iterator[dict[str, Any]]:
    """Of one seed of each split."""
    return styles.looks(SETTINGS, POPULATIONS)


def settings() -> Iterator[dict[str, Any]]:
    """What the bars are about first, two splits before the third, seed by seed.

    A stop leaves whole comparisons.
    """
    two, third = SETTINGS.splits[:2], SETTINGS.splits[2:]
    then = [((name,), SETTINGS.splits) for name in THEN]
    for names, splits in ((FIRST, two), (FIRST, third), *then):
        yield from styles.runs(SETTINGS, splits, names)


if __name__ == "__main__":
    main()

"""Census clients, beyond labels: styles that go together with the label.

    python experiments/styled_census.py           # resumes; writes results/styled_census*.jsonl
    python experiments/styled_census.py --show    # the tables of what is kept; trains nothing

400 PUMAs are the clients, 400 others own the server's records, people of 500 more are tested on, three
times. The label is an income above 50,000 dollars; who earns that differs between PUMAs, and so do the
people, together. Style is looked for in the eight directions in which clients differ most, which a first
question in twenty finds. Design, splits, seeds and settings were fixed before any of these runs. Needs
the extra `experiments`, and the records: see sources.folktables.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

import polyurn as pu
import sources
from polyurn.datasets.dataset import LabelledPoints

sys.path.insert(0, __file__.rsplit("/", 1)[0])
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
    n_clients: int = 400  # of either half
    n_records: int = 200  # of each, at most
    n_tested: int = 500
    n_test_records: int = 40
    least_deviation: float = 0.02  # columns that vary less are left out
    n_rounds: int = 20
    cohort_size: int = 5
    batch_size: int = 20
    evaluate_every: int = 1
    trained: tuple[tuple[str, int, tuple[float, ...]], ...] = (
        ("softmax", 1, (0.1,)),
        ("softmax", 5, (0.3,)),
        ("softmax", 20, (0.3,)),
        ("mlp", 10, (0.3,)),
    )
    components: tuple[int, ...] = (1, 2, 3, 4)
    n_first: int = 20
    n_directions: int = 8
    most_kurtosis: float = 30.0  # of a common column; an indicator of 3 in 100 people has 30


SETTINGS = Settings()
NAME = "styled_census"
FIRST = ("true", "true again", "style", "oracle", "iid", "mdm", "natural")
AFTER = "common style"  # made when the others had been seen on two splits; the third is its test
THEN = ("principal style", "untied style", AFTER)
POPULATIONS = FIRST + THEN


SCHOOL = (16, 18, 21, 22)  # SCHL: below a diploma, diploma, some college, bachelor, and above


@lru_cache(maxsize=1)
def people() -> LabelledPoints:
    """Everybody who works; with the square of the age and the kind of school as columns of their own."""
    found = sources.folktables(root=FOLDER, feature="high_income", people="workers")
    values = found.train.features
    assert values is not None
    age, school = (found.feature_names.index(name) for name in ("AGEP", "SCHL"))
    kind = np.digitize(np.round(24 * values[:, school]), SCHOOL)
    more = [values[:, [age]] ** 2, np.eye(len(SCHOOL) + 1, dtype=np.float32)[kind]]
    return replace(found.train, features=np.concatenate([values, *more], axis=1))


@lru_cache
def federation(split: int) -> styles.Halves:
    """The PUMAs of one split; columns have mean 0 and deviation 1 in the server's records."""
    found, settings = people(), SETTINGS
    assert found.clients is not None
    assert found.features is not None
    rng = np.random.default_rng(split)
    ends = np.cumsum([settings.n_clients, settings.n_clients, settings.n_tested])
    chosen = np.split(rng.permutation(found.n_clients)[: ends[-1]], ends[:-1])
    order = np.argsort(found.clients, kind="stable")
    starts = np.searchsorted(found.clients[order], np.arange(found.n_clients + 1))

    def taken(owners: Any, most: int) -> list[Any]:
        return [rng.permutation(order[starts[i] : starts[i + 1]])[:most] for i in owners]

    parts = [taken(owners, settings.n_records) for owners in chosen[:2]]
    test = np.concatenate(taken(chosen[2], settings.n_test_records))
    rows = np.concatenate([held for part in parts for held in part])
    pool = found.features[np.concatenate(parts[1])]
    varies = pool.std(axis=0) > settings.least_deviation
    mean, deviation = pool[:, varies].mean(axis=0), pool[:, varies].std(axis=0)
    scaled = [(found.features[at][:, varies] - mean) / deviation for at in (rows, test)]
    data = pu.Examples(scaled[0], found.labels[rows], scaled[1], found.labels[test])
    sizes = [[len(held) for held in part] for part in parts]
    n_true = sum(sizes[0])
    true, natural = (pu.Partition.by_owner(np.repeat(np.arange(len(each)), each)) for each in sizes)
    shifted = natural.renumbered(np.arange(n_true, len(rows)))
    return styles.Halves(data, 2, data.features, true, shifted)


@lru_cache
def directed(split: int) -> styles.Halves:
    """The same, with style looked for in the directions in which clients differ most."""
    return styles.client_directions(federation(split), SETTINGS.n_first, SETTINGS.n_directions)


@lru_cache
def common(split: int) -> styles.Halves:
    """The same, of the columns that are not rare: a tilted pool has too few people of the others."""
    there = federation(split)
    pool = there.features[there.pool]
    kurtosis = (pool**4).mean(axis=0) / (pool**2).mean(axis=0) ** 2
    fewer = there.with_features(there.features[:, kurtosis < SETTINGS.most_kurtosis])
    return styles.client_directions(fewer, SETTINGS.n_first, SETTINGS.n_directions)


@lru_cache
def populations(split: int) -> dict[str, clients.Clients]:
    """All clients of a split."""
    there, along = federation(split), directed(split)
    mdm = clients.learned(RESULTS / f"{NAME}_mdm", f"split{split}", SETTINGS.components)
    m = SETTINGS.n_directions
    tied = styles.learned_style(along, m, label_effect=True)
    untied = styles.learned_style(along, m)
    principal = styles.learned_style(there, m, label_effect=True)
    often = styles.learned_style(common(split), m, label_effect=True)
    named = styles.natural_clients(there)
    return {
        "true": named["true"],
        "true again": lambda seed: styles.in_another_order(there.true, seed),
        "natural": named["natural"],
        "iid": styles.simulated(there, "iid", pu.IID.like),
        "oracle": styles.simulated(there, "oracle", pu.Oracle),
        "mdm": styles.simulated(there, "mdm", mdm),
        "style": styles.simulated(along, "style", mdm, lambda _: tied),
        "principal style": styles.simulated(there, "principal style", mdm, lambda _: principal),
        AFTER: styles.simulated(common(split), AFTER, mdm, lambda _: often),
        "untied style": styles.simulated(along, "untied style", mdm, lambda _: untied),
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
    """One record: how much these clients differ, and how far style tells their labels."""
    there, made = federation(split), drawn(split, population, seed)
    labels = there.data.labels
    found: dict[str, Any] = clients.differences(made, labels, there.features)
    found["by label"] = styles.spreads(made, labels, there.features)
    along = directed(split)
    located = styles.space_of(along, SETTINGS.n_directions).coordinates(along.features, labels)
    found["tie"] = styles.tie(made, labels, located)
    return found | styles.served(made)


def main() -> None:
    """Run what is missing, then print the tables."""
    if not tables.arguments("Training on PUMAs with and without a style.").show:
        for _ in run_all(f"{NAME}_clients", looks(), look):
            pass
        for _ in run_all(NAME, settings(), score):
            pass
    print("\n".join(tables.census()))


def looks() -> Iterator[dict[str, Any]]:
    """Of one seed of each split."""
    return styles.looks(SETTINGS, POPULATIONS)


def settings() -> Iterator[dict[str, Any]]:
    """What the bars are about, two splits before the third, seed by seed.

    A stop leaves whole comparisons. Other styles were looked at, and hardly trained on.
    """
    two, third = SETTINGS.splits[:2], SETTINGS.splits[2:]
    for splits, names in ((two, FIRST), (third, (*FIRST, AFTER)), (two, (AFTER,))):
        yield from styles.runs(SETTINGS, splits, names)


if __name__ == "__main__":
    main()

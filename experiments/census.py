"""Census clients: does tuning on simulated PUMAs pick what wins on the true ones?

    python experiments/census.py            # resumes; writes results/census*, a table and curves
    python experiments/census.py --draw     # tables and curves of what is kept; trains nothing
    python experiments/census.py --full     # all PUMAs, all records, the paper's 1,500 rounds

Softmax regression learns who earns more than 50,000 dollars. Clients are PUMAs; the server models
their income (41 bins) or their race (9 categories) and cuts the pooled records into simulated clients.
The paper has this federation (Appendix C.2), but trains on it nowhere. Needs the extra
`experiments`, and the records: see polyurn.datasets.folktables.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import polyurn as pu
from polyurn import datasets
from polyurn.datasets.dataset import Records

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import training_tables as tables

FEATURES: tuple[Literal["income"], Literal["race"]] = ("income", "race")


@dataclass(frozen=True)
class Settings:
    """Ours: the paper trains on no census clients. Its rounds, cohort and epochs are --full."""

    n_clients: int | None = 400  # None is all of them
    train_share: float = 0.3  # of each client's records
    test_share: float = 0.1
    n_rounds: int = 40
    batch_size: int = 20
    learning_rates: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0)
    epochs: tuple[int, ...] = (1, 5)
    cohort_sizes: tuple[int, ...] = (5, 20)
    components: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12)
    rng: int = 0


SETTINGS = Settings()
FULL = Settings(
    n_clients=None,
    train_share=0.9,
    n_rounds=1500,
    batch_size=10,
    epochs=(1, 2, 5, 10),
    cohort_sizes=(10, 50),
    components=(1, 8, 12, 16, 24),
)


def census() -> tuple[Records, Mapping[str, NDArray[np.int64]]]:
    """The records with their label, and the same rows' categories of both modelled features."""
    labelled = datasets.folktables(root=tables.FOLDER, feature="high_income", people="workers")
    codes: dict[str, NDArray[np.int64]] = {
        feature: datasets.folktables(
            root=tables.FOLDER, feature=feature, people="workers"
        ).train.labels
        for feature in FEATURES
    }
    return labelled.train, codes


def federation(
    records: Records, codes: Mapping[str, NDArray[np.int64]], settings: Settings, *, disjoint: bool
) -> tuple[tables.Federation, list[tables.Modelled]]:
    """Some clients' records, some of them to test on.

    With `disjoint`, twice as many clients: the first half in the order of their codes are the true
    ones, and the records of the others are all that the server has.
    """
    rng = np.random.default_rng(settings.rng)
    assert records.clients is not None
    assert records.features is not None
    n_wanted = settings.n_clients and settings.n_clients * (2 if disjoint else 1)
    chosen = np.arange(records.n_clients)
    if n_wanted is not None:
        chosen = np.sort(rng.choice(records.n_clients, n_wanted, replace=False))
    true = chosen[: len(chosen) // 2] if disjoint else chosen
    rows = np.flatnonzero(np.isin(records.clients, chosen))
    bucket = rng.random(len(rows))
    mine = np.isin(records.clients[rows], true)
    train = rows[bucket < settings.train_share]
    test = rows[(bucket >= 1 - settings.test_share) & mine]
    data = pu.Examples(
        records.features[train], records.labels[train], records.features[test], records.labels[test]
    )
    held = mine[bucket < settings.train_share]
    at = np.flatnonzero(held)
    clients = pu.Partition.by_owner(records.clients[train][held]).renumbered(at)
    made = tables.Federation(data, clients, np.flatnonzero(~held) if disjoint else at)
    sizes = {"income": 41, "race": 9}
    return made, [
        tables.Modelled(feature, codes[feature][train], sizes[feature], settings.components)
        for feature in FEATURES
    ]


def populations(
    name: str, made: tables.Federation, features: list[tables.Modelled]
) -> dict[str, pu.Partition | tables.Clients]:
    """True and IID clients are the same for every modelled feature."""
    found: dict[str, pu.Partition | tables.Clients] = {
        "true": made.true,
        "again": tables.again(made),
        "iid": tables.iid(made, features[0]),
    }
    for modelled in features:
        model = tables.learned(name, made, modelled)
        found[f"mdm {modelled.name}"] = tables.mdm(made, modelled, model)
        found[f"oracle {modelled.name}"] = tables.oracle(made, modelled, model)
    return found


def experiment(name: str, settings: Settings) -> tables.Experiment:
    """The sweep."""
    return tables.Experiment(
        name,
        pu.FedAvg(
            n_rounds=settings.n_rounds,
            cohort_size=settings.cohort_sizes[0],
            batch_size=settings.batch_size,
            evaluate_every=max(1, settings.n_rounds // 4),
        ),
        {
            "cohort_size": settings.cohort_sizes,
            "local_epochs": settings.epochs,
            "local_learning_rate": settings.learning_rates,
        },
        "softmax",
    )


def main(name: str = "census", *, disjoint: bool = False) -> None:
    """Run what is missing, then print the tables and draw the curves."""
    given = tables.arguments("Training on true and on simulated census clients.")
    settings = FULL if given.full else SETTINGS
    name = f"{name}_full" if given.full else name
    if not given.draw:
        made, features = federation(*census(), settings, disjoint=disjoint)
        tables.run_sweep(
            experiment(name, settings), made, populations(name, made, features), n_jobs=given.jobs
        )
    for feature in FEATURES:
        print(f"\nmodelled feature: {feature}")
        tables.print_verdict(name, feature)
        panels = ("cohort_size", "local_epochs")
        tables.print_signed(name, panels, feature)
        tables.draw(name, x="local_learning_rate", panels=panels, feature=feature)


if __name__ == "__main__":
    tables.or_exit(main)

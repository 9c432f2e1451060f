"""Census clients: does training on simulated PUMAs predict training on the true ones?

    python experiments/census.py            # resumes; writes results/census*, tables and curves
    python experiments/census.py --draw     # tables and curves of what is kept; trains nothing
    python experiments/census.py --full     # all PUMAs, all records, the paper's 1,500 rounds

Softmax regression learns who earns more than 50,000 dollars. Clients are PUMAs; the server models
their income (41 bins) or their race (9 categories) and cuts the pooled records into simulated clients.
The paper has this federation (Appendix C.2), but trains on it nowhere. Needs the extra
`experiments`, and the records: see sources.folktables.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import polyurn as pu
import sources
from polyurn.datasets.dataset import LabelledPoints

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import training_clients as clients
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
    evaluate_every: int = 5
    components: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12)
    rng: int = 0  # which PUMAs and records, the same for all seeds


SETTINGS = Settings()
FULL = Settings(
    n_clients=None,
    train_share=0.9,
    n_rounds=1500,
    batch_size=10,
    epochs=(1, 2, 5, 10),
    cohort_sizes=(10, 50),
    evaluate_every=50,
    components=(1, 8, 12, 16, 24),
)


def report(name: str, title: str) -> tables.Report:
    """What is printed; nothing was asked of these runs."""
    return tables.Report(
        name,
        title,
        references=("mdm income", "mdm race"),
        settings=("cohort_size", "local_epochs", "local_learning_rate"),
        panels=("cohort_size", "local_epochs"),
    )


REPORTS = (report("census", "Census clients, softmax regression"),)


def census() -> tuple[LabelledPoints, Mapping[str, NDArray[np.int64]]]:
    """The records with their label, and the same rows' categories of both modelled features."""
    labelled = sources.folktables(root=tables.FOLDER, feature="high_income", people="workers")
    codes: dict[str, NDArray[np.int64]] = {
        feature: sources.folktables(
            root=tables.FOLDER, feature=feature, people="workers"
        ).train.labels
        for feature in FEATURES
    }
    return labelled.train, codes


def federation(
    records: LabelledPoints,
    codes: Mapping[str, NDArray[np.int64]],
    settings: Settings,
    *,
    disjoint: bool,
) -> tuple[pu.Examples, clients.Federation, list[clients.Modelled]]:
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
    true_clients = pu.Partition.by_owner(records.clients[train][held]).renumbered(at)
    made = clients.Federation(true_clients, np.flatnonzero(~held) if disjoint else at)
    sizes = {"income": 41, "race": 9}
    return (
        data,
        made,
        [clients.Modelled(name, codes[name][train], sizes[name]) for name in FEATURES],
    )


def populations(
    folder: Path,
    made: clients.Federation,
    features: list[clients.Modelled],
    settings: Settings,
    *,
    disjoint: bool,
) -> dict[str, clients.Clients]:
    """True and IID clients are the same for every modelled feature.

    Where the server's data are those of the clients, both IID baselines are the same.
    """
    of = clients.always(made)
    baselines: dict[str, clients.Make] = {"iid": pu.IID.like}
    if disjoint:
        baselines["iid proxy"] = clients.any_point(features[0], made.proxy)
    found = {"true": clients.true_clients(of), **clients.simulated(of, features[0], baselines)}
    for modelled in features:
        makers: dict[str, clients.Make] = {
            f"mdm {modelled.name}": clients.learned(folder, modelled.name, settings.components),
            f"oracle {modelled.name}": pu.Oracle,
        }
        found |= clients.simulated(of, modelled, makers)
    return found


def main(
    name: str = "census",
    title: str = "Census clients, softmax regression",
    *,
    disjoint: bool = False,
) -> None:
    """Run what is missing, then print the tables and draw the curves."""
    given = tables.arguments("Training on true and on simulated census clients.", full=True)
    settings = FULL if given.full else SETTINGS
    name = f"{name}_full" if given.full else name
    if not given.draw:
        data, made, features = federation(*census(), settings, disjoint=disjoint)
        experiment = tables.Experiment(
            name,
            pu.FedAvg(
                n_rounds=settings.n_rounds,
                cohort_size=settings.cohort_sizes[0],
                batch_size=settings.batch_size,
                evaluate_every=settings.evaluate_every,
            ),
            {
                "cohort_size": settings.cohort_sizes,
                "local_epochs": settings.epochs,
                "local_learning_rate": settings.learning_rates,
            },
            "softmax",
            data,
            populations(given.out / f"{name}_mdm", made, features, settings, disjoint=disjoint),
        )
        tables.run(experiment, seeds=given.seeds, out=given.out)
    tables.show(report(name, title), given.out)


if __name__ == "__main__":
    tables.or_exit(main)

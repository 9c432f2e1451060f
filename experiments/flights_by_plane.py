"""Flights by aeroplane: a natural federation whose server has no client's flights.

    python experiments/flights_by_plane.py          # resumes; writes results/flights*, tables and curves
    python experiments/flights_by_plane.py --draw   # tables and curves of what is kept; trains nothing

Softmax regression learns where a flight from New York goes, from its air time, the time of day and the
airport. Clients are aeroplanes. The server models their routes, or only their destinations, which are
the labels. Its data, and those to test on, are flights of other aeroplanes. The paper has no such
experiment; FEMNIST is its natural federation, and disjoint server data are its Appendix D.2. Needs the
extra `experiments`, which has the flights.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import polyurn as pu
from polyurn import datasets
from polyurn.datasets.dataset import Dataset

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import training_clients as clients
import training_tables as tables


@dataclass(frozen=True)
class Settings:
    """Ours. Shares are of the aeroplanes with enough flights: true clients, to test on, the server's."""

    smallest: int = 20
    shares: tuple[float, float, float] = (0.6, 0.2, 0.2)
    # Of every aeroplane, also of those to test on and of the server's. If only true clients were cut
    # off, their destinations would be others than the server's (by 0.14 in total variation), and
    # baselines that draw from the server's data would be wrong for that reason alone.
    most_flights: int = 60
    n_test: int = 8_000
    components: tuple[int, ...] = (1, 2, 4, 8, 16)
    n_rounds: int = 60
    cohort_size: int = 10
    batch_size: int = 10
    epochs: tuple[int, ...] = (1, 5)
    learning_rates: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0)
    evaluate_every: int = 4
    split: int = 123  # the random stream that parts the aeroplanes, the same for all seeds


SETTINGS = Settings()
REPORTS = (
    tables.Report(
        "flights",
        "Flights by aeroplane, disjoint server data, softmax regression",
        references=("mdm route", "mdm destination"),
        bars=(
            tables.difference_bar("again", most=1.0),
            tables.difference_bar("mdm route", most=1.3),
            tables.difference_bar("iid", least=2.5),
            tables.nearer_bar("iid", "mdm route", least=1.3),
            tables.nearer_bar("dirichlet 0.1", "mdm route", least=0.0),
            tables.nearer_bar("dirichlet 0.5", "mdm route", least=0.0),
        ),
    ),
)


def federation(
    source: Dataset, routes: Dataset, settings: Settings
) -> tuple[pu.Examples, clients.Federation, list[clients.Modelled]]:
    """Flights to train and to test on, who flew them, and what the server may model."""
    flown = source.train
    assert flown.clients is not None
    assert flown.features is not None
    rng = np.random.default_rng(settings.split)
    planes = [
        rng.permutation(held)[: settings.most_flights]
        for held in pu.Partition.by_owner(flown.clients)
        if len(held) >= settings.smallest
    ]
    ends = (np.cumsum(settings.shares)[:2] * len(planes)).astype(int)
    live, tested, others = (
        [planes[i] for i in part] for part in np.split(rng.permutation(len(planes)), ends)
    )
    rows = rng.permutation(np.concatenate(tested))[: settings.n_test]
    data = pu.Examples(flown.features, flown.labels, flown.features[rows], flown.labels[rows])
    modelled = [
        clients.Modelled("destination", flown.labels, source.n_categories),
        clients.Modelled("route", routes.train.labels, routes.n_categories),
    ]
    made = clients.Federation(pu.Partition.from_lists(live), np.concatenate(others))
    return data, made, modelled


def populations(
    folder: Path, made: clients.Federation, features: list[clients.Modelled], settings: Settings
) -> dict[str, clients.Clients]:
    """True clients, those of either modelled feature, and the baselines, which are of the label."""
    of, label = clients.always(made), features[0]
    found = {"true": clients.true_clients(of)}
    for modelled in reversed(features):
        makers: dict[str, clients.Make] = {
            f"mdm {modelled.name}": clients.learned(folder, modelled.name, settings.components),
            f"oracle {modelled.name}": pu.Oracle,
        }
        found |= clients.simulated(of, modelled, makers)
    baselines: dict[str, clients.Make] = {
        "dirichlet 0.1": clients.around_marginal(0.1),
        "dirichlet 0.5": clients.around_marginal(0.5),
        "iid": pu.IID.like,
        "iid proxy": clients.any_point(label, made.proxy),
    }
    return found | clients.simulated(of, label, baselines)


def main() -> None:
    """Run what is missing, then print the tables and draw the curves."""
    given = tables.arguments("Training on true and on simulated aeroplanes.")
    (report,) = REPORTS
    if not given.draw:
        data, made, features = federation(
            datasets.flights(features="air_time"),
            datasets.flights(features="air_time", category="route"),
            SETTINGS,
        )
        experiment = tables.Experiment(
            report.name,
            pu.FedAvg(
                n_rounds=SETTINGS.n_rounds,
                cohort_size=SETTINGS.cohort_size,
                batch_size=SETTINGS.batch_size,
                evaluate_every=SETTINGS.evaluate_every,
            ),
            {"local_epochs": SETTINGS.epochs, "local_learning_rate": SETTINGS.learning_rates},
            "softmax",
            data,
            populations(given.out / f"{report.name}_mdm", made, features, SETTINGS),
        )
        tables.run(experiment, seeds=given.seeds, out=given.out)
    tables.show(report, given.out)


if __name__ == "__main__":
    tables.or_exit(main)

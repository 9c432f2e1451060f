"""Digits by writer: the paper's FEMNIST experiment (section 4.2) on its digits, labels only.

    python experiments/digits_by_writer.py          # resumes; writes results/digits*, tables and curves
    python experiments/digits_by_writer.py --draw   # tables and curves of what is kept; trains nothing

Clients are the 539 writers of MNIST's training pictures; the test pictures are by others. The modelled
feature is the digit, which is the label. FEMNIST has 62 classes; these are ten of them, and every writer
wrote about as many of each, so that a simulation of labels has nothing to find: a null, which has to be
shown by runs that would have seen something. Needs the extra `experiments`, and the pictures: see
sources.mnist_by_writer.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import polyurn as pu
import sources
from polyurn.comparison.estimates import Estimate

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import features
import training_clients as clients
import training_tables as tables


@dataclass(frozen=True)
class Settings:
    """Ours: softmax regression, cohorts of 10, 60 rounds.

    The paper (Appendix C.4): a convolutional network on FEMNIST, 1 to 10 epochs, rates of 0.005 to 0.05,
    cohorts of 50, batches of 10, 1,500 rounds.
    """

    pooled: int = 2  # pixels a side that become one
    n_features: int = 64
    n_rounds: int = 60
    cohort_size: int = 10
    batch_size: int = 10
    epochs: tuple[int, ...] = (1, 5)
    learning_rates: tuple[float, ...] = (0.03, 0.1, 0.3)
    evaluate_every: int = 5
    components: tuple[int, ...] = (1, 2, 3)


SETTINGS = Settings()
LARGEST_GAP = 0.2  # points between mdm and iid that would still be nothing
REPORTS = (
    tables.Report(
        "digits",
        "Digits by writer, softmax regression",
        references=("mdm",),
        bars=(
            tables.difference_bar("again", most=0.3),
            tables.Bar(
                "mdm − iid",
                lambda verdict: 100 * verdict.paired("mdm", "iid").value,
                -LARGEST_GAP,
                LARGEST_GAP,
            ),
            tables.Bar(
                "mdm − iid, the end of the interval that is further from 0",
                lambda verdict: 100 * furthest(verdict.paired("mdm", "iid")),
                -LARGEST_GAP,
                LARGEST_GAP,
            ),
        ),
        paper={"mdm": 1.6, "iid": 3.3},
    ),
)


def furthest(estimate: Estimate) -> float:
    """The end of an interval that is further from 0."""
    return max(estimate.low, estimate.high, key=abs)


def federation(
    source: sources.SplitDataset, settings: Settings
) -> tuple[pu.Examples, clients.Federation, clients.Modelled]:
    """The writers of the training pictures; the server has the same pictures without the writers."""
    train, test = source.train, source.test
    assert train.clients is not None
    assert train.features is not None
    assert test.features is not None
    flat = [
        features.pooled(part.features, settings.pooled).reshape(part.n_records, -1)
        for part in (train, test)
    ]
    points, test_points = features.projected(*flat, settings.n_features)
    data = pu.Examples(points, train.labels, test_points, test.labels)
    modelled = clients.Modelled("digit", train.labels, source.n_categories)
    writers = pu.Partition.by_owner(train.clients)
    return data, clients.Federation(writers, np.arange(train.n_records)), modelled


def populations(
    folder: Path, made: clients.Federation, modelled: clients.Modelled, settings: Settings
) -> dict[str, clients.Clients]:
    """The writers, and clients that are simulated from their digits."""
    of = clients.always(made)
    makers: dict[str, clients.Make] = {
        "mdm": clients.learned(folder, modelled.name, settings.components),
        "iid": pu.IID.like,
        "dirichlet 0.1": clients.symmetric(0.1),
        "dirichlet 0.5": clients.symmetric(0.5),
    }
    return {"true": clients.true_clients(of), **clients.simulated(of, modelled, makers)}


def main() -> None:
    """Run what is missing, then print the tables and draw the curves."""
    given = tables.arguments("Training on true and on simulated writers of digits.")
    (report,) = REPORTS
    if not given.draw:
        data, made, modelled = federation(sources.mnist_by_writer(root=tables.FOLDER), SETTINGS)
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
            populations(given.out / f"{report.name}_mdm", made, modelled, SETTINGS),
        )
        tables.run(experiment, seeds=given.seeds, out=given.out)
    tables.show(report, given.out)


if __name__ == "__main__":
    tables.or_exit(main)

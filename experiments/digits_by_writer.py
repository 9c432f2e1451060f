"""Digits by writer: the paper's FEMNIST experiment (section 4.2) on its digits.

    python experiments/digits_by_writer.py          # resumes; writes results/digits*, a table and curves
    python experiments/digits_by_writer.py --draw   # tables and curves of what is kept; trains nothing
    python experiments/digits_by_writer.py --full   # the paper's grid, rounds and cohort, 28 x 28 pixels

Clients are the 539 writers of MNIST's training pictures; the test pictures are by others. The modelled
feature is the digit, which is the label. FEMNIST has 62 classes; these are ten of them. Needs the
extra `experiments`, and the pictures: see polyurn.datasets.mnist_by_writer.
"""

import sys
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

import polyurn as pu
from polyurn import datasets
from polyurn.datasets.dataset import Dataset
from polyurn.training.models import convolutional

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import training_tables as tables


@dataclass(frozen=True)
class Settings:
    """Smaller than Appendix C.4: pictures halved, a narrow network, and fewer, larger steps."""

    pooled: int = 2  # pixels a side that become one
    channels: tuple[int, int] = (8, 16)
    hidden: int = 32
    n_rounds: int = 16
    cohort_size: int = 10
    batch_size: int = 20
    learning_rates: tuple[float, ...] = (0.05, 0.1, 0.3)
    epochs: tuple[int, ...] = (1, 3)
    components: tuple[int, ...] = (1, 2, 3, 4)
    n_test: int = 4_000


SETTINGS = Settings()
# Appendix C.4: cohorts of 50, 1,500 rounds, batches of 10. It gives no layer sizes.
FULL = Settings(
    pooled=1,
    channels=(32, 64),
    hidden=128,
    n_rounds=1500,
    cohort_size=50,
    batch_size=10,
    learning_rates=(0.005, 0.01, 0.05),
    epochs=(1, 2, 5, 10),
    n_test=10_000,
)


def federation(source: Dataset, settings: Settings) -> tuple[tables.Federation, tables.Modelled]:
    """The writers of the training pictures; the server has the same pictures without the writers."""
    train, test = source.records("train"), source.records("test")
    assert train.clients is not None
    assert train.features is not None
    assert test.features is not None
    tested = np.random.default_rng(0).permutation(test.n_records)[: settings.n_test]
    data = pu.Examples(
        pooled(train.features, settings.pooled), train.labels,
        pooled(test.features[tested], settings.pooled), test.labels[tested],
    )  # fmt: skip
    modelled = tables.Modelled("digit", train.labels, source.n_categories, settings.components)
    everything = np.arange(train.n_records)
    return tables.Federation(data, pu.Partition.by_owner(train.clients), everything), modelled


def pooled(pictures: NDArray[np.uint8], side: int) -> NDArray[np.float32]:
    """Grey pictures (n, height, width) with squares of pixels averaged, from 0 to 1."""
    n, height, width = pictures.shape
    squares = pictures.reshape(n, height // side, side, width // side, side)
    return np.asarray(squares.mean(axis=(2, 4)) / 255, np.float32)


def experiment(name: str, settings: Settings) -> tables.Experiment:
    """The sweep."""
    side = 28 // settings.pooled
    return tables.Experiment(
        name,
        pu.FedAvg(
            n_rounds=settings.n_rounds,
            cohort_size=settings.cohort_size,
            batch_size=settings.batch_size,
            evaluate_every=max(1, settings.n_rounds // 2),
        ),
        {"local_epochs": settings.epochs, "local_learning_rate": settings.learning_rates},
        partial(
            convolutional, (side, side), 10, channels=settings.channels, hidden=settings.hidden
        ),
    )


def main() -> None:
    """Run what is missing, then print the tables and draw the curves."""
    given = tables.arguments("Training on true and on simulated writers of digits.")
    settings, name = (FULL, "digits_full") if given.full else (SETTINGS, "digits")
    if not given.draw:
        made, modelled = federation(datasets.mnist_by_writer(root=tables.FOLDER), settings)
        model = tables.learned(name, made, modelled)
        populations = {
            "true": made.true,
            "iid": tables.iid(made, modelled),
            "mdm": tables.mdm(made, modelled, model),
            "oracle": tables.oracle(made, modelled, model),
        }
        tables.run_sweep(experiment(name, settings), made, populations, n_jobs=given.jobs)
    tables.print_verdict(name)
    tables.print_signed(name, ("local_epochs", "local_learning_rate"))
    tables.draw(name, x="local_learning_rate", panels=("local_epochs",))


if __name__ == "__main__":
    tables.or_exit(main)

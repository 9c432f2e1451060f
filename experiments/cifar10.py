"""CIFAR-10 cut into MDM clients: the paper's second experiment (section 4.2).

    python experiments/cifar10.py           # resumes; writes results/cifar10*, a table and curves
    python experiments/cifar10.py --draw    # tables and curves of what is kept; trains nothing
    python experiments/cifar10.py --full    # the paper's grid, rounds and cohort, 32 x 32 pixels

The true clients are drawn from the paper's mixture of two components with high heterogeneity (its figure
in the text), or from one component with high heterogeneity (Appendix D.2); the server, which does not
know it, learns it from their histograms. Its proxy data are the pictures that clients hold, so their
classes are as frequent as the mixture makes them. Needs the extra `experiments`, and the pictures: see
polyurn.datasets.cifar10.
"""

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import polyurn as pu
from polyurn import datasets
from polyurn.datasets.dataset import Dataset
from polyurn.model.paper_truths import truth

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import training_tables as tables


@dataclass(frozen=True)
class Settings:
    """Smaller than Appendix C.4: pictures halved, a perceptron, part of the grid, fewer rounds.

    A perceptron, because all clients of a cohort and all learning rates are then trained in the same
    operations, from which convolutions gain little. The paper does not say how many points a client
    holds; `size` is ours.
    """

    size: int = 50
    n_clients: int = 200
    pooled: int = 2
    model: str = "mlp"
    n_rounds: int = 45
    cohort_size: int = 10
    batch_sizes: tuple[int, ...] = (10, 25)
    learning_rates: tuple[float, ...] = (0.01, 0.05, 0.1)
    epochs: tuple[int, ...] = (1, 5)
    components: tuple[int, ...] = (1, 2, 3, 4)
    rng: int = 0


TRUTHS = {"cifar10_high_2": "high/2", "cifar10_high_1": "high/1"}
SETTINGS = Settings()
FULL = Settings(
    n_clients=1000,
    pooled=1,
    model="cnn",
    n_rounds=1500,
    cohort_size=50,
    batch_sizes=(10, 15, 20, 25),
    learning_rates=(0.005, 0.01, 0.05, 0.1, 0.5),
    epochs=(1, 2, 5, 10),
)


def federation(
    source: Dataset, truth_name: str, settings: Settings
) -> tuple[tables.Federation, tables.Modelled]:
    """Clients of the hidden mixture, each picture given as evenly as their histograms allow."""
    train, test = source.records("train"), source.records("test")
    assert train.features is not None
    assert test.features is not None
    rng = np.random.default_rng(settings.rng)
    hidden = truth(truth_name, size=settings.size)
    counts = hidden.sample(settings.n_clients, rng=rng)
    parts = pu.partition(train.labels, counts, replace=False, rng=rng)
    data = pu.Examples(
        pooled(train.features, settings.pooled), train.labels,
        pooled(test.features, settings.pooled), test.labels,
    )  # fmt: skip
    modelled = tables.Modelled("class", train.labels, source.n_categories, settings.components)
    return tables.Federation(data, parts, parts.indices), modelled


def pooled(pictures: NDArray[np.uint8], side: int) -> NDArray[np.float32]:
    """Pictures (n, height, width, 3) as (n, 3, ...) with squares of pixels averaged, from -1 to 1."""
    n, height, width, n_colours = pictures.shape
    squares = pictures.reshape(n, height // side, side, width // side, side, n_colours)
    return np.asarray(squares.mean(axis=(2, 4)).transpose(0, 3, 1, 2) / 127.5 - 1, np.float32)


def experiment(name: str, settings: Settings) -> tables.Experiment:
    """The sweep."""
    return tables.Experiment(
        name,
        pu.FedAvg(
            n_rounds=settings.n_rounds,
            cohort_size=settings.cohort_size,
            evaluate_every=max(1, settings.n_rounds // 4),
        ),
        {
            "batch_size": settings.batch_sizes,
            "local_epochs": settings.epochs,
            "local_learning_rate": settings.learning_rates,
        },
        settings.model,
    )


def main() -> None:
    """Run what is missing, then print the tables and draw the curves."""
    given = tables.arguments("Training on true and on simulated clients with pictures.")
    settings = FULL if given.full else SETTINGS
    for kept, truth_name in TRUTHS.items():
        name = f"{kept}_full" if given.full else kept
        if not given.draw:
            source = datasets.cifar10(root=tables.FOLDER)
            made, modelled = federation(source, truth_name, settings)
            model = tables.learned(name, made, modelled)
            populations = {
                "true": made.true,
                "again": tables.again(made),
                "iid": tables.iid(made, modelled),
                "mdm": tables.mdm(made, modelled, model),
                "oracle": tables.oracle(made, modelled, model),
            }
            tables.run_sweep(experiment(name, settings), made, populations, n_jobs=given.jobs)
        print(f"\ntrue clients: {truth_name}")
        tables.print_verdict(name)
        tables.print_signed(name, ("local_epochs", "local_learning_rate"))
        tables.draw(name, x="local_learning_rate", panels=("batch_size", "local_epochs"))


if __name__ == "__main__":
    tables.or_exit(main)

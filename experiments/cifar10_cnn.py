"""CIFAR-10 cut into MDM clients, the paper's kind of network from scratch (section 4.2).

    python experiments/cifar10_cnn.py           # resumes; writes results/cifar10_cnn*, tables and curves
    python experiments/cifar10_cnn.py --draw    # tables and curves of what is kept; trains nothing
    python experiments/cifar10_cnn.py --full    # the paper's grid, rounds and cohort, 32 x 32 pixels

The clients are those of `cifar10.py` with two components, the paper's figure in the text. As long as an
hour of one core allows, which is a small part of the paper's 80 settings and 1,500 rounds. Needs the
extra `experiments`, and the pictures: see sources.cifar10.
"""

import sys
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

import polyurn as pu
import sources
from polyurn.training.networks import convolutional

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import cifar10
import features
import training_tables as tables


@dataclass(frozen=True)
class Settings(cifar10.Settings):
    """What fits into 40 minutes of one idle core: pictures halved, a narrow network, 90 rounds.

    100 rounds of ten clients with three rates side by side took 26 s of one core with one epoch and 94 s
    with five, on the engine "batched" (1.3 to 1.8 times as fast as "workers"). So 90 rounds of both take
    108 s for one population and seed, and 2,160 s for five populations and four seeds; on a busy machine
    half as much again. At 32 x 32 pixels a round takes three to five times as long, and with the usual
    width (32 and 64 channels, 128 hidden units) three times.
    """

    pooled: int = 2  # pixels a side that become one
    channels: tuple[int, int] = (16, 32)
    hidden: int = 64
    n_rounds: int = 90
    batch_sizes: tuple[int, ...] = (10,)
    epochs: tuple[int, ...] = (1, 5)
    learning_rates: tuple[float, ...] = (0.05, 0.1, 0.2)
    engine: str = "batched"


TRUTH = "high/2"
SETTINGS = Settings()
# Appendix C.4. It gives neither layer sizes nor the size of a client.
FULL = Settings(
    n_clients=1_000,
    pooled=1,
    channels=(32, 64),
    hidden=128,
    n_rounds=1_500,
    cohort_size=50,
    batch_sizes=(10, 15, 20, 25),
    epochs=(1, 2, 5, 10),
    learning_rates=(0.005, 0.01, 0.05, 0.1, 0.5),
    evaluate_every=50,
    engine="workers",
)
SEEDS = range(500, 504)


def report(name: str) -> tables.Report:
    """What is printed: nothing was asked of these runs but to stand beside the paper's figures."""
    return tables.Report(
        name,
        "CIFAR-10, two components of high heterogeneity, convolutional network from scratch",
        references=("mdm", "iid"),
        metrics=cifar10.TESTS,
        paper={"mdm": 0.8, "iid proxy": 6.6},
    )


REPORTS = (report("cifar10_cnn"),)


def pixels(pictures: NDArray[np.uint8], side: int) -> NDArray[np.float32]:
    """Pictures (n, height, width, 3) as (n, 3, ...) with squares of pixels averaged, from -1 to 1."""
    return np.ascontiguousarray(2 * features.pooled(pictures, side).transpose(0, 3, 1, 2) - 1)


def main() -> None:
    """Run what is missing, then print the tables and draw the curves."""
    given = tables.arguments(
        "Training a convolutional network on true and on simulated clients with pictures.",
        seeds=SEEDS,
        full=True,
    )
    settings, name = (FULL, "cifar10_cnn_full") if given.full else (SETTINGS, "cifar10_cnn")
    if not given.draw:
        source = sources.cifar10(root=tables.FOLDER)
        train, test = source.train, source.test
        assert train.features is not None
        assert test.features is not None
        data = pu.Examples(
            pixels(train.features, settings.pooled), train.labels,
            pixels(test.features, settings.pooled), test.labels,
        )  # fmt: skip
        of = cifar10.federation(TRUTH, train.labels, settings)
        folder = given.out / f"{name}_mdm"
        shape, layers = data.features.shape[1:], (settings.channels, settings.hidden)
        experiment = tables.Experiment(
            name,
            pu.FedAvg(
                n_rounds=settings.n_rounds,
                cohort_size=settings.cohort_size,
                evaluate_every=settings.evaluate_every,
            ),
            {
                "batch_size": settings.batch_sizes,
                "local_epochs": settings.epochs,
                "local_learning_rate": settings.learning_rates,
            },
            partial(convolutional, shape, 10, channels=layers[0], hidden=layers[1]),
            data,
            cifar10.populations(folder, of, train.labels, settings, dirichlets=()),
            cifar10.tests(TRUTH, test.labels),
            settings.engine,
        )
        tables.run(experiment, seeds=given.seeds, out=given.out)
    tables.show(report(name), given.out)


if __name__ == "__main__":
    tables.or_exit(main)

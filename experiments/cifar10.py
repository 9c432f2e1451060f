"""CIFAR-10 cut into MDM clients: the paper's second experiment (section 4.2), on a frozen network.

    python experiments/cifar10.py           # resumes; writes results/cifar10_high_*, tables and curves
    python experiments/cifar10.py --draw    # tables and curves of what is kept; trains nothing

The true clients are drawn from the paper's mixture of two components with high heterogeneity (its figure
in the text), or from one component with high heterogeneity (Appendix D.2), anew for every seed; the
server, which does not know it, learns it from their histograms. Its data are all pictures, whose classes
are equally frequent; those of the clients are not. So there are two IID baselines: "iid" keeps the
clients' classes, "iid proxy" takes any pictures, as the code that the paper's authors published does.
And there are two tests: on classes equally frequent (the paper's), and as frequent as the clients have
them.

A softmax head is trained on what EfficientNet-Lite0, trained on ImageNet, sees in the pictures;
`cifar10_cnn.py` has a network from scratch. Needs the extra `experiments`, and the pictures: see
sources.cifar10.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import polyurn as pu
import sources
from polyurn.model.paper_truths import truth
from polyurn.training.losses import PerExample, accuracy

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import features
import training_clients as clients
import training_tables as tables


@dataclass(frozen=True)
class Settings:
    """Ours: a head on a frozen network, cohorts of 10, and longer local work for its 60 rounds.

    The paper (Appendix C.4): a convolutional network from scratch, batches of 10 to 25, 1 to 10 epochs,
    rates of 0.005 to 0.5, cohorts of 50, 1,500 rounds. It does not say how many points a client holds.
    """

    size: int = 50
    n_clients: int = 400
    # 400 draws of a sparse mixture have a marginal of their own, off by 9 % of a class's share.
    n_simulated: int = 2_000
    components: tuple[int, ...] = (1, 2, 3, 4)
    n_features: int = 64
    n_rounds: int = 60
    cohort_size: int = 10
    batch_size: int = 10
    epochs: tuple[int, ...] = (1, 10)
    learning_rates: tuple[float, ...] = (0.01, 0.1, 0.5)
    evaluate_every: int = 5


SETTINGS = Settings()
TRUTHS = {"cifar10_high_1": "high/1", "cifar10_high_2": "high/2"}
TESTS = {
    "accuracy": "test on classes equally frequent",
    "federation": "test weighted to the clients' classes",
}


def share_of_marginal(verdict: pu.Verdict) -> float:
    """How much of "iid proxy"'s distance beyond the MDM's is gone with the clients' marginal, in %."""
    whole, marginal = (verdict.paired("iid proxy", name).value for name in ("mdm", "iid"))
    return 100 * marginal / whole


REPORTS = (
    tables.Report(
        "cifar10_high_1",
        "CIFAR-10, one component of high heterogeneity, softmax head",
        references=("mdm",),
        metrics=TESTS,
        bars=(
            tables.difference_bar("mdm", most=2.1),
            tables.difference_bar("iid", least=3.3),
            tables.difference_bar("iid proxy", least=9.0),
            tables.nearer_bar("iid", "mdm", least=1.5),
            tables.regret_bar("mdm", most=0.4),
        ),
    ),
    tables.Report(
        "cifar10_high_2",
        "CIFAR-10, two components of high heterogeneity, softmax head",
        references=("mdm", "iid"),
        metrics=TESTS,
        bars=(
            tables.difference_bar("mdm", most=0.9),
            tables.difference_bar("iid proxy", least=3.5),
            tables.nearer_bar("iid proxy", "mdm", least=2.5),
            tables.Bar("share of iid proxy − mdm that is the marginal, %", share_of_marginal, 50),
        ),
        paper={"mdm": 0.8, "iid proxy": 6.6},
    ),
)


def federation(
    truth_name: str, labels: NDArray[np.int64], settings: Settings
) -> clients.FederationOf:
    """Clients of the hidden mixture, other ones for every seed; the server has all pictures."""
    hidden = truth(truth_name, size=settings.size)

    def of(seed: int) -> clients.Federation:
        rng = np.random.default_rng([seed, 0])
        counts = hidden.sample(settings.n_clients, rng=rng)
        return clients.Federation(pu.partition(labels, counts, rng=rng), np.arange(len(labels)))

    return of


def populations(
    folder: Path,
    of: clients.FederationOf,
    labels: NDArray[np.int64],
    settings: Settings,
    *,
    dirichlets: Sequence[float] = (0.1, 0.5),
) -> dict[str, clients.Clients]:
    """The true clients and the simulated ones; models are kept in a folder."""
    modelled = clients.Modelled("class", labels, 10)
    makers: dict[str, clients.Make] = {
        "mdm": clients.learned(folder, modelled.name, settings.components),
        "iid": pu.IID.like,
        "iid proxy": clients.any_point(modelled, np.arange(len(labels))),
    }
    makers |= {f"dirichlet {alpha:g}": clients.symmetric(alpha) for alpha in dirichlets}
    drawn = clients.simulated(of, modelled, makers, n_clients=settings.n_simulated)
    return {"true": clients.true_clients(of), **drawn}


def tests(truth_name: str, test_labels: NDArray[np.int64]) -> dict[str, PerExample]:
    """Accuracy as it is, and with test points weighted to the classes of the hidden mixture."""
    marginal = truth(truth_name).mean()
    return {
        "accuracy": accuracy,
        "federation": pu.weighted(accuracy, to=marginal, of=test_labels),
    }


def main() -> None:
    """Run what is missing, then print the tables and draw the curves."""
    given = tables.arguments("Training a head on true and on simulated clients with pictures.")
    if not given.draw:
        source = sources.cifar10(root=tables.FOLDER)
        train, test = source.train, source.test
        assert train.features is not None
        assert test.features is not None
        (seen, train_seconds), (tested, test_seconds) = (
            features.embedded(part.features) for part in (train, test)
        )
        points, test_points = features.projected(seen, tested, SETTINGS.n_features)
        data = pu.Examples(points, train.labels, test_points, test.labels)
        for name, truth_name in TRUTHS.items():
            of = federation(truth_name, train.labels, SETTINGS)
            folder = given.out / f"{name}_mdm"
            experiment = tables.Experiment(
                name,
                pu.FedAvg(
                    n_rounds=SETTINGS.n_rounds,
                    cohort_size=SETTINGS.cohort_size,
                    batch_size=SETTINGS.batch_size,
                    evaluate_every=SETTINGS.evaluate_every,
                ),
                {
                    "local_epochs": SETTINGS.epochs,
                    "local_learning_rate": SETTINGS.learning_rates,
                },
                "softmax",
                data,
                populations(folder, of, train.labels, SETTINGS),
                tests(truth_name, test.labels),
            )
            seconds = round(train_seconds + test_seconds, 1)
            tables.run(experiment, seeds=given.seeds, out=given.out, embedding_seconds=seconds)
    for report in REPORTS:
        tables.show(report, given.out)


if __name__ == "__main__":
    tables.or_exit(main)

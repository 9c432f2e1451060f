"""What the tests of the report share: a small federation with everything that can be reported on."""

from functools import cache

import numpy as np

import polyurn as pu
from polyurn.model.paper_truths import truth
from polyurn.server.records import SelectionRecord
from polyurn.storage.mdm_json import SavedMDM
from polyurn.storage.provenance import DataRecord, Made
from polyurn.storage.run_log import RunRecord
from polyurn.training.settings import FedAvg

NAMES = ("<b>zero</b>", "one & only", '"two"', "three", "4", "5", "6", "7", "8", "</script>")


@cache
def selection():
    clients = pu.LocalAggregator(truth("medium/2").sample(400, rng=0), rng=1)
    return pu.select(clients, (1, 2), n_categories=10, max_size=20, max_rounds=12, rng=2)


@cache
def fitted():
    clients = pu.LocalAggregator(true_clients(), rng=1)
    return pu.fit(clients, n_components=2, n_categories=10, max_size=20, max_rounds=6, rng=0)


@cache
def saved():
    made = Made(
        polyurn="0.1.0",
        seed=5,
        command="polyurn select 'my clients.csv'",
        data=DataRecord(file="my clients.csv", n_clients=400, n_categories=10, n_points=8000),
        selection=SelectionRecord.of(selection()),
    )
    return SavedMDM(selection().mdm, NAMES, made)


@cache
def true_clients():
    return truth("medium/2").sample(60, rng=3)


@cache
def comparison():
    iid = pu.iid_counts(60, sizes=[20], marginal=true_clients().sum(axis=0), rng=4)
    populations = {"mdm": selection().mdm, "iid": iid}
    return pu.compare(populations, true_clients(), n_folds=0, n_splits=100, n_bootstrap=100, rng=5)


def runs(populations=("true", "mdm", "iid", "oracle"), seeds=(0, 1)):
    """Runs whose accuracy is a parabola in the learning rate's logarithm, shifted by population."""
    made = []
    for i, population in enumerate(populations):
        for seed in seeds:
            for rate in (0.01, 0.1, 1.0):
                for epochs in (1, 4):
                    best = -1 + 0.3 * i
                    score = 0.9 - 0.1 * (np.log10(rate) - best) ** 2 - 0.01 * seed - 0.002 * epochs
                    settings = FedAvg(
                        n_rounds=4, cohort_size=2, local_learning_rate=rate, local_epochs=epochs
                    )
                    curve = {"accuracy": [float(score)]}
                    final = {"accuracy": float(score)}
                    made.append(
                        RunRecord(
                            population,
                            seed,
                            settings,
                            "batched",
                            [4],
                            [0.1],
                            curve,
                            final,
                            None,
                            1.5,
                        )
                    )
    return made


def everything():
    """The keywords of a report with all its sections."""
    return {
        "comparison": comparison(),
        "runs": runs(),
        "clients": {"true": true_clients()},
        "title": "A <federation>",
    }

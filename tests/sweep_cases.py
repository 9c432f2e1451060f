"""A small sweep for tests, also for those that run it in another process."""

import numpy as np

from polyurn.partitioning.result import Partition
from polyurn.sweeps.own_engines import sweep
from polyurn.training.fedavg import FedAvg
from training_cases import tabular

DATA = tabular()
BY_LABEL = Partition.from_lists(np.array_split(np.argsort(DATA.labels, kind="stable"), 20))
BASE = FedAvg(n_rounds=2, cohort_size=4, evaluate_every=1)
GRID = {"local_learning_rate": [0.01, 0.1], "local_epochs": [1, 2]}


def shuffled(seed):
    order = np.random.default_rng(seed).permutation(400)
    return Partition.from_lists(np.array_split(order, 20))


POPULATIONS = {"true": BY_LABEL, "iid": shuffled}


def small_sweep(folder=None, **changes):
    asked = {
        "settings": BASE,
        "model": "softmax",
        "data": DATA,
        "populations": POPULATIONS,
        "grid": GRID,
        "seeds": [0, 1],
        "n_jobs": 1,
        "noise_floor": False,
    } | changes
    settings, model, data = (asked.pop(name) for name in ("settings", "model", "data"))
    return sweep(settings, model, data, folder=folder, **asked)

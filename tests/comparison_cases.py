"""True clients for the tests of comparisons, and settings that keep them quick."""

import numpy as np

from polyurn import MDM, Sizes

TRUTH = MDM(
    [0.6, 0.4],
    [[0.5, 1.0, 3.0], [9.0, 1.0, 2.0]],
    Sizes.from_table(np.array([[0, 0, 0, 0, 0, 0.5, 0.5], [0, 0.5, 0.5, 0, 0, 0, 0]])),
)
HELD_OUT = TRUTH.sample(150, rng=0)
QUICK = {"n_splits": 100, "n_directions": 10, "n_bootstrap": 100, "n_folds": 0}


def iid(n_clients, rng):
    """Clients of one kind."""
    return rng.multinomial(4, [0.3, 0.3, 0.4], size=n_clients)

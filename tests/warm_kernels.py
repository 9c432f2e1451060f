"""Compiles the slowest kernels into numba's cache: `python tests/warm_kernels.py fits|styles`."""

import sys

import numpy as np

import polyurn as pu
from polyurn.model.paper_truths import truth
from style_cases import drawn_world, whole_space


def fits():
    """The E step, the M step and the draws of a mixture."""
    clients = pu.LocalAggregator(truth("medium/2").sample(100, rng=0))
    pu.fit(clients, n_components=2, n_categories=10, max_size=20, max_rounds=5, rng=0)


def styles():
    """The draw of clients that differ in style."""
    records = drawn_world(100, sizes=(10, 11)).records
    style = pu.fit_style(pu.LocalAggregator(records), whole_space())
    held = records.of(np.arange(100))
    counts = np.ones((5, 10), dtype=np.int64)
    pu.partition(held.labels, counts, style=style, features=held.features, rng=0)


if __name__ == "__main__":
    {"fits": fits, "styles": styles}[sys.argv[1]]()

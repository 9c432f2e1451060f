"""The whole story on built-in data: hidden clients, a fit that sees only sums, and the comparison.

`cli.py` tells it; nothing is printed here.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyurn.aggregate.local import LocalAggregator
from polyurn.client.histogram import histograms
from polyurn.comparison.parameters import ParameterComparison, compare_parameters
from polyurn.datasets.sklearn_digits import digits
from polyurn.mdm import MDM
from polyurn.server.fit import Fit, Round, fit
from polyurn.truths import truth


@dataclass(frozen=True)
class Demo:
    """What was hidden, what was learned, and how far apart they are."""

    truth: MDM
    fit: Fit
    comparison: ParameterComparison
    n_clients: int
    n_images: int
    true_log_likelihood: float
    learned_log_likelihood: float
    n_numbers: int  # that a client sends in a round, at the most


def run_demo(
    *,
    n_clients: int = 5_000,
    max_rounds: int = 50,
    rng: int | np.random.Generator = 0,
    on_round: Callable[[Round], None] | None = None,
) -> Demo:
    """Give digits to clients of a known mixture and learn the mixture back from sums.

    Parameters
    ----------
    n_clients, max_rounds : int
    rng : int or numpy.random.Generator
    on_round : callable, optional
        Called with each `Round`.
    """
    draw, deal, play, search = np.random.default_rng(rng).spawn(4)
    hidden = truth("medium/3")
    labels = digits().train.labels
    owner, images = _deal(hidden.sample(n_clients, rng=draw), labels, deal)

    # From here on the digits are on the clients: each counts its own labels and answers queries.
    counts = histograms(owner, labels[images], categories=10).counts
    learned = fit(
        LocalAggregator(counts, rng=play),
        n_components=hidden.n_components,
        n_categories=10,
        max_size=hidden.max_size,
        max_rounds=max_rounds,
        rng=search,
        on_round=on_round,
    )
    return Demo(
        truth=hidden,
        fit=learned,
        comparison=compare_parameters(learned.mdm, hidden),
        n_clients=n_clients,
        n_images=len(labels),
        true_log_likelihood=float(hidden.logpmf_given_size(counts).mean()),
        learned_log_likelihood=float(learned.mdm.logpmf_given_size(counts).mean()),
        n_numbers=max(r.n_numbers for r in learned.rounds),
    )


def _deal(
    counts: NDArray[np.int64], labels: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Images with each client's labels, drawn with replacement: (owner, image) of every point."""
    owners, images = [], []
    for label in range(counts.shape[1]):
        owner = np.repeat(np.arange(len(counts)), counts[:, label])
        owners.append(owner)
        images.append(rng.choice(np.flatnonzero(labels == label), size=len(owner)))
    return np.concatenate(owners), np.concatenate(images)

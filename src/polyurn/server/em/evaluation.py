"""Points of the parameter space that clients have judged: value, gradient and EM image.

All trials of a round are worked out together. What is tried next is `search/climber.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import ParameterError, ZeroLikelihoodError
from polyurn.model.sizes import Sizes
from polyurn.server.em.parameters import (
    from_x,
    gradients,
    stacked_sums,
    stacked_x,
    unstacked,
    within_cap,
)  # fmt: skip
from polyurn.server.em.problem import Problem
from polyurn.wire import ExpectStatistics, Parameters


@dataclass(frozen=True, eq=False)
class Point:
    """A judged point; `value` is a mean per client, `masses` are the probabilities of sizes after EM."""

    x: NDArray[np.float64]
    value: float
    gradient: NDArray[np.float64]
    sizes: Sizes
    image: NDArray[np.float64]
    masses: NDArray[np.float64]

    @property
    def step(self) -> NDArray[np.float64]:
        """The EM step from here."""
        return np.asarray(self.image - self.x)

    @property
    def promise(self) -> NDArray[np.float64]:
        """What the EM step of each component promises, to first order, shape (n_components,)."""
        return np.asarray((self.gradient * self.step).reshape(len(self.masses), -1).sum(axis=1))

    def parameters(self) -> Parameters:
        k = len(self.masses)
        return from_x(self.x, (k, len(self.x) // k - 1), self.sizes)

    def image_parameters(self) -> Parameters:
        """Where the EM step leads."""
        k, bins = len(self.masses), self.sizes.bins
        return from_x(self.image, (k, len(self.x) // k - 1), Sizes.unchecked(bins, self.masses))


def check_possible(sums: Sequence[ExpectStatistics]) -> None:
    """Refuse to go on where nobody judges, or no parameters are possible."""
    if sums[0].n_clients == 0:
        raise ParameterError(
            "no client answered a question about parameters; ask when some are there"
        )
    if not np.isfinite([s.log_likelihood for s in sums]).any():
        raise ZeroLikelihoodError(
            "some client has probability zero under every start; check max_size and n_categories"
        )


def fingerprint(sums: Sequence[ExpectStatistics]) -> tuple[int, ...]:
    """How many clients are of each size bin, and how many hold each category, whatever was asked.

    A client's responsibilities add up to one, so those of all components together count clients. Rounds
    whose counts differ were answered by different clients. Equal counts are no proof of the same ones:
    clients may have been replaced by others who are alike in this.

    Parameters
    ----------
    sums : sequence of ExpectStatistics
        Of one round, and possible (`check_possible`).

    Returns
    -------
    tuple of n_size_bins + n_categories int
    """
    one = next(s for s in sums if np.isfinite(s.log_likelihood))  # the others count nobody
    counts = np.concatenate([one.size_counts.sum(axis=0), one.present.sum(axis=0)])
    return tuple(np.rint(counts).astype(int).tolist())


def evaluate(
    problem: Problem,
    trials: Sequence[tuple[NDArray[np.float64], Sizes]],
    sums: Sequence[ExpectStatistics],
) -> list[Point]:
    """Every trial with its value, gradient and EM image; all M-steps are solved at once."""
    together = stacked_sums(sums)
    weights, alphas = unstacked(np.array([x for x, _ in trials]), problem.shape)
    values = np.asarray(together.log_likelihood) / together.n_clients
    uphill = within_cap(gradients(weights, alphas, together), alphas)
    *images, masses = problem.em_step(alphas, together)
    found = zip(trials, values, uphill, stacked_x(*images), masses, strict=True)
    return [Point(x, float(v), g, sizes, y, m) for (x, sizes), v, g, y, m in found]

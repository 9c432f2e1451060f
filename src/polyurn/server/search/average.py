"""A running average over cohorts, so that earlier ones keep counting.

When cohorts are samples, the last one alone would leave its noise in the answer. Nothing is asked here.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyurn.model.sizes import Sizes
from polyurn.server.search.m_step import Poles, blend, maximise, poles, scaled
from polyurn.server.search.parameters import to_x
from polyurn.server.search.problem import Problem
from polyurn.wire import ExpectStatistics, Parameters

# Cohort n enters with the weight n^-_POWER, so that what was said about poor parameters is forgotten.
# With a single component that hardly matters, and all cohorts count the same.
_POWER, _POWER_ALONE = 0.6, 1.0
# The answer is a mean over the average's rounds; round n counts in proportion to n^_LATE or so.
_LATE = 3


@dataclass(frozen=True)
class Average:
    """A running average over cohorts of what an M-step needs, per client.

    Attributes
    ----------
    functions, size_counts
        What is averaged.
    parameters : Parameters
        Where its M-step leads: what the next cohort is asked about.
    smooth : float array
        A mean over the rounds of those parameters, late ones counting most: the least noisy answer.
    n_cohorts : int
    """

    functions: Poles
    size_counts: NDArray[np.float64]
    parameters: Parameters
    smooth: NDArray[np.float64]
    n_cohorts: int

    @property
    def frame(self) -> tuple[tuple[int, int], Sizes]:
        return self.parameters.alphas.shape, self.parameters.sizes

    @classmethod
    def begin(cls, p: Parameters, s: ExpectStatistics, problem: Problem) -> "Average":
        functions = scaled(poles(p.alphas, s), 1.0 / s.n_clients)
        return cls._at(functions, s.size_counts / s.n_clients, p.alphas, None, s.n_clients, problem)

    def blend(self, p: Parameters, s: ExpectStatistics, problem: Problem) -> "Average":
        n = self.n_cohorts + 1
        step = n ** -(_POWER_ALONE if problem.n_components == 1 else _POWER)
        new = scaled(poles(p.alphas, s), 1.0 / s.n_clients)
        functions = blend(self.functions, new, p.alphas, step)
        sizes = (1 - step) * self.size_counts + step * s.size_counts / s.n_clients
        return self._at(functions, sizes, p.alphas, self, s.n_clients, problem)

    @classmethod
    def _at(
        cls,
        functions: Poles,
        size_counts: NDArray[np.float64],
        alphas: NDArray[np.float64],
        before: "Average | None",
        n_clients: float,
        problem: Problem,
    ) -> "Average":
        # The average is per client; priors are counted against as many clients as a cohort has.
        prior = problem.category_prior / n_clients
        after = maximise(functions, alphas, category_prior=prior)
        image = problem.image(size_counts * n_clients, after)
        x = to_x(image)
        n = 1 if before is None else before.n_cohorts + 1
        if before is None or problem.n_components == 1:
            return cls(functions, size_counts, image, x, n)
        share = (_LATE + 1) / (n + _LATE)
        smooth = (1 - share) * before.smooth + share * x
        return cls(functions, size_counts, image, smooth, n)

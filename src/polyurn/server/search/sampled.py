"""The last stage when cohorts are samples: one start is left, and earlier cohorts keep counting.

Two averages run side by side: of what EM steps need, which always works, and of quadratic models, which
does not wait for EM's small steps. Each round asks about both and about what was the answer a while
ago; the likelihoods of the same clients say which of the two to believe, and whether there is a gain.
"""

import numpy as np
from numpy.typing import NDArray

from polyurn.server.search.average import Average
from polyurn.server.search.parameters import from_x, gradient, hessian, to_x
from polyurn.server.search.problem import Problem
from polyurn.server.search.quadratic import Quadratic
from polyurn.wire import Expect, ExpectStatistics, Parameters

# A quadratic model that leaves a component with less than this share of what the average gives it has
# lost it, where the likelihood is flat; it begins anew.
_LOST = 0.25
# Rounds that are compared with each other to see whether there is still a gain, and the fewest that can
# say which of the two averages is ahead.
_LAG = 5


class Settle:
    """The stage under way.

    Parameters
    ----------
    problem : Problem
    parameters : Parameters
        What the cohort was asked that begins it.
    sums : ExpectStatistics
        What that cohort said.
    max_upload : int
        Numbers that a client may send in a round.
    tol : float
        Nats per client that may be left to gain.
    """

    def __init__(
        self,
        problem: Problem,
        parameters: Parameters,
        sums: ExpectStatistics,
        *,
        max_upload: int,
        tol: float,
    ) -> None:
        self.converged = False
        self.value = float(sums.log_likelihood / sums.n_clients)
        self._problem, self._tol = problem, tol
        self._average = Average.begin(parameters, sums, problem)
        start = to_x(self._average.parameters)
        newton = problem.newton_cost(problem.n_components)
        affordable = 3 * problem.trial_cost + newton <= max_upload
        useful = problem.n_components > 1  # the average of a single component waits for nothing
        self._quadratic = Quadratic.empty(len(start)) if affordable and useful else None
        self._every_component = tuple(range(problem.n_components))
        self._bold = start  # where the quadratic models lead
        self._leads: list[float] = []  # how far the quadratic one was ahead, round by round
        self._answers: list[NDArray[np.float64]] = []
        self._gains: list[float] = []

    @property
    def best(self) -> Parameters:
        """The answer so far."""
        x = self._bold if self._believes_bold else self._average.smooth
        return from_x(x, *self._average.frame)

    @property
    def _believes_bold(self) -> bool:
        """Whether the quadratic models are to be believed: unless they are clearly behind."""
        if len(self._leads) < _LAG:
            return False
        leads = np.array(self._leads[-max(_LAG, len(self._leads) // 2) :])
        return bool(leads.mean() + 2 * leads.std(ddof=1) / np.sqrt(len(leads)) > 0)

    def queries(self, max_upload: int) -> list[Expect]:
        """About the average's parameters, the quadratic model's, and what was the answer before.

        Without room for the last of them, nobody can say whether there is still a gain.
        """
        asked = [Expect(self._average.parameters)]
        if self._quadratic is not None:
            asked.append(Expect(self._at(self._bold), curvature=self._every_component))
        room = self._quadratic is not None or 2 * self._problem.trial_cost <= max_upload
        if len(self._answers) >= _LAG and room:
            asked.append(Expect(self._at(self._answers[-_LAG])))
        return asked

    def learn(self, sums: list[ExpectStatistics]) -> None:
        """Take in one more cohort."""
        n = sums[0].n_clients
        values = [float(s.log_likelihood / n) for s in sums]
        believed = 1 if self._believes_bold else 0
        self.value = values[believed]
        if len(sums) > 1 + (
            self._quadratic is not None
        ):  # what was the answer before is among them
            self._gains.append(values[believed] - values[-1])
        asked = self._average.parameters
        self._answers.append(self._bold if believed else to_x(asked))
        self._average = self._average.blend(asked, sums[0], self._problem)
        if self._quadratic is not None:
            self._leads.append(values[1] - values[0])
            self._learn_bold(self._quadratic, sums[1])
        recent = np.array(self._gains[-_LAG:])
        if len(recent) == _LAG:
            # What the last few rounds gave, with the noise of the cohorts, bounds what the next will.
            error = recent.std(ddof=1) / np.sqrt(_LAG)
            self.converged = bool(abs(recent.mean()) + 2 * error < self._tol)

    def _learn_bold(self, model: Quadratic, sums: ExpectStatistics) -> None:
        curvature = hessian(sums)
        assert curvature is not None
        asked = self._at(self._bold)
        x = to_x(asked)  # within the bounds
        slope = gradient(asked, sums)
        prior = np.full(asked.alphas.shape, self._problem.category_prior / sums.n_clients)
        slope += np.pad(prior, ((0, 0), (0, 1))).reshape(-1)
        self._quadratic = model.blend(x, slope, curvature, sums.n_clients)
        self._bold = self._quadratic.after(x)
        safe = self._average.parameters
        if (self._at(self._bold).weights < _LOST * safe.weights).any():
            self._bold, self._leads = to_x(safe), []
            self._quadratic = Quadratic.empty(len(x))

    def _at(self, x: NDArray[np.float64]) -> Parameters:
        return from_x(x, *self._average.frame)

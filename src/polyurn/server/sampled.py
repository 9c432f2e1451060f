"""The search when cohorts are samples: likelihoods of different rounds cannot be compared.

Starts take EM steps, and the worse half leaves by the likelihood of each cohort. Once one start is left,
earlier cohorts keep counting, in two averages: of the sums that EM steps need (stepwise EM: Cappé and
Moulines, 2009, with averaged iterates: Polyak and Juditsky, 1992), and of quadratic models of the
likelihood, whose optimum needs no small EM steps. Each round asks about both optima and about an earlier
answer; the likelihoods of the same clients decide which one to take, and whether there is a gain.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyurn.model.sizes import Sizes
from polyurn.server.em import (
    Problem,
    Surrogate,
    check_possible,
    evaluate,
    from_x,
    hessian,
    to_x,
)  # fmt: skip
from polyurn.server.fit_settings import Settings
from polyurn.server.search import State
from polyurn.server.starts import starts
from polyurn.typed.declared import Floats
from polyurn.wire import (
    Expect,
    ExpectStatistics,
    Group,
    GroupStatistics,
    Parameters,
    Query,
    Statistics,
)  # fmt: skip


class Sampled:
    """The search for one number of components with sampled cohorts."""

    def __init__(
        self, problem: Problem, groups: list[Group], settings: Settings,
        starts: Sequence[Parameters] = (),
    ) -> None:  # fmt: skip
        self.problem, self.max_upload = problem, settings.max_upload
        self._groups, self._settings = groups, settings
        self._starts = list(starts)
        self._average: Average | None = None
        self._state = State(0.0, 0.0)
        self._n_rounds = 0

    def queries(self) -> list[Query[Any]]:
        """What to ask in the next round."""
        if self._average is not None:
            return [*self._average.queries(self.max_upload)]
        return [*(Expect(p) for p in self._starts)] or [*self._groups]

    def learn(self, answers: list[Statistics]) -> State:
        """Take in the answers to `queries`, and decide what comes next."""
        n = float(answers[0].n_clients)  # type: ignore[attr-defined]
        if n == 0:
            return self._state  # a cohort can be empty by chance
        n_supporting = self._state.n_supporting + n
        if not self._starts:
            groups = [a for a in answers if isinstance(a, GroupStatistics)]
            self._starts = starts(groups, self.problem)
            self._state = State(n, n_supporting)
            return self._state
        sums = [a for a in answers if isinstance(a, ExpectStatistics)]
        check_possible(sums)
        if self._average is None:
            best, value = self._halve(sums)
            self._state = State(n, n_supporting, best, value)
        else:
            converged = self._average.learn(sums)
            best, value = self._average.best, self._average.value
            self._state = State(n, n_supporting, best, value, {1: value}, converged)
        return self._state

    def _halve(self, sums: list[ExpectStatistics]) -> tuple[Parameters, float]:
        """Let the better starts take their EM step; the last one begins the averages."""
        self._n_rounds += 1
        trials = [(_x(p), p.sizes) for p in self._starts]
        points = evaluate(self.problem, trials, sums)
        order = np.argsort([-p.value for p in points], kind="stable")
        n = len(self._groups) >> (self._n_rounds // self._settings.policy.halve_every)
        kept = [points[i] for i in order[: max(1, n)]]
        if len(kept) == 1:
            first = order[0]
            self._average = Average(self.problem, self._starts[first], sums[first], self._settings)
        self._starts = [p.image_parameters() for p in kept]
        return self._starts[0], kept[0].value


class Average:
    """Running average of the sums of all cohorts, shifted to the current parameters.

    It begins with the `sums` of one cohort about the parameters `p`.
    """

    def __init__(
        self, problem: Problem, p: Parameters, sums: ExpectStatistics, settings: Settings
    ) -> None:
        self._problem, self._policy, self._tol = problem, settings.policy, settings.tol
        self.value = float(sums.log_likelihood / sums.n_clients)
        self._surrogate = Surrogate.of(p.alphas, sums)
        self._size_counts = sums.size_counts / sums.n_clients
        self._em = self._m_step(p.alphas, sums.n_clients)
        self._smooth = self._newton = _x(self._em)
        self._n = 1
        self._quadratic = Quadratic(len(self._newton))
        self._leads: list[float] = []  # of the quadratic models over EM, round by round
        self._answers: list[Floats] = []
        self._gains: list[float] = []

    @property
    def best(self) -> Parameters:
        """The answer so far."""
        return self._at(self._newton if self._believes_newton else self._smooth)

    @property
    def _believes_newton(self) -> bool:
        """Whether to take the quadratic models' optimum: unless it is clearly behind."""
        lag = self._policy.lag
        if len(self._leads) < lag:
            return False
        leads = np.array(self._leads[-max(lag, len(self._leads) // 2) :])
        return bool(leads.mean() + 2 * leads.std(ddof=1) / np.sqrt(len(leads)) > 0)

    def queries(self, max_upload: int) -> list[Expect]:
        """The queries about EM's parameters, the quadratic models' optimum, and the earlier answer."""
        problem, asked = self._problem, [Expect(self._em)]
        budget = max_upload - problem.trial_cost
        every = tuple(range(problem.n_components))
        # The EM average of a single component needs no waiting.
        newton = 2 * problem.trial_cost + problem.hessian_cost(len(every)) <= budget
        if newton and len(every) > 1:
            asked.append(Expect(self._at(self._newton), curvature=every))
        if len(self._answers) >= self._policy.lag and problem.trial_cost <= budget:
            asked.append(Expect(self._at(self._answers[-self._policy.lag])))
        return asked

    def learn(self, sums: list[ExpectStatistics]) -> bool:
        """Take in one more cohort; whether the last gains are below tol, even with their noise."""
        n, lag = sums[0].n_clients, self._policy.lag
        values = [float(s.log_likelihood / n) for s in sums]
        has_newton = len(sums) > 1 and sums[1].curvature.size > 0
        believed = 1 if self._believes_newton and has_newton else 0
        self.value = values[believed]
        if len(sums) > 1 + has_newton:  # the earlier answer is among them
            self._gains.append(values[believed] - values[-1])
        self._answers.append(self._newton if believed else _x(self._em))
        self._learn_em(sums[0])
        if has_newton:
            self._leads.append(values[1] - values[0])
            self._learn_newton(sums[1])
        recent = np.array(self._gains[-lag:])
        if len(recent) < lag:
            return False
        error = recent.std(ddof=1) / np.sqrt(lag)
        return bool(abs(recent.mean()) + 2 * error < self._tol)

    def _learn_em(self, sums: ExpectStatistics) -> None:
        self._n += 1
        alone = self._problem.n_components == 1  # then all cohorts count the same
        step = 1 / self._n if alone else self._n**-self._policy.averaging
        asked = self._em.alphas
        self._surrogate = self._surrogate.blend(Surrogate.of(asked, sums), asked, step)
        new = sums.size_counts / sums.n_clients
        self._size_counts = (1 - step) * self._size_counts + step * new
        self._em = self._m_step(asked, sums.n_clients)
        share = 1.0 if alone else 4 / (self._n + 3)  # late iterates count most
        self._smooth = (1 - share) * self._smooth + share * _x(self._em)

    def _m_step(self, alphas: Floats, n_clients: float) -> Parameters:
        """The EM step of the average; priors are weighed against the clients of one cohort."""
        prior = self._problem.category_prior / n_clients
        after = self._surrogate.maximise(alphas, category_prior=prior)
        counts = self._size_counts * n_clients
        sizes = Sizes(self._problem.size_bins, self._problem.size_masses(counts))
        return Parameters(self._problem.weights(counts), after, sizes)

    def _learn_newton(self, sums: ExpectStatistics) -> None:
        asked = self._at(self._newton)
        x = _x(asked)  # within the bounds
        curvature = hessian(sums)
        assert curvature is not None
        point = evaluate(self._problem, [(x, asked.sizes)], [sums])[0]
        prior = np.full(asked.alphas.shape, self._problem.category_prior / sums.n_clients)
        gradient = point.gradient + np.pad(prior, ((0, 0), (0, 1))).reshape(-1)
        self._quadratic.add(x, gradient, curvature, sums.n_clients, self._policy.full_weight)
        self._newton = self._quadratic.optimum(x)
        # If the likelihood is flat, a model can lose a component: then it begins anew.
        if (self._at(self._newton).weights < self._em.weights / 4).any():
            self._newton, self._leads = _x(self._em), []
            self._quadratic = Quadratic(len(x))

    def _at(self, x: Floats) -> Parameters:
        return Parameters(*from_x(x, self._problem.shape), self._em.sizes)


class Quadratic:
    """The mean of the cohorts' quadratic models, g + H (x - x_asked) each: its gradient is Hx - b."""

    def __init__(self, n: int) -> None:
        self._hessian, self._b = np.zeros((n, n)), np.zeros(n)
        self._weight = self._n_clients = 0.0
        self._n = 0

    def add(
        self, x: Floats, gradient: Floats, hessian: Floats,
        n_clients: float, full_weight: int
    ) -> None:  # fmt: skip
        """Take in one more cohort, asked at x; the first, asked far from the optimum, count less."""
        self._n, self._n_clients = self._n + 1, self._n_clients + n_clients
        new = min(self._n / full_weight, 1.0) ** 2
        self._weight += new
        share = new / self._weight
        self._hessian = (1 - share) * self._hessian + share * hessian
        self._b = (1 - share) * self._b + share * (hessian @ x - gradient)

    def optimum(self, x: Floats) -> Floats:
        """The next point to ask about, from x: uphill, by at most half a logarithm.

        Directions with less information from all clients together than one client could give are damped.
        """
        values, axes = np.linalg.eigh(self._hessian)
        along = axes.T @ (self._hessian @ x - self._b)
        step = axes @ (along / (np.abs(values) + 1.0 / self._n_clients))
        return np.asarray(x + step * min(1.0, 0.5 / max(float(np.abs(step).max()), 1e-300)))


def _x(p: Parameters) -> Floats:
    return to_x(p.weights, p.alphas)

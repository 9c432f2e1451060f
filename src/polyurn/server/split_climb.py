"""A climb of a mixture with splits, from the sums of `Divide`: the M-step, and steps beyond it.

Without laws, each split is a Dirichlet-multinomial of two categories, and has its M-step (`em.py`). With
laws θ, an M-step maximises, for each split at fixed responsibilities,

    Σ_b θ_b s_b - Σ_N w_N log Z(N; θ) - λ |θ″|² - ρ |θ|²,

with s the sums of the hat functions and w those of the totals, on the same knots. The clients send the
exact gradient, so that only the curvature depends on the totals' being on knots. Long steps along the
M-step are tried beside it. What is asked when, and what is kept, is `stages.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse
from scipy.optimize import fmin_l_bfgs_b

from polyurn.model.mdm import MAX_CONCENTRATION, MDM
from polyurn.model.sizes import Sizes
from polyurn.model.splits import Laws, Splits
from polyurn.server.em import Problem, Surrogate, check_possible, with_total
from polyurn.typed.declared import Floats, Ints
from polyurn.wire import Divide, DivideStatistics

# Multiples of an M-step that are tried, as far as an upload allows.
_STEPS = (1.0, 0.3, 3.0, 9.0)
# No logarithm of a concentration moves further in an M-step: its surrogate is no better far away.
_LONGEST = 2.0
# θ is drawn to 0 by so much: it fixes what changes no probability.
_RIDGE = 0.05
_MOST_ITERATIONS = 25
_LEAST = 1e-10  # no concentration is lower


@dataclass(eq=False)
class SplitClimb:
    """A mixture with splits that climbs; `value` is its mean log-likelihood, less the penalty on θ."""

    mdm: MDM
    problem: Problem
    penalty: float = 0.0  # λ
    value: float = -np.inf
    gain: float = np.inf
    n_clients: float = 0.0
    n_vain: int = 0
    trials: list[MDM] = field(default_factory=list)
    _image: tuple[Floats, Floats, Floats, Floats] = ()  # type: ignore[assignment]
    _steps: tuple[float, ...] = _STEPS
    _sums: DivideStatistics | None = None  # at this point

    def __post_init__(self) -> None:
        self.trials = [self.mdm]

    @classmethod
    def of(cls, mdm: MDM, splits: Splits, problem: Problem) -> "SplitClimb":
        """A climb from a mixture, with other splits."""
        problem = replace(problem, n_components=mdm.n_components)
        return cls(MDM(mdm.weights, None, mdm.sizes, splits=splits), problem)

    @property
    def splits(self) -> Splits:
        assert self.mdm.splits is not None
        return self.mdm.splits

    @property
    def log_likelihood(self) -> float:
        """The mean log-likelihood, without the penalty."""
        return self.value + self._roughness(self.mdm) / self.n_clients

    @property
    def trial_cost(self) -> int:
        """The number of numbers that a client sends for one trial."""
        return Divide(self.mdm).n_numbers

    def learn(self, sums: Sequence[DivideStatistics], n_trials: int) -> None:
        """Move to the best trial, and propose so many from there."""
        check_possible(sums)
        self.n_clients = float(sums[0].n_clients)
        values = [self._value(m, s) for m, s in zip(self.trials, sums, strict=True)]
        i = int(np.argmax(values))
        self.gain = values[i] - self.value
        self.n_vain += 1
        if self.gain > 0:
            self.n_vain = 0
            self.mdm = self.trials[i]
            self._look(sums[i])
        else:  # nearer, from the same point
            self._steps = tuple(step / 10 for step in self._steps)
        self.trials = [self._at(step) for step in self._steps[:n_trials]]

    def goes_on(self, tol: float) -> bool:
        """Whether there seems to be something left to gain; a vain round is followed by another."""
        return self.gain >= tol or self.n_vain == 1

    def weaken(self, penalty: float, n_trials: int) -> None:
        """Go on from here with another penalty: what the clients said of this point holds."""
        self.penalty, self.gain, self.n_vain = penalty, np.inf, 0
        if self._sums is not None:
            self._look(self._sums)
            self.trials = [self._at(step) for step in self._steps[:n_trials]]

    def _look(self, sums: DivideStatistics) -> None:
        """Take in the sums at this point, and find where an M-step leads from here."""
        self._sums, self._steps, self.value = sums, _STEPS, self._value(self.mdm, sums)
        self._image = self._m_step(sums)

    def _value(self, mdm: MDM, sums: DivideStatistics) -> float:
        return (float(sums.log_likelihood) - self._roughness(mdm)) / self.n_clients

    def _roughness(self, mdm: MDM) -> float:
        if mdm.splits is None or mdm.splits.laws is None:
            return 0.0
        theta = mdm.splits.laws.values
        bends = theta @ _curving(mdm.splits.laws.knots).T
        return float(self.penalty * (bends**2).sum() + _RIDGE * (theta**2).sum())

    def _at(self, step: float) -> MDM:
        """The mixture so many M-steps from here; the probabilities of sizes are those after one."""
        weights, concentrations, theta, masses = self._image
        splits, laws = self.splits, self.splits.laws
        if laws is not None:
            laws = Laws(laws.knots, laws.values + step * (theta - laws.values))
        log_weights = np.log(self.mdm.weights)
        log_weights = log_weights + step * (np.log(weights) - log_weights)
        after = np.exp(log_weights - log_weights.max())
        logs = np.log(splits.concentrations)
        moves = np.clip(np.log(concentrations) - logs, -_LONGEST, _LONGEST)
        new = np.exp(np.clip(logs + step * moves, np.log(_LEAST), 30.0))
        new /= np.maximum(new.sum(axis=2, keepdims=True) / MAX_CONCENTRATION, 1.0)
        sizes = Sizes.unchecked(self.mdm.sizes.bins, masses)
        return MDM(after / after.sum(), None, sizes, splits=Splits(splits.tree, new, laws))

    def _m_step(self, sums: DivideStatistics) -> tuple[Floats, Floats, Floats, Floats]:
        """Weights, concentrations, θ and the probabilities of sizes after an M-step."""
        weights = self.problem.weights(sums.size_counts)
        masses = self.problem.size_masses(sums.size_counts)
        at = self.splits.concentrations
        if self.splits.laws is not None:
            return weights, at, self._bent(self.splits.laws, sums), masses
        n, shape = float(sums.n_clients), at.shape

        def joined(sides: Floats, totals: Floats) -> Floats:
            return np.concatenate([sides.reshape(shape), totals[..., None]], axis=2) / n

        surrogate = Surrogate.matching(
            with_total(at),
            joined(sums.present, sums.total_present),
            joined(sums.tables, sums.total_tables),
            joined(sums.spread, sums.total_spread),
        )
        prior = self.problem.category_prior / n
        return weights, surrogate.maximise(at, category_prior=prior), np.empty(0), masses

    def _bent(self, laws: Laws, sums: DivideStatistics) -> Floats:
        """θ after an M-step: by L-BFGS, in coordinates in which the curvature is about 1."""
        from polyurn.model.model_kernels import expected_counts

        shape = laws.values.shape
        arrivals = sums.arrivals.reshape(*shape[:2], shape[3])
        straight = replace(self.splits, laws=None).log_laws(int(laws.knots[-1]))
        at_counts = sparse.csr_array(laws.hats(int(laws.knots[-1])))

        def expected(theta: Floats) -> tuple[Floats, Floats]:
            bent = straight + (theta.reshape(-1, shape[3]) @ at_counts.T).reshape(straight.shape)
            log_z, counts = expected_counts(bent, laws.knots, arrivals)
            return log_z, (counts.reshape(-1, counts.shape[3]) @ at_counts).reshape(shape)

        seen = sums.bends.reshape(shape) + expected(laws.values)[1]
        second = _curving(laws.knots)
        rough = 2 * self.penalty * second.T @ second + 2 * _RIDGE * np.eye(shape[3])
        curvature = rough + np.maximum(seen, 0.0)[..., None] * np.eye(shape[3])
        factor = np.linalg.inv(np.linalg.cholesky(curvature)).swapaxes(-1, -2)

        def less(x: Floats) -> tuple[float, Floats]:
            theta = laws.values + (factor @ x.reshape(*shape, 1))[..., 0]
            log_z, hats = expected(theta)
            drawn = theta @ rough
            value = (theta * (seen - drawn / 2)).sum() - (arrivals * log_z).sum()
            gradient = (factor.swapaxes(-1, -2) @ (seen - drawn - hats)[..., None])[..., 0]
            return -float(value), -gradient.ravel()

        x, _, _ = fmin_l_bfgs_b(less, np.zeros(laws.values.size), maxiter=_MOST_ITERATIONS)
        return np.asarray(laws.values + (factor @ x.reshape(*shape, 1))[..., 0])


def _curving(knots: Ints) -> Floats:
    """A matrix whose product with values on knots is θ″ in log(1 + count), times the root of a width.

    Its square is then the integral of θ″² there, whichever knots there are.
    """
    t = np.log1p(knots)
    width = np.diff(t)
    rises = np.diff(np.eye(len(t)), axis=0) / width[:, None]
    return np.asarray(np.diff(rises, axis=0) / np.sqrt((width[1:] + width[:-1]) / 2)[:, None])

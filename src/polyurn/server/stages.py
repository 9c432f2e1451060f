"""What follows the choice of K: a tree of splits, laws on them, and all clients.

Each stage begins at exactly the likelihood of the one before, and is kept if held-out clients are
likelier by more than a standard error:

    mixture    the chosen mixture, and some with fewer components, which may be enough with splits
    tree       each component's splits on one tree get concentrations of their own
    laws       hat functions bend the splits' laws; λ, the penalty on laws that are not smooth, falls as
               long as held-out clients gain

Then the mixture goes on with every client, held-out ones included; their scores stay.

A mixture with splits climbs by the sums of `Divide`. Without laws, each split is a Dirichlet-multinomial
of two categories, and has its M-step (`em.py`). With laws θ, an M-step maximises, for each split at
fixed responsibilities,

    Σ_b θ_b s_b - Σ_N w_N log Z(N; θ) - λ |θ″|² - ρ |θ|²,

with s the sums of the hat functions and w those of the totals, on the same knots. The clients send the
exact gradient, so that only the curvature depends on the totals' being on knots. Long steps along the
M-step are tried beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

import numpy as np
from scipy import sparse
from scipy.optimize import fmin_l_bfgs_b

from polyurn.errors import ParameterError
from polyurn.model.mdm import MAX_CONCENTRATION, MDM, Parameters
from polyurn.model.sizes import Sizes
from polyurn.model.splits import Laws, Splits, law_knots
from polyurn.model.trees import MOST_LEARNED, Tree
from polyurn.server.em import Problem, Surrogate, check_possible, with_total
from polyurn.server.fit_results import Candidate, ShapeScore, behind
from polyurn.server.fit_settings import Settings, Shape
from polyurn.server.search import Climber, Race, State
from polyurn.typed.declared import Floats, Ints
from polyurn.wire import Affinity, Divide, DivideStatistics, Query, ScoreStatistics

# Puts questions to the fitted clients, and lets the held-out ones score mixtures, in one round.
Ask: TypeAlias = Callable[[Sequence[Query[Any]], Sequence[MDM]], tuple[list[Any], ScoreStatistics]]

# The most rounds with all clients after the choice, of the tree, and of the laws at each λ.
MOST_JOINED, _MOST_TREE, _MOST_LAWS = 6, 7, 2
_PENALTIES = tuple(4.0 / 8**i for i in range(7))
# Every count up to one of these has a knot of its own, as far as an upload and so many knots allow.
_DENSE, _MOST_KNOTS = (256, 64, 32, 16, 8), 257
# Laws take time in proportion to the square of the largest size.
LARGEST_BENT = 8_192

# Multiples of an M-step that are tried, as far as an upload allows.
_STEPS = (1.0, 0.3, 3.0, 9.0)
# No logarithm of a concentration moves further in an M-step: its surrogate is no better far away.
_LONGEST = 2.0
# θ is drawn to 0 by so much: it fixes what changes no probability.
_RIDGE = 0.05
_MOST_ITERATIONS = 25
_LEAST = 1e-10  # no concentration is lower


@dataclass(frozen=True, eq=False)
class Bent:
    """A mixture that a stage ended at."""

    shape: str
    n_components: int  # that it began with
    mdm: MDM
    penalty: float = 0.0


def run_stages(
    chosen: Candidate, candidates: Sequence[Candidate], problem: Problem, settings: Settings, ask: Ask,
    *, tie: float,
) -> tuple[Bent, tuple[ShapeScore, ...]]:  # fmt: skip
    """The mixture that held-out clients find likeliest, of the shapes allowed, and what they said."""
    base = Bent("dirichlet", chosen.n_components, cast(MDM, chosen.mdm))
    shape = settings.shape
    if shape == "dirichlet" or settings.cohort_size is not None:  # samples cannot be compared
        return base, ()
    origin, known = ("declared", settings.tree) if settings.tree else _tree(base.mdm, ask)
    climbs = {
        k: SplitClimb.of(mdm, Splits.of_alphas(known, mdm.alphas), problem, settings.tol)
        for k, mdm in _starts(base, candidates).items()
    }
    ends, upload = [base], settings.max_upload
    climbs = _affordable(climbs, upload)
    _climb(climbs, _MOST_TREE, settings, ask)
    ends += [Bent("tree", k, c.mdm) for k, c in climbs.items()]
    if shape != "tree":
        ends += _weaken(_with_laws(climbs, upload), settings, ask)
    if shape not in ("auto", ends[-1].shape):
        raise ParameterError(f"expected a larger max_upload with shape={shape!r}, got {upload:,}")
    if len(ends) == 1:
        return base, ()
    scores = ask((), [one.mdm for one in ends])[1]
    end, stages = _kept(ends, scores, shape, tie)
    return end, tuple(replace(stage, tree=origin) for stage in stages)


def _tree(mdm: MDM, ask: Ask) -> tuple[str, Tree]:
    if mdm.n_categories > MOST_LEARNED:
        return "by share", Tree.by_share(mdm.mean())
    sums = ask([Affinity(mdm.n_categories)], ())[0][0]
    lower = np.zeros((mdm.n_categories,) * 2)
    lower[np.tril_indices(mdm.n_categories)] = sums.affinities
    tree = Tree.learned(sums.n_clients, sums.roots, lower + np.tril(lower, -1).T)
    return "learned", tree


def _starts(base: Bent, candidates: Sequence[Candidate]) -> dict[int, MDM]:
    """The chosen mixture, and those of about a half and a quarter as many components."""
    found = {base.n_components: base.mdm}
    for share in (2, 4):
        fewer = [c for c in candidates if c.mdm and c.n_components <= base.n_components / share]
        found |= {c.n_components: cast(MDM, c.mdm) for c in fewer[-1:]}
    return found


def _affordable(climbs: Mapping[int, "SplitClimb"], upload: int) -> dict[int, "SplitClimb"]:
    """The climbs, fewest components first, that one upload has room for."""
    kept: dict[int, SplitClimb] = {}
    for k, climb in sorted(climbs.items()):
        upload -= climb.trial_cost
        if upload >= 0:
            kept[k] = climb
    return kept


def _climb(
    climbs: Mapping[int, "SplitClimb"], most: int, settings: Settings, ask: Ask
) -> list[float]:
    """Climb side by side while there is something to gain; held-out means of where they began."""
    means: list[float] = []
    for i in range(most):
        going = [c for c in climbs.values() if c.goes_on]
        if not going:
            break
        n_trials = settings.max_upload // sum(c.trial_cost for c in going)
        queries = [query for c in going for query in c.queries()]
        answers, scores = ask(queries, [c.mdm for c in going] if i == 0 else ())
        if i == 0:
            means = list(scores.log_likelihoods / scores.n_clients)
        for c in going:
            n, c.n_trials = len(c.trials), n_trials
            c.learn(answers[:n])
            del answers[:n]
    return means


def _with_laws(climbs: Mapping[int, "SplitClimb"], upload: int) -> dict[int, "SplitClimb"]:
    """Some of the mixtures with laws that bend nothing yet; two trials of each fit into an upload."""
    for dense in _DENSE:
        bent = {}
        for k, climb in climbs.items():
            splits, most = climb.splits, climb.mdm.max_size
            knots = law_knots(most, dense=dense)
            laws = Laws(knots, np.zeros((*splits.concentrations.shape, len(knots))))
            bent[k] = SplitClimb.of(climb.mdm, replace(splits, laws=laws), climb.problem, climb.tol)
        fitting = _affordable(bent, upload // 2)
        # Knots tell more than components: two numbers of these are enough to choose from.
        if len(knots) <= _MOST_KNOTS and len(fitting) >= min(2, len(bent)):
            break
    return {k: c for k, c in fitting.items() if c.mdm.max_size <= LARGEST_BENT}


def _weaken(climbs: dict[int, "SplitClimb"], settings: Settings, ask: Ask) -> list[Bent]:
    """Where the laws end at each penalty; weaker ones only while held-out clients gain."""
    ends: list[Bent] = []
    before: dict[int, float] = {}
    for penalty in _PENALTIES:
        n_trials = settings.max_upload // max(sum(c.trial_cost for c in climbs.values()), 1)
        for climb in climbs.values():
            climb.n_trials = n_trials
            climb.weaken(penalty)
        # The first M-step needs a round more, as what clients say without laws is of no use with them.
        n_rounds = _MOST_LAWS + (not ends)
        means = dict(zip(climbs, _climb(climbs, n_rounds, settings, ask), strict=True))
        ends += [Bent("laws", k, c.mdm, penalty) for k, c in climbs.items()]
        climbs = {k: c for k, c in climbs.items() if means[k] >= before.get(k, -np.inf)}
        before = means
        if not climbs:
            break
    return ends


def _kept(
    ends: Sequence[Bent], scores: ScoreStatistics, shape: Shape, tie: float
) -> tuple[Bent, tuple[ShapeScore, ...]]:
    """The end that is kept: a stage has to gain a standard error, unless it is asked for."""
    means = scores.log_likelihoods / scores.n_clients
    kept, stages = 0, []
    for name in ("tree", "laws"):
        these = [i for i, one in enumerate(ends) if one.shape == name]
        if not these:
            continue
        short, errors = behind(scores, max(these, key=means.__getitem__))
        tied = (i for i in these if short[i] <= tie * errors[i])
        found = min(tied, key=lambda i: (ends[i].n_components, short[i]))
        gain, error = (float(of[kept]) for of in behind(scores, found))
        keep = name == shape or (shape == "auto" and gain > error)
        k, mean, penalty = ends[found].n_components, float(means[found]), ends[found].penalty
        stages.append(ShapeScore(name, k, mean, gain, error, keep, penalty))
        kept = found if keep else kept
    return ends[kept], tuple(stages)


def joining(
    end: Bent, problem: Problem, settings: Settings, *, number: int, rng: np.random.Generator
) -> "Race | SplitClimb":
    """The search that goes on from a mixture with all clients."""
    mdm = end.mdm
    if mdm.splits is not None:
        climb = SplitClimb(mdm, problem, end.penalty, tol=settings.tol)
        climb.n_trials = max(settings.max_upload // climb.trial_cost, 1)
        return climb
    parameters = Parameters(mdm.weights, mdm.alphas, mdm.sizes)
    begin = Climber.begin(parameters, number, settings.policy)
    return Race(problem, [], replace(settings, patience=0), rng, begin=begin)


@dataclass(eq=False)
class SplitClimb:
    """A mixture with splits that climbs; `value` is its mean log-likelihood, less the penalty on θ.

    It is asked about so many trials at once as `n_trials` says before it learns.
    """

    mdm: MDM
    problem: Problem
    penalty: float = 0.0  # λ
    tol: float = 0.0
    n_trials: int = 1
    value: float = -np.inf
    gain: float = np.inf
    n_clients: float = 0.0
    n_vain: int = 0
    trials: list[MDM] = field(default_factory=list)
    _steps: tuple[float, ...] = _STEPS
    _sums: DivideStatistics | None = None  # at this point
    _path: Callable[[float], MDM] | None = None  # the mixture so many M-steps from here

    def __post_init__(self) -> None:
        self.trials = [self.mdm]

    @classmethod
    def of(cls, mdm: MDM, splits: Splits, problem: Problem, tol: float) -> "SplitClimb":
        """A climb from a mixture, with other splits."""
        return cls(MDM(mdm.weights, None, mdm.sizes, splits=splits), problem, tol=tol)

    @property
    def splits(self) -> Splits:
        assert self.mdm.splits is not None
        return self.mdm.splits

    @property
    def trial_cost(self) -> int:
        """The number of numbers that a client sends for one trial."""
        return Divide(self.mdm).n_numbers

    def queries(self) -> list[Query[Any]]:
        """What to ask in the next round."""
        return [Divide(mdm) for mdm in self.trials]

    def learn(self, sums: Sequence[Any]) -> State:
        """Move to the best trial, and propose others from there."""
        check_possible(sums)
        self.n_clients = float(sums[0].n_clients)
        values = [self._value(m, s) for m, s in zip(self.trials, sums, strict=True)]
        i = int(np.argmax(values))
        self.gain = values[i] - self.value
        self.n_vain += 1
        if self.gain > 0:
            self.n_vain, self.mdm = 0, self.trials[i]
            self._look(sums[i])
        else:  # nearer, from the same point
            self._steps = tuple(step / 10 for step in self._steps)
        self._propose()
        value = self.value + self._roughness(self.mdm) / self.n_clients  # without the penalty
        return State(self.n_clients, self.n_clients, value=value, converged=not self.goes_on)

    @property
    def goes_on(self) -> bool:
        """Whether there seems to be something left to gain; a vain round is followed by another."""
        return self.gain >= self.tol or self.n_vain == 1

    def weaken(self, penalty: float) -> None:
        """Go on from here with another penalty: what the clients said of this point holds."""
        self.penalty, self.gain, self.n_vain = penalty, np.inf, 0
        if self._sums is not None:
            self._look(self._sums)
            self._propose()

    def _look(self, sums: DivideStatistics) -> None:
        """Take in the sums at this point, and find where an M-step leads from here."""
        self._sums, self._steps, self.value = sums, _STEPS, self._value(self.mdm, sums)
        self._path = self._m_step(sums)

    def _propose(self) -> None:
        assert self._path is not None
        self.trials = [self._path(step) for step in self._steps[: self.n_trials]]

    def _value(self, mdm: MDM, sums: DivideStatistics) -> float:
        return (float(sums.log_likelihood) - self._roughness(mdm)) / self.n_clients

    def _roughness(self, mdm: MDM) -> float:
        if mdm.splits is None or mdm.splits.laws is None:
            return 0.0
        theta = mdm.splits.laws.values
        bends = theta @ _curving(mdm.splits.laws.knots).T
        return float(self.penalty * (bends**2).sum() + _RIDGE * (theta**2).sum())

    def _m_step(self, sums: DivideStatistics) -> Callable[[float], MDM]:
        """The mixture so many M-steps from here; the probabilities of sizes are those after one."""
        mdm, at, laws = self.mdm, self.splits.concentrations, self.splits.laws
        weights, logs = np.log(mdm.weights), np.log(at)
        turn = np.log(self.problem.weights(sums.size_counts)) - weights
        masses = self.problem.size_masses(sums.size_counts)
        sizes = Sizes.unchecked(mdm.sizes.bins, masses)
        bend = 0.0 if laws is None else self._bent(laws, sums) - laws.values
        moves = np.zeros(at.shape)
        if laws is None:
            moves = np.clip(np.log(self._maximum(sums)) - logs, -_LONGEST, _LONGEST)

        def path(step: float) -> MDM:
            after = np.exp(weights + step * turn - (weights + step * turn).max())
            new = np.exp(np.clip(logs + step * moves, np.log(_LEAST), 30.0))
            new /= np.maximum(new.sum(axis=2, keepdims=True) / MAX_CONCENTRATION, 1.0)
            bent = laws and Laws(laws.knots, laws.values + step * bend)
            return MDM(after / after.sum(), None, sizes, splits=Splits(self.splits.tree, new, bent))

        return path

    def _maximum(self, sums: DivideStatistics) -> Floats:
        """The concentrations after an M-step, without laws."""
        n, at = float(sums.n_clients), self.splits.concentrations
        sides = sums.present, sums.tables, sums.spread
        totals = sums.total_present, sums.total_tables, sums.total_spread
        both = (
            np.concatenate([of.reshape(at.shape), total[..., None]], axis=2) / n
            for of, total in zip(sides, totals, strict=True)
        )
        surrogate = Surrogate.matching(with_total(at), *both)
        return surrogate.maximise(at, category_prior=self.problem.category_prior / n)

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

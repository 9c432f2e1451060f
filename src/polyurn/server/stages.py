"""What follows the choice of K: a tree of splits, laws on them, and all clients.

Each stage begins at exactly the likelihood of the one before, and is kept if held-out clients are
likelier by more than a standard error:

    mixture    the chosen mixture, and some with fewer components, which may be enough with splits
    tree       each component's splits on one tree get concentrations of their own
    laws       hat functions bend the splits' laws; λ, the penalty on laws that are not smooth, falls as
               long as held-out clients gain

Then the mixture goes on with every client, held-out ones included; their scores stay. `split_climb.py`
has the M-steps.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np

from polyurn.model.mdm import MDM, Parameters
from polyurn.model.splits import Laws, Splits, law_knots
from polyurn.model.trees import MOST_LEARNED, Tree
from polyurn.server.em import Problem
from polyurn.server.fit_results import Candidate, ShapeScore, behind
from polyurn.server.fit_settings import Settings, Shape
from polyurn.server.search import Climber, Race, State
from polyurn.server.split_climb import SplitClimb
from polyurn.wire import Affinity, Batch, Divide, Query, ScoreStatistics

# Puts questions to the fitted clients, and lets the held-out ones score mixtures, in one round.
Ask: TypeAlias = Callable[[Sequence[Query[Any]], Sequence[MDM]], tuple[list[Any], ScoreStatistics]]

# The most rounds with all clients after the choice, of the tree, and of the laws at each λ.
_MOST_JOINED, _MOST_TREE, _MOST_LAWS = 6, 7, 2
_PENALTIES = tuple(4.0 / 8**i for i in range(7))
# Every count up to one of these has a knot of its own, as far as an upload and so many knots allow.
_DENSE, _MOST_KNOTS = (256, 64, 32, 16, 8), 257
# Laws take time in proportion to the square of the largest size.
_LARGEST_BENT = 8_192


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
        k: SplitClimb.of(mdm, Splits.of_alphas(known, mdm.alphas), problem)
        for k, mdm in _starts(base, candidates).items()
    }
    ends, upload = [base], settings.max_upload
    climbs = _affordable(climbs, upload)
    _climb(climbs, _MOST_TREE, settings, ask)
    ends += [Bent("tree", k, c.mdm) for k, c in climbs.items()]
    if shape != "tree":
        ends += _weaken(_with_laws(climbs, upload), settings, ask)
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
        if fewer:
            found[fewer[-1].n_components] = cast(MDM, fewer[-1].mdm)
    return found


def _affordable(climbs: Mapping[int, SplitClimb], upload: int) -> dict[int, SplitClimb]:
    """The climbs, fewest components first, that one upload has room for."""
    kept: dict[int, SplitClimb] = {}
    for k, climb in sorted(climbs.items()):
        upload -= climb.trial_cost
        if upload >= 0:
            kept[k] = climb
    return kept


def _climb(
    climbs: Mapping[int, SplitClimb], most: int, settings: Settings, ask: Ask
) -> list[float]:
    """Climb side by side while there is something to gain; held-out means of where they began."""
    means: list[float] = []
    for i in range(most):
        going = [c for c in climbs.values() if c.goes_on(settings.tol)]
        if not going:
            break
        n_trials = settings.max_upload // sum(c.trial_cost for c in going)
        queries = [Divide(mdm) for c in going for mdm in c.trials]
        answers, scores = ask(queries, [c.mdm for c in going] if i == 0 else ())
        if i == 0:
            means = list(scores.log_likelihoods / scores.n_clients)
        for c in going:
            n = len(c.trials)
            c.learn(answers[:n], n_trials)
            del answers[:n]
    return means


def _with_laws(climbs: Mapping[int, SplitClimb], upload: int) -> dict[int, SplitClimb]:
    """Some of the mixtures with laws that bend nothing yet; two trials of each fit into an upload."""
    for dense in _DENSE:
        bent = {}
        for k, climb in climbs.items():
            splits, most = climb.splits, climb.mdm.max_size
            knots = law_knots(most, dense=dense)
            laws = Laws(knots, np.zeros((*splits.concentrations.shape, len(knots))))
            bent[k] = SplitClimb.of(climb.mdm, replace(splits, laws=laws), climb.problem)
        fitting = _affordable(bent, upload // 2)
        # Knots tell more than components: two numbers of these are enough to choose from.
        if len(knots) <= _MOST_KNOTS and len(fitting) >= min(2, len(bent)):
            break
    return {k: c for k, c in fitting.items() if c.mdm.max_size <= _LARGEST_BENT}


def _weaken(climbs: dict[int, SplitClimb], settings: Settings, ask: Ask) -> list[Bent]:
    """Where the laws end at each penalty; weaker ones only while held-out clients gain."""
    ends: list[Bent] = []
    before: dict[int, float] = {}
    for penalty in _PENALTIES:
        n_trials = settings.max_upload // max(sum(c.trial_cost for c in climbs.values()), 1)
        for climb in climbs.values():
            climb.weaken(penalty, n_trials)
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
        best = max(these, key=means.__getitem__)
        short, errors = behind(scores, best)
        tied = (i for i in these if short[i] <= tie * errors[i])
        found = min(tied, key=lambda i: (ends[i].n_components, short[i]))
        gains, errors = behind(scores, found)
        gain, error = float(gains[kept]), float(errors[kept])
        keep = name == shape or (shape == "auto" and gain > error)
        one = ends[found]
        mean = float(means[found])
        stages.append(ShapeScore(name, one.n_components, mean, gain, error, keep, one.penalty))
        kept = found if keep else kept
    return ends[kept], tuple(stages)


def join_bent(
    end: Bent, problem: Problem, settings: Settings, ask: Callable[[Query[Any]], Any]
) -> Iterator[tuple[SplitClimb, int]]:
    """Climb on from a mixture with splits with all clients: each round's climb and number of numbers."""
    climb = SplitClimb(end.mdm, problem, end.penalty)
    n_trials = max(settings.max_upload // climb.trial_cost, 1)
    for _ in range(_MOST_JOINED):
        batch = Batch(tuple(Divide(mdm) for mdm in climb.trials))
        climb.learn(list(ask(batch).answers), n_trials)
        yield climb, batch.n_numbers
        if not climb.goes_on(settings.tol):
            break


def join(
    mdm: MDM, problem: Problem, settings: Settings, ask: Callable[[Query[Any]], Any], *, number: int,
    rng: np.random.Generator,
) -> Iterator[tuple[State, Query[Any]]]:  # fmt: skip
    """Climb on from a mixture with all clients: each round's state and number of numbers."""
    problem = replace(problem, n_components=mdm.n_components)
    parameters = Parameters(mdm.weights, mdm.alphas, mdm.sizes)
    begin = Climber.begin(parameters, number, settings.policy)
    race = Race(problem, [], replace(settings, patience=0), rng, begin=begin)
    for left in range(_MOST_JOINED, 0, -1):
        batch = Batch(tuple(race.queries()))
        state = race.learn(list(ask(batch).answers))
        ends = state.converged or left == 1
        yield replace(state, converged=ends), batch
        if ends:
            break

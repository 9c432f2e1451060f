"""One start on its way up: where it is, and where it could go next.

A round evaluates many points, so a track asks for its EM step *and* for a handful of bolder ones in the
same round, and takes the best: extrapolations of the EM map (Anderson acceleration) and, when the
clients sent the curvature, Newton steps of several lengths. The aggregated likelihood is the only
judge, so a track never goes down. Nothing here knows how many tracks there are.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from polyurn.model.sizes import Sizes
from polyurn.server.search.parameters import along_cap, from_x, to_x
from polyurn.wire import Parameters

# How many evaluated points an extrapolation looks back on, and how far below the best (in nats per
# client) a point may lie to be worth looking at.
_MEMORY, _WORTH = 12, 0.5
_WINDOWS = (_MEMORY, 6, 3, 2)
_STRETCHES = (1.0, 2.0, 0.5)
_LONG_STEPS = (4.0, 16.0, 64.0)
# The M-step's functions are exact only near where the clients were asked. When a round brought nothing,
# the next one tries this fraction of the EM step, and then the same fraction of that.
_CAUTION = 0.25
# Newton steps from bold to timid: what is added to the curvature's eigenvalues.
_DAMPINGS = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
N_NEWTON, _LEAD = len(_DAMPINGS), 3
# Bold steps that are tried beside Newton steps in all components.
_BOLD_BESIDE_NEWTON = 3
# How far aside a track at a saddle is thought to get in a step.
_ASIDE = 0.5
# No parameter's logarithm moves further than this in a step.
_LONGEST = 3.0


@dataclass(frozen=True)
class Point:
    """A point that clients have judged.

    Attributes
    ----------
    x : float array of shape (n_components * (n_categories + 1),)
        See `coordinates.py`.
    value : float
        Mean log-likelihood per client.
    gradient : float array like x
    sizes : Sizes
    image : float array like x
        Where an EM step leads from here.
    image_masses : float array of shape (n_components, n_size_bins)
        The probabilities of the sizes there.
    """

    x: NDArray[np.float64]
    value: float
    gradient: NDArray[np.float64]
    sizes: Sizes
    image: NDArray[np.float64]
    image_masses: NDArray[np.float64]


@dataclass(frozen=True)
class Bends:
    """The last curvature that the clients sent: its eigenvalues and eigenvectors, and of which x."""

    values: NDArray[np.float64]
    axes: NDArray[np.float64]
    where: NDArray[np.int64]


@dataclass(eq=False)
class Track:
    """The best point so far, what was tried around it, and what to try next.

    `number` tells tracks apart while they change places; `curved` are the components whose curvature
    is asked for next, at the trial `lead`; `n_vain` counts the rounds since one last brought
    anything; `youth` is 0 for a start, and for a child the rounds that it is given to grow up.
    """

    trials: list[NDArray[np.float64]]
    sizes: Sizes
    shape: tuple[int, int]
    number: int = 0
    best: Point | None = None
    gains: list[float] = field(default_factory=list)
    lead: int = 0
    curved: tuple[int, ...] = ()
    n_vain: int = 0
    bends: Bends | None = None
    youth: int = 0
    _seen: list[Point] = field(default_factory=list)

    @classmethod
    def begin(
        cls,
        parameters: Parameters,
        number: int = 0,
        *,
        youth: int = 0,
        curved: tuple[int, ...] = (),
        bends: Bends | None = None,
    ) -> "Track":
        """A track that is about to ask about where it begins.

        Parameters
        ----------
        parameters : Parameters
        number, youth : int
        curved : tuple of int
            The components whose curvature there is asked for.
        bends : Bends, optional
            What is known of the curvature already.
        """
        first, shape = [to_x(parameters)], parameters.alphas.shape
        sizes = parameters.sizes
        return cls(first, sizes, shape, number, youth=youth, curved=curved, bends=bends)

    @property
    def is_child(self) -> bool:
        return self.youth > 0

    @property
    def value(self) -> float:
        return -np.inf if self.best is None else self.best.value

    def learn(self, points: list[Point], hessian: NDArray[np.float64] | None) -> None:
        """Take in what the clients said about the trials."""
        top = max(points, key=lambda p: p.value)
        before = self.value
        self.n_vain += 1
        if top.value > before:
            self.best, self.n_vain = top, 0
        self.gains.append(self.value - before)
        points = sorted(points, key=lambda p: p.value)
        self._seen = [*self._seen, *(p for p in points if p.value > self.value - _WORTH)][-_MEMORY:]
        if len(self.gains) > 1:  # what it knew when it began is good for a round
            self.bends = None
        if hessian is not None:
            numbers = np.arange(len(top.x)).reshape(self.shape[0], -1)
            where = numbers[list(self.curved)].reshape(-1)
            if self.best is not None:
                shape = len(self.curved), self.shape[1]
                hessian = along_cap(hessian, self.best.x[where], self.best.gradient[where], shape)
            self.bends = Bends(*np.linalg.eigh(hessian), where)

    def propose(self, n_trials: int, *, n_curved: int = 0) -> None:
        """Choose what to ask next: the EM step, and bolder ones as far as `n_trials` allows.

        Newton steps come in the components whose curvature is known; that of the `n_curved` with most to
        gain is asked for next.
        """
        assert self.best is not None
        here, step = self.best.x, self.best.image - self.best.x
        if self.bends is not None and len(self.bends.where) == len(here):
            n_trials = min(n_trials, 1 + _BOLD_BESIDE_NEWTON)
        self.trials = [here + _CAUTION**self.n_vain * step]
        bold = chain(self._extrapolations(), (here + _limited(s * step) for s in _LONG_STEPS))
        self.trials += islice(bold, n_trials - 1)
        self.lead = 0
        self.sizes = Sizes.unchecked(self.sizes.bins, self.best.image_masses)
        self.curved = ()
        if n_curved == 0:
            return
        gains = (self.best.gradient * step).reshape(self.shape[0], -1).sum(axis=1)
        self.curved = tuple(sorted(np.argsort(-gains, kind="stable")[:n_curved].tolist()))
        if self.bends is not None:
            self.lead = len(self.trials) + _LEAD
            self.trials += [here + s for s in _newton_steps(self.best.gradient, step, self.bends)]

    def remaining(self) -> float:
        """An estimate of what is still to be gained, in nats per client."""
        if self.best is None or len(self.gains) < 3:
            return np.inf
        last, previous = self.gains[-1], self.gains[-2]
        promised = float(self.best.gradient @ (self.best.image - self.best.x)) / 2
        rate = min(max(last / previous if previous > 0 else 0.0, 0.5), 0.95)
        by_pace = max(last * rate / (1 - rate), previous / 4, promised)
        if self.bends is None:
            return by_pace
        values, axes, where = self.bends.values, self.bends.axes, self.bends.where
        along = axes.T @ self.best.gradient[where]
        quadratic = float((along**2 / (np.abs(values) + _DAMPINGS[2])).sum()) / 2
        # Where the likelihood curves upwards there is more to gain than the slope says: a saddle.
        upwards = _ASIDE**2 / 2 * float(values[values > 0].sum())
        if len(where) < len(self.best.x):
            return max(quadratic + upwards, by_pace)
        return max(quadratic + upwards, last / 4, promised)

    def distance(self, other: "Track") -> float:
        """How far apart the best points are, whatever the order of the components: the largest of the
        distances from a component to the nearest one of the other.
        """
        assert self.best is not None
        assert other.best is not None
        here, there = (p.x.reshape(self.shape[0], 1, -1) for p in (self.best, other.best))
        apart = np.abs(here - there.swapaxes(0, 1)).max(axis=2)
        return float(max(apart.min(axis=0).max(), apart.min(axis=1).max()))

    def best_parameters(self) -> Parameters:
        """The parameters at the best point."""
        assert self.best is not None
        return from_x(self.best.x, self.shape, self.best.sizes)

    def _extrapolations(self) -> Iterator[NDArray[np.float64]]:
        """Anderson's points: where the last EM steps, taken as linear, would come to rest."""
        assert self.best is not None
        residual = self.best.image - self.best.x
        images = np.array([p.image for p in self._seen])
        changes = images - np.array([p.x for p in self._seen]) - residual
        other = np.abs(changes).max(axis=1) > 1e-14
        if not other.any():
            return
        changes, images = changes[other], images[other] - self.best.image
        products, aims = changes @ changes.T, -changes @ residual
        for window in _WINDOWS:
            if window != _MEMORY and len(changes) < window:
                continue
            gram = products[-window:, -window:]
            gram = gram + 1e-10 * np.trace(gram) * np.eye(len(gram))
            step = _limited(np.linalg.solve(gram, aims[-window:]) @ images[-window:])
            yield from (self.best.image + s * step for s in _STRETCHES)


def _newton_steps(
    slope: NDArray[np.float64], em_step: NDArray[np.float64], bends: Bends
) -> list[NDArray[np.float64]]:
    """Steps uphill by the size of the curvature's eigenvalues, whatever their sign: saddles repel.

    Components whose curvature is not known take their EM step.
    """
    along = bends.axes.T @ slope[bends.where]
    steps = np.tile(em_step, (N_NEWTON, 1))
    for step, damping in zip(steps, _DAMPINGS, strict=True):
        step[bends.where] = bends.axes @ (along / (np.abs(bends.values) + damping + 1e-9))
    return [_limited(step) for step in steps]


def _limited(step: NDArray[np.float64]) -> NDArray[np.float64]:
    return step * min(1.0, _LONGEST / max(float(np.abs(step).max()), 1e-300))

"""One start, or a child of two, on its way up: its best point, and what it tries next.

A climber asks for its EM step and, when clients have sent the Hessian, for Newton steps of three
dampings in the same round, and takes the best. The aggregated likelihood is the only judge, so it never
goes down while the clients are the same. Nothing here knows how many climbers there are.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from polyurn.model.sizes import Sizes
from polyurn.server.em.evaluation import Point
from polyurn.server.em.parameters import along_cap, from_x, to_x
from polyurn.server.search.policy import Policy
from polyurn.wire import Expect, Parameters

# The Hessian's eigenvalues and eigenvectors, and the entries of x that it is about.
Curvature = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]


@dataclass(eq=False)
class Climber:
    """Where a climber is, what it knows, and its next trials.

    `curved` are the components whose Hessian is asked for, at the trial `asks`; `n_vain` counts the
    rounds since one brought a gain; `n_met` the starts that came to the same place, itself included.
    """

    number: int
    sizes: Sizes
    trials: list[NDArray[np.float64]]
    damping: float
    is_child: bool = False
    curvature: Curvature | None = None
    curved: tuple[int, ...] = ()
    asks: int = 0
    best: Point | None = None
    gains: list[float] = field(default_factory=list)
    tried: list[float] = field(default_factory=list)  # the dampings of the last trials
    n_vain: int = 0
    n_met: int = 1

    @classmethod
    def begin(
        cls, at: Parameters, number: int, policy: Policy, *, is_child: bool = False,
        curvature: Curvature | None = None,
    ) -> "Climber":  # fmt: skip
        """A climber that is about to ask about where it begins."""
        return cls(
            number, at.sizes, [to_x(at)], policy.damping, is_child, curvature,
            n_met=0 if is_child else 1,
        )  # fmt: skip

    @property
    def value(self) -> float:
        return -np.inf if self.best is None else self.best.value

    @property
    def point(self) -> Point:
        """The best point; there is one as soon as clients have judged a trial."""
        assert self.best is not None
        return self.best

    def queries(self, shape: tuple[int, int]) -> list[Expect]:
        """One query for each trial; the Hessian is asked for at one of them."""
        return [
            Expect(from_x(x, shape, self.sizes), self.curved if i == self.asks else ())
            for i, x in enumerate(self.trials)
        ]

    def learn(
        self, points: list[Point], hessian: NDArray[np.float64] | None, policy: Policy
    ) -> None:
        """Move to the best trial if it is better, and remember which damping was."""
        before, first = self.value, self.best is None
        found = max(points, key=lambda p: p.value)
        self.n_vain += 1
        if found.value > before:
            self.best, self.n_vain = found, 0
        self.gains.append(self.value - before)
        if self.tried:
            values = [p.value for p in points[-len(self.tried) :]]
            i = int(np.argmax(values))
            vain = not values[i] > before
            self.damping = self.tried[-1] * max(policy.dampings) if vain else self.tried[i]
            self.damping = float(np.clip(self.damping, 1e-9, 1e2))
        if not first:  # what it knew when it began serves its first steps
            self.curvature = None
        if hessian is not None and self.best is not None:
            where = self._entries(self.curved)
            shape = len(self.curved), len(where) // len(self.curved) - 1
            x, gradient = self.best.x[where], self.best.gradient[where]
            self.curvature = *np.linalg.eigh(along_cap(hessian, x, gradient, shape)), where

    def forget(self) -> None:
        """Let go of what other clients said: it moves to its best trial, at least by an EM step."""
        self.best, self.curvature = None, None

    def propose(self, policy: Policy, *, n_curved: int) -> None:
        """Try the EM step, and Newton steps; ask for the Hessian of the components with most to gain."""
        best = self.point
        self.trials = [best.x + policy.caution**self.n_vain * best.step]
        self.sizes = Sizes.unchecked(best.sizes.bins, best.masses)
        self.tried, self.asks = [], 0
        order = np.argsort(-best.promise, kind="stable")
        self.curved = tuple(sorted(order[:n_curved].tolist()))
        if n_curved and self.curvature is not None:
            values, axes, where = self.curvature
            along = axes.T @ best.gradient[where]
            self.tried = [factor * self.damping for factor in policy.dampings]
            self.asks = 1 + len(self.tried) // 2
            for damping in self.tried:
                step = best.step  # of components whose Hessian is not known
                # Divided by the size of the eigenvalues: saddles repel (Dauphin et al., 2014).
                step[where] = axes @ (along / (np.abs(values) + damping))
                step *= min(1.0, policy.longest / max(float(np.abs(step).max()), 1e-300))
                self.trials.append(best.x + step)

    def remaining(self) -> float:
        """Nats per client that may be left to gain: by the quadratic model, else by the pace."""
        if self.best is None:
            return np.inf
        promised = float(self.best.promise.sum()) / 2
        pace = max(promised, *(3 * gain for gain in self.gains[-2:]))
        if self.curvature is None:
            return pace
        values, axes, where = self.curvature
        along = axes.T @ self.best.gradient[where]
        saddle = float(values[values > 0].sum()) / 8  # half a logarithm to the side
        quadratic = float((along**2 / (np.abs(values) + 1e-5)).sum()) / 2 + saddle
        return max(quadratic, promised if len(where) == len(self.best.x) else pace)

    def is_near(self, other: "Climber", policy: Policy, tol: float) -> bool:
        """Whether both are at the same place, whatever the order of the components."""
        if abs(self.value - other.value) >= tol:
            return False
        here, there = (c.point.x.reshape(len(c.point.masses), -1) for c in (self, other))
        apart = np.abs(here[:, None] - there[None]).max(axis=2)
        return bool(max(apart.min(axis=0).max(), apart.min(axis=1).max()) < policy.met)

    def _entries(self, components: tuple[int, ...]) -> NDArray[np.int64]:
        """The entries of x of some components."""
        entries = np.arange(len(self.point.x)).reshape(len(self.point.masses), -1)
        return np.asarray(entries[list(components)].ravel())

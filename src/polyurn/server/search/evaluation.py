"""The trials of many tracks in one round, worked out together: what is asked, and what it comes to."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from polyurn.server.search.climber import Point, Track
from polyurn.server.search.parameters import (
    gradients,
    stacked_sums,
    stacked_x,
    unstacked,
    within_cap,
)
from polyurn.server.search.problem import Problem
from polyurn.wire import Expect, ExpectStatistics, Parameters


def expects(tracks: Sequence[Track]) -> list[Expect]:
    """One query for each trial, of one track after the other; the curvature is asked for at its lead."""
    models = iter(zip(*_models(tracks), strict=True))
    return [
        Expect(Parameters(*next(models), t.sizes), t.curved if i == t.lead else ())
        for t in tracks
        for i in range(len(t.trials))
    ]


def points(
    problem: Problem, tracks: Sequence[Track], sums: Sequence[ExpectStatistics]
) -> list[Point]:
    """Every trial with its value, slope and EM image; all M-steps are solved at once."""
    trials = [(x, t.sizes) for t in tracks for x in t.trials]
    together = stacked_sums(sums)
    weights, alphas = _models(tracks)
    values = np.asarray(together.log_likelihood) / together.n_clients
    slopes = within_cap(gradients(weights, alphas, together), alphas)
    *images, masses = problem.images(alphas, together)
    return [
        Point(x, float(value), slope, sizes, image, mass)
        for (x, sizes), value, slope, image, mass in zip(
            trials, values, slopes, stacked_x(*images), masses, strict=True
        )
    ]


def _models(tracks: Sequence[Track]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The weights and alphas of every trial."""
    return unstacked(np.array([x for track in tracks for x in track.trials]), tracks[0].shape)

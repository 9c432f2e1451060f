"""What follows the choice among fitted mixtures: the chosen one goes on with every client.

The held-out clients have chosen, and their score stands; the mixture then climbs on from where it is,
and they are fitted as well. A fifth of the clients is much where there are few.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from polyurn.model.mdm import MDM, Parameters
from polyurn.server.em import Problem
from polyurn.server.fit_settings import Settings
from polyurn.server.search import Climber, Race, State
from polyurn.wire import Batch, Query

# The most rounds with all clients after the choice.
_MOST_JOINED = 6


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

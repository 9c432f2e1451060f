"""Functions that take turns, what they took, and how fast the machine is.

Other work on a machine slows down all who take turns. What they do is not known here.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import torch

from peers.clock import now


@dataclass(frozen=True)
class Peak:
    """GFLOP/s of the best of a few square products: on one core, and on all that are used."""

    one: float
    all: float

    @classmethod
    def measured(cls, n_threads: int) -> "Peak":
        a, found = torch.randn(1536, 1536), {}
        # Several threads wait for each other, so that their processor time says little.
        for n, clock in ((n_threads, time.perf_counter), (1, time.process_time)):
            torch.set_num_threads(n)
            took = alternated(20, {"": lambda: a @ a}, clock=clock)[""]
            found[clock] = 2 * 1536**3 / min(took) / 1e9
        return cls(one=found[time.process_time], all=found[time.perf_counter])


def alternated(
    repeats: int,
    functions: Mapping[str, Callable[[], object]],
    clock: Callable[[], Any] = time.perf_counter,
) -> dict[str, list[Any]]:
    """What each function took; they take turns, and the first turn does not count."""
    took: dict[str, list[Any]] = {name: [] for name in functions}
    for _ in range(repeats + 1):
        for name, function in functions.items():
            started = clock()
            function()
            took[name].append(clock() - started)
    return {name: seconds[1:] for name, seconds in took.items()}


def clocked(repeats: int, functions: Mapping[str, Callable[[], object]]) -> dict[str, "Turn"]:
    """`alternated`, with the processor time of all processes."""
    took = alternated(repeats, functions, clock=lambda: np.array(now(os.getpid())))
    return {name: Turn(*np.transpose(some).tolist()) for name, some in took.items()}


@dataclass(frozen=True)
class Turn:
    """What one of several took in each turn."""

    seconds: list[float]
    processor_seconds: list[float]


def ratio_of(one: Sequence[float], other: Sequence[float]) -> float:
    """Median of the ratios within a turn."""
    return median(a / b for a, b in zip(one, other, strict=True))


def load() -> str:
    """The system's load over one, five and fifteen minutes."""
    return ", ".join(f"{value:.1f}" for value in os.getloadavg())

"""The clock that ours and the peers are read by: wall time and processor time of each round.

Needs the standard library only, since every peer runs in an environment of its own. Nothing is trained
here.
"""

import os
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

PROC = Path("/proc")


class Clock:
    """Seconds and processor seconds between marks, for a process and all that it started.

    Reading the processor time takes milliseconds, as long as a small round, and does not count.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._marks: list[tuple[float, float]] = []
        self._left: list[float] = []  # when each mark had been made
        self.mark()

    def mark(self) -> None:
        self._marks.append(now(self._root))
        self._left.append(time.perf_counter())

    @property
    def seconds(self) -> list[float]:
        return [mark[0] - left for left, mark in zip(self._left, self._marks[1:], strict=False)]

    @property
    def processor_seconds(self) -> list[float]:
        """Zeros where the system has no /proc."""
        return [later[1] - sooner[1] for sooner, later in pairwise(self._marks)]


def now(root: int) -> tuple[float, float]:
    """Wall time, and processor time of a process and all that it started."""
    return time.perf_counter(), _tree_seconds(root)


def _tree_seconds(root: int) -> float:
    """Processor time of a process, its living descendants, and those that they have waited for."""
    if not PROC.is_dir():
        return 0.0
    seconds, children = {}, defaultdict(list)
    for folder in PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it ended while we were looking
            continue
        pid = int(folder.name)
        children[int(fields[1])].append(pid)
        seconds[pid] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    total, left = 0.0, [root]
    while left:
        pid = left.pop()
        total += seconds.get(pid, 0.0)
        left += children[pid]
    return total

"""A worker process: reads tasks from its standard input, answers on its standard output.

It is started by `worker_pool.py` and ends when its input does, so it never outlives who started it.
"""

import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from polyurn.errors import TrainingError
from polyurn.partitioning.result import Partition
from polyurn.training.engines.worker import TensorPoints, Work, Worker


def serve() -> None:
    """Answer tasks until there are no more."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a model prints must not be taken for an answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started this
    torch.set_num_threads(1)
    answer: Callable[[Any], Any] = _Tasks
    while True:
        try:
            task = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            reply = answer(task)
            if isinstance(reply, _Tasks):
                answer, reply = reply.answer, None
            message: tuple[Any, Exception | None, str | None] = (reply, None, None)
        except Exception as error:  # whatever it is, the other side has to hear of it
            message = (None, _portable(error), traceback.format_exc())
        pickle.dump(message, answers)
        answers.flush()


class _Tasks:
    """The first message opens the arrays; each later one is a task."""

    def __init__(self, described: dict[str, Any]) -> None:
        def array(name: str) -> Tensor:
            return torch.from_numpy(np.load(folder / f"{name}.npy", mmap_mode="r+"))

        folder = Path(described.pop("folder"))
        self._weights, self._mean, self._rows = array("weights"), array("mean"), array("rows")
        points = TensorPoints(*map(array, ("features", "labels", "test_features", "test_labels")))
        clients = Partition(array("offsets").numpy(), array("indices").numpy())
        self._worker = Worker(Work(points=points, clients=clients, **described))

    def answer(self, task: tuple[Any, ...]) -> Any:
        match task:
            case ("train", settings, round_, row, members):
                self._worker.block_sum(
                    settings, self._weights, members, round_=round_, out=self._rows[row]
                )
            case ("add", n_rows, starts, length):
                for start in starts:
                    self._add_rows(n_rows, slice(start, start + length))
            case ("test", chunk):
                return self._worker.test_sums(self._weights, chunk)
        return None

    def _add_rows(self, n_rows: int, part: slice) -> None:
        total = self._mean[part].zero_()
        for row in self._rows[:n_rows, part]:
            total.add_(row)


def _portable(error: Exception) -> Exception:
    """The error itself if it can travel, else one that says the same."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return TrainingError(f"a worker failed: {type(error).__name__}: {error}")
    return error

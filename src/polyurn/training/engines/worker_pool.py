"""The engine of several workers: one single-threaded process per core, around shared arrays.

Data, weights and sums lie in files that are mapped into memory and removed as soon as every worker
has opened them, so that nothing is left behind whatever ends the run. Tasks and answers go through
pipes; a worker whose pipe closes goes away. What a worker does with a task is `worker_process.py`.
"""

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Self

import joblib
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyurn.errors import FileError, TrainingError
from polyurn.training.engines.worker import TEST_CHUNK, Work, blocks, ordered_sum, shares
from polyurn.training.fedavg import FedAvg
from polyurn.typed.declared import Floats, Ints

_MEMORY = Path("/dev/shm")  # files here are memory, where the system has it
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # Without these, glibc may hand a large gradient's memory back to the system after every step
    # and fetch it again: 5,700 page faults per client of the paper's network instead of 600, and
    # 7 % of the time.
    "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
    "MALLOC_TRIM_THRESHOLD_": str(2**30),
}
_TILE = 65_536  # numbers of a sum that are added up together: they stay in the cache


class ProcessEngine:
    """Workers in processes of their own, for cohorts of at most `cohort_size` clients."""

    name = "workers"

    def __init__(self, work: Work, *, n_workers: int, cohort_size: int) -> None:
        self._work, self._n_workers = work, n_workers
        size, dtype = work.layout.size, work.layout.dtype
        vector = torch.empty(0, dtype=dtype).numpy().dtype
        n_rows = len(blocks(cohort_size, size * vector.itemsize))
        points = {name: array.numpy() for name, array in vars(work.points).items()}
        held = {"indices": work.clients.indices, "offsets": work.clients.offsets}
        with _SharedFolder(
            sum(a.nbytes for a in points.values()) + (n_rows + 2) * size * 8
        ) as shared:
            for name, array in (points | held).items():
                shared.array(name, array.dtype, array.shape)[...] = array
            self._weights = torch.from_numpy(shared.array("weights", vector, (size,)))
            self._mean = torch.from_numpy(shared.array("mean", vector, (size,)))
            shared.array("rows", vector, (n_rows, size))
            self._workers = [_Process() for _ in range(n_workers)]
            self._threads = ThreadPoolExecutor(n_workers)
            try:
                sent = {n: v for n, v in vars(work).items() if n not in ("points", "clients")}
                # Packed so that functions of any kind arrive.
                hello = joblib.wrap_non_picklable_objects(
                    {"folder": str(shared.folder), **sent}, keep_wrapper=False
                )
                list(self._threads.map(lambda worker: worker.ask(hello), self._workers))
            except BaseException:
                self.close()
                raise

    def mean_updates(
        self, columns: Sequence[FedAvg], weights: Tensor, cohort: Ints, round_: int
    ) -> Tensor:
        """See `Engine`; summed in the cohort's order."""
        sizes = self._work.clients.sizes[cohort]
        totals = torch.empty_like(weights)
        for settings, row, total in zip(columns, weights, totals, strict=True):
            self._weights.copy_(row)
            members = list(zip(cohort.tolist(), shares(settings, sizes.tolist()), strict=True))
            cut = blocks(len(members), row.nbytes)
            # The largest first, so that no worker begins a large block when the others are done.
            first = sorted(range(len(cut)), key=lambda i: -int(sizes[cut[i]].sum()))
            self._run([("train", settings, round_, i, members[cut[i]]) for i in first])
            tiles = range(0, self._work.layout.size, _TILE)
            per_worker = np.array_split(np.asarray(tiles), self._n_workers)
            self._run([("add", len(cut), part.tolist(), _TILE) for part in per_worker])
            total.copy_(self._mean)
        return totals

    def test_means(self, weights: Tensor) -> Floats:
        """See `Engine`."""
        n_test = len(self._work.points.test_labels)
        sums = []
        for row in weights:
            self._weights.copy_(row)
            sums.append(self._run([("test", i) for i in range(-(-n_test // TEST_CHUNK))]))
        return ordered_sum(sums) / n_test

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.stop()
        self._threads.shutdown()

    def _run(self, tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The answers to tasks, which the workers take in turn."""
        answers: list[Any] = [None] * len(tasks)
        left, lock = iter(enumerate(tasks)), Lock()

        def next_task() -> tuple[int, tuple[Any, ...]] | None:
            with lock:
                return next(left, None)

        def drive(worker: _Process) -> None:
            while (taken := next_task()) is not None:
                answers[taken[0]] = worker.ask(taken[1])

        list(self._threads.map(drive, self._workers))
        return answers


class _Process:
    """One worker process and its two pipes."""

    def __init__(self) -> None:
        code = "from polyurn.training.engines.worker_process import serve; serve()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ
            | _ENVIRONMENT
            | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )

    def ask(self, task: object) -> Any:
        """The answer to a task; a `TrainingError` if there is none."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            pickle.dump(task, self._process.stdin)
            self._process.stdin.flush()
            answer, error, traceback = pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError) as gone:
            code = self._process.wait()
            cause = f"signal {-code}" if code < 0 else f"exit code {code}"
            if code == -9:
                cause = "killed, most likely because memory ran out"
            raise TrainingError(
                f"a worker process died ({cause}); with fewer workers or a smaller batch less memory "
                "is needed"
            ) from gone
        if error is not None:
            error.add_note(f"in a worker process:\n{traceback}")
            raise error
        return answer

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # what was not sent is not wanted any more
                    pipe.close()


class _SharedFolder:
    """A folder of arrays, in memory where the system has a folder for that and it is large enough."""

    def __init__(self, n_bytes: int) -> None:
        roomy = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > 1.1 * n_bytes + 2**20
        self.folder = Path(tempfile.mkdtemp(prefix="polyurn-", dir=_MEMORY if roomy else None))

    def array(self, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        path = self.folder / f"{name}.npy"
        try:
            array = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
            if hasattr(os, "posix_fallocate"):  # else a full disk is found out by a crash
                with open(path, "r+b") as file:
                    os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        except OSError as error:
            raise FileError(
                f"no space for the workers' data in {self.folder.parent}: {error.strerror}; "
                "make space, set TMPDIR, or take n_workers=1"
            ) from error
        return array

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self.folder)  # what is mapped stays until the last process lets go of it

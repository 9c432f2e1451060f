"""Runs many cases in processes of their own, which are started again when they die.

A process that ends in the middle of a case, or does not come back from it, is a defect of that case.
What a case is and how it is judged is not known here.
"""

import contextlib
import multiprocessing
import os
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from fuzz.harness import LARGEST_BYTES, LONGEST_SECONDS, Defect, Outcome

# A worker that is silent for so long hangs: processor time is less than that of the clock.
_PATIENCE = 5 * LONGEST_SECONDS

Judge = Callable[[str], Outcome]


@dataclass
class _Worker:
    """A process, the pipe to it, and what it is busy with."""

    process: BaseProcess
    pipe: Connection
    name: str = ""
    since: float = 0.0
    ready: bool = False


def run_all(
    names: Iterable[str],
    judge: Judge,
    *,
    n_workers: int,
    prepare: Callable[[], None] | None = None,
    patience: float = _PATIENCE,
) -> Iterator[tuple[str, Outcome]]:
    """The outcome of every case, in the order in which they end.

    Parameters
    ----------
    names : iterable of str
    judge : function of a module
        Called with a name in another process.
    n_workers : int
    prepare : function of a module, optional
        Called in each worker before its memory is limited.
    patience : float
        Seconds after which a worker that is still busy with one case is ended.
    """
    waiting = iter(names)
    workers: list[_Worker] = []
    try:
        for name in waiting:
            workers.append(_started(judge, prepare))
            _hand_over(workers[-1], name)
            if len(workers) == n_workers:
                break
        while workers:
            wait([worker.pipe for worker in workers], timeout=1.0)
            for worker in list(workers):
                outcome = _outcome(worker, patience)
                if outcome is None:
                    continue
                yield worker.name, outcome
                name = next(waiting, "")
                if name and worker.process.is_alive():
                    _hand_over(worker, name)
                    continue
                workers.remove(worker)
                _end(worker)
                if name:
                    workers.append(_started(judge, prepare))
                    _hand_over(workers[-1], name)
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.join()


def _started(judge: Judge, prepare: Callable[[], None] | None) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, judge, prepare))
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _hand_over(worker: _Worker, name: str) -> None:
    worker.name, worker.since = name, time.monotonic()
    with contextlib.suppress(BrokenPipeError):  # it is dead, and will be found so
        worker.pipe.send(name)


def _outcome(worker: _Worker, patience: float) -> Outcome | None:
    """What a worker has to say; None while it is busy."""
    if worker.pipe.poll():
        try:
            said: Outcome | None = worker.pipe.recv()
        except EOFError:
            worker.process.join()
            died = Defect("death", f"the process ended with {worker.process.exitcode}")
            return Outcome(False, (died,))
        worker.ready = True
        worker.since = time.monotonic()
        return said
    if worker.ready and time.monotonic() - worker.since > patience:
        worker.process.kill()
        worker.process.join()
        return Outcome(False, (Defect("slow", f"ended after {patience:.0f} s"),))
    return None


def _end(worker: _Worker) -> None:
    worker.pipe.close()  # which a worker takes as the end
    worker.process.join()


def _work(pipe: Connection, judge: Judge, prepare: Callable[[], None] | None) -> None:
    """The life of a worker: nothing typed, nothing shown, and no more memory than it may have."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, who ends its workers
    with open(os.devnull, "r+b") as nothing:
        for standard in range(3):
            os.dup2(nothing.fileno(), standard)
    with contextlib.suppress(EOFError, BrokenPipeError):
        if prepare is not None:
            prepare()
        _limit_memory()
        pipe.send(None)  # ready: from here on it is a case that takes time
        while True:
            pipe.send(_judged(judge, pipe.recv()))


def _judged(judge: Judge, name: str) -> Outcome:
    """The outcome of a case; what is wrong with the case itself is shown like any other defect."""
    try:
        return judge(name)
    except Exception:  # a mistake in a generator or an oracle must not look like a dead process
        return Outcome(False, (Defect("harness", traceback.format_exc()[-600:]),))


def _limit_memory() -> None:
    """Leave this process so much more than it has already been promised, where that is known."""
    if not os.path.exists("/proc/self/statm"):
        return
    with open("/proc/self/statm") as file:
        promised = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (promised + LARGEST_BYTES, hard))

"""Processes that outlive the command that started them: found by a file, ended by their own pid.

A file has the pid and the time when the process began: a later process with the same pid is left alone.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from polyurn.errors import MissingDependencyError
from polyurn.storage.files import write_whole

try:
    import psutil
except ImportError as error:
    raise MissingDependencyError("psutil", "federation", "a federation") from error


def keep_pid(path: Path, pid: int) -> None:
    """Write a process's pid and start time into a file."""
    text = f"{pid} {psutil.Process(pid).create_time()!r}\n"
    write_whole(path, lambda file: file.write(text.encode()))


def alive(path: Path) -> int | None:
    """The pid of the process that a file names; None if it has ended, or there is no file."""
    process = _process(path)
    return None if process is None else process.pid


@contextlib.contextmanager
def ended_like_ctrl_c() -> Iterator[None]:
    """In this context SIGTERM interrupts the process as Ctrl-C does, so that its children are ended."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def end_processes(paths: Sequence[Path], *, within: float = 10.0) -> int:
    """End the processes that files name, and their children; return how many were running.

    The files are removed. Processes that still run after `within` seconds are killed.
    """
    named = [process for path in paths if (process := _process(path)) is not None]
    family = list(named)
    for one in named:
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended meanwhile
            family += one.children(recursive=True)
    for one in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.terminate()
    _, left = psutil.wait_procs(family, timeout=within)
    for one in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(left, timeout=within)
    for path in paths:
        path.unlink(missing_ok=True)
    return len(named)


def _process(path: Path) -> psutil.Process | None:
    try:
        pid, began = path.read_text().split()
        process = psutil.Process(int(pid))
        is_it = process.create_time() == float(began)
        return process if is_it and process.status() != psutil.STATUS_ZOMBIE else None
    except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
        return None

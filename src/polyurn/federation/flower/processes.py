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
    raise MissingDependencyError("psutil", "flower", "a federation") from error


def keep_pid(path: Path, pid: int) -> None:
    """Write a process's pid and start time into a file."""
    text = f"{pid} {psutil.Process(pid).create_time()!r}\n"
    write_whole(path, lambda file: file.write(text.encode()))


def alive(path: Path) -> int | None:
    """The pid of the process that a file names; None if it has ended, or there is no file."""
    process = _process(path)
    return None if process is None else process.pid


def is_running(path: Path) -> bool:
    """Whether the process that wrote its own pid into a file is running."""
    text = path.read_text().strip()
    try:
        return not text or psutil.Process(int(text)).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


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


def end_processes(paths: Sequence[Path], *, within: float) -> int:
    """End the processes that files name, and their children; return how many were running.

    The files are removed. Processes that still run after `within` seconds are killed.
    """
    named = [process for path in paths if (process := _process(path)) is not None]
    _end(named + [child for one in named for child in _children(one)], within)
    for path in paths:
        path.unlink(missing_ok=True)
    return len(named)


def end_orphans(programs: Sequence[str], *, variable: str, value: str, within: float) -> int:
    """End programs of these names, with this value in their environment, that a killed parent left."""
    orphans = [one for one in psutil.process_iter() if _is(one, programs, variable, value)]
    _end(orphans, within)
    return len(orphans)


def _is(process: psutil.Process, programs: Sequence[str], variable: str, value: str) -> bool:
    try:
        names = {Path(word).name for word in process.cmdline()[:2]}
        return not names.isdisjoint(programs) and process.environ().get(variable) == value
    except (psutil.Error, OSError):  # it has ended, or is another user's
        return False


def _end(family: Sequence[psutil.Process], within: float) -> None:
    for one in family:
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended meanwhile
            one.terminate()
    _, left = psutil.wait_procs(family, timeout=within)
    for one in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(left, timeout=within)


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _process(path: Path) -> psutil.Process | None:
    try:
        pid, began = path.read_text().split()
        process = psutil.Process(int(pid))
        is_it = process.create_time() == float(began)
        return process if is_it and process.status() != psutil.STATUS_ZOMBIE else None
    except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
        return None

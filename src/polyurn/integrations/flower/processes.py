"""Processes that outlive the command that started them: known by a file, ended by their own pid.

A file has the pid and when the process began, so that another process which got the same pid later is
left alone.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from polyurn.errors import MissingDependencyError

try:
    import psutil
except ImportError as error:
    raise MissingDependencyError("psutil", "flower", "a federation") from error


def keep_pid(place: Path, pid: int) -> None:
    """Write down which process it is."""
    place.write_text(f"{pid} {psutil.Process(pid).create_time()!r}\n")


def alive(place: Path) -> int | None:
    """The pid of the process that a file names; None if it has ended, or there is no file."""
    process = _process(place)
    return None if process is None else process.pid


def is_running(place: Path) -> bool:
    """Whether the process whose pid stands in a file, which it wrote itself, is there."""
    text = place.read_text().strip()
    try:
        return not text or psutil.Process(int(text)).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextlib.contextmanager
def ended_like_ctrl_c() -> Iterator[None]:
    """While it lasts, SIGTERM ends this process as Ctrl-C does: what it started is ended, and said."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread hears signals
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def end_processes(places: Sequence[Path], *, within: float) -> int:
    """End the processes that files name, and all that they started; how many were running.

    Parameters
    ----------
    places : sequence of Path
        The files; they are removed.
    within : float
        Seconds after which those that are left are killed.
    """
    named = [process for place in places if (process := _process(place)) is not None]
    family = named + [child for one in named for child in _children(one)]
    for one in family:
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended meanwhile
            one.terminate()
    _, left = psutil.wait_procs(family, timeout=within)
    for one in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(left, timeout=within)
    for place in places:
        place.unlink(missing_ok=True)
    return len(named)


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _process(place: Path) -> psutil.Process | None:
    try:
        pid, began = place.read_text().split()
        process = psutil.Process(int(pid))
        is_it = process.create_time() == float(began)
        return process if is_it and process.status() != psutil.STATUS_ZOMBIE else None
    except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
        return None

"""Whether a table fits into the memory that is left, asked before it is allocated.

Systems that overcommit memory kill a process when it uses what was allocated. So the size of a table is
compared with what the machine, the container and the process's own limit leave, where that can be read.
Nothing is allocated here. The cores that a process may use are counted in the same way.
"""

import os
from pathlib import Path

from polyurn.errors import MemoryLimitError

# Smaller tables are not checked.
_SMALL = 2**26

_MEMINFO = Path("/proc/meminfo")
_STATM = Path("/proc/self/statm")
# Limit, use and statistics of a container (cgroups), version 2 and version 1.
_CONTAINERS = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat",
     "total_inactive_file"),
)  # fmt: skip
_CONTAINER_ROOT = Path("/sys/fs/cgroup")


def check_memory(n_bytes: int, what: str, advice: str) -> None:
    """Raise a `MemoryLimitError` if `what` needs more bytes than there are; `advice` ends its text."""
    if n_bytes < _SMALL:
        return
    available = available_memory()
    if available is not None and n_bytes > available:
        raise MemoryLimitError(
            f"{what} need {n_bytes / 2**30:.3g} GiB and do not fit into memory, of which "
            f"{available / 2**30:.3g} GiB are available; {advice}"
        )


def available_memory() -> int | None:
    """Bytes that can be allocated without swapping; None if the system does not say."""
    limits = (_machine(), _container(), _process())
    return min((n for n in limits if n is not None), default=None)


def _machine() -> int | None:
    """What Linux estimates to be available; elsewhere all of the machine's memory."""
    for line in _text(_MEMINFO).splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on this system
        return None


def _container() -> int | None:
    """What the container's limit leaves; its file cache counts as free."""
    for limit, use, accounts, idle in _CONTAINERS:
        bound, used = (_text(_CONTAINER_ROOT / name).strip() for name in (limit, use))
        if bound.isdecimal() and used.isdecimal():
            rows = (line.split() for line in _text(_CONTAINER_ROOT / accounts).splitlines())
            kept = sum(int(row[1]) for row in rows if row[0] == idle)
            return max(int(bound) - int(used) + kept, 0)
    return None


def _process() -> int | None:
    """What the limit of this process's addresses (`ulimit -v`) leaves."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = _text(_STATM).split()
    if limit == resource.RLIM_INFINITY or not pages:
        return None
    return max(int(limit) - int(pages[0]) * os.sysconf("SC_PAGE_SIZE"), 0)


def _text(path: Path) -> str:
    """The text of a system file; empty where there is none."""
    try:
        return path.read_text()
    except OSError:
        return ""


def n_cores() -> int:
    """How many cores this process may use."""
    here = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if here else os.cpu_count() or 1

"""How many cores there are to share work between: that of clients' labels, or that of clients.

What is done on them is said where it is done.
"""

import os


def n_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

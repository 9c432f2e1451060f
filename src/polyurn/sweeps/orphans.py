"""Worker processes end with the sweep that started them, also when it is killed.

joblib's workers on this machine (loky) would finish their task first, which may take hours, and wait
five minutes for another; nobody is left to take in what they find. What a task does is `task.py`.
"""

import os
import threading
import time
from functools import cache
from multiprocessing import current_process

_EVERY = 1.0  # seconds


@cache
def end_with(parent: int) -> None:
    """End this process soon after `parent` does, if it is a worker that joblib started for it.

    A task that runs in the sweep's own process, or on another machine, is left alone.
    """
    if current_process().name.startswith("LokyProcess"):
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:  # that of an orphan is another
        time.sleep(_EVERY)
    os._exit(1)

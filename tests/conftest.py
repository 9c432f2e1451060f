"""Settings and fixtures that tests share."""

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Before NumPy and torch are loaded, here and in the workers of xdist: two workers whose matrix products
# have two threads each wait for one another, and private fits take four times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The first call of a kernel compiles it; machines are noisy: no test is timed. Derandomised, so that
# a run on one machine says what it says on another.
settings.register_profile("polyurn", deadline=None, derandomize=True)
settings.load_profile("polyurn")

WARMING = []  # processes that compile kernels


def pytest_sessionstart(session):
    """In a fresh clone, compile the long kernels once, while the workers of xdist collect.

    Otherwise each worker compiles all of them, and so does each process that a test starts.
    """
    if getattr(session.config.option, "tx", None) and not hasattr(session.config, "workerinput"):
        script = Path(__file__).with_name("warm_kernels.py")
        for kind in ("fits", "styles"):
            WARMING.append(subprocess.Popen([sys.executable, str(script), kind]))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What collecting makes lives to the end; looking through it for garbage takes half the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_sessionfinish():
    for process in WARMING:  # they have ended long ago, but after a short run
        process.kill()
        process.wait()


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """A function that runs the command in an empty folder, where clients.csv lies."""
    from cli_walk import CLIENTS, Ran
    from polyurn.cli import main

    (tmp_path / "clients.csv").write_text(CLIENTS)
    monkeypatch.chdir(tmp_path)

    def in_process(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        return Ran(stopped.value.code or 0, *capsys.readouterr())

    return in_process


@pytest.fixture
def ctrl_c():
    """Python's own handler of SIGINT, which a process that was started in the background ignores.

    Needed by tests that send SIGINT to this process, or to a child: one that ignores it passes that on.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)

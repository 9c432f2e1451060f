"""Workers of a sweep that is killed."""

import os
import subprocess
import sys

import pytest

KILLED = """
import os
from polyurn.training.losses import cross_entropy
from polyurn.training.fedavg import FedAvg
from sweep_cases import small_sweep

begun = []

def loss(outputs, labels):
    if not begun:
        begun.append(os.write(1, b"begun\\n"))
    return cross_entropy(outputs, labels)

def at_the_end(outputs, labels):
    os.write(1, b"finished\\n")
    return cross_entropy(outputs, labels)

small_sweep(
    settings=FedAvg(n_rounds=20_000, cohort_size=4, evaluate_every=20_000), engine="workers",
    n_jobs=2, loss=loss, metrics={"accuracy": at_the_end},
)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes have no parent to ask for")
def test_loky_workers_do_not_outlive_their_parent():
    code = [sys.executable, "-c", KILLED]
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths}
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "env": environment}
    with subprocess.Popen(code, **settings) as sweep:
        begun = [sweep.stdout.readline() for _ in range(2)]
        sweep.kill()
        # The pipe ends when the last process that could write to it has ended.
        assert (begun, sweep.stdout.read()) == ([b"begun\n"] * 2, b"")

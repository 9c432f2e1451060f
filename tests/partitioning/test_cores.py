"""How many cores a process may use."""

import os

import pytest

from polyurn.partitioning.cores import n_cores


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system cannot bind a process")
def test_a_process_that_is_bound_to_one_core_has_one():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert n_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert n_cores() == len(allowed)

"""Processes that are known by a file: alive, gone, or another one with the same pid."""

import os
import subprocess
import sys
import time

import psutil
import pytest

from polyurn.federation.processes import alive, end_processes, keep_pid

# It ignores SIGTERM, and so does its child; "ready" is said when both do.
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if len(sys.argv) > 1:
    child = subprocess.Popen([sys.executable, sys.argv[0]], stdout=subprocess.PIPE)
    child.stdout.readline()
    print(child.pid, flush=True)
else:
    print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def sleeper():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def test_a_process_is_alive_until_it_ends(tmp_path, sleeper):
    place = tmp_path / "it.pid"
    assert alive(place) is None
    keep_pid(place, sleeper.pid)
    assert alive(place) == sleeper.pid
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert alive(place) is None  # although its parent has not asked for it yet
    sleeper.wait()
    assert alive(place) is None


def test_another_process_with_the_same_pid_is_left_alone(tmp_path, sleeper):
    place = tmp_path / "it.pid"
    began = psutil.Process(sleeper.pid).create_time()
    place.write_text(f"{sleeper.pid} {began - 3600.0!r}\n")
    assert alive(place) is None
    assert end_processes([place], within=5.0) == 0
    assert sleeper.poll() is None
    assert not place.exists()


@pytest.mark.parametrize("text", ["", "no pid", "12 13 14", "-1 5.0", "4711"])
def test_a_damaged_file_names_no_process(tmp_path, text):
    (tmp_path / "it.pid").write_text(text)
    assert alive(tmp_path / "it.pid") is None


def test_a_process_and_its_children_are_ended_even_if_they_do_not_listen(tmp_path):
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "stubborn.py"), "with a child"], stdout=subprocess.PIPE
    )
    child = psutil.Process(int(process.stdout.readline()))
    keep_pid(tmp_path / "it.pid", process.pid)
    assert end_processes([tmp_path / "it.pid", tmp_path / "none.pid"], within=0.5) == 1
    assert not psutil.pid_exists(process.pid)
    child.wait(timeout=10.0)
    assert not child.is_running()
    process.wait()
    assert not (tmp_path / "it.pid").exists()
    process.stdout.close()


def test_a_process_that_listens_is_not_waited_for(tmp_path, sleeper):
    keep_pid(tmp_path / "it.pid", sleeper.pid)
    begin = time.monotonic()
    assert end_processes([tmp_path / "it.pid"], within=60.0) == 1
    assert not psutil.pid_exists(sleeper.pid)
    assert time.monotonic() - begin < 60.0

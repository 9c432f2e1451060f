"""What the tests of the command line share: a table, an MDM, and how a command ended."""

import json
import os
from dataclasses import dataclass

import pytest

from polyurn import MDM, Sizes

HEAD = "client,category,count\n"
CLIENTS = HEAD + (
    "a,0,5\na,1,2\nb,0,1\nb,2,4\nc,1,3\nc,2,1\nd,2,2\nd,0,1\ne,0,9\ne,1,1\nf,1,2\nf,2,2\n"
)
COUNTS = [[5, 2, 0], [1, 0, 4], [0, 3, 1], [1, 0, 2], [9, 1, 0], [0, 2, 2]]  # the same
EXAMPLE = MDM([0.5, 0.5], [[1.0, 2.0], [3.0, 1.0]], Sizes.constant(9, n_components=2))


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    def json(self):
        """What is on stdout, which must be strict JSON and nothing else."""
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


def fit(*arguments, table="clients.csv"):
    return ("fit", table, "--components", 2, "--rounds", 3, *arguments)


def assert_refused(ran, *words):
    """Exit code 2, one line that begins with "error: " and ends the talk, nothing on stdout."""
    lines = ran.err.splitlines()
    assert ran.code == 2
    assert ran.out == ""
    assert [line for line in lines if line.startswith("error: ")] == lines[-1:]
    assert "Traceback" not in ran.err
    for word in words:
        assert word in lines[-1]


def assert_leaves_no_trace(folder, run, arguments, *words):
    """Refused, without an output file when there was none and with the earlier one otherwise."""
    before = sorted(os.listdir(folder))
    assert_refused(run(*arguments, "-o", "out.json"), *words)
    assert sorted(os.listdir(folder)) == before
    (folder / "out.json").write_text("earlier")
    assert_refused(run(*arguments, "-o", "out.json"), *words)
    assert (folder / "out.json").read_text() == "earlier"
    assert sorted(os.listdir(folder)) == sorted([*before, "out.json"])

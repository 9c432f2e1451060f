"""Processor seconds until a small command has done its work, against bare Python.

Medians of ten processes each, started in turns; seconds of the user and of the system. Most of what is
left of `show` is numpy.

    python benchmarks/startup.py        # a table, and one JSON object as the last line
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import polyurn as pu
from polyurn.model.paper_truths import truth

REPEATS = 10
POLYURN = ["-c", "from polyurn.cli import main; main()"]


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        mdm = Path(folder) / "mdm.json"
        pu.save(truth("medium/3"), mdm)
        processes = {
            "python -c pass": ["-c", "pass"],
            "import numpy": ["-c", "import numpy"],
            "polyurn --version": [*POLYURN, "--version"],
            "polyurn --help": [*POLYURN, "--help"],
            "polyurn fit --help": [*POLYURN, "fit", "--help"],
            "polyurn show": [*POLYURN, "show", str(mdm)],
        }
        took: dict[str, list[float]] = {name: [] for name in processes}
        for _ in range(REPEATS):
            for name, arguments in processes.items():
                took[name].append(processor_seconds(arguments))
    medians = {name: statistics.median(seconds) for name, seconds in took.items()}
    bare = medians["python -c pass"]
    for name, seconds in medians.items():
        print(f"{name:<20} {seconds:6.3f} s {seconds / bare:6.1f} times bare Python")
    print(json.dumps({name: round(seconds, 4) for name, seconds in medians.items()}))


def processor_seconds(arguments: list[str]) -> float:
    """What a process of Python took, of all cores together."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()

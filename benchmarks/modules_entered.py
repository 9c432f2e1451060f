"""Modules of polyurn in which `polyurn fit` on a small table calls a function, and their names.

A function counts when it is called; the body of a module that is imported, of a class, and functions that
are called while a module is imported do not. The command runs in this process, so that nothing is missed.

    python benchmarks/modules_entered.py        # the names, and how many there are as the last line
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import polyurn as pu
from polyurn.model.paper_truths import truth


def main() -> None:
    """Fit a table of 60 clients, and print the modules."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "clients.csv"
        pu.write_histograms(truth("medium/3").sample(60, rng=0), table)
        with modules_entered() as entered:
            run(["fit", str(table), "--components", "3", "-o", str(Path(folder) / "mdm.json"), "-q"])
    for name in sorted(entered):
        print(name)
    print(len(entered))


def run(arguments: list[str]) -> None:
    """Run a command, which ends with an exit code of 0."""
    from polyurn.cli import main as command

    try:
        command(arguments)
    except SystemExit as ended:
        assert not ended.code, ended.code


@contextmanager
def modules_entered() -> Iterator[set[str]]:
    """The modules of polyurn in which a function is called while this is open."""
    entered: set[str] = set()

    def on_event(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and not frame.f_code.co_name.startswith("<module"):
            name = str(frame.f_globals.get("__name__", ""))
            if name.startswith("polyurn.") and _is_function(frame):
                entered.add(name)

    sys.setprofile(on_event)
    try:
        yield entered
    finally:
        sys.setprofile(None)


def _is_function(frame: FrameType) -> bool:
    return bool(frame.f_code.co_flags & 0x02)  # a new scope of locals: neither a module nor a class


if __name__ == "__main__":
    main()

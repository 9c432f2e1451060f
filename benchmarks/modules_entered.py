"""Modules of polyurn in which `polyurn fit` on a small table calls a function.

The command runs in this process with `--components 3`. A module counts when one of its functions is
called; its own body, and those of its classes, do not. Modules that only do something while they are
imported (a dataclass makes its methods then) are marked, and counted both with the others and apart.

    python benchmarks/modules_entered.py    # the names and their number; the last line is JSON
"""

import json
import sys
import tempfile
from inspect import CO_NEWLOCALS
from pathlib import Path
from types import FrameType
from typing import Any

import polyurn as pu
from polyurn.cli import main as command
from polyurn.model.paper_truths import truth

# Of each module, whether a function was called other than by an import.
entered: dict[str, bool] = {}


def main() -> None:
    """Fit a table of 60 clients, and print the modules."""
    with tempfile.TemporaryDirectory() as folder:
        table, output = Path(folder) / "clients.csv", Path(folder) / "mdm.json"
        pu.write_histograms(truth("medium/3").sample(60, rng=0), table)
        sys.setprofile(on_event)
        try:
            command(["fit", str(table), "--components", "3", "-o", str(output), "--quiet"])
        except SystemExit as ended:
            code = ended.code
        finally:
            sys.setprofile(None)
    if code:
        sys.exit(f"polyurn fit ended with {code}")
    for name in sorted(entered):
        print(name if entered[name] else f"{name} (while it is imported)")
    both = {"entered": len(entered), "without_imports": sum(entered.values())}
    print(json.dumps(both))


def on_event(frame: FrameType, event: str, _: Any) -> None:
    """Note the module of a function that is called."""
    name = str(frame.f_globals.get("__name__", ""))
    if event == "call" and name.startswith("polyurn.") and _is_function(frame):
        entered[name] = entered.get(name, False) or not _is_import(frame)


def _is_function(frame: FrameType) -> bool:
    return bool(frame.f_code.co_flags & CO_NEWLOCALS)  # neither a module nor a class


def _is_import(frame: FrameType | None) -> bool:
    """Whether a module of polyurn is being imported."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__spec__") is not None:
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    main()

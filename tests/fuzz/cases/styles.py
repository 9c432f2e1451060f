"""Styles: their commands with foreign options, and what these read, damaged.

Damaged are the JSON files that polyurn wrote, by their parts or by their bytes, and the points.
"""

import json

import numpy as np

from damage import damaged
from fuzz.case import Case, chance, one_of
from fuzz.cases.options import (
    CATEGORIES,
    NAMES,
    OUTPUTS,
    REAL,
    SEEDS,
    WHOLE,
    Command,
    misused,
)
from fuzz.material import material, record, some
from fuzz.mutations import mutated

_FILES = (
    "proxy.csv", "held.csv", "proxy.npz", "held.npz", "style.json", "by-label.json", "labelled.csv",
)  # fmt: skip
_MORE = ("clients.csv", "mdm.json", "comparison.json", "partition.json")
_COLUMNS = ("x,y", "y,x", "x", "x,x", "x,", "label", "client,x", "nothing", "", " ", "é", "a\nb")
_STYLES = (*_FILES, *_MORE, "nothing.json", ".", "", "/dev/null")

_COMMANDS = (
    Command(
        ("style", "proxy.csv", "held.csv"),
        {
            "--output": OUTPUTS, "--category": NAMES, "--client": NAMES, "--features": _COLUMNS,
            "--categories": CATEGORIES, "--directions": WHOLE, "--radius": REAL,
            "--label-effect": None, "--epsilon": REAL, "--delta": REAL, "--ledger-epsilon": REAL,
        },
        idle=(("--delta", "1e-6"), ("--ledger", "ledger")),
    ),
    Command(
        ("style", "proxy.npz", "held.npz"),
        {"--output": OUTPUTS, "--categories": CATEGORIES, "--directions": ("1", "2", "3"),
         "--radius": REAL},
        idle=(("--category", "x"), ("--client", "x"), ("--features", "x")),
    ),
    Command(("show", "style.json"), {}),
    Command(
        ("partition", "proxy.csv", "labelled.csv", "--style", "style.json"),
        {"--output": OUTPUTS, "--style": _STYLES, "--features": _COLUMNS, "--seed": SEEDS},
        idle=(("--match", "rank"),),
    ),
)  # fmt: skip

# What is damaged, and the commands that read it; the last word is a file that may be written.
_READERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "style.json": (
        ("show", "style.json", "--json"),
        ("partition", "proxy.csv", "labelled.csv", "--style", "style.json", "-o", "out.json"),
        ("report", "by-label.json", "style.json", "-o", "out.html"),
    ),
    "proxy.csv": (
        ("style", "proxy.csv", "held.csv", "-o", "out.json"),
    ),
    "held.csv": (
        ("style", "proxy.csv", "held.csv", "-o", "out.json"),
    ),
    "proxy.npz": (
        ("style", "proxy.npz", "held.npz", "-o", "out.json"),
    ),
    "held.npz": (
        ("style", "proxy.npz", "held.npz", "-o", "out.json"),
    ),
}  # fmt: skip


def cases(rng: np.random.Generator) -> Case:
    """A command about styles with wrong words, or one that reads a damaged file."""
    files = some(*_FILES, *_MORE)
    if chance(rng, 0.4):
        return misused(one_of(rng, _COMMANDS), files, rng)
    name = one_of(rng, [*_READERS])
    command = one_of(rng, _READERS[name])
    if name.endswith(".json") and chance(rng, 0.7):
        changed = damaged(record(name), rng=rng)
        files[name] = json.dumps(changed, indent=one_of(rng, (None, 1))).encode()
    else:
        files[name] = mutated(material()[name], rng=rng)
    return Case(command, files, outputs=command[-1:] if "-o" in command else ())

"""Styles and codebooks: their commands with foreign options, and what these read, damaged.

Damaged are the JSON files that polyurn wrote, by their parts or by their bytes, and the points.
"""

import json

import numpy as np

from damage import damaged
from fuzz.case import Case, Ran, chance, one_of
from fuzz.cases.options import (
    CATEGORIES,
    NAMES,
    OUTPUTS,
    PLACES,
    REAL,
    SEEDS,
    WHOLE,
    Command,
    misused,
)
from fuzz.material import material, record, some
from fuzz.mutations import mutated

_FILES = (
    "proxy.csv", "held.csv", "proxy.npz", "held.npz", "style.json", "book.json", "numbered.json",
    "pool.csv", "coded.csv", "codes.json", "by-label.json", "labelled.csv",
)  # fmt: skip
_MORE = ("clients.csv", "mdm.json", "comparison.json", "partition.json")
_STYLES = ("0", "-1", "1", "2", "89", "1000000000", "1.5", "", "x", "9" * 30)
_COLUMNS = ("x,y", "y,x", "x", "x,x", "x,", "label", "client,x", "nothing", "", " ", "é", "a\nb")
_BOOKS = (*_FILES, *_MORE, "nothing.json", ".", "", "/dev/null")
_CODES = ("--codebook", "book.json", "--codes", "codes.json")
_GIVEN = ("--codebook", "book.json", "--labels", "by-label.json")

_COMMANDS = (
    Command(
        ("style", "proxy.csv", "held.csv"),
        {
            "--output": OUTPUTS, "--label": NAMES, "--client": NAMES, "--features": _COLUMNS,
            "--categories": (*CATEGORIES, "book.json"), "--directions": WHOLE, "--radius": REAL,
            "--ties": None, "--epsilon": REAL, "--delta": REAL, "--ledger-epsilon": REAL,
        },
        idle=(("--delta", "1e-6"), ("--ledger", "ledger")),
    ),
    Command(
        ("style", "proxy.npz", "held.npz"),
        {"--output": OUTPUTS, "--categories": CATEGORIES, "--directions": ("1", "2", "3"),
         "--radius": REAL},
        idle=(("--label", "x"), ("--client", "x"), ("--features", "x")),
    ),
    Command(("show", "style.json"), {}),
    Command(("show", "book.json"), {}),
    Command(
        ("codebook", "make", "proxy.csv", "--styles", "2"),
        {
            "--output": OUTPUTS, "--label": NAMES, "--features": _COLUMNS, "--styles": _STYLES,
            "--categories": (*CATEGORIES, "book.json"), "--coverage": REAL, "--seed": SEEDS,
        },
    ),
    Command(
        ("codebook", "make", "proxy.npz", "--styles", "2"),
        {"--output": OUTPUTS, "--categories": CATEGORIES, "--styles": _STYLES, "--coverage": REAL},
        idle=(("--label", "x"), ("--features", "x")),
    ),
    Command(
        ("codebook", "encode", "book.json", "held.csv"),
        {"--output": OUTPUTS, "--label": NAMES, "--client": NAMES, "--features": _COLUMNS},
    ),
    Command(
        ("codebook", "encode", "numbered.json", "held.npz"),
        {"--output": OUTPUTS},
        idle=(("--label", "x"), ("--client", "x"), ("--features", "x")),
    ),
    Command(
        ("fit", "coded.csv", "--category", "code", "--components", "1", "--rounds", "2"),
        {"--categories": _BOOKS, "--category": (*NAMES, "code", "label", "label,code")},
    ),
    Command(
        ("partition", "pool.csv", "labelled.csv", *_CODES),
        {
            "--output": OUTPUTS, "--codebook": _BOOKS, "--codes": _BOOKS, "--cover": None,
            "--shortfall": ("reuse", "refuse", "resample", "x"), "--no-replace": None,
            "--label-column": ("label", "code", "label,code", "x", ""), "--category": NAMES,
            "--drop-empty": None, "--seed": SEEDS,
        },
        idle=(("--style", "style.json"), ("--features", "x"), ("--categories", "3"),
              ("--population", "by-label.json")),
    ),
    Command(
        ("partition", "pool.csv", "by-label.json", "--cover", *_CODES),
        {"--output": OUTPUTS, "--codebook": _BOOKS, "--codes": _BOOKS, "--seed": SEEDS},
        idle=(("--no-replace",), ("--categories", "3"), ("--style", "style.json")),
    ),
    Command(
        ("partition", "proxy.csv", "labelled.csv", "--style", "style.json"),
        {"--output": OUTPUTS, "--style": _BOOKS, "--features": _COLUMNS, "--seed": SEEDS},
        idle=(("--codes", "codes.json"),),
    ),
    Command(
        ("sample", "codes.json", "--clients", "5", *_GIVEN),
        {
            "--output": OUTPUTS, "--codebook": _BOOKS, "--labels": _BOOKS, "--clients": WHOLE,
            "--proxy": (*PLACES, "pool.csv", "coded.csv"), "--seed": SEEDS,
        },
    ),
    Command(
        ("sample", "codes.json", "--clients", "5"),
        {"--output": OUTPUTS},
        idle=(("--labels", "by-label.json"), ("--proxy", "pool.csv")),
    ),
)  # fmt: skip

# What is damaged, and the commands that read it; the last word is a file that may be written.
_READERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "style.json": (
        ("show", "style.json", "--json"),
        ("partition", "proxy.csv", "labelled.csv", "--style", "style.json", "-o", "out.json"),
        ("report", "by-label.json", "style.json", "-o", "out.html"),
    ),
    "book.json": (
        ("show", "book.json", "--json"),
        ("codebook", "encode", "book.json", "held.csv", "-o", "out.csv"),
        ("partition", "pool.csv", "labelled.csv", *_CODES, "-o", "out.json"),
        ("fit", "coded.csv", "--category", "code", "--categories", "book.json", "--components", "1",
         "--rounds", "2", "-o", "out.json"),
    ),
    "codes.json": (
        ("partition", "pool.csv", "labelled.csv", *_CODES, "-o", "out.json"),
        ("sample", "codes.json", *_GIVEN, "--clients", "5", "-o", "out.csv"),
    ),
    "proxy.csv": (
        ("codebook", "make", "proxy.csv", "--styles", "2", "-o", "out.json"),
        ("style", "proxy.csv", "held.csv", "-o", "out.json"),
    ),
    "held.csv": (
        ("codebook", "encode", "book.json", "held.csv", "-o", "out.csv"),
        ("style", "proxy.csv", "held.csv", "-o", "out.json"),
    ),
    "proxy.npz": (
        ("codebook", "make", "proxy.npz", "--styles", "2", "-o", "out.json"),
        ("style", "proxy.npz", "held.npz", "-o", "out.json"),
    ),
    "held.npz": (
        ("codebook", "encode", "numbered.json", "held.npz", "-o", "out.csv"),
        ("style", "proxy.npz", "held.npz", "-o", "out.json"),
    ),
    "pool.csv": (
        ("partition", "pool.csv", "labelled.csv", *_CODES, "-o", "out.json"),
        ("sample", "codes.json", *_GIVEN, "--proxy", "pool.csv", "--clients", "5", "-o", "out.csv"),
    ),
}  # fmt: skip


def cases(rng: np.random.Generator) -> Case:
    """A command about styles or codebooks with wrong words, or one that reads a damaged file."""
    files = some(*_FILES, *_MORE)
    if chance(rng, 0.4):
        return misused(one_of(rng, _COMMANDS), files, rng)
    name = one_of(rng, [*_READERS])
    command = one_of(rng, _READERS[name])
    oracle = None
    if name.endswith(".json") and chance(rng, 0.7):
        changed = damaged(record(name), rng=rng)
        files[name] = json.dumps(changed, indent=one_of(rng, (None, 1))).encode()
        if command[:2] == ("show", "book.json"):
            oracle = _shows_labels(changed)
    else:
        files[name] = mutated(material()[name], rng=rng)
    return Case(command, files, outputs=command[-1:] if "-o" in command else (), oracle=oracle)


def _shows_labels(book: object):
    """Whether `polyurn show --json` says what is in a codebook file."""

    def oracle(ran: Ran) -> str | None:
        said, labels = json.loads(ran.out), book["labels"]
        counts = [len(label["centres"]) for label in labels]
        if said["n_styles"] != counts:
            return f"styles are {said['n_styles']}, the file has {counts}"
        names = [label.get("name") for label in labels]
        named = all(name is not None for name in names)
        return None if not named or said["labels"] == names else f"labels are not {names}"

    return oracle

"""Folders of a fit that was stopped, with rounds that are missing, damaged, or of another run.

A fit that goes on ends with the same result to the bit as one that was never stopped, or it is refused.
"""

import base64
import json
import re
from functools import cache

import numpy as np

from fuzz.case import Case, Ran, chance, one_of
from fuzz.material import FIT, material, some
from fuzz.mutations import mutated

_RECORD = "checkpoint/rounds.jsonl"
_COMMAND = (*FIT, "--checkpoint", "checkpoint", "-o", "out.json")
_ODD = (np.array([]), np.array([np.nan] * 3), np.zeros(4), np.zeros(3, dtype=np.float32))


def cases(rng: np.random.Generator) -> Case:
    """A fit that is to go on from a folder."""
    files = some("clients.csv", "held-out.csv", "checkpoint")
    for _ in range(int(rng.integers(1, 3))):
        _change(files, rng)
    command = _COMMAND
    same = True
    if chance(rng, 0.15):
        others = (
            ("--seed", "1"),
            ("--components", "3"),
            ("--search", "patience=0"),
            ("--cohort", "10"),
        )
        command, same = (*_COMMAND, *one_of(rng, others)), False
    return Case(
        command,
        files,
        outputs=("out.json",),
        keeps=("checkpoint",),
        oracle=_is_the_same if same else _has_its_own_settings(files),
    )


def _change(files: dict[str, bytes | None], rng: np.random.Generator) -> None:
    """Damage, lose, double or add a line of the record, or a file beside it."""
    if not files.get(_RECORD):
        return
    lines = files[_RECORD].splitlines(keepends=True)
    at = int(rng.integers(len(lines)))
    match int(rng.integers(9)):
        case 0:
            del lines[at]
        case 1:
            del lines[at:]
        case 2 | 3 | 4:
            lines[at] = mutated(lines[at], rng=rng)
        case 5:
            lines[at] = one_of(rng, lines)
        case 6:
            lines[at] = lines[at][: int(rng.integers(len(lines[at])))]
        case 7:
            lines[at] = _with_numbers(lines[at], one_of(rng, _ODD))
        case _:
            extra = one_of(rng, ("x.txt", ".polyurn-0123456789abcdef", "round-0000.npy"))
            files[f"checkpoint/{extra}"] = one_of(rng, (b"", lines[at]))
    files[_RECORD] = b"".join(lines)


def _with_numbers(line: bytes, numbers: np.ndarray) -> bytes:
    """A round with other numbers, and the checksum that it had."""
    try:
        record = json.loads(line)
    except ValueError:
        return line
    record["numbers"] = base64.b64encode(numbers.tobytes()).decode()
    return json.dumps(record).encode() + b"\n"


def _is_the_same(ran: Ran) -> str | None:
    """The result of the fit that was never stopped."""
    written = (ran.folder / "out.json").read_bytes()
    return (
        None
        if _without_command(written) == _undisturbed()
        else "another result than without a stop"
    )


def _has_its_own_settings(files: dict[str, bytes | None]):
    """Another run may use the folder only if there is no run in it."""

    def oracle(ran: Ran) -> str | None:
        held = b"settings" in (files.get(_RECORD) or b"")
        return "went on with other settings than those of the folder" if held else None

    return oracle


@cache
def _undisturbed() -> dict:
    return _without_command(material()["mdm.json"])


def _without_command(content: bytes) -> dict:
    return json.loads(re.sub(rb'"command": "[^"]*"', b'"command": ""', content))

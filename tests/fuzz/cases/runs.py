"""The folder of a sweep with damaged lines, as `compare`, `report` and a sweep that goes on take it."""

import json

import numpy as np

from damage import damaged
from fuzz.case import Case, chance, one_of
from fuzz.material import material, some

_DEEP = b"[" * 100_000


def cases(rng: np.random.Generator) -> Case:
    """A command that reads a folder whose `runs.jsonl` is not as it was."""
    lines = material()["runs/runs.jsonl"].splitlines()
    if chance(rng, 0.15):
        lines[0] = json.dumps(damaged(json.loads(lines[0]), rng=rng)).encode()
    files = some("runs", "mdm.json", "plain.json", "points.npz", "sweep.toml")
    for _ in range(int(rng.integers(1, 4))):
        lines = _changed(lines, rng) or [b""]
    end = one_of(rng, (b"\n", b"\n", b"\n", b"", b"\r\n"))
    files["runs/runs.jsonl"] = end.join(lines) + (b"" if chance(rng, 0.1) else end)
    if chance(rng, 0.05):
        files.pop("runs/runs.jsonl")
    match int(rng.integers(5)):
        case 0 | 1:
            return Case(("compare", "runs", *one_of(rng, ((), ("--json",)))), files)
        case 2:
            return Case(("report", "runs", "-o", "out.html"), files, outputs=("out.html",))
        case 3:
            metric = one_of(rng, ("accuracy", "loss", "x"))
            return Case(("compare", "runs", "--metric", metric, "--true", "iid"), files)
        case _:
            return Case(
                ("sweep", "sweep.toml", "-o", "runs", "--jobs", "1"), files, keeps=("runs",)
            )


def _changed(lines: list[bytes], rng: np.random.Generator) -> list[bytes]:
    """The lines with one of them damaged, lost, doubled or foreign."""
    if not lines:
        return lines
    at = int(rng.integers(len(lines)))
    line = lines[at]
    match int(rng.integers(9)):
        case 0 | 1 | 2 | 3:
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                return lines[:at]
            return [*lines[:at], json.dumps(damaged(value, rng=rng)).encode(), *lines[at + 1 :]]
        case 4:
            return [*lines[:at], *lines[at + 1 :]]
        case 5:
            return [*lines[:at], line, *lines[at:]]
        case 6:
            return [*lines[:at], line[: int(rng.integers(len(line) + 1))], *lines[at + 1 :]]
        case 7:
            odd = (b"", b"{}", b"null", b"7", b"\xff\xfe", b"[]", b'"x"', _DEEP, b"{" * 3, b"\x00")
            return [*lines[:at], one_of(rng, odd), *lines[at:]]
        case _:
            return lines[: int(rng.integers(len(lines) + 1))]

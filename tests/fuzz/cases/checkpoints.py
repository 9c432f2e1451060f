"""Folders of a fit that was stopped, with rounds that are missing, damaged, or of another run.

A fit that goes on ends with the same result to the bit as one that was never stopped, or it is refused.
"""

import io
import json
import re
from functools import cache

import numpy as np

from fuzz.case import Case, Ran, chance, one_of
from fuzz.material import FIT, material, some
from fuzz.mutations import mutated

_COMMAND = (*FIT, "--checkpoint", "checkpoint", "-o", "out.json")
_ODD = (
    np.array("x"), np.array([]), np.array([np.nan] * 3), np.zeros((2, 2)), np.array(["a", "b"]),
    np.array(3.0),
    np.zeros(4, dtype=complex), np.zeros(3, dtype=[("a", "f8")]),
)  # fmt: skip


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
    """Damage, lose or add a file of the folder."""
    rounds = sorted(name for name in files if "round-" in name)
    if not rounds:
        return
    name = one_of(rng, rounds)
    match int(rng.integers(11)):
        case 0:
            del files[name]
        case 1:
            for later in rounds[rounds.index(name) :]:
                del files[later]
        case 2 | 3 | 4:
            files[name] = mutated(files[name], rng=rng)
        case 5:
            files[name] = files[one_of(rng, rounds)]
        case 6:
            files[name] = _npy(one_of(rng, _ODD))
        case 7:
            numbers = _numbers(files[name])
            if numbers is not None and numbers.size and numbers.dtype == np.float64:
                numbers.flat[int(rng.integers(numbers.size))] = one_of(
                    rng, (np.nan, np.inf, -1.0, 1e300, 0.0, 7.5)
                )
                files[name] = _npy(numbers)
        case 8:
            files["checkpoint/settings.json"] = mutated(
                material()["checkpoint/settings.json"], rng=rng
            )
        case 9:
            extra = (
                "round-0005.npy",
                "round-0000.npy",
                "x.txt",
                ".polyurn-0123456789abcdef",
                "round-1.npy",
            )
            files[f"checkpoint/{one_of(rng, extra)}"] = one_of(rng, (b"", files[name]))
        case _:
            files.pop("checkpoint/settings.json", None)


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _numbers(content: bytes | None) -> np.ndarray | None:
    try:
        return np.load(io.BytesIO(content or b""), allow_pickle=False)
    except (ValueError, EOFError, OSError):
        return None


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
        held = "checkpoint/settings.json" in files
        return "went on with other settings than those of the folder" if held else None

    return oracle


@cache
def _undisturbed() -> dict:
    return _without_command(material()["mdm.json"])


def _without_command(content: bytes) -> dict:
    return json.loads(re.sub(rb'"command": "[^"]*"', b'"command": ""', content))

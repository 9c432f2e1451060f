"""One bad input: the files that lie in a folder, what is run there, and what must hold if it works.

How a case is run and judged is `harness.py`; which cases there are is `cases/`.
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Ran:
    """How a command ended.

    Attributes
    ----------
    code : int
        The exit code.
    out, err : str
    folder : Path
        Where it ran, with what it wrote.
    """

    code: int
    out: str
    err: str
    folder: Path


@dataclass(frozen=True)
class Case:
    """What is put into an empty folder, and run there.

    Attributes
    ----------
    command : tuple of str
        The command line without its first word; empty for a call.
    files : mapping of str to bytes or None
        The content of each file by its relative path; None is an empty folder.
    outputs : tuple of str
        Files that the command may write when it works.
    keeps : tuple of str
        Folders that keep what was finished, also when the command fails: checkpoints and sweeps.
    oracle : callable, optional
        What is wrong with a command that worked, or None: it ignored what it was given, say.
    call : callable, optional
        Run in place of a command; our own errors refuse it.
    title : str
        The call, for a person.
    encoding : str
        Of stdout and stderr.
    """

    command: tuple[str, ...] = ()
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    oracle: Callable[[Ran], str | None] | None = None
    call: Callable[[], Any] | None = None
    title: str = ""
    encoding: str = "utf-8"


def stream(kind: str, number: int) -> np.random.Generator:
    """The random stream of a case, which depends on nothing but its name."""
    return np.random.default_rng((zlib.crc32(kind.encode()), number))


def one_of(rng: np.random.Generator, values: Any) -> Any:
    """One of a sequence's values, as it is: numpy's `choice` would make an array of them."""
    return values[rng.integers(len(values))]


def chance(rng: np.random.Generator, share: float) -> bool:
    """True in this share of the draws."""
    return bool(rng.random() < share)

"""Runs one case in this process, in a folder of its own, and says what is wrong with how it ended.

A defect is: a traceback or a warning; a wrong exit code; an error that is not one line, or does not say
what to do; a result that ignores what the user gave; a changed input; a half-written or left-over file;
more than 20 s or 4 GB. A process that dies is found by `pool.py`.
"""

import contextlib
import io
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fuzz.case import Case, Ran
from fuzz.messages import fault
from fuzz.readback import unreadable
from polyurn.errors import PolyurnError

LONGEST_SECONDS = 20.0
LARGEST_BYTES = 4 * 2**30

_REFUSED = 2
_CODES = (0, 1, _REFUSED, 130)  # done; a failed run; a mistake; ended by Ctrl-C

# Warnings that Python does not show to the user of a command.
_NOT_SHOWN = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)


@dataclass(frozen=True)
class Defect:
    """What is wrong: its class, one line about it, and where it is in the code, if that is known."""

    what: str
    detail: str
    place: str = ""


@dataclass(frozen=True)
class Outcome:
    """How a case ended.

    Attributes
    ----------
    worked : bool
        Exit code 0, or a call that returned; otherwise it was refused.
    defects : tuple of Defect
    seconds : float
        Of processor time.
    said : str
        The end of what was printed to stderr, for a person who looks into it.
    """

    worked: bool
    defects: tuple[Defect, ...]
    seconds: float = 0.0
    said: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def run(
    case: Case,
    *,
    main: Callable[[list[str]], None] | None = None,
    seconds: float = LONGEST_SECONDS,
    n_bytes: int = LARGEST_BYTES,
) -> Outcome:
    """Run a case and judge it.

    Parameters
    ----------
    case : Case
    main : callable, optional
        The command line; that of polyurn by default.
    seconds, n_bytes : float, int
        More processor time, or more memory, is a defect.
    """
    if main is None:
        from polyurn.cli import main
    folder = Path(tempfile.mkdtemp(prefix="polyurn-fuzz-"))
    try:
        _lay_out(case.files, folder)
        before, memory, began = _contents(folder), _most_memory(), time.process_time()
        ran, defects = _performed(case, main, folder)
        took = time.process_time() - began
        defects += _defects_of_files(case, ran, before, _contents(folder))
        if took > seconds:
            defects.append(Defect("slow", f"{took:.0f} s of processor time"))
        if _most_memory() - memory > n_bytes or _wanted_more(ran):
            defects.append(Defect("memory", "takes more than it may"))
        if ran.code == 0 and not defects and case.oracle is not None:
            wrong = case.oracle(ran)
            defects += [Defect("ignored", wrong[:600])] if wrong else []
        return Outcome(ran.code == 0, tuple(defects), took, ran.err[-2000:])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ------------------------------------------------------------------------------------- the command


def _performed(
    case: Case, main: Callable[[list[str]], None], folder: Path
) -> tuple[Ran, list[Defect]]:
    """Run the command or the call; what is wrong with what it said."""
    out, err = _terminal(case.encoding), _terminal(case.encoding, "backslashreplace")
    defects: list[Defect] = []
    code: Any = 0
    with (
        _inside(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        _nothing_typed(),
        warnings.catch_warnings(record=True) as warned,
    ):
        warnings.simplefilter("default")
        for kind in _NOT_SHOWN:
            warnings.simplefilter("ignore", kind)
        try:
            if case.call is not None:
                case.call()
            else:
                main(list(case.command))
        except SystemExit as end:
            code = 0 if end.code is None else end.code
        except PolyurnError as error:
            code = _REFUSED
            if case.call is None:
                defects.append(Defect("traceback", _line_of(error), _place(error)))
            elif fault(str(error), to_programmer=True):
                wrong = fault(str(error), to_programmer=True)
                defects.append(
                    Defect("message", f"{wrong}: {error} in {case.title}"[:500], _place(error))
                )
        except (Exception, KeyboardInterrupt) as error:
            code = _REFUSED
            what = f"{_line_of(error)} in {case.title}" if case.title else _line_of(error)
            defects.append(Defect("traceback", what, _place(error)))
    said, told = _text(out), _text(err)
    defects += [_warning(w) for w in warned[:1]]  # the others follow from it
    if case.call is None:
        defects += _defects_of_talk(code, said, told, defects)
    return Ran(code if isinstance(code, int) else _REFUSED, said, told, folder), defects


def _defects_of_talk(code: Any, out: str, err: str, earlier: list[Defect]) -> list[Defect]:
    """What is wrong with an exit code and with the words that came with it."""
    if earlier:  # a traceback says enough
        return []
    defects = []
    if code not in _CODES:
        defects.append(Defect("exit code", f"{code!r}"))
    if "Traceback (most recent call last)" in err:
        defects.append(Defect("traceback", err.strip().splitlines()[-1]))
    lines = err.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    if code == 0 and errors:
        defects.append(Defect("exit code", f"0 after {errors[-1]!r}"))
    if code == _REFUSED:
        if not errors or errors != lines[-1:]:
            defects.append(Defect("message", f"not one line of error at the end: {err[-300:]!r}"))
        elif fault(errors[0].removeprefix("error: ")):
            text = errors[0].removeprefix("error: ")
            defects.append(Defect("message", f"{fault(text)}: {text[:300]}"))
        if out:
            defects.append(
                Defect("half-written", f"{len(out)} characters on stdout, then an error")
            )
    return defects


def _wanted_more(ran: Ran) -> bool:
    """Whether it was only stopped by the limit of its process."""
    return "error: not enough memory" in ran.err


def _warning(warned: warnings.WarningMessage) -> Defect:
    where = f"{Path(warned.filename).name}:{warned.lineno}"
    return Defect("warning", f"{warned.category.__name__}: {warned.message}"[:300], where)


def _line_of(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _place(error: BaseException) -> str:
    """The innermost line of ours that a traceback goes through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if f"{os.sep}polyurn{os.sep}" in frame.filename]
    if not ours:
        return ""
    name = ours[-1].filename.rsplit(f"{os.sep}polyurn{os.sep}", 1)[-1]
    return f"{name}:{ours[-1].name}"


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    earlier = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(earlier)


@contextlib.contextmanager
def _nothing_typed() -> Iterator[None]:
    earlier = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(b""))
    try:
        yield
    finally:
        sys.stdin = earlier


def _terminal(encoding: str, errors: str = "strict") -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BytesIO(), encoding=encoding, errors=errors, newline="", write_through=True
    )


def _text(terminal: io.TextIOWrapper) -> str:
    with contextlib.suppress(UnicodeEncodeError):
        terminal.flush()
    raw = terminal.buffer.getvalue()  # type: ignore[attr-defined]
    return raw.decode(terminal.encoding, errors="backslashreplace")


def _most_memory() -> int:
    """The largest memory that this process has had, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


# -------------------------------------------------------------------------------------- the folder


def _lay_out(files: Mapping[str, bytes | None], folder: Path) -> None:
    for name, content in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            place.mkdir(exist_ok=True)
        else:
            place.write_bytes(content)


def _contents(folder: Path) -> dict[str, bytes | None]:
    """What is in every file of a folder; None stands for a folder."""
    return {
        place.relative_to(folder).as_posix(): None if place.is_dir() else place.read_bytes()
        for place in folder.rglob("*")
    }


def _defects_of_files(
    case: Case, ran: Ran, before: Mapping[str, bytes | None], after: Mapping[str, bytes | None]
) -> list[Defect]:
    """Inputs that changed, files that nobody asked for, and outputs that are not whole."""
    defects = []
    for name in sorted(before.keys() | after.keys()):
        if before.get(name, "") == after.get(name, "") and name in before and name in after:
            continue
        kept = _within(name, case.keeps)
        if ".polyurn-" in name:
            defects.append(Defect("left over", f"{name}"))
        elif case.call is not None:  # writes where it was told to, and nobody told us
            continue
        elif name in before and not (name in case.outputs and ran.code == 0) and not kept:
            defects.append(Defect("changed input", f"{name}"))
        elif not (name in case.outputs or kept):
            defects.append(Defect("left over", f"{name}"))
        elif name in case.outputs and ran.code != 0:
            defects.append(Defect("half-written", f"{name} after exit code {ran.code}"))
        elif name in case.outputs:
            wrong = unreadable(ran.folder / name)
            defects += [Defect("half-written", f"{name}: {wrong}")] if wrong else []
    for name in case.keeps:
        if ran.code != 0 and name in after and name not in before and not _is_of_use(name, after):
            defects.append(Defect("left over", f"the folder {name}, with nothing finished in it"))
    return defects


def _within(name: str, folders: tuple[str, ...]) -> bool:
    """Whether it is one of the folders, in one, or a folder that had to be made for one."""
    return any(
        name == folder or name.startswith(f"{folder}/") or folder.startswith(f"{name}/")
        for folder in folders
    )


def _is_of_use(folder: str, after: Mapping[str, bytes | None]) -> bool:
    """Whether there is a finished round or run in a folder."""
    return any(
        name.startswith(f"{folder}/")
        and ("round-" in name or (name.endswith(".jsonl") and content))
        for name, content in after.items()
    )

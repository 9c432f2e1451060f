"""Trainers of the user's: a function, or a command that reads a partition and writes metrics.

A trainer is called with clients, settings and a seed, and yields a report after each evaluation:
{"round": 10, "accuracy": 0.71}. It may be stopped after any of them. What it raises fails its own run.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf, isfinite, nan
from pathlib import Path
from string import Formatter
from tempfile import TemporaryDirectory
from typing import IO, Annotated, Any, Literal, TypeAlias

from polyurn.errors import ParameterError, TrainerError
from polyurn.partitioning.result import Partition
from polyurn.storage.partitions import save_partition
from polyurn.sweeps.run_scores import LOSS
from polyurn.sweeps.trainable import (
    AT_END,
    ClientsBySeed,
    EndedRun,
    FailedRun,
    OnRound,
    RunSettings,
    Task,
    end_with,
    finished_run,
    function_fingerprint,
)
from polyurn.training.fedavg import Evaluation, plain
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Above
from polyurn.typed.json_form import shown

# Called with the clients, the settings and the seed of a run.
Trainer: TypeAlias = Callable[[Partition, Mapping[str, Any], int], Iterable[Mapping[str, Any]]]

_OURS = ("partition", "test", "seed", "metrics", "settings")
_LOOKED_AT_EVERY = 0.02  # seconds
_ENDS_WITHIN = 5.0  # seconds after a request to end, a process is killed
_MOST_OUTPUT = 1_000_000  # bytes of what a failed run printed
_EXAMPLE = '{"round": 10, "accuracy": 0.71}'


@checked
@dataclass(frozen=True)
class CommandTrainer:
    """A command that trains on a partition, and reports metrics as lines of JSON.

    Parameters
    ----------
    command : str
        Its words, without a shell. In braces stand settings, and what polyurn fills in: {partition}, a
        file with the row numbers of each client; {test}, the same of the points to test on; {seed};
        {metrics}, the file to which the command appends a line such as {"round": 10, "accuracy": 0.71}
        after each evaluation; {settings}, a JSON file with all settings. Each may be left out; without
        {metrics}, lines are read from what the command prints. The partition's path is also in the
        environment variable POLYURN_PARTITION. Braces that mean themselves are doubled.
    folder : path, optional
        Where it runs; by default the current folder.
    partition : {"json", "parquet"}
        What `save_partition` writes.
    timeout : float, optional
        Seconds after which a run counts as failed.

    Examples
    --------
    >>> trainer = CommandTrainer("python train.py --lr {lr} --clients {partition} --out {metrics}")
    >>> trainer.names
    ('lr', 'partition', 'metrics')
    """

    command: str
    folder: str | os.PathLike[str] | None = None
    partition: Literal["json", "parquet"] = "json"
    timeout: Annotated[float, Above(0)] | None = None

    def __post_init__(self) -> None:
        if not self.command.split():
            raise ParameterError("expected a command, got none")
        for name in self.names:
            if not name.isidentifier():
                raise ParameterError(
                    f"expected the name of a setting in braces, got {shown(name)} in the command; "
                    "double the braces that mean themselves"
                )

    @property
    def names(self) -> tuple[str, ...]:
        """What stands in braces."""
        try:
            words = shlex.split(self.command)
            found = [name for word in words for _, name, *_ in Formatter().parse(word)]
        except ValueError as error:
            raise ParameterError(f"cannot read the command: {error}") from None
        return tuple(dict.fromkeys(name for name in found if name is not None))

    def check(self, settings: Mapping[str, Any]) -> None:
        """Raise a `ParameterError` where a setting has no place, or a place no setting."""
        missing = [name for name in self.names if name not in (*_OURS, *settings)]
        if missing:
            known = ", ".join([*settings, *_OURS])
            raise ParameterError(
                f"the command names {{{missing[0]}}}, which is no setting; expected one of {known}"
            )
        idle = [name for name in settings if name not in self.names]
        if idle and "settings" not in self.names:
            raise ParameterError(
                f"the command does not name {{{idle[0]}}}: the setting would have no effect"
            )
        program = shlex.split(self.command)[0]
        where = str(Path(self.folder or ".").resolve())
        beside = program if os.sep not in program else os.path.join(where, program)
        if "{" not in program and shutil.which(beside) is None:
            raise ParameterError(f"there is no program {shown(program)}; check the command")
        if not os.path.isdir(where):
            raise ParameterError(f"there is no folder {where}, where the command is to run")

    def described(self) -> dict[str, Any]:
        """What the command's runs depend on."""
        where = None if self.folder is None else os.fspath(self.folder)
        return {"command": self.command, "folder": where, "partition": self.partition}

    def __call__(
        self, clients: Partition, settings: Mapping[str, Any], seed: int
    ) -> Iterator[dict[str, Any]]:
        """Run the command, and yield its reports as it writes them."""
        with TemporaryDirectory(prefix="polyurn-run-") as scratch:
            files = _files(Path(scratch), clients, settings, self.partition)
            values = {n: plain(value) for n, value in {**settings, **files, "seed": seed}.items()}
            texts = {n: v if isinstance(v, str) else json.dumps(v) for n, v in values.items()}
            # A value never becomes several words.
            words = [word.format_map(texts) for word in shlex.split(self.command)]
            ours = {f"POLYURN_{name.upper()}": path for name, path in files.items()}
            output = Path(scratch, "output.txt")
            with open(output, "wb") as file, _started(words, self.folder, file, ours) as process:
                reports = Path(files["metrics"]) if "metrics" in self.names else output
                yield from _reports_of(process, reports, output, self.timeout)


def _files(
    folder: Path, clients: Partition, settings: Mapping[str, Any], suffix: str
) -> dict[str, str]:
    """The files of one run: what may stand in braces, and their paths."""
    paths = {"settings": f"{folder}/settings.json", "metrics": f"{folder}/metrics.jsonl"}
    for name, one in (("partition", clients), ("test", clients.test)):
        paths[name] = "" if one is None else f"{folder}/{name}.{suffix}"
        if one is not None:
            save_partition(one, paths[name])
    Path(paths["settings"]).write_text(json.dumps(dict(settings)), encoding="utf-8")
    return paths


def doubled(text: str) -> str:
    """A text as it stands in a command: its braces mean themselves."""
    return text.replace("{", "{{").replace("}", "}}")


@contextmanager
def _started(
    words: Sequence[str], folder: Any, output: IO[bytes], environment: Mapping[str, str]
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that has ended, with its own, when this does, however that is."""
    try:
        process = subprocess.Popen(
            words,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that its own processes end with it
        )
    except OSError as error:
        raise TrainerError(f"cannot start {words[0]!r}: {error.strerror}") from error
    end = partial(_end, process)
    AT_END.append(end)
    try:
        yield process
    finally:
        AT_END.remove(end)
        end()


def _reports_of(
    process: "subprocess.Popen[bytes]", reports: Path, output: Path, timeout: float | None
) -> Iterator[dict[str, Any]]:
    """The reports of a process as they come, until it ends."""
    ends = float("inf") if timeout is None else time.monotonic() + timeout
    read, goes_on = 0, True
    try:
        while goes_on:
            goes_on = process.poll() is None
            lines, read = _new_lines(reports, read, whole=goes_on)
            for line in lines:
                if (report := _report(line, strict=reports != output)) is not None:
                    yield report
            if goes_on and time.monotonic() > ends:
                raise TrainerError(f"no end within {timeout:g} s: it was stopped")
            if goes_on and not lines:
                time.sleep(_LOOKED_AT_EVERY)
        if process.returncode < 0:
            raise TrainerError(f"killed by signal {-process.returncode}")
        if process.returncode > 0:
            last = [line.strip() for line in _printed(output).splitlines() if line.strip()][-1:]
            why = f": {shown(last[0])}" if last else ""
            raise TrainerError(f"the command ended with code {process.returncode}{why}")
    except TrainerError as error:
        raise TrainerError(str(error), _printed(output)) from None


def _printed(output: Path) -> str:
    """The end of what a command printed."""
    with open(output, "rb") as file:
        file.seek(max(0, output.stat().st_size - _MOST_OUTPUT))
        return file.read().decode(errors="replace")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a command and the processes that it started: asked first, then killed."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_ENDS_WITHIN)


def _new_lines(path: Path, start: int, *, whole: bool) -> tuple[list[bytes], int]:
    """The lines after so many bytes, and where the next begin; `whole`: none that is unfinished."""
    if not path.exists():
        return [], start
    with open(path, "rb") as file:
        file.seek(start)
        text = file.read()
    end = text.rfind(b"\n") + 1 if whole else len(text)
    return [line for line in text[:end].splitlines() if line.strip()], start + end


def _report(line: bytes, *, strict: bool) -> dict[str, Any] | None:
    """A line as a report; None for another line that the command prints."""
    try:
        value = json.loads(line)
    except ValueError:
        value = None
    if isinstance(value, dict) and (strict or "round" in value):
        return value
    if strict:
        text = line.decode(errors="replace")
        raise TrainerError(f"expected a line of metrics such as {_EXAMPLE}, got {shown(text)}")
    return None


# ------------------------------------------------------------------------ as what a sweep trains


@dataclass(frozen=True, eq=False)
class UserTraining:
    """A trainer of the user's as what a sweep trains; see `Trainable`."""

    trainer: Trainer
    started_by: int = field(default_factory=os.getpid)  # the sweep's own process

    @property
    def metric_names(self) -> None:
        return None

    def described(self) -> dict[str, Any]:
        if isinstance(self.trainer, CommandTrainer):
            return {"trainer": self.trainer.described()}
        return {"trainer": function_fingerprint(self.trainer)}

    def whole(self, settings: RunSettings) -> RunSettings:
        try:
            json.dumps(settings)
        except (TypeError, ValueError) as error:
            raise ParameterError(f"expected settings that JSON can hold: {error}") from error
        return settings

    def check(self, points: Sequence[RunSettings], clients: ClientsBySeed) -> None:
        if isinstance(self.trainer, CommandTrainer):
            for point in points:
                self.trainer.check(point)
            lacks = next((name for (name, _), one in clients.items() if one.test is None), None)
            if "test" in self.trainer.names and lacks is not None:
                raise ParameterError(
                    f"the command names {{test}}, and the clients of {lacks} have no points to test "
                    "on; ask for them with client_test"
                )

    def columns(self, task: Task) -> frozenset[str]:
        return frozenset()

    def n_rounds(self, settings: RunSettings) -> int:
        return 0

    def run(
        self, task: Task, columns: Sequence[RunSettings], on_round: OnRound | None = None
    ) -> list[EndedRun]:
        end_with(self.started_by)
        (settings,) = columns
        started, curve, diverged_at, pruned = time.perf_counter(), [], None, False
        try:
            with closing(_evaluations(self.trainer, task, settings)) as reports:
                for evaluation in reports:
                    curve.append(evaluation)
                    # The loss is NaN where none was reported, infinite where it was not finite.
                    if evaluation.loss == inf or not all(
                        map(isfinite, evaluation.metrics.values())
                    ):
                        diverged_at = evaluation.round
                        break
                    if pruned := on_round is not None and on_round(evaluation):
                        break
        except TrainerError as error:
            return [FailedRun(task.population, task.seed, settings, str(error), error.output)]
        return [
            finished_run(
                task, settings, curve, engine="trainer", seconds=time.perf_counter() - started,
                names=[*curve[0].metrics], diverged_at=diverged_at, pruned=pruned,
            )
        ]  # fmt: skip


def _evaluations(trainer: Trainer, task: Task, settings: RunSettings) -> Generator[Evaluation]:
    """What a trainer reports, checked; whatever it raises as a `TrainerError`."""
    seen: list[Evaluation] = []
    reports: Any = ()
    try:
        reports = trainer(task.clients, settings, task.seed)
        for report in [reports] if isinstance(reports, Mapping) else reports:
            seen.append(_evaluation(report, seen))
            yield seen[-1]
    except TrainerError:
        raise
    except Exception as error:  # whatever somebody else's code raises: this run fails, others go on
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        raise TrainerError(text, traceback.format_exc()) from error
    finally:
        getattr(reports, "close", lambda: None)()
    if not seen:
        raise TrainerError(f"it reported no metrics; expected such as {_EXAMPLE}")


def _evaluation(report: Any, seen: Sequence[Evaluation]) -> Evaluation:
    """A report as an evaluation; null and NaN are what a run that diverged reports."""
    values = dict(report) if isinstance(report, Mapping) else {}
    round_ = values.pop("round", len(seen) + 1)
    before = seen[-1].round if seen else 0
    if not isinstance(round_, int) or isinstance(round_, bool) or round_ <= before:
        raise TrainerError(f"expected a round after {before}, got {shown(round_)}")
    numbers: dict[str, float] = {}
    for name, value in values.items():
        number = nan if value is None else plain(value)
        if not isinstance(number, int | float):
            raise TrainerError(f"round {round_}: expected {name} as a number, got {shown(value)}")
        numbers[str(name)] = float(number)
    loss = nan
    if LOSS in numbers:
        loss = numbers.pop(LOSS)
        loss = loss if isfinite(loss) else inf
    elif not numbers:
        raise TrainerError(f"round {round_} has no metric; expected such as {_EXAMPLE}")
    if seen and set(numbers) != set(seen[0].metrics):
        expected = ", ".join(seen[0].metrics)
        raise TrainerError(f"round {round_}: expected {expected}, got {', '.join(numbers)}")
    return Evaluation(round_, loss, numbers)

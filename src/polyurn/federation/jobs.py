"""A run of a federation: its job, and the files that keep what became of it.

A job is the terms on which nodes are asked, the guarantee to clients, and a question: which kinds of
clients there are, or what they differ in. It is the first line of `job.jsonl`. The process that asks the
nodes (`server_process.py`) appends an event for each round; then it writes `result.json`, or an event
with the reason of its failure. Nothing is fitted here.
"""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from polyurn.errors import FileError, ParameterError
from polyurn.federation.aggregator import Terms
from polyurn.federation.processes import alive
from polyurn.model.style_coordinates import StyleSpace
from polyurn.model.trees import Tree
from polyurn.privacy.ledger import Budget, Renewal
from polyurn.server.drift import Drift
from polyurn.storage.documents import read_document
from polyurn.storage.files import check_regular, read_regular, refused
from polyurn.storage.json_log import AppendedFile, JsonLog
from polyurn.typed.declared import IF_GIVEN
from polyurn.typed.json_form import Count, Finite, to_json
from polyurn.wire import RecordColumn

# Who can add noise in secure sums, and in plain ones, where a share of noise would hide nothing.
_ADDERS = {True: ("distributed", "central", "local"), False: ("central", "local")}


@dataclass(frozen=True, kw_only=True)
class Job(Terms):
    """The terms on which nodes are asked, and the guarantee; subclasses add the question."""

    asks: ClassVar[str]

    federation: str  # its folder
    command: str | None
    epsilon: Finite | None = None  # what the run may spend; None: there is no guarantee
    delta: Finite | None = None
    trust: str | None = None  # who adds the noise: "distributed", "central" or "local"
    ledger_epsilon: Finite | None = None  # of all runs; None: that of the ledger, or `epsilon`
    renew: str | None = None  # what a period may spend of it: "monthly:0.5"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon is None:
            if (self.delta, self.trust, self.ledger_epsilon, self.renew) != (None,) * 4:
                raise ParameterError(
                    "expected delta, trust, ledger_epsilon and renew with epsilon only"
                )
            return
        Renewal.of(self.renew, self.epsilon)
        if self.delta is None:
            raise ParameterError("expected delta with epsilon")
        Budget(self.epsilon, self.delta)
        if self.ledger_epsilon is not None:
            Budget(self.ledger_epsilon, self.delta)
        if self.trust not in _ADDERS[self.secure]:
            raise ParameterError(
                f"expected trust {', '.join(_ADDERS[self.secure])} in "
                f"{'secure' if self.secure else 'plain'} sums, got {self.trust}"
            )


@dataclass(frozen=True, kw_only=True)
class MixtureJob(Job):
    """Which kinds of clients are there? The fields are parameters of `learn`."""

    asks: ClassVar[str] = "mixture"

    selects: bool  # chooses the number of components, or fits the one in `components`
    components: tuple[Count, ...]  # empty for "auto"
    max_size: Count
    max_rounds: Count = 50
    patience: Count = 3
    max_upload: Count = 50_000
    seed: Count = 0
    tol: Finite = 1e-3
    held_out: Finite | None = None
    shape: str = "auto"
    tree: Tree | None = field(default=None, metadata=IF_GIVEN)
    cohort_size: Count | None = None  # of nodes
    sizes: str = "binned"
    start: str | None = None  # the file of a mixture to begin at
    checkpoint: str | None = None  # folder that keeps the sum of every round

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(*self.components, self.max_rounds, 1) < 1:
            raise ParameterError("expected numbers of components and of rounds of at least 1")
        if self.epsilon is None:
            return
        if self.cohort_size is not None or self.sizes == "exact":
            raise ParameterError(
                "expected all nodes (no cohort) and sizes binned or shared with epsilon"
            )

    @property
    def search(self) -> dict[str, Any]:
        """The parameters of `learn` that the job has."""
        names = (
            "max_size", "shape", "tree", "max_rounds", "cohort_size", "tol", "patience", "max_upload",
            "sizes", "epsilon", "delta",
        )  # fmt: skip
        held_out = self.held_out if self.selects else None
        return {"held_out": held_out, **{name: getattr(self, name) for name in names}}

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that determine the rounds: a run resumes only with the same ones."""
        no_matter = [
            "command", "checkpoint", "timeout", "settling", "retries", "ledger_epsilon", "renew",
        ]  # fmt: skip
        kept = {name: value for name, value in to_json(self).items() if name not in no_matter}
        if not self.selects:
            del kept["max_rounds"]  # a fit with fewer rounds begins in the same way
        return kept


@dataclass(frozen=True, kw_only=True)
class StyleJob(Job):
    """What do clients differ in besides their labels?

    It is one question: there is nothing to resume, and nothing in it is random.
    """

    asks: ClassVar[str] = "style"

    space: StyleSpace  # its labels are the federation's categories, in their order
    features: tuple[str, ...] | None = None
    label_effect: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.features is not None and len(self.features) != self.space.n_features:
            n_features, n_names = self.space.n_features, len(self.features)
            text = f"expected a name for each of {n_features} features, got {n_names}"
            raise ParameterError(text)


@dataclass(frozen=True, kw_only=True)
class LookJob(Job):
    """What are clients like, or are they still what a mixture's file says? One question.

    Of a `column` of records, the quantiles that cut it into bins, in a few rounds; of several `columns`,
    how much clients differ in them, given the label of this name.
    """

    asks: ClassVar[str] = "look"

    column: str | None = None
    n_bins: Count = 10
    columns: Mapping[str, RecordColumn] = field(default_factory=dict)
    label: str = ""

    mdm: str | None = None
    since: Drift | None = None  # an earlier look to compare with
    level: Finite = 0.05
    seed: Count = 0


AnyJob: TypeAlias = MixtureJob | StyleJob | LookJob
_KINDS: dict[str, Any] = {kind.asks: kind for kind in (MixtureJob, StyleJob, LookJob)}


class JobFolder:
    """The files of one run; the attribute `on_event` is a function that gets every event, too."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.on_event: Callable[[Mapping[str, Any]], object] = lambda _: None
        self.path = Path(os.path.abspath(path))
        self.result, self.pid = self.path / "result.json", self.path / "run.pid"
        self._log = self.path / "job.jsonl"

    @classmethod
    def make(cls, runs: Path, job: AnyJob) -> "JobFolder":
        """The folder of a new run, with the next free number."""
        with refused(f"cannot write {runs}"):
            runs.mkdir(parents=True, exist_ok=True)
            last = max((int(run.path.name) for run in runs_of(runs)), default=0)
            for number in count(last + 1):
                folder = cls(runs / f"{number:04d}")
                with suppress(FileExistsError):  # another command took it meanwhile
                    folder.path.mkdir()
                    break
        folder._opened(begin=True, head={"asks": job.asks, **to_json(job)})
        return folder

    def read(self) -> AnyJob:
        """The job."""
        check_regular(self._log)
        head = self._opened(begin=False).head
        kind = _KINDS.get(str(head.get("asks")))
        if kind is None:
            raise FileError(f"{self._log} is damaged: asks: expected {' or '.join(_KINDS)}")
        job: AnyJob = read_document(kind, self._log, kind="job", document=head)
        return job

    def tell(self, event: Mapping[str, Any]) -> None:
        """Append an event, whole or not at all, in the place of one that was cut off."""
        log = AppendedFile(self._log)
        with log.turn():
            whole = read_regular(self._log).rfind(b"\n") + 1
            log.append_bytes((json.dumps(dict(event)) + "\n").encode(), after=whole)
        self.on_event(event)

    @property
    def state(self) -> str:
        """What became of the run, in a word, or the reason of its failure."""
        if self.result.exists():
            return "completed"
        for event in self.events():
            if "failed" in event:
                return f"failed: {event['failed']}"
        return "running" if alive(self.pid) else "died"

    def events(self) -> list[dict[str, Any]]:
        """The events so far."""
        lines = read_regular(self._log).split(b"\n")
        return [json.loads(line) for line in lines[1:-1]]

    def _opened(self, *, begin: bool, head: Mapping[str, Any] | None = None) -> JsonLog[Job]:
        return JsonLog(
            self._log, Job, kind="job", name="the log of a job", advice="", head=head, begin=begin,
            chained=False,
        )  # fmt: skip


def runs_of(folder: Path) -> list[JobFolder]:
    """All runs in a folder, the first one first."""
    names = sorted((p for p in folder.iterdir() if p.name.isdecimal()), key=lambda p: int(p.name))
    return [JobFolder(path) for path in names]

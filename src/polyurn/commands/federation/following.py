"""Submits a job of a federation, shows its progress and waits for its end.

Another process performs the job, `federation/server_process.py`, and writes its progress into files.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from polyurn.commands.console import INTERRUPTED, say, talk, warn
from polyurn.commands.progress import (
    N_PRIVATE_ROUNDS,
    NOISED,
    STARTING,
    fit_progress,
    selection_progress,
)
from polyurn.errors import FederationError
from polyurn.federation.flower import superlink
from polyurn.federation.flower.processes import alive, is_running
from polyurn.federation.folder import FederationFolder
from polyurn.federation.jobs import JobFolder, MixtureJob, StyleJob
from polyurn.privacy.ledger import Budget
from polyurn.server.fit_results import Round
from polyurn.storage.ledger_file import LedgerFile
from polyurn.typed.json_form import from_json
from polyurn.wire.traffic import Traffic
from polyurn.wording import counted, listed

_LOOK = 0.3  # seconds between two looks for news
_STARTS_WITHIN = 90.0  # seconds until the server's process has to have begun


def perform(files: FederationFolder, job: MixtureJob | StyleJob) -> JobFolder:
    """Submit a job, show its progress and wait for its end; Ctrl-C ends it and says what is kept."""
    if alive(files.pid) is None:
        raise FederationError(f"the server is down: polyurn federation up {files.path}")
    folder = JobFolder.make(files.runs, job)
    kept = _Kept(files, job)
    run = None
    try:
        run = superlink.submit(files, folder.path)
        _follow(files, folder, job, kept)
    except KeyboardInterrupt:
        if run is None:
            folder.fail("interrupted")  # should the run be submitted after all, it asks nobody
        else:
            superlink.stop_run(files, run)
        say(f"interrupted; {kept}")
        raise typer.Exit(INTERRUPTED) from None
    return folder


def say_absences(traffic: Traffic | None) -> None:
    """A warning for the nodes that were not in all sums of a model, in which rounds, and why."""
    for sentence in () if traffic is None else traffic.absences:
        warn(sentence)


class _Kept:
    """What is kept of a job that has ended without a result, in words."""

    def __init__(self, files: FederationFolder, job: MixtureJob | StyleJob) -> None:
        self._files, self._job = files, job
        self._n_releases = _n_releases(files)

    def __str__(self) -> str:
        match self._job:
            case MixtureJob(checkpoint=str(folder)):
                return f"repeat the command to go on from {folder}"
            case MixtureJob():
                sentence = "nothing was kept (no --checkpoint)"
            case StyleJob():
                sentence = "nothing was kept"
        if _n_releases(self._files) == self._n_releases:
            return sentence
        how = "charged to" if self._job.epsilon else "entered in"
        return f"{sentence}, and what was asked is {how} {self._files.ledger}"


def _n_releases(files: FederationFolder) -> int:
    """How many questions are entries of the federation's ledger."""
    if not files.ledger.exists():
        return 0
    return sum(not isinstance(entry, Budget) for entry in LedgerFile(files.ledger).read())


def _follow(
    files: FederationFolder, folder: JobFolder, job: MixtureJob | StyleJob, kept: _Kept
) -> None:
    begin = time.monotonic()
    with _progress(job) as on_event:
        for event in folder.events():
            if event is not None:
                if "failed" in event:
                    raise FederationError(f"{event['failed']}; {kept}")
                if "number" in event:
                    on_event(event)
                elif isinstance(job, MixtureJob) and (news := _news(event, job)):
                    say(news)  # the one question of a style ends with the same words
                continue
            if folder.result.exists():
                return
            has_begun = folder.pid.exists()
            if has_begun and not is_running(folder.pid):
                # It may have written its last event meanwhile.
                if folder.result.exists() or folder.failure is not None:
                    continue
                raise FederationError(f"the process that asks the nodes has died; {kept}")
            if alive(files.pid) is None:
                raise FederationError(
                    f"the SuperLink has died: polyurn federation up {files.path}; then {kept}"
                )
            if not has_begun and time.monotonic() - begin > _STARTS_WITHIN:
                raise FederationError(f"the run did not begin: see {files.log}")
            time.sleep(_LOOK)


@contextmanager
def _progress(job: MixtureJob | StyleJob) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that shows each round of a job."""
    match job:
        case StyleJob():  # one question
            say("asking the nodes, once")
            yield lambda _: None
        case MixtureJob():
            with _rounds(job) as on_event:
                yield on_event


@contextmanager
def _rounds(job: MixtureJob) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that shows each round of a fit, of one number of components or of several."""
    unseen, n_rounds = (
        (STARTING, job.max_rounds) if job.epsilon is None else (NOISED, N_PRIVATE_ROUNDS)
    )
    several = job.selects and job.epsilon is None
    shown = selection_progress(talk) if several else fit_progress(talk, n_rounds, unseen=unseen)
    with shown as on_round:

        def on_event(event: dict[str, Any]) -> None:
            values = {int(k): value for k, value in event.get("values", {}).items()}
            known = {"values": values, "running": tuple(event.get("running", ()))}
            on_round(from_json(Round, event, parsed={**known, "n_clients": event["n_clients"]}))

        yield on_event


def _news(event: dict[str, Any], job: MixtureJob) -> str:
    """In one line, after which round a run goes on, or which nodes have left and joined."""
    if "kept" in event:
        kept = counted(event["kept"], "round")
        return f"going on after {kept} from {job.checkpoint}" if event["kept"] else ""
    left = listed([f"{name} ({why})" for name, why in event["left"].items()])
    words = [f"without {left}"] if event["left"] else []
    words += [f"with {listed(event['joined'])}"] if event["joined"] else []
    return f"from round {event['round']} on {', '.join(words)}"

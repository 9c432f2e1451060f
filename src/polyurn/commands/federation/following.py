"""Performs a job over the server of a federation, and shows its progress."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer

import polyurn as pu
from polyurn.commands.console import INTERRUPTED, say, talk
from polyurn.commands.progress import learning_progress
from polyurn.errors import BudgetError, FederationError, FileError, ParameterError, PolyurnError
from polyurn.federation import server_process
from polyurn.federation.folder import FederationFolder
from polyurn.federation.https.asking import HttpsExchange
from polyurn.federation.jobs import AnyJob, JobFolder, MixtureJob
from polyurn.federation.processes import alive
from polyurn.privacy.ledger import Budget
from polyurn.storage.ledger_file import LedgerFile
from polyurn.typed.json_form import from_json
from polyurn.wording import counted, listed


def perform(files: FederationFolder, job: AnyJob) -> JobFolder:
    """Perform a job and show its progress; Ctrl-C ends it and says what is kept."""
    if alive(files.pid) is None:
        raise FederationError(f"the server is down: polyurn federation up {files.path}")
    exchange, folder = HttpsExchange(files), JobFolder.make(files.runs, job)
    n_before = _n_releases(files)
    try:
        with _progress(job) as on_round:

            def on_event(event: Mapping[str, Any]) -> None:
                if "number" in event:
                    on_round(event)
                elif "missing" in event:
                    say(f"waiting up to {job.settling:g} s for {listed(event['missing'])}")
                elif isinstance(job, MixtureJob) and (news := _news(event, job)):
                    say(news)  # the one question of a style ends with the same words

            folder.on_event = on_event
            server_process.perform(exchange, folder)
    except KeyboardInterrupt:
        say(f"interrupted{_kept(files, job, n_before, None)}")
        raise typer.Exit(INTERRUPTED) from None
    except PolyurnError as error:
        raise FederationError(f"{error}{_kept(files, job, n_before, error)}") from error
    return folder


def _kept(files: FederationFolder, job: AnyJob, n_before: int, error: object) -> str:
    """What is kept of a job without a result, to end a sentence; `n_before` are releases before it."""
    was_asked = _n_releases(files) > n_before
    parts = ["nothing was kept" if was_asked else "nothing was asked"]
    if isinstance(job, MixtureJob) and job.checkpoint is not None:
        parts = [f"repeat the command to go on from {job.checkpoint}"]
    if isinstance(
        error, BudgetError | FileError | ParameterError
    ):  # repeated, it would be the same
        parts = []
    if was_asked:
        parts += [
            f"what was asked is {'charged to' if job.epsilon else 'entered in'} {files.ledger}"
        ]
    return "; " * bool(parts) + ", and ".join(parts)


def _n_releases(files: FederationFolder) -> int:
    """How many questions are entries of the federation's ledger."""
    entries = LedgerFile(files.ledger).read() if files.ledger.exists() else ()
    return sum(not isinstance(entry, Budget) for entry in entries)


@contextmanager
def _progress(job: AnyJob) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A function that shows each round of a job."""
    if not isinstance(job, MixtureJob):  # one question
        say("asking the nodes once")
        yield lambda _: None
        return
    private = job.epsilon is not None
    with learning_progress(talk, job.max_rounds, job.selects, private) as on_round:

        def on_event(event: Mapping[str, Any]) -> None:
            values = {int(k): value for k, value in event.get("values", {}).items()}
            known = {"values": values, "running": tuple(event.get("running", ()))}
            on_round(from_json(pu.Round, event, parsed={**known, "n_clients": event["n_clients"]}))

        yield on_event


def _news(event: Mapping[str, Any], job: MixtureJob) -> str:
    """In one line, after which round a run goes on, or which nodes have left and joined."""
    if "kept" in event:
        kept = counted(event["kept"], "round")
        return f"going on after {kept} from {job.checkpoint}" if event["kept"] else ""
    if "failed" in event:
        return ""  # whoever submitted the job says it
    left = listed([f"{name} ({why})" for name, why in event["left"].items()])
    words = [f"without {left}"] if event["left"] else []
    words += [f"with {listed(event['joined'])}"] if event["joined"] else []
    return f"from round {event['round']} on {', '.join(words)}"

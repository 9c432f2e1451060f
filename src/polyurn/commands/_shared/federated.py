"""A job of a federation, from its submission to its end: what is shown meanwhile, and how it can end.

The job is performed by another process, `integrations/flower/server_app.py`, which tells in files how it
goes on.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import nan
from typing import Any

import typer

from polyurn.commands._shared.console import INTERRUPTED, say, talk
from polyurn.commands._shared.private_fits import N_ROUNDS
from polyurn.commands._shared.progress import NOISED, STARTING, fit_progress, selection_progress
from polyurn.errors import FederationError
from polyurn.integrations.flower import superlink
from polyurn.integrations.flower.processes import alive, is_running
from polyurn.server.results import Progress, Round
from polyurn.storage.federation_folder import FederationFolder
from polyurn.storage.federation_job import Job, JobFolder
from polyurn.wording.numbers import counted

_LOOK = 0.3  # seconds between two looks for news
_STARTS_WITHIN = 90.0  # seconds until the server's process has to have begun


def perform(place: FederationFolder, job: Job) -> JobFolder:
    """Submit a job, show how it goes on, and wait for its end; Ctrl-C ends it, and says what is kept."""
    if alive(place.pid) is None:
        raise FederationError(f"the server is down: polyurn federation up {place.path}")
    folder = JobFolder.make(place.runs, job)
    again = (
        f"repeat the command to go on from {job.checkpoint}"
        if job.checkpoint
        else "nothing was kept (no --checkpoint)"
    )
    run = superlink.submit(place, folder.path)
    try:
        _follow(place, folder, job, again)
    except KeyboardInterrupt:
        superlink.stop_run(place, run)
        say(f"interrupted; {again}")
        raise typer.Exit(INTERRUPTED) from None
    return folder


def _follow(place: FederationFolder, folder: JobFolder, job: Job, again: str) -> None:
    begin = time.monotonic()
    with _progress(job) as on_event:
        for event in folder.events():
            if event is not None:
                on_event(event)
                continue
            if folder.result.exists():
                return
            if (reason := folder.failure) is not None:
                raise FederationError(f"{reason}; {again}")
            has_begun = folder.pid.exists()
            if has_begun and not is_running(folder.pid):
                # Its last words may have come in between.
                if folder.result.exists() or folder.failure is not None:
                    continue
                raise FederationError(f"the process that asks the nodes has died; {again}")
            if alive(place.pid) is None:
                raise FederationError(
                    f"the SuperLink has died: polyurn federation up {place.path}; then {again}"
                )
            if not has_begun and time.monotonic() - begin > _STARTS_WITHIN:
                raise FederationError(f"the run did not begin: see {place.log}")
            time.sleep(_LOOK)


@contextmanager
def _progress(job: Job) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that shows each event of a job."""

    def kept(event: dict[str, Any]) -> bool:
        if event.get("kept"):
            say(f"going on after {counted(event['kept'], 'round')} from {job.checkpoint}")
        return "kept" in event

    if job.selects and job.epsilon is None:
        with selection_progress(talk) as on_round:

            def on_selection(event: dict[str, Any]) -> None:
                if not kept(event):
                    values = {int(k): value for k, value in event["values"].items()}
                    running = tuple(event["running"])
                    on_round(Progress(event["round"], values, running, event["n_clients"], 0))

            yield on_selection
        return
    n_rounds, unseen = (job.rounds, STARTING) if job.epsilon is None else (N_ROUNDS, NOISED)
    with fit_progress(talk, n_rounds, unseen=unseen) as on_fit_round:

        def on_fit(event: dict[str, Any]) -> None:
            if not kept(event):
                value = nan if event["log_likelihood"] is None else event["log_likelihood"]
                on_fit_round(Round(event["round"], None, value, event["n_clients"], 0))

        yield on_fit

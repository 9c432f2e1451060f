"""polyurn's ServerApp: performs the job that `polyurn federation run` or `style` wrote down.

The search is `server/`, asking the nodes is `aggregator.py`. What happens is told in the job's folder,
because the command that waits for it is another process.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from polyurn.aggregate.replay import RecordedAggregator
from polyurn.errors import BudgetError, MissingDependencyError, PolyurnError
from polyurn.integrations.flower.aggregator import FlowerAggregator
from polyurn.integrations.flower.private_job import COLLUDING, private_clients
from polyurn.integrations.flower.setting_up import roster_of
from polyurn.model.mdm import MDM
from polyurn.server.fit import fit, select
from polyurn.server.private.fitting import fit_private, select_private
from polyurn.server.style import fit_style
from polyurn.storage.federation_folder import FederationFolder
from polyurn.storage.federation_job import Job, JobFolder, MixtureJob, StyleJob
from polyurn.storage.journal import Journal
from polyurn.storage.models import save
from polyurn.storage.provenance import PrivacyRecord
from polyurn.typed.records import to_record
from polyurn.wire import Aggregator

try:
    from flwr.app import Context
    from flwr.serverapp import Grid, ServerApp
except ImportError as error:
    raise MissingDependencyError("flwr", "flower", "a ServerApp") from error

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Perform the job; what goes wrong is written down before it is raised."""
    folder = JobFolder(str(context.run_config["job"]))
    folder.pid.write_text(f"{os.getpid()}\n")
    if folder.failure is not None:  # whoever submitted it was interrupted meanwhile
        return
    try:
        perform(grid, folder)
    except PolyurnError as error:
        folder.fail(str(error))
        raise
    except Exception as error:
        folder.fail(f"the server's side failed: {type(error).__name__}: {error}")
        raise


def perform(grid: Grid, folder: JobFolder) -> None:
    """Ask the nodes until there is a model, and write it into the folder.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
    folder : JobFolder
    """
    job = folder.read()
    place = FederationFolder(job.federation)
    match job:
        case MixtureJob():
            _learn_mixture(_nodes(grid, place, job, rng=job.seed), place, job, folder)
        case StyleJob():
            _learn_style(_nodes(grid, place, job), place, job, folder)


def _nodes(
    grid: Grid, place: FederationFolder, job: Job, *, rng: int | None = None
) -> FlowerAggregator:
    """The nodes of a federation, asked on the terms of a job."""
    federation = place.read()
    return FlowerAggregator(
        grid,
        numbers=place.flower_ids(),
        secure=job.secure,
        roster=roster_of(federation),
        clients_per_node=federation.clients_per_node,
        min_nodes=job.min_nodes,
        min_fraction=job.min_fraction,
        timeout=job.timeout,
        settling=job.settling,
        retries=job.retries,
        dropout=job.dropout,
        colluding=COLLUDING,
        rng=rng,
    )


def _learn_mixture(
    nodes: FlowerAggregator, place: FederationFolder, job: MixtureJob, folder: JobFolder
) -> None:
    federation = place.read()
    answers = None if job.checkpoint is None else Journal(Path(job.checkpoint), job.settings)
    asked: Aggregator = nodes
    if job.epsilon is not None:
        asked = private_clients(nodes, job, place, answers)
    if answers is not None:
        folder.tell({"kept": len(answers)})
        asked = RecordedAggregator(asked, answers)
    learn = _searched if job.epsilon is None else _private
    mdm, made = learn(asked, job, federation.n_categories, folder)
    made |= {"seed": job.seed, **_made(nodes, place, job)}
    save(mdm, folder.result, categories=federation.categories, made=made)


def _learn_style(
    nodes: FlowerAggregator, place: FederationFolder, job: StyleJob, folder: JobFolder
) -> None:
    guarantee = None
    if job.epsilon is None:
        style = fit_style(nodes, job.space, ties=job.ties)
    else:
        private = private_clients(nodes, job, place)
        with _saying_how_to_raise():
            style = fit_style(
                private, job.space, ties=job.ties, epsilon=job.epsilon, delta=job.delta
            )
        guarantee = private.guarantee()
    privacy = to_record(PrivacyRecord.of(guarantee))
    save(
        style,
        folder.result,
        categories=place.read().categories,
        features=job.features,
        made={"privacy": privacy, **_made(nodes, place, job)},
    )


def _made(nodes: FlowerAggregator, place: FederationFolder, job: Job) -> dict[str, Any]:
    """How a model came about, whatever it is a model of."""
    names = {node.number: node.name for node in place.read().nodes}
    return {"command": job.command, "crossed": to_record(nodes.crossed.named(names))}


@contextmanager
def _saying_how_to_raise() -> Iterator[None]:
    """Rounds that were begun again, or another run: all are charged to the same ledger."""
    try:
        yield
    except BudgetError as error:
        raise BudgetError(f"{error} with --ledger-epsilon") from error


def _searched(
    asked: Aggregator, job: MixtureJob, n_categories: int, folder: JobFolder
) -> tuple[MDM, dict[str, Any]]:
    """A model from exact sums, and how it came about."""
    common: dict[str, Any] = {
        "n_categories": n_categories,
        "max_size": job.max_size,
        "max_rounds": job.rounds,
        "cohort_size": job.cohort,
        "tol": job.tol,
        "patience": job.patience,
        "max_upload": job.max_upload,
        "sizes": job.sizes,
        "rng": job.seed,
    }
    made: dict[str, Any] = {"privacy": to_record(PrivacyRecord.of(None))}
    if job.selects:
        choice = select(
            asked, job.components or "auto", held_out=job.held_out,
            on_round=lambda done: folder.tell(
                {**to_record(done), "values": dict(done.values), "running": done.running}
            ),
            **common,
        )  # fmt: skip
        return choice.mdm, {**made, "selection": to_record(choice)}
    done = fit(
        asked, n_components=job.components[0],
        on_round=lambda done: folder.tell(to_record(done)), **common,
    )  # fmt: skip
    return done.mdm, {**made, "fit": to_record(done)}


def _private(
    asked: Aggregator, job: MixtureJob, n_categories: int, folder: JobFolder
) -> tuple[MDM, dict[str, Any]]:
    """A model from sums with noise, and how it came about."""
    common: dict[str, Any] = {
        "epsilon": job.epsilon,
        "delta": job.delta,
        "n_categories": n_categories,
        "max_size": job.max_size,
        "sizes": job.sizes,
        "rng": job.seed,
        "on_round": lambda done: folder.tell(to_record(done)),
    }
    made: dict[str, Any] = {}
    with _saying_how_to_raise():
        if job.selects:
            choice = select_private(asked, job.components, **common)
            done = choice.fit
            made["candidates"] = [asdict(candidate) for candidate in choice.candidates]
        else:
            done = fit_private(asked, n_components=job.components[0], **common)
    made["fit"] = to_record(done)
    made["privacy"] = to_record(PrivacyRecord.of(done.guarantee))
    return done.mdm, made

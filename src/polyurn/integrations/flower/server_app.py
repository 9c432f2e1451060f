"""polyurn's ServerApp: performs the job that `polyurn federation run` or `style` wrote down.

The search is `server/`, asking the nodes is `aggregator.py`. What happens is told in the job's folder,
because the command that waits for it is another process.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from polyurn.aggregate.replay import RecordedAggregator
from polyurn.errors import BudgetError, MissingDependencyError, PolyurnError
from polyurn.integrations.flower.aggregator import FlowerAggregator
from polyurn.integrations.flower.private_job import COLLUDING, private_clients
from polyurn.integrations.flower.setting_up import roster_of
from polyurn.server.learning import learn
from polyurn.server.results import Progress, Round
from polyurn.server.style import fit_style
from polyurn.storage.federation_folder import FederationFolder
from polyurn.storage.federation_job import Job, JobFolder, MixtureJob, StyleJob
from polyurn.storage.journal import Journal
from polyurn.storage.models import save
from polyurn.storage.provenance import Made, PrivacyRecord
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
    with _saying_how_to_raise():
        learned = learn(
            asked, job.components or "auto", n_categories=federation.n_categories, rng=job.seed,
            on_round=lambda done: folder.tell(_event(done)), **job.search,
        )  # fmt: skip
    made = {"seed": job.seed, **Made.of(learned).to_record(), **_made(nodes, place, job)}
    save(learned.mdm, folder.result, categories=federation.categories, made=made)


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


def _event(done: Round | Progress) -> dict[str, Any]:
    """A round, for whoever watches; of a selection, how far each number of components is."""
    if isinstance(done, Round):
        return to_record(done)
    return {**to_record(done), "values": dict(done.values), "running": done.running}

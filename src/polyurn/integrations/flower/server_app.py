"""polyurn's ServerApp: performs the job that `polyurn federation run` wrote down.

The search is `server/`, asking the nodes is `aggregator.py`. What happens is told in the job's folder,
because the command that waits for it is another process.
"""

import os
from pathlib import Path
from typing import Any

from polyurn.aggregate.replay import RecordedAggregator
from polyurn.errors import MissingDependencyError, PolyurnError
from polyurn.integrations.flower.aggregator import FlowerAggregator
from polyurn.integrations.flower.setting_up import roster_of
from polyurn.server.fit import fit
from polyurn.server.records import FitRecord, SelectionRecord
from polyurn.server.results import Progress, Round
from polyurn.server.select import select
from polyurn.storage.federation_folder import FederationFolder
from polyurn.storage.federation_job import JobFolder
from polyurn.storage.journal import Journal
from polyurn.storage.mdm_json import save
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
    federation = place.read()
    clients = FlowerAggregator(
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
        rng=job.seed,
    )
    asked: Aggregator = clients
    if job.checkpoint is not None:
        journal = Journal(Path(job.checkpoint), job.settings)
        folder.tell({"kept": len(journal)})
        asked = RecordedAggregator(clients, journal)
    common: dict[str, Any] = {
        "n_categories": federation.n_categories,
        "max_size": job.max_size,
        "max_rounds": job.rounds,
        "cohort_size": job.cohort,
        "tol": job.tol,
        "patience": job.patience,
        "max_upload": job.max_upload,
        "sizes": job.sizes,
        "rng": job.seed,
    }
    made: dict[str, Any] = {"seed": job.seed, "command": job.command}
    if job.selects:
        choice = select(
            asked, job.components or "auto", held_out=job.held_out,
            on_round=lambda done: folder.tell(_selection_event(done)), **common,
        )  # fmt: skip
        mdm, made["selection"] = choice.mdm, SelectionRecord.of(choice).to_record()
    else:
        done = fit(
            asked, n_components=job.components[0],
            on_round=lambda done: folder.tell(_fit_event(done)), **common,
        )  # fmt: skip
        mdm, made["fit"] = done.mdm, FitRecord.of(done).to_record()
    names = {node.number: node.name for node in federation.nodes}
    made["crossed"] = clients.crossed.to_record(names=names)
    save(mdm, folder.result, categories=federation.categories, made=made)


def _fit_event(done: Round) -> dict[str, Any]:
    value = None if done.mdm is None else done.log_likelihood
    return {"round": done.number, "n_clients": done.n_clients, "log_likelihood": value}


def _selection_event(done: Progress) -> dict[str, Any]:
    return {
        "round": done.number,
        "n_clients": done.n_clients,
        "values": {str(k): value for k, value in done.values.items()},
        "running": list(done.running),
    }

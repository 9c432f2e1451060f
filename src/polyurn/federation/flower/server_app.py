"""polyurn's ServerApp: Flower starts a process with it for a run, which performs a job."""

import os

from polyurn.errors import MissingDependencyError, PolyurnError
from polyurn.federation.flower.grid_exchange import FlowerExchange
from polyurn.federation.folder import FederationFolder
from polyurn.federation.jobs import JobFolder
from polyurn.federation.server_process import perform
from polyurn.storage.files import write_whole

try:
    from flwr.app import Context
    from flwr.serverapp import Grid, ServerApp
except ImportError as error:
    raise MissingDependencyError("flwr", "flower", "a ServerApp") from error

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Perform the job; an error is written into its folder before it is raised."""
    folder = JobFolder(str(context.run_config["job"]))
    write_whole(folder.pid, lambda file: file.write(f"{os.getpid()}\n".encode()))
    if folder.failure is not None:  # whoever submitted it was interrupted meanwhile
        return
    try:
        numbers = FederationFolder(folder.read().federation).flower_ids()
        perform(FlowerExchange(grid, numbers), folder)
    except PolyurnError as error:
        folder.fail(str(error))
        raise
    except Exception as error:
        folder.fail(f"the server's side failed: {type(error).__name__}: {error}")
        raise

"""polyurn's ServerApp: learns a mixture over the SuperNodes of a Flower federation.

Its settings are the run's configuration (`flwr run --run-config`), named as the fields of `MixtureJob`
with dashes or underscores: `federation` (the server's folder) and `output` must be given, `components`
is a number, some as "1,2,3", or "" for a search; "" stands for what is not given. The run is one of the
federation's: its folder, ledger and record are the same as those of `polyurn federation run`.
"""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from polyurn.errors import MissingDependencyError, ParameterError
from polyurn.federation.flower.public_grid import GridExchange
from polyurn.federation.folder import FederationFolder
from polyurn.federation.jobs import JobFolder, MixtureJob
from polyurn.federation.server_process import perform
from polyurn.server.learning import selects
from polyurn.storage.files import write_whole

try:
    from flwr.app import Context
    from flwr.serverapp import Grid, ServerApp
except ImportError as error:
    raise MissingDependencyError("flwr", "flower", "a ServerApp") from error


def server_app() -> ServerApp:
    """The app."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        settings = {name.replace("-", "_"): value for name, value in context.run_config.items()}
        learn_mixture(grid, settings)

    return app


def learn_mixture(grid: Grid, settings: Mapping[str, Any]) -> None:
    """Learn over the nodes of a grid, and write the mixture to `output`."""
    given = {name: value for name, value in settings.items() if value != ""}
    if absent := [name for name in ("federation", "output") if name not in given]:
        raise ParameterError(
            f"expected the settings federation and output, {absent[0]} is not given"
        )
    output, files = given.pop("output"), FederationFolder(given["federation"])
    federation = files.read()
    folder = JobFolder.make(files.runs, _job(given, max_size=federation.max_size))
    perform(GridExchange(grid, federation.roster), folder)
    write_whole(Path(output), lambda file: file.write(folder.result.read_bytes()))


def _job(given: Mapping[str, Any], *, max_size: int) -> MixtureJob:
    known = {field.name for field in fields(MixtureJob)} - {"command", "selects", "max_size"}
    if unknown := sorted(set(given) - known):
        raise ParameterError(
            f"there is no setting {unknown[0]}; expected {', '.join(sorted(known))}"
        )
    text = str(given.get("components", ""))
    try:
        components = tuple(int(number) for number in text.split(",") if text)
    except ValueError:
        raise ParameterError(f'expected components as 3 or "1,2,3", got {text!r}') from None
    chooses = selects(components or "auto", given.get("held_out"))
    rest = {**given, "components": components, "selects": chooses, "max_size": max_size}
    return MixtureJob(command="flwr run", **rest)

"""`polyurn federation describe` and `score`: one question to the nodes of a live federation.

The nodes are asked as for `run`; `federation/server_process.py` asks them, and writes the result.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

import polyurn as pu
from polyurn.commands.declare import argument
from polyurn.commands.looks import DriftOptions, put_description
from polyurn.commands.options import (
    AS_JSON,
    FEDERATION,
    JSON_OUTPUT,
    SEED,
    FederationPrivacyOptions,
    NodeOptions,
)
from polyurn.errors import ParameterError

if TYPE_CHECKING:
    from polyurn.federation.folder import Federation
    from polyurn.storage.models import Saved


def describe_command(
    *, context: typer.Context, folder: Path = FEDERATION, privacy: FederationPrivacyOptions,
    nodes: NodeOptions, output: Path | None = JSON_OUTPUT, as_json: bool = AS_JSON,
) -> None:  # fmt: skip
    """Describe the clients of a federation: how many, how large, what they hold, how different.

    It is one question; the server sees a masked sum only. Say what is guaranteed to a client:
    `--epsilon` and `--delta`, or `--no-privacy`.

    Example: `polyurn federation describe fed --epsilon 0.5 --delta 1e-6`
    """
    from polyurn.commands.federation.following import perform
    from polyurn.federation.folder import FederationFolder
    from polyurn.federation.jobs import LookJob
    from polyurn.server.describing import Description
    from polyurn.storage.documents import read_document

    files = FederationFolder(folder)
    federation = files.read()
    job = LookJob(federation=str(files.path), command=context.obj, **nodes.of_job(privacy))
    found = read_document(Description, perform(files, job).result, kind="look")
    of_file = {"command": context.obj, "data": folder.name}
    names = _names(federation.declared)
    put_description(found, names, output, as_json=as_json, provenance=of_file)


def score_command(
    *, context: typer.Context, folder: Path = FEDERATION,
    mdm: Path = argument("MDM", "File that `fit` or `federation run` wrote."),
    privacy: FederationPrivacyOptions, nodes: NodeOptions, drift: DriftOptions, seed: int = SEED,
    as_json: bool = AS_JSON,
) -> None:  # fmt: skip
    """Measure whether the clients of a federation still are what a mixture says.

    It is one question; the server sees a masked sum only. Say what is guaranteed to a client:
    `--epsilon` and `--delta`, or `--no-privacy`.

    Example: `polyurn federation score fed mdm.json --epsilon 0.5 --delta 1e-6 --fail-on-drift`
    """
    from polyurn.commands.federation.following import perform
    from polyurn.commands.views import read_model
    from polyurn.federation.folder import FederationFolder
    from polyurn.federation.jobs import LookJob
    from polyurn.server.drift import Drift
    from polyurn.storage.documents import read_document

    files = FederationFolder(folder)
    federation = files.read()
    terms = nodes.of_job(privacy)
    saved = read_model(mdm)
    _check_same(saved, mdm, federation)
    job = LookJob(
        federation=str(files.path), command=context.obj, mdm=str(mdm.absolute()),
        since=drift.since(saved.model), level=drift.alarm, seed=seed, **terms,
    )  # fmt: skip
    found = read_document(Drift, perform(files, job).result, kind="look")
    drift.put(found, saved.model, folder.name, as_json=as_json)


def _check_same(saved: "Saved[pu.MDM]", path: Path, federation: "Federation") -> None:
    """Refuse a mixture that the nodes could not be asked about."""
    if saved.model.max_size != federation.max_size:
        raise ParameterError(
            f"expected a mixture of sizes up to the federation's {federation.max_size}, got {path} up "
            f"to {saved.model.max_size}"
        )
    if _names(saved.declared) != _names(federation.declared):
        raise ParameterError(f"expected a mixture of the federation's categories, got {path}")


def _names(declared: int | tuple[str, ...]) -> tuple[str, ...]:
    """Names of categories, or their numbers as texts."""
    return tuple(map(str, range(declared))) if isinstance(declared, int) else declared

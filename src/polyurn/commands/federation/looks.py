"""`polyurn federation describe`, `features` and `score`: questions to the nodes of a live federation.

The nodes are asked as for `run`; `federation/server_process.py` asks them, and writes the result.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

import polyurn as pu
from polyurn.commands.declare import argument, option
from polyurn.commands.features import RANGE_BINS, RANGES, declared_ranges, put_choice
from polyurn.commands.looks import COLUMN, COLUMN_BINS, DriftOptions, put_description
from polyurn.commands.options import (
    AS_JSON,
    FEDERATION,
    JSON_OUTPUT,
    SEED,
    FederationPrivacyOptions,
    NodeOptions,
    listed_names,
)
from polyurn.errors import ParameterError

if TYPE_CHECKING:
    from polyurn.federation.folder import Federation, FederationFolder
    from polyurn.storage.models import Saved

T = TypeVar("T")


def describe_command(
    *, context: typer.Context, folder: Path = FEDERATION, privacy: FederationPrivacyOptions,
    nodes: NodeOptions, column: str | None = COLUMN, bins: int = COLUMN_BINS,
    output: Path | None = JSON_OUTPUT, as_json: bool = AS_JSON,
) -> None:  # fmt: skip
    """Describe the clients of a federation: how many, how large, what they hold, how different.

    It is one question, with `--column` at most four; the server sees masked sums only. Say what is
    guaranteed to a client: `--epsilon` and `--delta`, or `--no-privacy`.

    Example: `polyurn federation describe fed --epsilon 0.5 --delta 1e-6`
    """
    from polyurn.client.counting import category_names
    from polyurn.federation.folder import FederationFolder
    from polyurn.server.describing import ColumnDescription, Description

    files = FederationFolder(folder)
    federation = files.read()
    if column is not None:
        federation.check_column(column)
        if column in federation.values:
            raise ParameterError(f"expected a column of numbers, got {column!r}, which has values")
    kind: Any = Description if column is None else ColumnDescription
    terms = nodes.of_job(privacy)
    found = _looked(kind, files, command=context.obj, column=column, n_bins=bins, **terms)
    of_file = {"command": context.obj, "data": folder.name}
    if column is None:
        found = replace(found, categories=category_names(federation.declared))
    put_description(found, output, as_json=as_json, provenance=of_file)


def features_command(
    *,
    context: typer.Context,
    folder: Path = FEDERATION,
    features: str = option(
        ..., "Declared columns of records to look at, comma-separated: what the network sees."
    ),
    label: str = option("the label", "What the category is called.", "--category", "--label"),
    ranges: list[str] | None = RANGES,
    bins: int = RANGE_BINS,
    privacy: FederationPrivacyOptions,
    nodes: NodeOptions,
    as_json: bool = AS_JSON,
) -> None:
    """Find what to model: how much clients differ in the category, and in other columns given it.

    For nodes that joined with `--features`; one question for each column. Say what is guaranteed to a
    client: `--epsilon` and `--delta`, or `--no-privacy`.

    Example: `polyurn federation features fed --label dest --features origin,carrier --no-privacy`
    """
    from polyurn.federation.folder import FederationFolder
    from polyurn.server.feature_choice import FeatureChoice

    files = FederationFolder(folder)
    cut = declared_ranges(ranges or [], bins)
    columns = files.read().columns(listed_names(features) or [], cut)
    terms = {"columns": columns, "label": label, **nodes.of_job(privacy)}
    found = _looked(FeatureChoice, files, command=context.obj, **terms)
    put_choice(found, as_json=as_json, statement=True)


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
    from polyurn.commands.views import read_model
    from polyurn.federation.folder import FederationFolder
    from polyurn.server.drift import Drift

    files = FederationFolder(folder)
    federation = files.read()
    terms = nodes.of_job(privacy)
    saved = read_model(mdm)
    _check_same(saved, mdm, federation)
    found = _looked(
        Drift, files, command=context.obj, mdm=str(mdm.absolute()), since=drift.since(saved.model),
        level=drift.alarm, seed=seed, **terms,
    )  # fmt: skip
    drift.put(found, saved.model, folder.name, as_json=as_json)


def _looked(kind: type[T], files: "FederationFolder", **job: Any) -> T:
    """What a look over the nodes has found, as a value of its kind."""
    from polyurn.commands.federation.following import perform
    from polyurn.federation.jobs import LookJob
    from polyurn.storage.documents import read_document

    folder = perform(files, LookJob(federation=str(files.path), **job))
    return read_document(kind, folder.result, kind="look")


def _check_same(saved: "Saved[pu.MDM]", path: Path, federation: "Federation") -> None:
    """Refuse a mixture that the nodes could not be asked about."""
    from polyurn.client.counting import category_names

    if saved.model.max_size != federation.max_size:
        raise ParameterError(
            f"expected a mixture of sizes up to the federation's {federation.max_size}, got {path} up "
            f"to {saved.model.max_size}"
        )
    if category_names(saved.declared) != category_names(federation.declared):
        raise ParameterError(f"expected a mixture of the federation's categories, got {path}")

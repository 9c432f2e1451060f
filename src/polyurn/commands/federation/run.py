"""`polyurn federation run` and `style`: learn what the clients of a live federation look like.

These commands submit a job, show its progress, and take the result. `federation/server_process.py` asks
the nodes.
"""

from pathlib import Path
from typing import Literal

import typer

import polyurn as pu
from polyurn.commands.console import say
from polyurn.commands.declare import Unless, option
from polyurn.commands.options import (
    AS_JSON,
    CHECKPOINT,
    FEATURES,
    FEDERATION,
    JSON_OUTPUT,
    LABEL,
    OUTPUT,
    POINTS,
    SEED,
    START,
    FederationPrivacyOptions,
    NodeOptions,
    SearchOptions,
    SpaceOptions,
    component_numbers,
    listed_names,
)
from polyurn.errors import ParameterError
from polyurn.wording import listed


def run_command(
    *,
    context: typer.Context,
    folder: Path = FEDERATION,
    privacy: FederationPrivacyOptions,
    search: SearchOptions,
    nodes: NodeOptions,
    components: str = option(
        "auto",
        "One number of components; or to choose from: 1:6, 2,4,8. auto offers 1,2,4,8,... in the same "
        "rounds, as far as max_upload allows.",
        Unless("start"),
    ),
    start: Path | None = START,
    output: Path | None = OUTPUT,
    checkpoint: Path | None = CHECKPOINT,
    cohort: int | None = option(
        None, "Nodes per round, not clients; all of them by default.", Unless("epsilon")
    ),
    sizes: Literal["exact", "binned", "shared"] = option(
        "binned", "Size model: one by one, in bins, or in bins that all components share."
    ),
    seed: int = SEED,
    as_json: bool = AS_JSON,
) -> None:
    """Learn a mixture from the nodes of a federation; the server sees masked sums only.

    With one number of components it is fitted; with several, held-out clients choose, and with
    `--held-out` they score a single one, too. `--cohort`, min_nodes and min_fraction count nodes. Say
    what is guaranteed to a client: `--epsilon` and `--delta`, or `--no-privacy`.

    Example: `polyurn federation run fed --epsilon 1 --delta 1e-6 --components 3 -o mdm.json`
    """
    from polyurn.client.counting import category_names
    from polyurn.commands.federation.following import perform
    from polyurn.commands.views import put_learned
    from polyurn.federation.folder import FederationFolder
    from polyurn.federation.jobs import MixtureJob
    from polyurn.server.fitting import DEAR_ROUNDS, ROUNDS
    from polyurn.server.learning import selects
    from polyurn.storage.models import load_saved

    files = FederationFolder(folder)
    federation = files.read()
    terms = nodes.of_job(privacy)
    numbers = component_numbers(components)
    if start is not None:
        load_saved(start).model.in_order_of(federation.declared)
    rounds = DEAR_ROUNDS if numbers == "auto" else ROUNDS
    job = MixtureJob(
        federation=str(files.path), command=context.obj,
        selects=start is None and selects(numbers, search.held_out),
        start=None if start is None else str(start.absolute()),
        components=() if numbers == "auto" else numbers, max_size=federation.max_size, seed=seed,
        cohort_size=cohort, sizes=sizes,
        checkpoint=None if checkpoint is None else str(checkpoint.absolute()),
        **search.given(category_names(federation.declared), max_rounds=rounds), **terms,
    )  # fmt: skip
    put_learned(load_saved(perform(files, job).result), output, as_json=as_json)


def style_command(
    *,
    context: typer.Context,
    folder: Path = FEDERATION,
    proxy: Path = POINTS,
    measured: SpaceOptions,
    privacy: FederationPrivacyOptions,
    nodes: NodeOptions,
    output: Path | None = JSON_OUTPUT,
    label: str | None = LABEL,
    features: str | None = FEATURES,
    as_json: bool = AS_JSON,
) -> None:
    """Learn clients' styles from the nodes of a federation; the server sees a masked sum only.

    It is one question, to nodes that joined with --features. Labels are the federation's categories. Say
    what is guaranteed to a client: `--epsilon` and `--delta`, or `--no-privacy`.

    Example: `polyurn federation style fed proxy.csv --epsilon 1 --delta 1e-6 -o style.json`
    """
    from polyurn.commands.federation.following import perform
    from polyurn.commands.style import put_style
    from polyurn.federation.folder import FederationFolder
    from polyurn.federation.jobs import StyleJob
    from polyurn.sources.points import federation_points
    from polyurn.storage.models import load_saved

    files = FederationFolder(folder)
    federation = files.read()
    if federation.values:
        texts = listed(sorted(federation.values))
        raise ParameterError(
            f"expected features that are numbers for a style, got values for {texts}"
        )
    terms = nodes.of_job(privacy)
    points = federation_points(
        proxy, federation, label=label, features=listed_names(features), say=say
    )
    space = measured.space(proxy, points)
    job = StyleJob(
        federation=str(files.path), command=context.obj, space=space, features=points.columns,
        label_effect=measured.label_effect, **terms,
    )  # fmt: skip
    put_style(load_saved(perform(files, job).result, pu.Style), output, as_json=as_json)

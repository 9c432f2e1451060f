"""`polyurn federation run`: learn what a live federation looks like.

The nodes are asked by polyurn's ServerApp, a process that Flower starts; this command submits the job,
shows its progress, and takes the result. `federation/server_process.py` is what the process runs.
"""

from pathlib import Path
from typing import Literal

import typer

from polyurn.commands.console import say
from polyurn.commands.declare import Unless, option
from polyurn.commands.options import (
    AS_JSON,
    CHECKPOINT,
    FEDERATION,
    OUTPUT,
    SEED,
    START,
    FederationPrivacyOptions,
    NodeOptions,
    SearchOptions,
    component_numbers,
)


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
    from polyurn.commands.federation.following import perform, say_absences
    from polyurn.commands.views import say_learned, show_learned
    from polyurn.federation.folder import FederationFolder
    from polyurn.federation.jobs import MixtureJob
    from polyurn.server.fitting import DEAR_ROUNDS, ROUNDS
    from polyurn.server.learning import selects
    from polyurn.storage.files import write_whole
    from polyurn.storage.models import load_saved

    files = FederationFolder(folder)
    federation = files.read()
    terms = nodes.of_job(privacy)
    numbers = component_numbers(components)
    if start is not None:
        load_saved(start).model.in_order_of(federation.declared)
    job = MixtureJob(
        federation=str(files.path),
        command=context.obj,
        selects=start is None and selects(numbers, search.held_out),
        start=None if start is None else str(start.absolute()),
        components=() if numbers == "auto" else numbers,
        max_size=federation.max_size,
        seed=seed,
        cohort_size=cohort,
        sizes=sizes,
        checkpoint=None if checkpoint is None else str(checkpoint.absolute()),
        **search.given(
            federation.categories or tuple(map(str, range(federation.n_categories))),
            max_rounds=DEAR_ROUNDS if numbers == "auto" else ROUNDS,
        ),
        **terms,
    )
    done = perform(files, job)
    saved = load_saved(done.result)
    say_learned(saved)
    say_absences(saved.provenance.traffic)
    if output is not None:
        write_whole(output, lambda file: file.write(done.result.read_bytes()))
        say(f"wrote {output}")
    show_learned(saved, as_json=as_json, is_kept=output is not None)

"""`polyurn federation style`: what the clients of a live federation differ in besides their labels.

The nodes are asked once, by polyurn's ServerApp, as for `run`; the space in which they are asked is made
here, of the server's own points.
"""

from pathlib import Path

import typer

from polyurn.commands.console import print_json, say, show
from polyurn.commands.declare import argument, refuse_options
from polyurn.commands.options import (
    AS_JSON,
    DIRECTIONS,
    FEATURES,
    FEDERATION,
    JSON_OUTPUT,
    LABEL,
    FederationPrivacyOptions,
    NodeOptions,
    SpaceOptions,
    listed_names,
)
from polyurn.commands.style import say_style
from polyurn.wording import counted


def style_command(
    *,
    context: typer.Context,
    folder: Path = FEDERATION,
    proxy: Path = argument(
        "PROXY", "CSV, Parquet or .npz: the server's own points, one row each; or a space (.json)."
    ),
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
    from polyurn.commands.federation.following import perform, say_absences
    from polyurn.commands.views import style_json, style_table
    from polyurn.federation.folder import FederationFolder
    from polyurn.federation.jobs import StyleJob
    from polyurn.model.style import Style
    from polyurn.sources.spaces import proxy_space, saved_space
    from polyurn.storage.files import write_whole
    from polyurn.storage.models import load_saved

    files = FederationFolder(folder)
    federation = files.read()
    terms = nodes.of_job(privacy)
    if proxy.suffix == ".json":
        names = ["label", "features", "directions", "radius"]
        refuse_options(context, names, f"with {proxy}, a style space already made")
        space, columns = saved_space(proxy, federation)
    else:
        space, columns = proxy_space(
            proxy, federation, label=label, features=listed_names(features), radius=measured.radius,
            n_directions=measured.directions, most_directions=DIRECTIONS, say=say,
        )  # fmt: skip
    job = StyleJob(
        federation=str(files.path),
        command=context.obj,
        space=space,
        features=columns,
        label_effect=measured.label_effect,
        **terms,
    )
    done = perform(files, job)
    saved = load_saved(done.result, Style)
    say_style(saved)
    say_absences(saved.provenance.traffic)
    if output is not None:
        write_whole(output, lambda file: file.write(done.result.read_bytes()))
        say(f"wrote {output}: {counted(saved.model.n_clients, 'client')}")
    if as_json:
        print_json({**style_json(saved), "privacy": saved.provenance.privacy_in_words})
    elif output is None:
        show(style_table(saved.model))

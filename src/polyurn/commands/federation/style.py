"""`polyurn federation style`: what the clients of a live federation differ in besides their labels.

The nodes are asked once, by polyurn's ServerApp, as for `run`; the space in which they are asked is made
here, of the server's own points.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyurn.commands._shared.console import print_json, say, show, warn
from polyurn.commands._shared.invocation import check_json_place, refuse_options
from polyurn.commands._shared.options import (
    AsJson,
    Delta,
    Directions,
    Dropout,
    Epsilon,
    Features,
    FederationLedgerEpsilon,
    Label,
    MinFraction,
    MinNodes,
    NoPrivacy,
    Output,
    Plain,
    Radius,
    Settling,
    Ties,
    Timeout,
    Trust,
    listed_names,
)
from polyurn.commands.federation.up import FolderArgument
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    from polyurn.commands._shared.federation_spaces import NamedSpace
    from polyurn.federation.folder import Federation


def style_command(
    context: typer.Context,
    folder: FolderArgument,
    proxy: Annotated[
        Path,
        typer.Argument(
            metavar="PROXY",
            help="CSV, Parquet or .npz: the server's own points, one row each; or a space (.json).",
        ),
    ],
    output: Output = None,
    label: Label = None,
    features: Features = None,
    directions: Directions = None,
    radius: Radius = None,
    ties: Ties = False,
    epsilon: Epsilon = None,
    delta: Delta = None,
    trust: Trust = None,
    ledger_epsilon: FederationLedgerEpsilon = None,
    no_privacy: NoPrivacy = False,
    plain: Plain = False,
    min_nodes: MinNodes = 3,
    min_fraction: MinFraction = 0.7,
    timeout: Timeout = 60.0,
    settling: Settling = 60.0,
    dropout: Dropout = 0.3,
    as_json: AsJson = False,
) -> None:
    """Learn clients' styles from the nodes of a federation; the server sees a masked sum only.

    It is one question, to nodes that joined with --features. Labels are the federation's categories. Say
    what is guaranteed to a client: `--epsilon` and `--delta`, or `--no-privacy`.

    Example: `polyurn federation style fed proxy.csv --epsilon 1 --delta 1e-6 -o style.json`
    """
    from polyurn.commands._shared.federated import asked_job, perform, warn_of_missing_nodes
    from polyurn.commands._shared.fitted_style import style_record, style_table
    from polyurn.federation.folder import FederationFolder
    from polyurn.federation.jobs import StyleJob
    from polyurn.model.style import Style
    from polyurn.storage.files import write_whole
    from polyurn.storage.models import load_saved

    place = FederationFolder(folder)
    federation = place.read()
    check_json_place(context, output, "the style")
    space = _space(context, proxy, federation)
    job = asked_job(StyleJob, context, place, space=space.space, features=space.features)
    done = perform(place, job)
    saved = load_saved(done.result, Style)
    say(f"privacy: {saved.made.privacy_in_words}")
    warn_of_missing_nodes(saved.made.crossed)
    if saved.model.alarm is not None:
        warn(f"alarm: {saved.model.alarm}; take proxy data that are more like the clients")
    if output is not None:
        write_whole(output, lambda file: file.write(done.result.read_bytes()))
        say(f"wrote {output}: {counted(saved.model.n_clients, 'client')}")
    if as_json:
        record = style_record(saved.model, saved.categories)
        print_json({**record, "privacy": saved.made.privacy_in_words})
    elif output is None:
        show(style_table(saved.model))


def _space(context: typer.Context, proxy: Path, federation: "Federation") -> "NamedSpace":
    """The space in which the nodes are asked; options that it does not hear are refused."""
    from polyurn.commands._shared.federation_spaces import proxy_space, saved_space

    if proxy.suffix == ".json":
        made = ["label", "features", "directions", "radius"]
        refuse_options(context, made, f"with {proxy}, a style space that is made already")
        return saved_space(proxy, federation)
    if proxy.suffix == ".npz":
        named = "with .npz files, whose arrays are called features and labels"
        refuse_options(context, ["label", "features"], named)
    asked = context.params
    return proxy_space(
        proxy, federation, label=asked["label"], features=listed_names(asked["features"]),
        directions=asked["directions"], radius=asked["radius"], say=say,
    )  # fmt: skip

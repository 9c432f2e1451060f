"""`polyurn style`: what clients differ in besides their labels, from tables of points."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

import polyurn as pu
from polyurn.commands.console import print_json, say, show, warn
from polyurn.commands.declare import argument
from polyurn.commands.options import (
    AS_JSON,
    CATEGORIES,
    CLIENT,
    FEATURES,
    JSON_OUTPUT,
    LABEL,
    POINTS,
    PrivacyOptions,
    SpaceOptions,
    declared_categories,
    listed_names,
)
from polyurn.errors import CountsError
from polyurn.wording import counted

if TYPE_CHECKING:
    from polyurn.storage.models import Saved


def style_command(
    *,
    context: typer.Context,
    proxy: Path = POINTS,
    clients: Path = argument(
        "CLIENTS", "CSV, Parquet or .npz: the clients' records, one row per point."
    ),
    measured: SpaceOptions,
    privacy: PrivacyOptions,
    output: Path | None = JSON_OUTPUT,
    label: str | None = LABEL,
    client: str | None = CLIENT,
    features: str | None = FEATURES,
    categories: str | None = CATEGORIES,
    as_json: bool = AS_JSON,
) -> None:
    """Learn clients' styles: how they differ in the features of points of the same label.

    The clients of the table are played in this process: the fit sees sums over them, once. Labels and
    features are those of the proxy points.

    Example: `polyurn style proxy.parquet records.parquet --category digit --client writer -o style.json`
    """
    from polyurn.client.counting import category_names
    from polyurn.sources.points import read_records
    from polyurn.storage.models import Saved
    from polyurn.storage.provenance import PrivacyProvenance, Provenance

    budget = privacy.budget()
    points, records = read_records(
        proxy, clients, label=label, client=client, features=listed_names(features),
        declared=declared_categories(categories), say=say,
    )  # fmt: skip
    if not budget and records.n_clients < 2:  # with ε, how many there are is private
        raise CountsError(
            f"{clients}: expected at least two clients, got 1: a style is how they differ"
        )
    space = measured.space(proxy, points)
    asked = privacy.asked(pu.LocalAggregator(records))
    style = pu.fit_style(asked, space, label_effect=measured.label_effect, **budget)
    provenance = Provenance(
        command=context.obj, data=clients.name, privacy=PrivacyProvenance.by(asked)
    )  # without a seed: nothing is drawn
    names = category_names(points.declared)
    put_style(Saved(style, names, provenance, points.columns), output, as_json=as_json)


def put_style(saved: "Saved[pu.Style]", output: Path | None, *, as_json: bool) -> None:
    """A style that was just learned: in words, as a file, and its table unless it is in the file."""
    from polyurn.commands.views import put_file, style_json, style_table

    privacy = saved.provenance.privacy_in_words
    say(f"privacy: {privacy}")
    if saved.model.alarm is not None:
        warn(f"alarm: {saved.model.alarm}; take proxy data that are more like the clients")
    put_file(saved, output, f": {counted(saved.model.n_clients, 'client')}")
    if as_json:
        print_json({**style_json(saved), "privacy": privacy})
    elif output is None:
        show(style_table(saved.model))

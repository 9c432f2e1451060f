"""`polyurn compare`: how alike populations are to true clients, in what they hold or in training."""

import os
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import typer

import polyurn as pu
from polyurn.commands.console import print_json, say, show
from polyurn.commands.declare import Needs, argument, option, provenance_of, refuse_options
from polyurn.commands.options import (
    AS_JSON,
    JSON_OUTPUT,
    MAP,
    SEED,
    STYLE_FEATURES,
    Draws,
    TableOptions,
    name_map,
    named_file,
    named_values,
)
from polyurn.errors import ParameterError, StyleWarning

if TYPE_CHECKING:
    from polyurn.comparison.likeness import Compared
    from polyurn.comparison.style_comparison import StyleRow
    from polyurn.model.names import Match
    from polyurn.sources.clients import ClientTable

_OF_SWEEPS, _OF_BOTH = {"true", "metric", "last", "target"}, {"held_out", "as_json", "quiet"}


def compare_command(
    *,
    context: typer.Context,
    held_out: Path = argument(
        "HELD_OUT",
        "Table of true clients, or packed ones: of those that `fit` read, the held-out ones. Or a "
        "folder that `sweep` wrote.",
    ),
    columns: TableOptions,
    populations: list[str] | None = argument(
        "FILE|NAME=FILE...",
        "MDM files (.json) and tables of simulated clients; without a name, by that of the file.",
        None,
    ),
    output: Path | None = JSON_OUTPUT,
    fitted: Path | None = option(
        None, "Table of the fitted clients, to count those that are among HELD_OUT."
    ),
    draws: str | None = option(
        None,
        "NAME=VALUE with commas: clients=500 from each MDM, 5 times the true ones by default; "
        "max_clients=2000, at random, for a larger table; splits=1000 of true clients, for the noise.",
    ),
    renamed: str | None = MAP,
    folds: int = option(5, "Folds of the two-sample test; 0 leaves the test out."),
    style: Path | None = option(
        None, "Style file: also compare the styles of clients made from --proxy."
    ),
    proxy: Path | None = option(
        None, "Table of proxy points, with the label and the features of HELD_OUT.", Needs("style")
    ),
    features: str | None = STYLE_FEATURES,
    true: str = option("true", "The true clients' name in a sweep."),
    metric: str = option("accuracy", "Metric to judge a sweep's runs by; loss is their test loss."),
    last: float = option(0.5, "Share of a run's evaluations, the last ones, that are averaged."),
    target: float | None = option(None, "Also compare how many rounds runs take to this metric."),
    seed: int = SEED,
    as_json: bool = AS_JSON,
) -> None:
    """Measure how alike simulated clients are to true ones, best to ones held out from fitting.

    With the folder of a sweep: how well training on each population predicts that on true clients.

    Examples: `polyurn compare held-out.csv mdm.json iid=iid.parquet -o comparison.json`,
    `polyurn compare runs/`
    """
    from polyurn.storage.shards import is_shard_folder

    if os.path.isdir(held_out) and not is_shard_folder(
        held_out
    ):  # pathlib raises for a name that is too long
        from polyurn.commands.verdicts import print_verdict

        if populations:
            raise ParameterError(f"expected nothing but the folder of a sweep with {held_out}")
        unheard = set(context.params) - _OF_BOTH - _OF_SWEEPS
        refuse_options(context, unheard, f"with the folder of a sweep, {held_out}")
        runs = pu.read_runs(held_out)
        found = pu.compare_sweeps(runs, true=true, metric=metric, last=last, target=target)
        print_verdict(found, as_json=as_json)
        return
    refuse_options(context, _OF_SWEEPS, f"with the table {held_out}")
    from polyurn.commands.views import check_order, comparison_tables, styles_table
    from polyurn.storage.documents import save_document
    from polyurn.typed.json_form import to_json

    check_order(held_out)
    drawn = named_values(draws, Draws, "--draws")
    inputs = _read(context, held_out, columns, _paths(populations or [], held_out))
    if drawn.clients is not None and not inputs.mdms:
        raise ParameterError("clients in --draws has no effect without an MDM file: leave it out")
    rows: list[StyleRow] = []
    if style is not None and proxy is not None:
        n_drawn = drawn.clients or inputs.held_out.shape[0]
        rows = _style_rows(style, proxy, features, inputs, n_clients=n_drawn, seed=seed)
    verdict = pu.compare(
        inputs.populations, inputs.held_out, fitted=inputs.fitted, n_clients=drawn.clients,
        clients=[str(client) for client in inputs.held_out.clients], n_splits=drawn.splits,
        max_clients=drawn.max_clients, n_folds=folds, rng=seed,
    )  # fmt: skip
    document = verdict.to_dict()
    if rows:
        styles = {row.name: to_json(row).items() for row in rows}
        document["styles"] = {n: {k: v for k, v in of if k != "name"} for n, of in styles.items()}
    if output is not None:
        of_file = provenance_of(context, seed)
        save_document(document, output, kind="comparison", provenance=of_file)
        say(f"wrote {output}")
    if as_json:
        print_json(document)
    else:
        for table in comparison_tables(verdict):
            show(table)
        if rows:
            show(styles_table(rows))
    for sentence in verdict.sentences():
        say(sentence)


@dataclass(frozen=True)
class _Inputs:
    """The true clients, the populations, those that are MDMs, and the ids of those that were fitted."""

    held_out: "ClientTable"
    populations: "dict[str, Compared]"
    mdms: "dict[str, pu.MDM]"
    fitted: list[str] | None


def _read(
    context: typer.Context, held_out: Path, columns: TableOptions, paths: dict[str, Path]
) -> _Inputs:
    """Read the MDM files first: their categories and columns are used to read the tables."""
    from polyurn.commands.views import read_model
    from polyurn.sources.clients import Reading, read_all, some_of, true_clients
    from polyurn.sources.points import style_columns
    from polyurn.storage.models import is_model
    from polyurn.storage.shards import is_shard_folder

    asked = context.params
    style, seed = asked["style"], asked["seed"]
    if style is not None and is_shard_folder(held_out):
        raise ParameterError(
            f"--style needs a table of records, and {held_out} has histograms only"
        )
    if style is not None and asked["proxy"] is None:
        raise ParameterError("expected --proxy, the points to cut clients from, with --style")
    saved = {name: read_model(path) for name, path in paths.items() if is_model(path)}
    if saved:
        refuse_options(context, ["categories"], "with an MDM file, which has its own categories")
    else:
        refuse_options(context, ["renamed"], "without an MDM file, whose categories have names")
    refuse_options(context, ["renamed"] if style else [], "with --style")
    later = () if style is None else style_columns(style, asked["features"], held_out)
    match = name_map(asked["renamed"])
    reading = reduce(Reading.like, saved.values(), columns.reading(elsewhere=later, match=match))
    # The other MDM files have the names of the first one.
    known = next((one.declared for one in saved.values()), None)
    whole = read_all(held_out, reading, known or columns.declared())
    models = [] if asked["fitted"] else [*saved.values()]
    read, who, standing = true_clients(whole, models, say=say, seed=seed)
    if who is not None and not who.all():
        say(standing)

    def like_it(path: Path, match: "Match | None" = None) -> "ClientTable":
        again = replace(reading.after(read), match=match)
        return some_of(read_all(path, again, read.categories or read.shape[1]), say, seed=seed)

    mdms = {name: one.model for name, one in saved.items()}
    populations: dict[str, Any] = {n: mdms.get(n) or like_it(path) for n, path in paths.items()}
    fitted = None if who is None else [str(client) for client in read.clients[who]]
    if asked["fitted"] is not None and _ids(read):
        fitted = _ids(like_it(asked["fitted"], match))
    return _Inputs(read, populations, mdms, fitted)


def _paths(populations: list[str], held_out: Path) -> dict[str, Path]:
    if not populations:
        raise ParameterError(
            f"expected populations to compare with {held_out}: MDM files, or tables as NAME=FILE"
        )
    paths: dict[str, Path] = {}
    for text in populations:
        name, path = named_file(text)
        if name in paths:
            raise ParameterError(f"expected a name for each population, got {name!r} twice")
        paths[name] = Path(path)
    return paths


def _ids(read: "ClientTable") -> list[str]:
    """Ids as texts: 7 in a Parquet file is the 7 of a CSV file."""
    if not read.named:
        raise ParameterError(f"--fitted needs the ids of clients, which {read.path} does not keep")
    return [str(client) for client in read.clients]


def _style_rows(
    style: Path, proxy: Path, columns: str | None, inputs: _Inputs, *, n_clients: int, seed: int
) -> "list[StyleRow]":
    """The styles of the held-out clients, and of each MDM's clients with and without this style."""
    import numpy as np

    from polyurn.comparison.style_comparison import StyleRow
    from polyurn.sources.points import PointFile, style_columns, styled_features

    held_out = inputs.held_out
    label, client = held_out.columns.category, held_out.columns.client
    by_point = held_out.columns.count in (None, "1")
    if not (isinstance(label, str) and isinstance(client, str) and by_point):
        raise ParameterError(
            f"expected {held_out.path} with one row per point, a label and features, for --style"
        )
    points, true = PointFile.read(proxy), PointFile.read(held_out.path)
    found, features = styled_features(points, style, columns, held_out.categories)
    known = held_out.categories or found.space.n_labels
    labels = points.codes(known, label)
    rows = true.features(style_columns(style, columns, true.path))
    true.check_n_features(rows, found.space.n_features, style)
    records = true.records(known, label, client, rows)
    taken = np.isin(records.ids.astype(str), held_out.clients.astype(str))
    held = records.of(np.flatnonzero(taken))
    measured: dict[str, Any] = {"space": found.space, "rng": seed}
    done = [StyleRow.of("true", held.features, held.labels, held.owner, **measured)]
    for name, mdm in inputs.mdms.items():
        counts = mdm.sample(n_clients, rng=np.random.default_rng(seed))
        with catch_warnings():
            simplefilter("ignore", StyleWarning)  # `partition` reports it
            styled = pu.partition(labels, counts, style=found, features=features, rng=seed)
        plain = pu.partition(labels, counts, rng=seed)
        for called, parts in ((name, styled), (f"{name}, labels only", plain)):
            at = parts.indices
            done.append(StyleRow.of(called, features[at], labels[at], parts.clients, **measured))
    return done

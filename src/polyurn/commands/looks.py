"""`polyurn describe` and `score`: what a table's clients are like, and whether a mixture still says it.

What they share with `federation describe` and `federation score` stands here, too.
"""

from dataclasses import dataclass, replace
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer
from rich.text import Text

import polyurn as pu
from polyurn.commands.console import print_data, print_json, say, show
from polyurn.commands.declare import Needs, argument, option, refuse_options
from polyurn.commands.options import (
    AS_JSON,
    JSON_OUTPUT,
    SCHEDULER,
    SEED,
    TABLE,
    THREADS,
    JudgedOptions,
    PrivacyOptions,
    TableOptions,
)
from polyurn.errors import ParameterError
from polyurn.wording import counted

if TYPE_CHECKING:
    from polyurn.server.describing import ColumnDescription, Description
    from polyurn.server.drift import Drift
    from polyurn.sources.clients import ClientTable, PackedClients

# What a command ends with that is to fail on drift, and did.
DRIFTED = 3
# Rows of a terminal table.
_ROWS = 20
# The default of --max-size: the last of twenty bins.
LARGEST = 2**20 - 1
COLUMN = option(
    None,
    "Column of numbers of clients' records: its quantiles, and the edges for --bins, in a few rounds; "
    "instead of the rest.",
)
COLUMN_BINS = option(10, "Bins of equal shares that --column is to be cut into.", Needs("column"))
_NOT_OF_COLUMN = (
    "category", "count", "categories", "drop_empty", "drop_missing", "max_size", "threads", "scheduler",
)  # fmt: skip


@dataclass(frozen=True)
class DriftOptions:
    """Whether clients are what they were."""

    alarm: float = option(0.05, "How often a look may say that something moved where nothing did.")
    history: Path | None = option(
        None, "File (.jsonl) to which the look is appended; `polyurn report` draws it."
    )
    against: Literal["mixture", "first"] = option(
        "mixture", "Compare with the mixture, or with the first look of --history."
    )
    fail_on_drift: bool = option(
        False, f"Exit with {DRIFTED} if something has moved.", "--fail-on-drift"
    )

    def since(self, mdm: "pu.MDM") -> "Drift | None":
        """The first look of the history, if that is what to compare with; before anybody is asked."""
        from polyurn.storage.look_history import LookHistory

        if self.history is None:
            if self.against == "first":
                raise ParameterError("--against first has no effect without --history")
            return None
        history = LookHistory(self.history, mdm)
        return history.first() if self.against == "first" else None

    def put(
        self, drift: "Drift", mdm: "pu.MDM", clients: str, *, as_json: bool, statement: bool = True,
        measured: dict[str, float] | None = None,
    ) -> None:  # fmt: skip
        """A look in the history, as the command's result, and as its exit code."""
        from polyurn.storage.look_history import LookEntry, LookHistory
        from polyurn.typed.json_form import to_json

        if self.history is not None:
            LookHistory(self.history, mdm).append(LookEntry.now(clients, drift))
            say(f"appended to {self.history}")
        if as_json:
            found = {"moved": drift.moved, "verdict": drift.sentence, **to_json(drift)}
            given = {} if measured is None else measured
            finite = {name: value if isfinite(value) else None for name, value in given.items()}
            print_json(found if measured is None else {**finite, "drift": found})
        else:
            for name, value in (measured or {}).items():
                text = f"{value:,}" if name == "n_clients" else f"{value:.4f}"
                print_data([f"{name:<42} {text}\n".encode()])
            _show_drift(drift, statement=statement)
        if self.fail_on_drift and drift.moved:
            raise typer.Exit(DRIFTED)


def describe_command(
    *,
    context: typer.Context,
    table: Path = TABLE,
    columns: TableOptions,
    privacy: PrivacyOptions,
    max_size: int = option(
        LARGEST, "Declared largest size; a larger client answers for that many of its points."
    ),
    column: str | None = COLUMN,
    bins: int = COLUMN_BINS,
    output: Path | None = JSON_OUTPUT,
    threads: int = THREADS,
    scheduler: str | None = SCHEDULER,
    as_json: bool = AS_JSON,
) -> None:
    """Describe clients: how many there are, how large, what they hold, and how different they are.

    One round of sums, exact or with noise (`--epsilon`). Sizes are counted in bins that double. With
    `--column` the table has a row for each point.

    Example: `polyurn describe clients.csv`
    """
    from polyurn.client.record_tables import column_records
    from polyurn.server.describing import describe, describe_column
    from polyurn.sources.clients import play, read_all
    from polyurn.storage.table_files import naming

    budget, provenance = privacy.budget(), {"command": context.obj, "data": table.name}
    if column is not None:
        refuse_options(context, _NOT_OF_COLUMN, "with --column, a row for each point")
        rows = pu.read_table(table, on_remark=say)
        with naming(table):
            records = column_records(rows, column, client=columns.client or "client")
        asked = privacy.asked(pu.LocalAggregator(records))
        of_column = describe_column(asked, column, features=[column], n_bins=bins, **budget)
        put_description(of_column, output, as_json=as_json, provenance=provenance)
        return
    if budget and columns.categories is None:
        raise ParameterError(
            "expected --categories with --epsilon: what is taken from the table would be released "
            "without noise"
        )
    read = read_all(table, columns.reading(), columns.declared())
    played = play(read, seed=0, sampling="fixed", threads=threads, scheduler=scheduler)
    asked = privacy.asked(played)
    found = describe(asked, n_categories=read.shape[1], max_size=max_size, **budget)
    names = read.categories or tuple(str(j) for j in range(read.shape[1]))
    named = replace(found, categories=names)
    put_description(named, output, as_json=as_json, provenance=provenance)


def score_command(
    *, table: Path = TABLE, mdm: Path = argument("MDM", "File that `fit` wrote."),
    columns: JudgedOptions, drift: DriftOptions, privacy: PrivacyOptions, threads: int = THREADS,
    scheduler: str | None = SCHEDULER, seed: int = SEED, as_json: bool = AS_JSON,
) -> None:  # fmt: skip
    """Measure how likely a table's clients are under an MDM, and whether they have drifted from it.

    One round of sums shows what has moved. With `--epsilon` these sums have noise, and the mean
    log-likelihood, which has none, is not shown.

    Example: `polyurn score held-out.csv mdm.json`
    """
    from polyurn.commands.views import check_order, read_model
    from polyurn.server import drift as drifts
    from polyurn.sources.clients import play, read_all

    check_order(table, [mdm])
    saved = read_model(mdm)
    budget, since = privacy.budget(), drift.since(saved.model)
    read = read_all(table, columns.reading().like(saved), saved.declared)
    played = play(read, seed=seed, sampling="fixed", threads=threads, scheduler=scheduler)
    asked = privacy.asked(played)
    found = drifts.drift(asked, saved.model, since=since, level=drift.alarm, rng=seed, **budget)
    statement, measured = bool(budget), {} if budget else _likelihoods(read, saved.model)
    drift.put(
        found, saved.model, table.name, as_json=as_json, statement=statement, measured=measured
    )


def _likelihoods(read: "ClientTable | PackedClients", mdm: "pu.MDM") -> dict[str, float]:
    """The number of clients, and mean log-likelihoods with their standard errors.

    Clients come in blocks, whose means and squares are joined (Chan et al., 1979).
    """
    import numpy as np

    n, means, squares = 0, np.zeros(2), np.zeros(2)
    for counts in read.blocks():
        values = np.array([mdm.logpmf(counts), mdm.logpmf_given_size(counts)])
        m, mean = values.shape[1], values.mean(axis=1)
        with np.errstate(invalid="ignore"):  # an impossible client has log-likelihood -inf
            apart = mean - means
            squares += ((values - mean[:, None]) ** 2).sum(axis=1) + apart**2 * n * m / (n + m)
            means = (means * n + mean * m) / (n + m) if n else mean
        n += m
    errors = np.sqrt(squares / (n - 1) / n) if n > 1 else np.full(2, nan)
    found: dict[str, float] = {"n_clients": n}
    names = ("log_likelihood", "log_likelihood_given_size")
    for name, mean, error in zip(names, means.tolist(), errors.tolist(), strict=True):
        found |= {name: mean, f"{name}_standard_error": error}
    return found


def put_description(
    found: "Description | ColumnDescription", output: Path | None, *, as_json: bool,
    provenance: dict[str, Any],
) -> None:  # fmt: skip
    """A description as the command's result, and as a file."""
    from polyurn.server.describing import QUANTILES, ColumnDescription
    from polyurn.storage.documents import save_document
    from polyurn.typed.json_form import to_json

    document = {"sentence": found.sentence, **to_json(found)}
    if isinstance(found, ColumnDescription):
        document["bins"] = found.bins
    else:
        document["sizes"] = dict(zip(map(str, QUANTILES), document["sizes"], strict=True))
    if output is not None:
        save_document(document, output, kind="description", provenance=provenance)
        say(f"wrote {output}")
    if as_json:
        print_json(document)
    elif isinstance(found, ColumnDescription):
        _show_column(found)
    else:
        _show_description(found)


def read_description(path: str) -> "Description | ColumnDescription":
    """The description in a file that `describe -o` wrote."""
    from polyurn.server.describing import ColumnDescription, Description
    from polyurn.storage.documents import load_document, read_document

    document = load_document(path, kind="description")
    if "column" in document:
        return read_document(ColumnDescription, path, kind="description", document=document)
    sizes = document.get("sizes")
    document = {**document, "sizes": [*sizes.values()] if isinstance(sizes, dict) else sizes}
    return read_document(Description, path, kind="description", document=document)


def _show_column(found: "ColumnDescription") -> None:
    """The quantiles of a column, and the line that cuts it."""
    from polyurn.commands.views import table_of

    rows: list[tuple[str, ...]] = [
        (f"{rank:.3g}", f"{one.value:.6g}", f"{one.low:.6g} to {one.high:.6g}")
        for rank, one in zip(found.ranks, found.quantiles, strict=True)
    ]
    title = f"{found.column} of clients: {found.n_clients:,.0f}"
    show(table_of(title, ("share below", "quantile", "95 % interval"), rows, left=[0]))
    print_data([f"--bins={found.bins}\n".encode()])  # to be copied, in one line
    show(Text(f"privacy: {found.privacy_in_words}"))


def _show_description(found: "Description") -> None:
    """A description as two tables, and in a sentence."""
    from polyurn.commands.views import table_of
    from polyurn.server.describing import QUANTILES

    title = f"clients: {found.n_clients:,.0f}"
    names = [f"size, {q:.0%} quantile" for q in QUANTILES]
    rows: list[tuple[str, ...]] = [
        (name, format(one, ",.0f")) for name, one in zip(names, found.sizes, strict=True)
    ]
    rows += [
        ("share of variance between clients", format(found.between, ".3f")),
        ("effective categories of a client", format(found.effective_categories, ".2f")),
        ("best single α", format(found.alpha, ".3g")),
        ("clients of two points or more", f"{found.points_in_pairs:.0%}"),
    ]
    show(table_of(title, ("", "95 % interval"), rows, left=[0]))
    categories = found.categories or ()
    order = sorted(range(len(categories)), key=lambda j: -found.shares[j].value)[:_ROWS]
    held: list[tuple[str, ...]] = [
        (categories[j], format(found.shares[j], ".1%"), format(found.holders[j], ",.0f"))
        for j in order
    ]
    heads = ("", "share", "clients that hold it")
    table = table_of(counted(len(categories), "category"), heads, held, left=[0])
    if len(categories) > _ROWS:
        table.caption = f"and {len(categories) - _ROWS} more, in the JSON"
    show(table)
    show(Text(found.sentence))
    show(Text(f"privacy: {found.privacy_in_words}"))


def _show_drift(drift: "Drift", *, statement: bool) -> None:
    """A look as a table, and the verdict."""
    from polyurn.commands.views import table_of

    moved = sorted(drift.changes, key=lambda one: (not one.moved, one.block == "category"))
    rows = [
        (
            one.block, one.name, "" if one.block == "fit" else f"{one.was:.3f}",
            format(one.now, ".3f"), "moved" if one.moved else "",
        )
        for one in moved
        if one.was or one.now.value
    ]  # fmt: skip
    was = "mixture" if drift.against == "mixture" else "first look"
    title = f"{counted(round(drift.n_clients.value), 'client')} against the {was}"
    table = table_of(title, ("", "", was, "now (95 %)", ""), rows[:_ROWS], left=[0, 1, 4])
    if len(rows) > _ROWS:
        table.caption = f"and {len(rows) - _ROWS} more, in the JSON"
    show(table)
    show(Text(drift.sentence))
    if statement:
        show(Text(f"privacy: {drift.privacy_in_words}"))

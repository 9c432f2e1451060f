"""`polyurn style`: what clients differ in besides their labels, from tables of proxy points and records.

Parses, calls the library, writes.
"""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyurn.commands._shared.console import print_json, say, show, warn
from polyurn.commands._shared.invocation import check_json_place, made_by, refuse_options
from polyurn.commands._shared.options import (
    DIRECTIONS,
    AsJson,
    Categories,
    Client,
    Delta,
    Directions,
    Epsilon,
    Features,
    Label,
    Ledger,
    LedgerEpsilon,
    Output,
    Radius,
    Ties,
    declared_categories,
    listed_names,
)
from polyurn.errors import CountsError, ParameterError
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    from polyurn.commands._shared.record_tables import ProxyAndRecords
    from polyurn.privacy.aggregator import PrivateAggregator
    from polyurn.wire import Aggregator

_SHOWN = 5  # labels in a sentence


def style_command(
    context: typer.Context,
    proxy: Annotated[
        Path,
        typer.Argument(
            metavar="PROXY", help="CSV, Parquet or .npz: the server's own points, one row each."
        ),
    ],
    clients: Annotated[
        Path,
        typer.Argument(
            metavar="CLIENTS", help="CSV, Parquet or .npz: the clients' records, one row a point."
        ),
    ],
    output: Output = None,
    label: Label = None,
    client: Client = None,
    features: Features = None,
    categories: Categories = None,
    directions: Directions = None,
    radius: Radius = None,
    ties: Ties = False,
    epsilon: Epsilon = None,
    delta: Delta = None,
    ledger: Ledger = None,
    ledger_epsilon: LedgerEpsilon = None,
    as_json: AsJson = False,
) -> None:
    """Learn clients' styles: how they differ in the features of points of the same label.

    The clients of the table are played in this process: the fit sees sums over them, once. Labels and
    features are those of the proxy points.

    Example: `polyurn style proxy.parquet records.parquet --label digit --client writer -o style.json`
    """
    from polyurn.aggregate.local import LocalAggregator
    from polyurn.commands._shared.fitted_style import style_record, style_table
    from polyurn.commands._shared.record_tables import read_records
    from polyurn.model.style_coordinates import style_space
    from polyurn.privacy.statement import in_words
    from polyurn.server.style import fit_style
    from polyurn.storage.models import save
    from polyurn.storage.provenance import PrivacyRecord
    from polyurn.typed.records import to_record

    _check_options(context, epsilon, delta, ledger)
    check_json_place(context, output, "the style")
    read = read_records(
        proxy, clients, label=label, client=client, features=listed_names(features),
        declared=declared_categories(categories), say=say,
    )  # fmt: skip
    if epsilon is None and read.records.n_clients < 2:  # with ε, how many there are is not told
        raise CountsError(
            f"{clients}: expected two clients at least, got 1: a style is how they differ"
        )
    n_features = read.features.shape[1]
    if directions is None:
        directions = min(DIRECTIONS, n_features)
    elif not 1 <= directions <= n_features:
        raise ParameterError(
            f"expected --directions from 1 to {n_features}, the features, got {directions}"
        )
    _check_labels(proxy, read)
    space = style_space(
        read.features, read.labels, n_directions=directions, radius=radius,
        n_labels=read.records.n_labels,
    )  # fmt: skip
    asked: Aggregator = LocalAggregator(read.records)
    guarantee = None
    if epsilon is None or delta is None:
        style = fit_style(asked, space, ties=ties)
    else:
        private = _private(asked, epsilon, delta, ledger, ledger_epsilon)
        style = fit_style(private, space, ties=ties, epsilon=epsilon, delta=delta)
        guarantee = private.guarantee()
    say(f"privacy: {in_words(guarantee)}")
    if style.alarm is not None:
        warn(f"alarm: {style.alarm}; take proxy data that are more like the clients")
    if output is not None:
        privacy = to_record(PrivacyRecord.of(guarantee))
        made = {**made_by(context, 0), "data": clients.name, "privacy": privacy}
        del made["seed"]  # nothing is drawn
        save(style, output, categories=read.categories, features=read.columns, made=made)
        say(f"wrote {output}: {counted(style.n_clients, 'client')}")
    if as_json:
        print_json(style_record(style, read.categories))
    elif output is None:
        show(style_table(style))


def _check_options(
    context: typer.Context, epsilon: float | None, delta: float | None, ledger: Path | None
) -> None:
    """Refuse options that would have no effect, and a budget that is half of one."""
    if epsilon is None:
        refuse_options(context, ["delta", "ledger", "ledger_epsilon"], "without --epsilon")
    elif delta is None:
        raise ParameterError(
            "expected --delta with --epsilon, well below one over the number of clients: 1e-6, say"
        )
    if ledger is None:
        refuse_options(context, ["ledger_epsilon"], "without --ledger")


def _check_labels(proxy: Path, read: "ProxyAndRecords") -> None:
    """Name the labels without proxy points, which have no style, and those with one, which show none."""
    held = Counter(read.labels.tolist())
    lacking, single = (
        [name for k, name in enumerate(read.categories) if held[k] == n] for n in (0, 1)
    )
    if lacking:
        raise CountsError(
            f"{proxy}: expected points of every declared label, got none of {_listed(lacking)}; take "
            "proxy points of them, or leave them out of --categories and of the records"
        )
    if single:
        warn(
            f"one proxy point only: {_listed(single)}; how clients differ is then measured from that "
            "point, so take more"
        )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _private(
    aggregator: "Aggregator",
    epsilon: float,
    delta: float,
    ledger: Path | None,
    ledger_epsilon: float | None,
) -> "PrivateAggregator":
    """The same clients, asked with noise and on account."""
    from polyurn.privacy.aggregator import PrivateAggregator
    from polyurn.privacy.ledger import PrivacyLedger
    from polyurn.storage.ledger_file import open_ledger

    account = (
        PrivacyLedger(epsilon, delta)
        if ledger is None
        else open_ledger(ledger, epsilon=ledger_epsilon or epsilon, delta=delta)
    )
    return PrivateAggregator(aggregator, ledger=account)

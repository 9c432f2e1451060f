"""`polyurn zoo`, `zoo show` and `compare-to-zoo`: models of real federations that come with polyurn."""

import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

import polyurn as pu
from polyurn.commands.console import print_json, say, show
from polyurn.commands.declare import Unless, argument, option
from polyurn.commands.options import AS_JSON, SEED, ColumnOptions

if TYPE_CHECKING:
    from rich.table import Table

    from polyurn.zoo.cards import Card
    from polyurn.zoo.neighbours import Neighbours


_LEGEND = """\
C: categories; size: points; α: best single Dirichlet; dispersion: 1 is chance
AUC: a classifier tells simulated clients from held-out ones; 0.5 is a guess
*: the AUC is above 0.60, or the energy ratio above the range of true clients
polyurn zoo show NAME has a card; polyurn partition labels.csv zoo:NAME cuts"""


def zoo_command(
    *,
    context: typer.Context,
    page: bool = option(
        False,
        "Write zoo.html here: a page for your browser, without network, where you open your CSV, see "
        "each federation's clients with your labels, and copy the command.",
        Unless("as_json"),
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Models of real federations, which every command takes as zoo:NAME.

    Examples: `polyurn zoo`, `polyurn zoo --page`
    """
    from polyurn.storage.files import write_whole
    from polyurn.typed.json_form import to_json
    from polyurn.zoo.zoo_page import zoo_page

    if context.invoked_subcommand is not None:
        return
    if page:
        output = Path("zoo.html")
        write_whole(output, lambda file: file.write(zoo_page().encode()))
        say(f"wrote {output}: open {(address := output.resolve().as_uri())}")
        if sys.stderr.isatty():
            webbrowser.open(address)
        return
    cards = [pu.zoo.card(name) for name in pu.zoo.names()]
    if as_json:
        print_json({"federations": [to_json(one) for one in cards]})
    else:
        show(_list(cards))
        show(Text(_LEGEND))


def show_command(
    *, name: str = argument("NAME", "A federation of the zoo."), as_json: bool = AS_JSON
) -> None:
    """Show the card of a federation: what it is, where it comes from, how good its model is.

    Example: `polyurn zoo show celeba_hair`
    """
    from polyurn.typed.json_form import to_json

    found = pu.zoo.card(name.removeprefix("zoo:"))
    if as_json:
        print_json(to_json(found))
    else:
        show(_facts(found))
        for text in (*found.warnings, "", _in_a_paper(found)):
            show(Text(text))


def _list(cards: "list[Card]") -> "Table":
    from polyurn.commands.views import table_of

    rows = [
        (one.name, f"{one.n_clients:,}", str(one.n_categories), f"{one.sizes[1]:,.0f}",
         f"{one.profile.heterogeneity.alpha.value:.2g}".replace("inf", "∞"),
         f"{one.profile.dispersion.value:.2g}",
         f"{one.likeness['mdm'].auc.value:.2f}" + ("" if one.passes else " *"))
        for one in cards
    ]  # fmt: skip
    heads = ("name", "clients", "C", "median size", "α", "dispersion", "AUC")
    return table_of("Real federations", heads, rows, left=[0])


def _facts(found: "Card") -> "Table":
    from polyurn.commands.views import table_of

    low, median, high = found.sizes
    rows = [
        ("client", found.client),
        ("category", found.category),
        ("source", found.source),
        ("date of the data", found.date),
        ("licence of the data", found.licence),
        ("clients", f"{found.n_clients:,} of {low:,} to {high:,} points, median {median:,.0f}"),
        ("categories, K", f"{found.n_categories}, {found.n_components}"),
        ("about Dirichlet(α)", f"{found.profile.heterogeneity.alpha:.3g}"),
        ("correlation", f"{found.profile.correlation:.3g}"),
        ("dispersion", f"{found.profile.dispersion:.3g}: {found.profile.in_words}"),
        ("variation of sizes", f"{found.profile.size_variation:.3g}"),
    ]
    for name, one in found.likeness.items():
        energy = "energy {:.2f} [{:.2f} to {:.2f}]".format(one.energy_ratio, *one.energy_null)
        rows.append((f"{name}, held out", f"{energy}, AUC {one.auc:.2f}"))
    rows.append(("made by", found.command))
    return table_of(f"{found.name}: {found.title}", ("", ""), rows, left=[0, 1])


def _in_a_paper(found: "Card") -> str:
    """A paragraph on methods, but for the words in capitals, and the source in BibTeX."""
    mdm, splits = found.likeness["mdm"], pu.zoo.load(found.name).splits
    alpha = f"{found.profile.heterogeneity.alpha:.3g}".replace("inf", "∞")
    kind = "Dirichlet-multinomials" if splits is None else "Dirichlet-tree multinomials"
    kind += " (with laws on splits)" if splits and splits.laws else ""
    return f"""\
We partition the training data like the clients of {found.name} (each is {found.client}; \
{found.source}): NUMBER simulated clients are drawn from a mixture of {kind} with \
K = {found.n_components} components that was fitted to {found.n_clients:,} natural clients \
(polyurn {pu.__version__}, zoo:{found.name}), laid over our labels by rank, with MEAN points per client \
in the mean. In the sense of the best single Dirichlet the natural clients are about α = {alpha}, with \
its 95 % interval; simulated clients have an energy ratio of {mdm.energy_ratio:.2f} to held-out natural \
ones (true clients: {mdm.energy_null[0]:.2f} to {mdm.energy_null[1]:.2f}) and a classifier tells them \
apart with an AUC of {mdm.auc.value:.2f}. The seed is SEED.

@misc{{{found.name},
  key = {{{found.name}}}, title = {{{found.title}}},
  howpublished = {{{found.source}}},
  note = {{Date of the data: {found.date}}}
}}"""


_SHOWN = 8  # federations; --json has them all


def compare_to_zoo_command(
    *,
    clients: Path = argument(
        "CLIENTS",
        "A partition (.json or .parquet), with --labels; a table of clients; or a mixture, such as one "
        "that was fitted to the sums of a live federation.",
    ),
    labels: Path | None = option(None, "CSV, Parquet or .npz: the data of a partition."),
    columns: ColumnOptions,
    seed: int = SEED,
    as_json: bool = AS_JSON,
) -> None:
    """Find the federations of the zoo that clients resemble, and how different the clients are.

    Examples: `polyurn compare-to-zoo partition.json --labels labels.csv`,
    `polyurn compare-to-zoo clients.csv`
    """
    from polyurn.typed.json_form import to_json

    found = pu.zoo.nearest(_read(clients, labels, columns, seed), rng=seed)
    if as_json:
        print_json(to_json(found))
        return
    show(_table(found))
    profile, own = found.profile, found.profile.heterogeneity
    say(f"{found.n_clients:,} clients, about Dirichlet({own.alpha:.3g}), {profile.in_words}")
    say(
        f"Jensen-Shannon {own.jensen_shannon:.3g}, Hellinger {profile.hellinger:.3g}, effective labels "
        f"{own.effective_categories:.3g}, correlation {profile.correlation:.3g}"
    )


def _read(clients: Path, labels: Path | None, columns: ColumnOptions, seed: int) -> Any:
    """Histograms, or a mixture."""
    from polyurn.commands.views import read_model
    from polyurn.sources.clients import read_all, some_of
    from polyurn.sources.points import PointFile
    from polyurn.storage.models import is_model

    if labels is not None:
        names, codes = PointFile.read(labels, say).labelled(columns.category)
        n_labels = names if isinstance(names, int) else len(names)
        return pu.load_partition(clients).histograms(codes, n_labels)
    if is_model(clients):
        return read_model(clients).model
    return some_of(read_all(clients, columns.reading()), say, seed=seed).counts


def _table(found: "Neighbours") -> "Table":
    from polyurn.commands.views import table_of

    rows = [
        (row.name, pu.zoo.card(row.name).title, f"{row.labels:.4f}", f"{row.sizes:.1f}")
        for row in found.rows[:_SHOWN]
    ]
    heads = ("federation", "", "labels (energy distance)", "sizes (doublings)")
    return table_of("The nearest federations", heads, rows, left=[0, 1])

"""What the commands share that look at clients: `describe` and `score`, of tables and of federations."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer
from rich.text import Text

from polyurn.commands.console import print_json, say, show
from polyurn.commands.declare import option
from polyurn.wording import counted

if TYPE_CHECKING:
    from rich.table import Table

    from polyurn.model.mdm import MDM
    from polyurn.server.describing import Description
    from polyurn.server.drift import Drift

# What a command ends with that is to fail on drift, and did.
DRIFTED = 3
# Rows of a terminal table.
_ROWS = 20


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

    def since(self, mdm: "MDM") -> "Drift | None":
        """The first look of the history, if that is what to compare with; before anybody is asked."""
        from polyurn.errors import ParameterError
        from polyurn.storage.look_history import LookHistory

        if self.history is None:
            if self.against == "first":
                raise ParameterError("--against first has no effect without --history")
            return None
        history = LookHistory(self.history, mdm)
        return history.first() if self.against == "first" else None

    def keep(self, drift: "Drift", mdm: "MDM", clients: str) -> None:
        """Append a look to the history."""
        from polyurn.storage.look_history import LookEntry, LookHistory

        if self.history is not None:
            LookHistory(self.history, mdm).append(LookEntry.now(clients, drift))
            say(f"appended to {self.history}")

    def end(self, drift: "Drift") -> None:
        """End with the exit code that scripts look at."""
        if self.fail_on_drift and drift.moved:
            raise typer.Exit(DRIFTED)


def drift_json(drift: "Drift") -> dict[str, Any]:
    """A look for JSON, with its verdict."""
    from polyurn.typed.json_form import to_json

    return {"moved": drift.moved, "verdict": drift.sentence, **to_json(drift)}


def show_drift(drift: "Drift", *, statement: bool = True) -> None:
    """A look as a table, and the verdict."""
    from polyurn.commands.views import table_of
    from polyurn.privacy.statement import in_words

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
        show(Text(f"privacy: {in_words(drift.guarantee)}"))


def description_json(found: "Description", categories: tuple[str, ...]) -> dict[str, Any]:
    """A description for JSON, with names."""
    from polyurn.server.describing import QUANTILES
    from polyurn.typed.json_form import to_json

    document = to_json(found)
    sizes = dict(zip(map(str, QUANTILES), document["sizes"], strict=True))
    return {"sentence": found.sentence, **document, "sizes": sizes, "categories": list(categories)}


def show_description(found: "Description", categories: tuple[str, ...]) -> None:
    """A description as two tables, and in a sentence."""
    from polyurn.privacy.statement import in_words
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
    show(_titled(title, ("", "95 % interval"), rows))
    order = sorted(range(len(categories)), key=lambda j: -found.shares[j].value)[:_ROWS]
    held: list[tuple[str, ...]] = [
        (categories[j], format(found.shares[j], ".1%"), format(found.holders[j], ",.0f"))
        for j in order
    ]
    table = _titled(
        counted(len(categories), "category"), ("", "share", "clients that hold it"), held
    )
    if len(categories) > _ROWS:
        table.caption = f"and {len(categories) - _ROWS} more, in the JSON"
    show(table)
    show(Text(found.sentence))
    show(Text(f"privacy: {in_words(found.guarantee)}"))


def _titled(title: str, heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> "Table":
    from polyurn.commands.views import table_of

    return table_of(title, heads, rows, left=[0])


def put_description(
    found: "Description", categories: tuple[str, ...], output: Path | None, *, as_json: bool,
    provenance: dict[str, Any],
) -> None:  # fmt: skip
    """A description as the command's result, and as a file."""
    from polyurn.storage.documents import save_document

    document = description_json(found, categories)
    if output is not None:
        save_document(document, output, kind="description", provenance=provenance)
        say(f"wrote {output}")
    if as_json:
        print_json(document)
    else:
        show_description(found, categories)

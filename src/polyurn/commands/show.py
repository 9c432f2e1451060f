"""`polyurn show`: what is in a file: an MDM or a style, as a table."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.text import Text

from polyurn.commands.console import print_json, say, show
from polyurn.commands.declare import argument
from polyurn.commands.options import AS_JSON
from polyurn.errors import FileError, PolyurnError
from polyurn.wording import counted

_OTHERS = {
    "polyurn.comparison": "a comparison: `polyurn report` shows it",
    "polyurn.style-space": "a style space, which a style is measured in",
}


def show_command(
    *,
    file: Path = argument("FILE", "File that `fit` or `style` wrote, or zoo:NAME."),
    as_json: bool = AS_JSON,
) -> None:
    """Show the components of an MDM, or the directions of a style, and what is guaranteed to clients.

    Example: `polyurn show mdm.json`
    """
    from polyurn.commands import views
    from polyurn.storage.documents import format_of
    from polyurn.storage.models import model_path

    kind = format_of(model_path(file))
    if kind == "polyurn.style":
        from polyurn.model.style import Style
        from polyurn.storage.models import load_saved

        style = load_saved(file, Style)
        privacy: dict[str, Any] = {"statement": style.provenance.privacy_in_words}
        document = {**views.style_json(style), "privacy": privacy}
        _show(
            as_json, document, views.style_table(style.model), style.provenance, style.model.alarm
        )
    else:
        if kind != "polyurn.mdm":
            _refuse_others(file, kind)
        model = views.read_model(file)  # raises if it is not a model
        kept = model.provenance.privacy
        privacy = {"statement": model.provenance.privacy_in_words, "guarantee": None}
        if kept is not None and kept.guarantee is not None:
            privacy["guarantee"] = kept.guarantee.to_json()
        document = {**views.mdm_json(model.model, model.categories), "privacy": privacy}
        _show(as_json, document, views.mdm_table(model.model, model.categories), model.provenance)
        if not as_json:
            views.say_findings(model.model, model.categories)


def _show(
    as_json: bool,
    document: dict[str, Any],
    table: Any,
    provenance: Any = None,
    alarm: str | None = None,
) -> None:
    """Show a document; or a table, and where its file came from."""
    if as_json:
        print_json(document)
        return
    show(table)
    if provenance is not None:
        if provenance.fit is not None and provenance.fit.no_errors:
            show(Text(f"no standard errors: {provenance.fit.no_errors}"))
        show(Text(f"privacy: {provenance.privacy_in_words}"))
    if alarm is not None:
        say(f"alarm: {alarm}")
    if provenance is not None and provenance.traffic is not None:
        for sentence in (f"crossed: {provenance.traffic.line}", *provenance.traffic.absences):
            say(sentence)


def _refuse_others(path: Path, kind: str | None) -> None:
    """Refuse a file of another kind, and say what it is."""
    from polyurn.storage.partitions import load_partition
    from polyurn.storage.table_files import is_table

    what = _OTHERS.get(kind or "")
    if kind is None and is_table(path) and path.is_file():
        what = "not an MDM file but a table"
    if kind is None and path.suffix == ".json":
        with suppress(PolyurnError):
            what = f"a partition of {counted(len(load_partition(path)), 'client')}"
    if what is not None:
        raise FileError(f"{path} is {what}; expected a file that fit or style wrote")

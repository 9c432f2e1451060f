"""`polyurn show`: what is in a file: an MDM or a style, as a table."""

from pathlib import Path

from rich.text import Text

import polyurn as pu
from polyurn.commands.console import print_json, say, show
from polyurn.commands.declare import argument
from polyurn.commands.options import AS_JSON


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
    from polyurn.storage.models import load_saved, model_path
    from polyurn.typed.json_form import to_json

    kind = format_of(model_path(file))
    if kind == "polyurn.style":
        style = load_saved(file, pu.Style)
        alarm, known, guaranteed = style.model.alarm, style.provenance, {}
        document, table = views.style_json(style), views.style_table(style.model)
    else:
        saved = views.read_model(file)
        alarm, known = None, saved.provenance
        guarantee = None if known.privacy is None else known.privacy.guarantee
        guaranteed = {"guarantee": None if guarantee is None else to_json(guarantee)}
        document = views.mdm_json(saved.model, saved.categories)
        table = views.mdm_table(saved.model, saved.categories)
    no_errors = known.fit.no_errors if known.fit is not None else ""
    if as_json:
        why = {"no_errors": no_errors} if no_errors else {}
        privacy = {"statement": known.privacy_in_words, **guaranteed}
        print_json({**document, **why, "privacy": privacy})
        return
    show(table)
    if no_errors:
        show(Text(f"no standard errors: {no_errors}"))
    show(Text(f"privacy: {known.privacy_in_words}"))
    if alarm is not None:
        say(f"alarm: {alarm}")
    if known.traffic is not None:
        for sentence in (f"crossed: {known.traffic.line}", *known.traffic.absences):
            say(sentence)
    if kind != "polyurn.style":
        views.say_findings(saved.model, saved.categories)

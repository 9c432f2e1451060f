"""`polyurn show`: the components of an MDM file as a table.

Parses, calls one library function, prints.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from polyurn.commands._shared.console import print_json, say, show
from polyurn.commands._shared.options import AsJson


def show_command(
    mdm: Annotated[
        Path, typer.Argument(metavar="MDM", help="File that `fit`, `select` or `style` wrote.")
    ],
    as_json: AsJson = False,
) -> None:
    """The components of an MDM, or the directions of a style, and what is guaranteed to its clients.

    Example: `polyurn show mdm.json`
    """
    from rich.text import Text

    from polyurn.commands._shared.fitted_mdm import mdm_record, mdm_table
    from polyurn.commands._shared.model_files import read_model
    from polyurn.storage.atomic import format_of

    if format_of(mdm) == "polyurn.style":
        _show_style(mdm, as_json)
        return
    saved = read_model(mdm)
    if as_json:
        privacy = saved.made.privacy
        record: dict[str, Any] = {"statement": saved.made.privacy_in_words, "guarantee": None}
        if privacy is not None and privacy.guarantee is not None:
            record["guarantee"] = privacy.guarantee.to_record()
        print_json({**mdm_record(saved.mdm, saved.categories), "privacy": record})
    else:
        show(mdm_table(saved.mdm, saved.categories))
        show(Text(f"privacy: {saved.made.privacy_in_words}"))
        if saved.made.crossed is not None:
            say(f"crossed: {saved.made.crossed.line}")


def _show_style(path: Path, as_json: bool) -> None:
    from rich.text import Text

    from polyurn.commands._shared.fitted_style import style_record, style_table
    from polyurn.storage.style_json import load_style

    saved = load_style(path)
    if as_json:
        statement = {"statement": saved.made.privacy_in_words}
        print_json({**style_record(saved.style, saved.categories), "privacy": statement})
    else:
        show(style_table(saved.style))
        show(Text(f"privacy: {saved.made.privacy_in_words}"))
        if saved.style.alarm is not None:
            say(f"alarm: {saved.style.alarm}")
        if saved.made.crossed is not None:
            say(f"crossed: {saved.made.crossed.line}")

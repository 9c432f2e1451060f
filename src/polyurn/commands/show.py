"""`polyurn show`: what is in a file: an MDM, a style or a codebook, as a table.

Parses, calls one library function, prints.
"""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from polyurn.commands._shared.console import print_json, say, show
from polyurn.commands._shared.options import AsJson
from polyurn.errors import FileError, PolyurnError
from polyurn.wording.numbers import counted


def show_command(
    mdm: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="File that `fit`, `select`, `style` or `codebook make` wrote."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """The components of an MDM, the directions of a style, or the styles of each label in a codebook.

    And what is guaranteed to the clients of a model or a style.

    Example: `polyurn show mdm.json`
    """
    from polyurn.storage.documents import format_of

    match format_of(mdm):
        case "polyurn.style":
            _show_style(mdm, as_json)
        case "polyurn.codebook":
            _show_codebook(mdm, as_json)
        case "polyurn.mdm":
            _show_mdm(mdm, as_json)
        case said:
            _refuse_others(mdm, said)
            _show_mdm(mdm, as_json)  # which says why not


def _show_mdm(path: Path, as_json: bool) -> None:
    from rich.text import Text

    from polyurn.commands._shared.fitted_mdm import mdm_record, mdm_table
    from polyurn.commands._shared.model_files import read_model

    saved = read_model(path)
    if as_json:
        privacy = saved.made.privacy
        record: dict[str, Any] = {"statement": saved.made.privacy_in_words, "guarantee": None}
        if privacy is not None and privacy.guarantee is not None:
            record["guarantee"] = privacy.guarantee.to_record()
        print_json({**mdm_record(saved.model, saved.categories), "privacy": record})
    else:
        show(mdm_table(saved.model, saved.categories))
        show(Text(f"privacy: {saved.made.privacy_in_words}"))
        if saved.made.crossed is not None:
            say(f"crossed: {saved.made.crossed.line}")


def _show_style(path: Path, as_json: bool) -> None:
    from rich.text import Text

    from polyurn.commands._shared.fitted_style import style_record, style_table
    from polyurn.model.style import Style
    from polyurn.storage.models import load_saved

    saved = load_saved(path, Style)
    if as_json:
        statement = {"statement": saved.made.privacy_in_words}
        print_json({**style_record(saved.model, saved.categories), "privacy": statement})
    else:
        show(style_table(saved.model))
        show(Text(f"privacy: {saved.made.privacy_in_words}"))
        if saved.model.alarm is not None:
            say(f"alarm: {saved.model.alarm}")
        if saved.made.crossed is not None:
            say(f"crossed: {saved.made.crossed.line}")


def _show_codebook(path: Path, as_json: bool) -> None:
    from polyurn.commands._shared.made_codebook import book_record, book_table
    from polyurn.model.codebooks import Codebook
    from polyurn.storage.models import load_saved

    saved = load_saved(path, Codebook)
    if as_json:
        print_json(book_record(saved))
    else:
        show(book_table(saved))


_OTHERS = {
    "polyurn.comparison": "a comparison: `polyurn report` shows it",
    "polyurn.style-space": "a style space, which a style is measured in",
}


_TABLES = {".csv", ".tsv", ".gz", ".parquet"}


def _refuse_others(path: Path, said: str | None) -> None:
    """Say what a file of ours is that cannot be shown here."""
    from polyurn.storage.partitions import load_partition

    what = _OTHERS.get(said or "")
    if said is None and path.suffix in _TABLES and path.is_file():
        what = "not an MDM file but a table"
    if said is None and path.suffix == ".json":
        with suppress(PolyurnError):
            what = f"a partition of {counted(len(load_partition(path)), 'client')}"
    if what is not None:
        raise FileError(
            f"{path} is {what}; expected a file that fit, select, style or codebook make wrote"
        )

"""`polyurn show`: the components of an MDM file as a table.

Parses, calls one library function, prints.
"""

from pathlib import Path
from typing import Annotated

import typer

from polyurn.commands._shared.console import print_json, say, show
from polyurn.commands._shared.options import AsJson


def show_command(
    mdm: Annotated[Path, typer.Argument(metavar="MDM", help="File that `fit` wrote.")],
    as_json: AsJson = False,
) -> None:
    """The components of an MDM as a table.

    Example: `polyurn show mdm.json`
    """
    from polyurn.commands._shared.fitted_mdm import mdm_record, mdm_table
    from polyurn.commands._shared.model_files import read_model

    saved = read_model(mdm)
    if as_json:
        print_json(mdm_record(saved.mdm, saved.categories))
    else:
        show(mdm_table(saved.mdm, saved.categories))
        if saved.made.crossed is not None:
            say(f"crossed: {saved.made.crossed.line}")

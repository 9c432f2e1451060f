"""Models to files and back, whatever kind of model it is: `polyurn.save` and `polyurn.load`.

The formats are `mdm_json.py` and `style_json.py`; a file says which it is.
"""

import os
from collections.abc import Sequence

from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.style import Style
from polyurn.model.style_coordinates import StyleSpace
from polyurn.privacy.statement import Guarantee
from polyurn.storage import mdm_json
from polyurn.storage.atomic import format_of
from polyurn.storage.style_json import load_space, load_style, save_space, save_style
from polyurn.typed.arguments import Json, checked


@checked
def save(
    model: MDM | Style | StyleSpace,
    path: str | os.PathLike[str],
    *,
    categories: Sequence[str] | None = None,
    made: Json | None = None,
    guarantee: Guarantee | None = None,
) -> None:
    """Write an MDM, a style or a style space as JSON.

    Parameters
    ----------
    model : MDM, Style or StyleSpace
    path : path
    categories : sequence of str, optional
        The name of each category; of each label, with a style.
    made : mapping, optional
        How it came about, e.g. {"seed": 1, "command": "..."}; kept as it is. "fit", "selection",
        "crossed" and "privacy" are for the records of `FitRecord`, `SelectionRecord`, `CrossedRecord`
        and `PrivacyRecord`.
    guarantee : Guarantee, optional
        That of `fit_private`, or of a `PrivateAggregator`, which the file then states; a file without
        one states that there is none.
    """
    if isinstance(model, MDM):
        mdm_json.save(model, path, categories=categories, made=made, guarantee=guarantee)
    elif isinstance(model, Style):
        save_style(model, path, categories=categories, made=made, guarantee=guarantee)
    elif guarantee is not None:
        raise ParameterError("expected no guarantee with a style space: it is made of proxy data")
    elif categories is not None:
        raise ParameterError("expected no categories with a style space, which has no names")
    else:
        save_space(model, path, made=made)


@checked
def load(path: str | os.PathLike[str]) -> MDM | Style | StyleSpace:
    """Read the model that `save` wrote, equal to the last bit."""
    match format_of(path):
        case "polyurn.style":
            return load_style(path).style
        case "polyurn.style-space":
            return load_space(path)
        case _:
            return mdm_json.load(path)

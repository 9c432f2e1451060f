"""Models of every kind to files and back: `polyurn.save` and `polyurn.load`.

A file has the fields of the model's class under their own names, the names of categories and features,
and the provenance. A model is read back equal to the last bit.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from polyurn.counts import check_texts
from polyurn.errors import FileError, InputError, ParameterError
from polyurn.model.mdm import MDM, Relabelled
from polyurn.model.names import Side, check_own, side_of
from polyurn.model.style import Style
from polyurn.model.style_coordinates import StyleSpace
from polyurn.model.trees import Tree
from polyurn.privacy.statement import Guarantee
from polyurn.storage.documents import (
    SPLITS_VERSION,
    VERSION,
    format_of,
    load_document,
    parse_json,
    save_document,
)
from polyurn.storage.files import AGAIN, read_regular
from polyurn.storage.provenance import PrivacyProvenance, Provenance
from polyurn.typed.arguments import Json, checked
from polyurn.typed.json_form import from_json, to_json

_KINDS: dict[str, Any] = {"mdm": MDM, "style": Style, "style-space": StyleSpace}

# Models whose categories are their own.
_MIXTURES = (MDM, Relabelled)

Model = TypeVar("Model")

# `zoo:celeba_hair` is a model that comes with polyurn, wherever a model's file is expected.
ZOO = "zoo:"
ZOO_FOLDER = Path(__file__).parents[1] / "zoo" / "data"


@dataclass(frozen=True)
class Saved(Generic[Model]):
    """What a model's file holds.

    `categories` are the names of an MDM's categories, which it has itself, or of the others' labels.
    `provenance.left_out` says what of the provenance could not be read. `features` are the columns of a
    table with the features: one for each, or one that has lists.
    """

    model: Model
    categories: tuple[str, ...] | None = None
    provenance: Provenance = field(default_factory=Provenance)
    features: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        model: Any = self.model
        space: Any = model.space if isinstance(model, Style) else model
        names = check_own(self.categories, model, self._n_names)
        if isinstance(model, _MIXTURES) and names != model.categories:
            object.__setattr__(self, "model", replace(model, categories=names))
        object.__setattr__(self, "categories", names)
        if self.features is not None:
            check_texts(self.features, "names of features")
            if len(self.features) not in (1, space.n_features):
                raise ParameterError(
                    f"expected a name for each of {space.n_features} features, or one column with "
                    f"lists, got {len(self.features)}"
                )
            object.__setattr__(self, "features", tuple(self.features))

    @property
    def declared(self) -> int | tuple[str, ...]:
        """The names of the categories or labels; their number if they have no names."""
        return self.categories or self._n_names

    @property
    def side(self) -> Side:
        """As `declared`; their number, too, if their names are numbers in order."""
        return side_of(self, self._n_names)

    @property
    def _n_names(self) -> int:
        model: Any = self.model
        if isinstance(model, _MIXTURES):
            return model.n_categories
        return int(model.space.n_labels if isinstance(model, Style) else model.n_labels)


@checked
def save(
    model: MDM | Style | StyleSpace,
    path: str | os.PathLike[str],
    *,
    categories: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    provenance: Provenance | Json | None = None,
    guarantee: Guarantee | None = None,
) -> None:
    """Write an MDM, a style or a style space as JSON.

    Parameters
    ----------
    model : MDM, Style or StyleSpace
    path : path
    categories : sequence of str, optional
        The name of each category of an MDM that has no names; of each label, with anything else.
    features : sequence of str, optional
        The columns of a table with the features: one for each, or one that has lists.
    provenance : mapping, optional
        How it came about, e.g. {"seed": 1, "command": "..."}; kept as it is. "data", "fit",
        "selection", "traffic" and "privacy" are for results of ours.
    guarantee : Guarantee, optional
        The guarantee of `fit_private` or of a `PrivateAggregator`, which the file then states. Without
        it the file states that there is no guarantee.
    """
    if guarantee is not None and isinstance(model, StyleSpace):
        raise ParameterError("expected no guarantee with a style space: it is made of proxy data")
    document = (
        provenance.to_json() if isinstance(provenance, Provenance) else dict(provenance or {})
    )
    if guarantee is not None:
        document["privacy"] = to_json(PrivacyProvenance.of(guarantee))
    if not isinstance(provenance, Provenance):
        Provenance.check(document, model)
    saved = Saved(model, categories, features=features)  # type: ignore[arg-type]
    names = {"categories": saved.categories, "features": saved.features}
    kind = next(name for name, cls in _KINDS.items() if isinstance(model, cls))
    parts = {**names, **to_json(saved.model)}
    version = SPLITS_VERSION if "splits" in parts else VERSION
    save_document(parts, path, kind=kind, provenance=document, version=version)


@checked
def load(path: str | os.PathLike[str]) -> MDM | Style | StyleSpace:
    """Read the model that `save` wrote, equal to the last bit; `zoo:NAME` is a model of the zoo."""
    path = model_path(path)
    kind = (format_of(path) or "").removeprefix("polyurn.")
    model: MDM | Style | StyleSpace = load_saved(path, _KINDS.get(kind, MDM)).model
    return model


@overload
def load_saved(path: str | os.PathLike[str]) -> Saved[MDM]: ...
@overload
def load_saved(path: str | os.PathLike[str], cls: type[Model]) -> Saved[Model]: ...
def load_saved(path: str | os.PathLike[str], cls: Any = MDM) -> Saved[Any]:
    """Read a model's file, or a model of the zoo, with everything that it holds."""
    path = model_path(path)
    kind = next(name for name, known in _KINDS.items() if known is cls)
    document = load_document(path, kind=kind)
    try:
        model = from_json(cls, document)
        names = from_json(_Names, document)
        provenance = Provenance.from_json(document.get("provenance", {}), model=model)
        return Saved(model, names.categories, provenance, names.features)
    except (FileError, InputError) as error:
        raise FileError(f"{path} is damaged: {error}; {AGAIN}") from error


def load_tree(path: str | os.PathLike[str], categories: Sequence[str]) -> Tree:
    """The tree over categories in a JSON file: lists in lists of their names."""
    try:
        return Tree.declared(parse_json(read_regular(path)), categories)
    except ValueError as error:
        raise FileError(f"{path} holds no tree of the categories: {error}") from error


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a name is that of a model, and not of a table: a .json file, or one of the zoo."""
    name = Path(path).name
    return name.startswith(ZOO) or name.endswith(".json")


def model_path(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The file of a model; of `zoo:NAME`, the one that comes with polyurn."""
    name = Path(path).name
    if not name.startswith(ZOO):
        return path
    name = name.removeprefix(ZOO)
    found = {file.stem: file for file in (ZOO_FOLDER / "models").glob("*.json")}
    if name not in found:
        near = get_close_matches(name, found, n=1)
        hint = f"; did you mean {near[0]}?" if near else "; `polyurn zoo` lists its federations"
        raise FileError(f"the zoo has no federation {name!r}{hint}")
    return found[name]


@dataclass(frozen=True)
class _Names:
    categories: tuple[str, ...] | None
    features: tuple[str, ...] | None

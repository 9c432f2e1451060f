"""A style, or a style space, as a JSON file: readable, versioned, equal to the last bit when read back.

What they are is `model/style.py` and `model/style_coordinates.py`. How a file gets to its place whole is
`atomic.py`.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from polyurn.counts import check_names
from polyurn.errors import FileError, InputError, ParameterError
from polyurn.model.style import Style, StyleErrors
from polyurn.model.style_coordinates import StyleSpace
from polyurn.privacy.statement import Guarantee
from polyurn.storage.atomic import AGAIN, load_record, save_record
from polyurn.storage.provenance import Made, PrivacyRecord, checked_made
from polyurn.typed.arrays import finite_array
from polyurn.typed.records import Count, Finite, read_record, shown, to_record

_VERSION = 1
_ESTIMATES = ("mean", "shared", "by_label", "within")

_Row: TypeAlias = Sequence[Finite]
_Table: TypeAlias = Sequence[_Row]


@dataclass(frozen=True)
class SavedStyle:
    """What a style file holds.

    Attributes
    ----------
    style : Style
    categories : tuple of str, or None
        The name of each label.
    features : tuple of str, or None
        The name of each feature, the column of a table.
    made : Made
        How the file came about.
    """

    style: Style
    categories: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None
    made: Made = field(default_factory=Made)


def save_style(
    style: Style,
    path: str | os.PathLike[str],
    *,
    categories: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    made: Mapping[str, Any] | None = None,
    guarantee: Guarantee | None = None,
) -> None:
    """Write a style, with its space, as JSON; as `polyurn.save` does it."""
    said = dict(made or {})
    if guarantee is not None:
        said["privacy"] = to_record(PrivacyRecord.of(guarantee))
    record = {
        "categories": check_names(categories, style.space.n_labels),
        "features": check_feature_names(features, style.space),
        "n_clients": style.n_clients,
        "far_share": None if np.isnan(style.far_share) else style.far_share,
        **_arrays(style, _ESTIMATES),
        **_arrays(style, ("label_shares", "label_covariance", "tie")),
        "errors": None if style.errors is None else _errors_record(style.errors),
        "space": space_to_record(style.space),
    }
    save_record(record, path, kind="style", version=_VERSION, made=checked_made(said))


def load_style(path: str | os.PathLike[str]) -> SavedStyle:
    """Read a style file with all that stands in it.

    Raises
    ------
    FileError
        The file cannot be read, its numbers are damaged, or a later version wrote it.
    """
    record = load_record(path, kind="style", version=_VERSION)
    try:
        kept = read_record(_StyleRecord, record)
        space = _space(kept.space)
        errors = None
        if kept.errors is not None:
            arrays = {
                name: finite_array(getattr(kept.errors, name), f"errors.{name}")
                for name in _ESTIMATES
            }
            errors = StyleErrors(**arrays, far_share=kept.errors.far_share)
        style = Style(
            space, kept.mean, kept.shared, kept.by_label, kept.within,
            label_shares=kept.label_shares, label_covariance=kept.label_covariance, tie=kept.tie,
            errors=errors, n_clients=kept.n_clients,
            far_share=np.nan if kept.far_share is None else kept.far_share,
        )  # fmt: skip
        names = check_names(kept.categories, space.n_labels)
        columns = check_feature_names(kept.features, space)
        return SavedStyle(style, names, columns, Made.from_record(record.get("made", {})))
    except (FileError, InputError) as error:
        raise FileError(f"{path} is damaged: {error}; {AGAIN}") from error


def save_space(
    space: StyleSpace, path: str | os.PathLike[str], *, made: Mapping[str, Any] | None = None
) -> None:
    """Write a style space as JSON; as `polyurn.save` does it."""
    made = checked_made(dict(made or {}))
    save_record(space_to_record(space), path, kind="style-space", version=_VERSION, made=made)


def load_space(path: str | os.PathLike[str]) -> StyleSpace:
    """Read a style space from a file of its own.

    Raises
    ------
    FileError
        As `load_style`.
    """
    record = load_record(path, kind="style-space", version=_VERSION)
    try:
        return space_from_record(record)
    except (FileError, InputError) as error:
        raise FileError(f"{path} is damaged: {error}; {AGAIN}") from error


@dataclass(frozen=True)
class _SpaceRecord:
    """A style space as the file has it."""

    n_labels: Count
    n_features: Count
    n_directions: Count
    radius: Finite
    pool_far_share: Finite
    centres: _Table
    basis: _Table
    whitening: Sequence[_Table]


@dataclass(frozen=True)
class _ErrorsRecord:
    """Standard errors as the file has them."""

    mean: _Row
    shared: _Table
    by_label: _Table
    within: _Table
    far_share: Finite = 0.0  # which older files do not have


@dataclass(frozen=True)
class _StyleRecord:
    """A style as the file has it; without ties, three fields are null."""

    categories: Sequence[str] | None
    features: Sequence[str] | None
    n_clients: Count
    far_share: Finite | None
    mean: _Row
    shared: _Table
    by_label: _Table
    within: _Table
    label_shares: _Row | None
    label_covariance: _Table | None
    tie: _Table | None
    errors: _ErrorsRecord | None
    space: _SpaceRecord


def _errors_record(errors: StyleErrors) -> dict[str, Any]:
    return {**_arrays(errors, _ESTIMATES), "far_share": errors.far_share}


def _arrays(value: Any, names: Sequence[str]) -> dict[str, Any]:
    given = {name: getattr(value, name) for name in names}
    return {name: None if array is None else array.tolist() for name, array in given.items()}


def space_to_record(space: StyleSpace) -> dict[str, Any]:
    """A style space for JSON."""
    return {
        "n_labels": space.n_labels,
        "n_features": space.n_features,
        "n_directions": space.n_directions,
        "radius": space.radius,
        "pool_far_share": space.pool_far_share,
        **_arrays(space, ("centres", "basis", "whitening")),
    }


def space_from_record(record: object, *, where: str = "") -> StyleSpace:
    """What `space_to_record` wrote, checked."""
    return _space(read_record(_SpaceRecord, record, where=where))


def _space(kept: _SpaceRecord) -> StyleSpace:
    space = StyleSpace(kept.centres, kept.basis, kept.whitening, kept.radius, kept.pool_far_share)
    found = (space.n_labels, space.n_features, space.n_directions)
    said = (kept.n_labels, kept.n_features, kept.n_directions)
    if said != found:
        raise FileError(
            f"expected n_labels, n_features and n_directions as {shown(found)}, got {shown(said)}"
        )
    return space


def check_feature_names(names: Sequence[str] | None, space: StyleSpace) -> tuple[str, ...] | None:
    """The names as a tuple, if there is one for each feature, or none at all."""
    if names is None:
        return None
    if len(names) != space.n_features:
        raise ParameterError(
            f"expected a name for each of {space.n_features} features, got {len(names)}"
        )
    return tuple(names)

"""An MDM as a JSON file: readable, versioned, and equal to the last bit when it is read back.

Sizes are stored sparsely. What an MDM is, is `model/mdm.py`; how a file gets to its place whole is
`atomic.py`.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.counts import check_names
from polyurn.errors import FileError, InputError
from polyurn.model.mdm import MDM
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.privacy.statement import Guarantee
from polyurn.storage.atomic import AGAIN, load_record, save_record
from polyurn.storage.provenance import Made, PrivacyRecord, checked_made
from polyurn.typed.arguments import Json, checked
from polyurn.typed.records import Count, Finite, read_record, shown, to_record

_VERSION = 2  # 1 had no size_profile
_MOST_DIGITS = 12  # of a size


@dataclass(frozen=True)
class SavedMDM:
    """What an MDM file holds.

    Attributes
    ----------
    mdm : MDM
    categories : tuple of str, or None
        The name of each category.
    made : Made
        How the file came about: version, seed, command, data and rounds; `made.left_out` says what of it
        could not be read.
    """

    mdm: MDM
    categories: tuple[str, ...] | None = None
    made: Made = field(default_factory=Made)

    @property
    def declared(self) -> int | tuple[str, ...]:
        """The names of the categories, or how many there are."""
        return self.categories or self.mdm.n_categories


@checked
def save(
    mdm: MDM,
    path: str | os.PathLike[str],
    *,
    categories: Sequence[str] | None = None,
    made: Json | None = None,
    guarantee: Guarantee | None = None,
) -> None:
    """Write an MDM as JSON.

    Parameters
    ----------
    mdm : MDM
    path : path
    categories : sequence of str, optional
        The name of each category.
    made : mapping, optional
        How it came about, e.g. {"seed": 1, "command": "..."}; kept as it is. "fit", "selection",
        "crossed" and "privacy" are for the records of `FitRecord`, `SelectionRecord`, `CrossedRecord`
        and `PrivacyRecord`.
    guarantee : Guarantee, optional
        That of `fit_private`, which the file then states; a file without one states that there is none.
    """
    said = dict(made or {})
    if guarantee is not None:
        said["privacy"] = to_record(PrivacyRecord.of(guarantee))
    record = {
        "n_components": mdm.n_components,
        "n_categories": mdm.n_categories,
        "max_size": mdm.max_size,
        "categories": check_names(categories, mdm.n_categories),
        "components": [_component_record(mdm, k) for k in range(mdm.n_components)],
        "size_edges": _edges_record(mdm.sizes.bins.edges),
        "size_profile": _profile_record(mdm.sizes.bins),
    }
    save_record(record, path, kind="mdm", version=_VERSION, made=checked_made(said))


@checked
def load(path: str | os.PathLike[str]) -> MDM:
    """Read the MDM that `save` wrote, equal to the last bit."""
    return load_saved(path).mdm


def load_saved(path: str | os.PathLike[str]) -> SavedMDM:
    """Read an MDM file with all that stands in it.

    Raises
    ------
    FileError
        The file cannot be read, its parameters are damaged, or a later version wrote it.
    """
    record = load_record(path, kind="mdm", version=_VERSION)
    try:
        return SavedMDM(*_parameters(record), Made.from_record(record.get("made", {})))
    except (FileError, InputError) as error:
        raise FileError(f"{path} is damaged: {error}; {AGAIN}") from error


@dataclass(frozen=True)
class _ComponentRecord:
    """A component as the file has it; sizes by the first size of their bin."""

    weight: Finite
    alpha: Sequence[Finite]
    sizes: Mapping[str, Finite]


@dataclass(frozen=True)
class _ProfileRecord:
    """Sizes inside the bins; without `edges` one by one. Shares by the first size of their finer bin."""

    edges: Sequence[Count] | None
    shares: Mapping[str, Finite]


@dataclass(frozen=True)
class _ParametersRecord:
    """The parameters as the file has them; without `size_edges` every size is a bin."""

    n_components: Count
    n_categories: Count
    max_size: Count
    categories: Sequence[str] | None
    components: Sequence[_ComponentRecord]
    size_edges: Sequence[Count] | None
    size_profile: _ProfileRecord | None = None


def _component_record(mdm: MDM, k: int) -> dict[str, Any]:
    masses = mdm.sizes.masses[k]
    held = np.flatnonzero(masses)
    first_sizes = mdm.sizes.bins.edges[:-1]
    return {
        "weight": float(mdm.weights[k]),
        "alpha": mdm.alphas[k].tolist(),
        "sizes": {str(first_sizes[b]): float(masses[b]) for b in held},
    }


def _edges_record(edges: NDArray[np.int64]) -> list[int] | None:
    """None says one bin per size: a list of all the numbers up to N would only be noise."""
    return None if len(edges) == edges[-1] else edges.tolist()


def _profile_record(bins: SizeBins) -> dict[str, Any] | None:
    """None says that every size of a bin is equally likely."""
    if len(bins.fine) == len(bins.edges):
        return None
    held = np.flatnonzero(bins.shares)
    shares = {str(bins.fine[j]): float(bins.shares[j]) for j in held}
    return {"edges": _edges_record(bins.fine), "shares": shares}


def _parameters(record: Mapping[str, Any]) -> tuple[MDM, tuple[str, ...] | None]:
    """The mixture and the names of its categories."""
    kept = read_record(_ParametersRecord, record)
    bins = _bins(kept)
    widths = {len(component.alpha) for component in kept.components}
    found = (len(kept.components), *widths, bins.max_size)
    said = (kept.n_components, kept.n_categories, kept.max_size)
    if said != found:
        raise FileError(
            f"expected n_components, n_categories and max_size as {shown(found)}, got {shown(said)}"
        )
    masses = np.zeros((len(kept.components), bins.n_bins))
    for k, component in enumerate(kept.components):
        masses[k, bins.locate(_sizes(component.sizes))] = list(component.sizes.values())
    mdm = MDM(
        [component.weight for component in kept.components],
        [component.alpha for component in kept.components],
        Sizes(bins, masses),
    )
    return mdm, check_names(kept.categories, mdm.n_categories)


def _bins(kept: _ParametersRecord) -> SizeBins:
    edges, profile = kept.size_edges, kept.size_profile
    bins = SizeBins.exact(kept.max_size) if edges is None else SizeBins(edges)
    if profile is None:
        return bins
    edges = profile.edges
    fine = SizeBins.exact(bins.max_size) if edges is None else SizeBins(edges)
    shares = np.zeros(fine.n_bins)
    shares[fine.locate(_sizes(profile.shares))] = list(profile.shares.values())
    return SizeBins(bins.edges, fine.edges, shares)


def _sizes(by_size: Mapping[str, Finite]) -> list[int]:
    for text in by_size:
        if not (text.isascii() and text.isdecimal() and len(text) < _MOST_DIGITS):
            raise FileError(f"sizes: expected whole numbers as names, got {shown(text)}")
    return [int(text) for text in by_size]

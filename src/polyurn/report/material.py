"""What a page is made from: whatever the user has, in one shape.

Checked here once; the sections trust it. Nothing is drawn on paper, and no file is read.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.comparison.comparison_results import Comparison
from polyurn.counts import Counts
from polyurn.errors import ParameterError, StyleWarning
from polyurn.model.mdm import MDM
from polyurn.model.names import Match, check_own, columns_of, laid, names_of
from polyurn.model.style import Style
from polyurn.model.style_coordinates import label_codes
from polyurn.partitioning.assign import dense, held_categories, partition
from polyurn.partitioning.result import Partition, PartitionReport, StyleReport
from polyurn.server.describing import ColumnDescription, Description
from polyurn.server.fit_results import Fit
from polyurn.storage.look_history import LookEntry
from polyurn.storage.models import Saved
from polyurn.storage.provenance import Provenance
from polyurn.storage.run_log import FinishedRun
from polyurn.sweeps.verdict import Verdict, compare_sweeps
from polyurn.typed.arrays import numbers
from polyurn.typed.declared import Floats, Ints

Model: TypeAlias = MDM | Saved[MDM] | Fit

# Clients of a population that are drawn: enough for the eye, few enough for a small page.
MOST_CLIENTS = 300


@dataclass(frozen=True)
class SavedComparison:
    """What a comparison file holds, and how it came about."""

    comparison: Comparison
    provenance: Provenance = field(default_factory=Provenance)

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> Self:
        """A comparison file's document; a field that is missing or damaged is a FileError."""
        provenance = Provenance.from_json(document.get("provenance", {}))
        return cls(Comparison.from_dict(document), provenance)


@dataclass(frozen=True, eq=False)
class ProxyPoints:
    """Features and labels, and coordinates (n_points, n_directions) in the style's space."""

    features: NDArray[Any] = field(repr=False)
    labels: Ints = field(repr=False)
    coordinates: Floats = field(repr=False)


@dataclass(frozen=True, eq=False)
class StyledClients:
    """Simulated clients with styles, and how well the proxy data could serve them.

    `n_lacking` are points of labels that the proxy data lack, which clients were to hold and do not.
    """

    clients: Partition
    report: PartitionReport
    style: StyleReport
    n_lacking: int


@dataclass(frozen=True, eq=False)
class StyleMaterial:
    """A style and what can be shown of it; what there is not is None.

    `labels` are names, or numbers instead; `features` are names, where features are columns.
    """

    style: Style
    labels: tuple[str, ...]
    features: tuple[str, ...] | None
    provenance: Provenance
    proxy: ProxyPoints | None = None
    styled: StyledClients | None = None


@dataclass(frozen=True)
class Material:
    """Everything that the sections are made from; what the user does not have is None or empty.

    The others are compared with the population `true`, runs in `metric`. `categories` are names, or
    numbers as texts. `provenance` says how the MDM came about. `clients` are histograms of shape
    (n_clients, n_categories), at most 300 of each population, of which there were `n_clients`. `notes`
    are more to say about where things came from; `rng` is for what sections draw.
    """

    true: str
    metric: str
    mdm: MDM | None
    categories: tuple[str, ...]
    provenance: Provenance
    comparison: Comparison | None
    comparison_provenance: Provenance
    runs: tuple[FinishedRun, ...]
    clients: Mapping[str, Ints]
    n_clients: Mapping[str, int]
    notes: tuple[tuple[str, str], ...]
    style: StyleMaterial | None
    looks: tuple[LookEntry, ...]
    description: Description | ColumnDescription | None
    rng: np.random.Generator

    @property
    def populations(self) -> list[str]:
        """Every population that some figure can show, the true one first."""
        named = [*self.clients]
        if self.comparison is not None:
            named += [row.name for row in self.comparison.rows]
        named += [run.population for run in self.runs]
        return sorted(dict.fromkeys(named), key=lambda name: name != self.true)

    @property
    def verdict(self) -> Verdict | None:
        """What the sweep says about each population; None if nothing can be compared."""
        return None if isinstance(self._verdict, str) else self._verdict

    @property
    def no_verdict(self) -> str:
        """Why runs on true clients and on others cannot be compared; "" if they can, or are missing."""
        return self._verdict if isinstance(self._verdict, str) else ""

    @cached_property
    def _verdict(self) -> Verdict | str:
        names = {run.population for run in self.runs}
        if self.true not in names or len(names) < 2:
            return ""
        try:
            return compare_sweeps(self.runs, true=self.true, metric=self.metric)
        except ParameterError as error:  # no seed or setting that both were trained with
            return str(error)


def tables_of(
    clients: Mapping[str, object],
    mdm: MDM | None,
    categories: Sequence[str] | None,
    match: Match | None,
) -> tuple[dict[str, Counts], tuple[str, ...] | None]:
    """The histograms of each population, of the model's categories or all of the same ones; the names.

    Tables without names have those that the caller gives, in their order.
    """
    found = (categories, *map(names_of, (mdm, *clients.values())))
    names = next((tuple(one) for one in found if one), None)
    if mdm is not None and mdm.categories is not None:
        check_own(categories, mdm, mdm.n_categories)
    checked = {name: columns_of(table) for name, table in clients.items()}
    widths = [table.shape[1] for table, own in checked.values() if own is None]
    if mdm is None and len({*widths}) > 1:
        raise ParameterError("expected populations with the same categories, got different ones")
    n_categories = mdm.n_categories if mdm is not None else max(widths, default=0)
    ours = names or n_categories
    tables = {
        name: laid(table, ours, "position" if categories and checked[name][1] is None else match)
        for name, table in clients.items()
    }
    return tables, names


def style_material(
    saved: Saved[Style] | None,
    features: ArrayLike | None,
    labels: ArrayLike | None,
    *,
    names: tuple[str, ...] | None,
    mdm: MDM | None,
    true: Counts | None,
    rng: np.random.Generator,
) -> StyleMaterial | None:
    """A style, proxy points, and clients of the model, or true ones, drawn with it.

    A model may be of other categories than the style's labels; then there are no such clients.
    """
    if (features is None) != (labels is None) or (saved is None and features is not None):
        raise ParameterError(
            "expected features and labels of the proxy points together with a style, and only then"
        )
    if saved is None:
        return None
    space = saved.model.space
    names = names if names is not None and len(names) == space.n_labels else None
    # Features of one column with lists have no names of their own.
    named = saved.features is not None and len(saved.features) == space.n_features
    shown = StyleMaterial(
        style=saved.model,
        labels=saved.categories or names or tuple(map(str, range(space.n_labels))),
        features=saved.features if named else None,
        provenance=saved.provenance,
    )
    if features is None or labels is None:
        return shown
    held = numbers(features, "features")
    coordinates = space.coordinates(held, labels)  # which checks both
    codes = label_codes(labels, len(held), n_labels=space.n_labels)
    shown = replace(shown, proxy=ProxyPoints(held, codes, coordinates))
    counts: Counts | None = None
    if mdm is not None and mdm.n_categories == space.n_labels:
        counts = mdm.sample(MOST_CLIENTS, rng=rng)
    elif mdm is None and true is not None and true.shape[1] == space.n_labels:
        counts = some_of(true, rng=rng)
    if counts is None or (names is not None and names != shown.labels):
        return shown
    wanted = held_categories(counts, codes)
    if wanted.shape[0] == 0:
        return shown
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StyleWarning)  # the page says it
        drawn = partition(codes, wanted, style=shown.style, features=held, rng=rng)
    report = drawn.report
    assert report is not None
    assert report.style is not None
    n_lacking = int(counts.sum() - wanted.sum())
    return replace(shown, styled=StyledClients(drawn, report, report.style, n_lacking))


def some_of(counts: Counts, *, rng: np.random.Generator) -> Ints:
    """At most 300 clients, at random, as a dense table of shape (n_clients, n_categories)."""
    return dense(counts[np.sort(rng.permutation(counts.shape[0])[:MOST_CLIENTS])])

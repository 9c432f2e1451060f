"""What a page is made from: whatever the user has, in one shape.

Checked here once; the sections trust it. Nothing is drawn, and no file is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.comparison.results import Comparison
from polyurn.counts import Counts, check_counts
from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.style import Style
from polyurn.populations import IID
from polyurn.report.population_rows import some_clients
from polyurn.report.style_material import StyleMaterial, gather_style
from polyurn.server.records import FitRecord, SelectionRecord
from polyurn.server.results import Fit, Selection
from polyurn.storage.mdm_json import SavedMDM
from polyurn.storage.provenance import Made
from polyurn.storage.run_log import RunRecord
from polyurn.storage.style_json import SavedStyle

Model: TypeAlias = MDM | SavedMDM | Fit | Selection

# Clients of a population that are drawn: enough for the eye, few enough for a small page.
_MOST_CLIENTS = 300


@dataclass(frozen=True)
class SavedComparison:
    """What a comparison file holds.

    Attributes
    ----------
    comparison : Comparison
    made : Made
        How the file came about.
    """

    comparison: Comparison
    made: Made = field(default_factory=Made)

    @classmethod
    def from_record(cls, record: Mapping[str, object]) -> Self:
        """The record of a comparison file, checked."""
        return cls(Comparison.from_dict(record), Made.from_record(record.get("made", {})))


@dataclass(frozen=True)
class Material:
    """Everything that the sections are made from; what the user does not have is None or empty.

    Attributes
    ----------
    mdm : MDM or None
    categories : tuple of str
        The name of each category, its number if it has none.
    made, comparison_made : Made
        How the MDM and the comparison came about.
    comparison : Comparison or None
    runs : tuple of RunRecord
    true : str
        The population that the others are compared with.
    metric : str
    clients : dict of name to int array of shape (n_clients, n_categories)
        At most 300 of each population.
    n_clients : dict of name to int
        How many there were.
    notes : tuple of (str, str)
        More to say about where things came from.
    style : StyleMaterial or None
    """

    mdm: MDM | None
    categories: tuple[str, ...]
    made: Made
    comparison: Comparison | None
    comparison_made: Made
    runs: tuple[RunRecord, ...]
    true: str
    metric: str
    clients: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    n_clients: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[tuple[str, str], ...] = ()
    style: StyleMaterial | None = None

    @property
    def populations(self) -> list[str]:
        """Every population that some figure can show, the true one first."""
        named = [*self.clients]
        if self.comparison is not None:
            named += [row.name for row in self.comparison.rows]
        named += [run.population for run in self.runs]
        return sorted(dict.fromkeys(named), key=lambda name: name != self.true)


def gather(
    model: Model | None,
    *,
    categories: Sequence[str] | None,
    comparison: Comparison | SavedComparison | None,
    runs: Sequence[RunRecord],
    clients: Mapping[str, object],
    true: str,
    metric: str,
    notes: Sequence[tuple[str, str]],
    rng: int | np.random.Generator | None,
    style: Style | SavedStyle | None = None,
    features: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> Material:
    """Bring what the user has into one shape, and draw the clients that are missing.

    With true clients at hand, those of the model ("mdm") and IID ones ("iid") are drawn, unless they are
    given. With a style and proxy points, clients of the model, or else true ones, are drawn with it.
    """
    mdm, own_categories, made = _model(model)
    if mdm is None and comparison is None and not runs and not clients and style is None:
        raise ParameterError(
            "expected something to report on: a model, a style, a comparison, runs or clients"
        )
    rng = np.random.default_rng(rng)
    tables = {
        name: check_counts(table, n_categories=None if mdm is None else mdm.n_categories)
        for name, table in clients.items()
    }
    if len({table.shape[1] for table in tables.values()}) > 1:
        raise ParameterError("expected populations with the same categories, got different ones")
    shown_style = gather_style(style, features=features, labels=labels)
    known = [mdm, *tables.values(), shown_style]
    n_categories = next((_n_categories(one) for one in known if one is not None), 0)
    names = own_categories if categories is None else tuple(categories)
    if names is not None and len(names) != n_categories:
        raise ParameterError(f"expected {n_categories} category names, got {len(names)}")
    if shown_style is not None:
        shown_style = _completed(shown_style, names, mdm, tables.get(true), rng)
    if true in tables:
        n = min(tables[true].shape[0], _MOST_CLIENTS)
        if mdm is not None and "mdm" not in tables:
            tables["mdm"] = mdm.sample(n, rng=rng)
        if "iid" not in tables:
            tables["iid"] = IID.like(tables[true]).sample(n, rng=rng)
    order = sorted(tables, key=lambda name: name != true)
    if isinstance(comparison, Comparison):
        comparison = SavedComparison(comparison)
    return Material(
        mdm=mdm,
        categories=names or tuple(str(j) for j in range(n_categories)),
        made=made,
        comparison=comparison.comparison if comparison else None,
        comparison_made=comparison.made if comparison else Made(),
        runs=tuple(runs),
        true=true,
        metric=metric,
        clients={name: some_clients(tables[name], _MOST_CLIENTS, rng=rng) for name in order},
        n_clients={name: tables[name].shape[0] for name in order},
        notes=tuple(notes),
        style=shown_style,
    )


def _n_categories(of: MDM | Counts | StyleMaterial) -> int:
    match of:
        case MDM():
            return of.n_categories
        case StyleMaterial():
            return of.style.space.n_labels
        case _:
            return int(of.shape[1])


def _completed(
    shown: StyleMaterial,
    names: tuple[str, ...] | None,
    mdm: MDM | None,
    true: Counts | None,
    rng: np.random.Generator,
) -> StyleMaterial:
    """A style with names for its labels, and clients of the model, or true ones, drawn with it.

    A model may be of other categories than the style's labels; then there are no such clients.
    """
    n_labels = shown.style.space.n_labels
    if names is not None and len(names) == n_labels:
        shown = shown.named(names)
    (stream,) = rng.spawn(1)  # what else is drawn is the same with a style and without
    if mdm is not None and mdm.n_categories == n_labels:
        return shown.served(mdm.sample(_MOST_CLIENTS, rng=stream), rng=stream)
    if mdm is None and true is not None and true.shape[1] == n_labels:
        return shown.served(some_clients(true, _MOST_CLIENTS, rng=stream), rng=stream)
    return shown


def _model(model: Model | None) -> tuple[MDM | None, tuple[str, ...] | None, Made]:
    """The MDM, the names of its categories and how it came about."""
    match model:
        case Fit():
            return model.mdm, None, Made(fit=FitRecord.of(model))
        case Selection():
            return model.mdm, None, Made(selection=SelectionRecord.of(model))
        case SavedMDM():
            return model.mdm, model.categories, model.made
        case _:
            return model, None, Made()

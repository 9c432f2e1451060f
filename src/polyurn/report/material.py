"""What a page is made from: whatever the user has, in one shape.

Checked here once; the sections trust it. Nothing is drawn, and no file is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polyurn.comparison.results import Comparison
from polyurn.counts import check_counts, client_sizes
from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM
from polyurn.populations import iid_counts
from polyurn.report.population_rows import some_clients
from polyurn.server.records import FitRecord, SelectionRecord
from polyurn.server.results import Fit, Selection
from polyurn.storage.mdm_json import SavedMDM
from polyurn.storage.provenance import Made
from polyurn.storage.run_log import RunRecord

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
        """The record of a comparison file, checked.

        Raises
        ------
        FileError
            A field is missing or damaged.
        """
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
) -> Material:
    """Bring what the user has into one shape, and draw the clients that are missing.

    With true clients at hand, those of the model ("mdm") and IID ones ("iid") are drawn, unless they are
    given.
    """
    mdm, own_categories, made = _model(model)
    if mdm is None and comparison is None and not runs and not clients:
        raise ParameterError(
            "expected something to report on: a model, a comparison, runs or clients"
        )
    rng = np.random.default_rng(rng)
    tables = {
        name: check_counts(table, n_categories=None if mdm is None else mdm.n_categories)
        for name, table in clients.items()
    }
    if len({table.shape[1] for table in tables.values()}) > 1:
        raise ParameterError("expected populations with the same categories, got different ones")
    n_categories = mdm.n_categories if mdm else next((t.shape[1] for t in tables.values()), 0)
    names = own_categories if categories is None else tuple(categories)
    if names is not None and len(names) != n_categories:
        raise ParameterError(f"expected {n_categories} category names, got {len(names)}")
    if true in tables:
        n = min(tables[true].shape[0], _MOST_CLIENTS)
        if mdm is not None and "mdm" not in tables:
            tables["mdm"] = mdm.sample(n, rng=rng)
        if "iid" not in tables:
            marginal = np.asarray(tables[true].sum(axis=0)).reshape(-1)
            sizes = client_sizes(tables[true])
            tables["iid"] = iid_counts(n, sizes=sizes, marginal=marginal, rng=rng)
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
    )


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

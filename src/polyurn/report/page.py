"""A report: what there is, section by section, as one HTML file that needs nothing else.

Everything that is shown comes from the sections and is escaped by the template; nothing is fetched. A
notebook shows one figure of a report for a result, without a network, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from polyurn.comparison.comparison_results import Comparison
from polyurn.errors import MissingDependencyError, ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.names import Match
from polyurn.model.populations import IID
from polyurn.model.style import Style
from polyurn.partitioning.result import Partition
from polyurn.report.charts import javascript, population_looks, resource, svg, tone
from polyurn.report.headline import Headline, headline
from polyurn.report.looks_section import description_section, looks_section
from polyurn.report.material import (
    MOST_CLIENTS,
    Material,
    Model,
    SavedComparison,
    some_of,
    style_material,
    tables_of,
)
from polyurn.report.model_section import choice_section, components_section
from polyurn.report.parts import Figure, Section, Table
from polyurn.report.population_section import map_figure, population_sizes, populations_section
from polyurn.report.provenance_section import provenance_section, traffic_section
from polyurn.report.splits_section import splits_section
from polyurn.report.style_section import style_section
from polyurn.report.sweep_section import sweep_section
from polyurn.server.describing import ColumnDescription, Description
from polyurn.server.fit_results import Fit
from polyurn.storage.look_history import LookEntry
from polyurn.storage.models import Saved
from polyurn.storage.provenance import Provenance
from polyurn.storage.run_log import FinishedRun
from polyurn.typed.arguments import checked
from polyurn.zoo.neighbours import Neighbours

try:
    import altair as alt
    import jinja2
except ImportError as error:
    raise MissingDependencyError("jinja2", "report", "a report") from error

_MOST_ROWS = 12  # of a table below a chart in a notebook
# The page from top to bottom; a section that has nothing to show is None.
_SECTIONS = (
    description_section,
    components_section,
    splits_section,
    choice_section,
    populations_section,
    style_section,
    looks_section,
    sweep_section,
    traffic_section,
    provenance_section,
)


@dataclass(frozen=True)
class Report:
    """A page and its figures, which are drawn once; a notebook shows it, and each figure of it."""

    title: str
    material: Material = field(repr=False)

    @cached_property
    def headline(self) -> Headline:
        """The verdict."""
        return headline(self.material)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """All sections that have something to show, from top to bottom."""
        declared = (section_of(self.material) for section_of in _SECTIONS)
        return tuple(section for section in declared if section is not None)

    @property
    def figures(self) -> dict[str, Figure]:
        """All figures by their names."""
        return {figure.name: figure for section in self.sections for figure in section.figures}

    def __getitem__(self, name: str) -> Figure:
        """A figure: `report["distances"].save("distances.pdf")`."""
        if name not in self.figures:
            raise ParameterError(f"expected one of {', '.join(self.figures)}, got {name!r}")
        return self.figures[name]

    def html(self) -> str:
        """The page, to be written to a file that ends in .html."""
        environment = jinja2.Environment(
            loader=jinja2.FunctionLoader(resource),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
        )
        environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
        looks = population_looks(self.material.populations)
        switches = [(name, tone(look.tone), look.shape) for name, look in looks.items()]
        charts = {
            f"{name}-{i}": panel.spec
            for name, figure in self.figures.items()
            for i, panel in enumerate(figure.panels)
        }
        page = environment.get_template("page.html.j2").render(
            report=self,
            switches=switches if len(switches) > 1 else [],
            charts=charts,
            style=resource("style.css"),
            library=javascript(),
            script=resource("page.js"),
        )
        # Half a surrogate pair, which a name from outside may have in it, is no character of UTF-8.
        return page.encode("utf-8", "replace").decode()

    def save(self, path: str | Path) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.html(), encoding="utf-8")

    def _repr_html_(self) -> str:
        frame = jinja2.Template('<iframe srcdoc="{{ page|e }}" width="100%" height="800"></iframe>')
        shown: str = frame.render(page=self.html())
        return shown


@checked
def report_on(
    model: Model | None = None,
    *,
    categories: Sequence[str] | None = None,
    comparison: Comparison | SavedComparison | None = None,
    runs: Sequence[FinishedRun] = (),
    clients: Mapping[str, object] | None = None,
    style: Style | Saved[Style] | None = None,
    features: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    match: Match | None = None,
    true: str = "true",
    metric: str = "accuracy",
    looks: Sequence[LookEntry] = (),
    description: Description | ColumnDescription | None = None,
    title: str = "What this federation looks like",
    notes: Sequence[tuple[str, str]] = (),
    rng: int | np.random.Generator | None = 0,
) -> Report:
    """A report on whatever there is.

    Parameters
    ----------
    model : MDM, Fit or Saved, optional
        A fit, a selection and a file also tell how it came about.
    categories : sequence of str, optional
        The name of each category, of a model and of tables that have none.
    comparison : Comparison or SavedComparison, optional
    runs : sequence of FinishedRun
        The runs of a sweep.
    clients : mapping of name to Histograms or counts of shape (n_clients, n_categories), optional
        Populations to show side by side. If the true one is among them, clients of the model ("mdm")
        and IID clients ("iid") are drawn, unless they are given.
    style : Style or Saved, optional
        What clients differ in besides their labels.
    features, labels : arrays of shapes (n_points, ...) and (n_points,), optional
        Of proxy points, with a style: points along its directions are shown, and clients of the model,
        or the true ones' histograms, are drawn with it. Points are shown as pictures if they have the
        shape (h, w), (h, w, 1 or 3) or (1 or 3, h, w).
    match : mapping of str to str, or "position", optional
        What tables call the categories: {their name: category}; or all are in the same order.
    true : str
        The name of the population that the others are compared with.
    metric : str
        The metric of the runs to show.
    looks : sequence of LookEntry
        A history of looks: `polyurn.storage.look_history.LookHistory(path).read()`.
    description : Description or ColumnDescription, optional
        What clients are like: of `polyurn.server.describing`.
    title : str
    notes : sequence of (str, str)
        Facts that are added to where things came from.
    rng : int or numpy.random.Generator
        For the clients that are drawn, and for their positions in the plane.

    Examples
    --------
    >>> from polyurn.model.paper_truths import truth
    >>> report = report_on(truth("medium/3"), title="Three kinds of client")
    >>> "<title>Three kinds of client</title>" in report.html(), [*report.figures]
    (True, ['weights', 'profiles', 'distinctive', 'component-sizes'])
    """
    mdm: MDM | None
    if isinstance(model, Fit):
        mdm, provenance = model.mdm, Provenance(fit=model)
    elif isinstance(model, Saved):
        mdm, provenance = model.model, model.provenance
    else:
        mdm, provenance = model, Provenance()
    has_one = any(one is not None for one in (model, comparison, style, description))
    if not (has_one or runs or clients or looks):
        raise ParameterError(
            "expected something to report on: a model, a style, a comparison, runs, looks or clients"
        )
    rng = np.random.default_rng(rng)
    tables, names = tables_of(clients or {}, mdm, categories, match)
    saved = Saved(style) if isinstance(style, Style) else style
    widths = [] if mdm is None else [mdm.n_categories]
    widths += [table.shape[1] for table in tables.values()]
    widths += [] if saved is None else [saved.model.space.n_labels]
    n_categories = widths[0] if widths else 0
    if names is not None and len(names) != n_categories:
        raise ParameterError(f"expected {n_categories} category names, got {len(names)}")
    # What else is drawn is the same with a style and without.
    shown = style_material(
        saved, features, labels, names=names, mdm=mdm, true=tables.get(true), rng=rng.spawn(1)[0]
    )
    if true in tables:
        n = min(tables[true].shape[0], MOST_CLIENTS)
        if mdm is not None and "mdm" not in tables:
            tables["mdm"] = mdm.sample(n, rng=rng)
        if "iid" not in tables:
            tables["iid"] = IID.like(tables[true]).sample(n, rng=rng)
    order = sorted(tables, key=lambda name: name != true)
    compared = SavedComparison(comparison) if isinstance(comparison, Comparison) else comparison
    material = Material(
        true=true, metric=metric, mdm=mdm, provenance=provenance, runs=tuple(runs), style=shown,
        categories=names or tuple(map(str, range(n_categories))),
        comparison=compared.comparison if compared else None,
        comparison_provenance=compared.provenance if compared else Provenance(),
        clients={name: some_of(tables[name], rng=rng) for name in order},
        n_clients={name: tables[name].shape[0] for name in order},
        notes=tuple(notes), looks=tuple(looks), description=description, rng=rng,
    )  # fmt: skip
    return Report(title, material)


# ------------------------------------------------------------------------ in a notebook


def plot(result: object) -> alt.Chart:
    """The chart of a result."""
    return alt.Chart.from_dict(figure_of(result).spec)


def html(result: object) -> str:
    """The chart of a result as a picture, what it says, and its table."""
    figure = figure_of(result)
    head = f"<p><b>{escape(repr(result))}</b></p>" if isinstance(result, MDM) else ""
    return f"{head}{svg(figure.spec)}<p>{escape(figure.says)}</p>{_table(figure.table)}"


def figure_of(result: object) -> Figure:
    """The figure of the report that says most about a result."""
    match result:
        case MDM():
            return report_on(result)["profiles"]
        case Fit():
            figures = report_on(result).figures
            return figures.get("candidates") or figures.get("paths") or figures["profiles"]
        case Comparison():
            return report_on(comparison=result)["distances"]
        case Partition():
            return population_sizes({"clients": np.asarray(result.sizes)[:, None]})
        case Neighbours():
            return map_figure({"these clients": result.profile})
    raise TypeError(f"expected a result, got {type(result).__name__}")


def _table(table: Table) -> str:
    def row(cells: tuple[str, ...], kind: str) -> str:
        return "<tr>" + "".join(f"<{kind}>{escape(cell)}</{kind}>" for cell in cells) + "</tr>"

    shown = "".join(row(cells, "td") for cells in table.rows[:_MOST_ROWS])
    n_more = len(table.rows) - _MOST_ROWS
    more = f"<p>{n_more:,} more rows</p>" if n_more > 0 else ""
    return f"<table>{row(table.head, 'th')}{shown}</table>{more}"

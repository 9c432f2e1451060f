"""The page: sections, charts, styles and the JavaScript that draws, in one HTML file.

Everything that is shown comes from the sections and is escaped by the template; nothing is fetched, and
nothing is computed here.
"""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files

import numpy as np
from numpy.typing import ArrayLike

from polyurn.comparison.results import Comparison
from polyurn.errors import MissingDependencyError
from polyurn.model.style import Style
from polyurn.report.crossed_sections import crossed_section
from polyurn.report.headline import headline
from polyurn.report.material import Material, Model, SavedComparison, gather
from polyurn.report.model_sections import choice_section, components_section
from polyurn.report.palette import population_looks, tone
from polyurn.report.parts import Section
from polyurn.report.population_sections import populations_section
from polyurn.report.provenance import provenance_section
from polyurn.report.style_sections import style_section
from polyurn.report.sweep_sections import sweep_section
from polyurn.report.vega import javascript
from polyurn.storage.models import Saved
from polyurn.storage.run_log import RunRecord
from polyurn.typed.arguments import checked

try:
    import jinja2
except ImportError as error:
    raise MissingDependencyError("jinja2", "report", "a report") from error


@checked
def html_report(
    model: Model | None = None,
    *,
    categories: Sequence[str] | None = None,
    comparison: Comparison | SavedComparison | None = None,
    runs: Sequence[RunRecord] = (),
    clients: Mapping[str, object] | None = None,
    style: Style | Saved[Style] | None = None,
    features: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    true: str = "true",
    metric: str = "accuracy",
    title: str = "What this federation looks like",
    notes: Sequence[tuple[str, str]] = (),
    rng: int | np.random.Generator | None = 0,
) -> str:
    """One self-contained HTML page about whatever there is.

    Parameters
    ----------
    model : MDM, Fit, Selection or SavedMDM, optional
        A fit, a selection and a file also tell how it came about.
    categories : sequence of str, optional
        The name of each category.
    comparison : Comparison or SavedComparison, optional
    runs : sequence of RunRecord
        The runs of a sweep.
    clients : mapping of name to counts of shape (n_clients, n_categories), optional
        Populations to show side by side. If the true one is among them, clients of the model ("mdm")
        and IID clients ("iid") are drawn, unless they are given.
    style : Style or Saved, optional
        What clients differ in besides their labels.
    features, labels : arrays of shapes (n_points, ...) and (n_points,), optional
        Of proxy points, with a style: points along its directions are shown, and clients of the model,
        or the true ones' histograms, are drawn with it. Points are shown as pictures if they have the
        shape (h, w), (h, w, 1 or 3) or (1 or 3, h, w).
    true : str
        The name of the population that the others are compared with.
    metric : str
        The metric of the runs to show.
    title : str
    notes : sequence of (str, str)
        Facts that are added to where things came from.
    rng : int or numpy.random.Generator
        For the clients that are drawn, and for their place in the plane.

    Returns
    -------
    str
        The page, to be written to a file that ends in .html.

    Examples
    --------
    >>> from polyurn.model.paper_truths import truth
    >>> page = html_report(truth("medium/3"), title="Three kinds of client")
    >>> "<title>Three kinds of client</title>" in page, len(page) < 6_000_000
    (True, True)
    """
    rng = np.random.default_rng(rng)
    material = gather(
        model,
        categories=categories,
        comparison=comparison,
        runs=runs,
        clients=clients or {},
        true=true,
        metric=metric,
        notes=notes,
        rng=rng,
        style=style,
        features=features,
        labels=labels,
    )
    found = (
        components_section(material),
        choice_section(material),
        populations_section(material, rng=rng),
        style_section(material),
        sweep_section(material),
        crossed_section(material),
        provenance_section(material),
    )
    return _render(material, title, [section for section in found if section is not None])


def _render(material: Material, title: str, sections: list[Section]) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_resource), autoescape=True, undefined=jinja2.StrictUndefined
    )
    looks = population_looks(material.populations)
    switches = [(name, tone(look.tone), look.shape) for name, look in looks.items()]
    charts = {
        f"{figure.name}-{i}": panel.spec
        for section in sections
        for figure in section.figures
        for i, panel in enumerate(figure.panels)
    }
    page = environment.get_template("page.html").render(
        title=title,
        headline=headline(material),
        sections=sections,
        switches=switches if len(switches) > 1 else [],
        charts=_script_json(charts),
        style=_resource("style.css"),
        library=javascript(),
        script=_resource("page.js"),
    )
    # Half a surrogate pair, which a name from outside may have in it, is no character of UTF-8.
    return page.encode("utf-8", "replace").decode()


def _script_json(value: object) -> str:
    """JSON that can stand in a <script>: no text in it ends the element or begins a comment."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _resource(name: str) -> str:
    return files("polyurn.report").joinpath(name).read_text(encoding="utf-8")

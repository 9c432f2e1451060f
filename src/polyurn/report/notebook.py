"""What a notebook shows of a result: one figure of the report, which needs no network to be seen."""

from functools import singledispatch
from html import escape

import altair as alt
import numpy as np

from polyurn.comparison.comparison_results import Comparison
from polyurn.model.mdm import MDM
from polyurn.partitioning.result import Partition
from polyurn.report.charts import svg
from polyurn.report.page import report_on
from polyurn.report.parts import Figure, Table
from polyurn.report.population_section import map_figure, sizes_figure
from polyurn.server.fit_results import Fit
from polyurn.zoo.neighbours import Neighbours

_MOST_ROWS = 12  # of a table below a chart


def plot(result: object) -> alt.Chart:
    """The chart of a result."""
    return alt.Chart.from_dict(figure_of(result).spec)


def html(result: object) -> str:
    """The chart of a result as a picture, what it says, and its table."""
    figure = figure_of(result)
    head = f"<p><b>{escape(repr(result))}</b></p>" if isinstance(result, MDM) else ""
    return f"{head}{svg(figure.spec)}<p>{escape(figure.says)}</p>{_table(figure.table)}"


@singledispatch
def figure_of(result: object) -> Figure:
    """The figure of the report that says most about a result."""
    raise TypeError(f"expected a result, got {type(result).__name__}")


@figure_of.register
def _(mdm: MDM) -> Figure:
    return report_on(mdm)["profiles"]


@figure_of.register
def _(fit: Fit) -> Figure:
    figures = report_on(fit).figures
    return figures.get("candidates") or figures.get("paths") or figures["profiles"]


@figure_of.register
def _(comparison: Comparison) -> Figure:
    return report_on(comparison=comparison)["distances"]


@figure_of.register
def _(partition: Partition) -> Figure:
    return sizes_figure({"clients": np.asarray(partition.sizes)[:, None]})


@figure_of.register
def _(neighbours: Neighbours) -> Figure:
    return map_figure({"these clients": neighbours.profile})


def _table(table: Table) -> str:
    def row(cells: tuple[str, ...], kind: str) -> str:
        return "<tr>" + "".join(f"<{kind}>{escape(cell)}</{kind}>" for cell in cells) + "</tr>"

    shown = "".join(row(cells, "td") for cells in table.rows[:_MOST_ROWS])
    n_more = len(table.rows) - _MOST_ROWS
    more = f"<p>{n_more:,} more rows</p>" if n_more > 0 else ""
    return f"<table>{row(table.head, 'th')}{shown}</table>{more}"

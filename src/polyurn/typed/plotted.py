"""Results that a notebook shows: a chart of the report's, the table behind it, and data frames.

Drawing is `report/page.py`. It stands above the rooms of these results, so that it is loaded by its
name, and only when something is drawn.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from polyurn.errors import MissingDependencyError


class Plotted:
    """A result with a chart: `result.plot()`, and by itself at the end of a notebook's cell."""

    def plot(self) -> Any:
        """An `altair.Chart` of this result, as the report has it (needs the extra `report`)."""
        return import_module("polyurn.report.page").plot(self)

    def _repr_html_(self) -> str | None:
        """The chart as a picture, and its table; None without the extra, so that the text is shown."""
        try:
            html: str = import_module("polyurn.report.page").html(self)
        except MissingDependencyError:
            return None
        return html


def data_frame(columns: Mapping[str, Sequence[Any]], index: Sequence[str] | None = None) -> Any:
    """A data frame of these columns."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingDependencyError("pandas", "pandas", "data frames of results") from error
    return pd.DataFrame(dict(columns), index)

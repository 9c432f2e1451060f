"""The options that declare the bins of a continuous feature, and the bins that they stand for.

Nothing is read or printed here.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from polyurn.errors import ParameterError

if TYPE_CHECKING:
    from polyurn.client.bins import Bins

Edges = Annotated[
    str | None,
    typer.Option(help="Bin edges, comma-separated and increasing; -inf and inf are allowed."),
]
Width = Annotated[float | None, typer.Option(help="Width of equal bins.")]
Start = Annotated[float, typer.Option(help="Where bins of equal width begin.")]
Stop = Annotated[
    float | None,
    typer.Option(help="Where bins of equal width end; one more bin holds all beyond."),
]


def declared_bins(
    edges: str | None, width: float | None, start: float, stop: float | None
) -> "Bins | None":
    """The bins that the options stand for, if they stand for any."""
    from polyurn.client.bins import Bins

    if (width is None) != (stop is None):
        raise ParameterError("expected --width and --stop together")
    if edges is not None and width is not None:
        raise ParameterError("expected one of --edges, --width and --quantiles, got two")
    if width is not None and stop is not None:
        return Bins.of_width(width, start=start, stop=stop)
    if edges is None:
        return None
    try:
        return Bins([float(edge) for edge in edges.split(",")])
    except ValueError as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(
            f"expected --edges as numbers, such as 0,10,inf, got {edges!r}"
        ) from None

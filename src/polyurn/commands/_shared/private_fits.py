"""Private fits at the terminal: what has to be declared, which options have no effect, and the ledger.

The fit itself is `server/private/`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from polyurn.commands._shared.invocation import refuse_options
from polyurn.errors import ParameterError

if TYPE_CHECKING:
    from rich.table import Table

    from polyurn.server.private.fitting import PrivateCandidate

# Rounds of a private fit, at the most.
N_ROUNDS = 12

# What belongs to a search with exact sums.
_SEARCH = (
    "rounds", "tol", "patience", "cohort", "sampling", "method", "moments", "size_prior",
    "category_prior", "max_upload", "checkpoint", "held_out",
)  # fmt: skip


def candidates_table(candidates: "Sequence[PrivateCandidate]", chosen: int) -> "Table":
    """One row per number of components that was tried in private; the chosen one is marked."""
    from rich.table import Table

    table = Table(title="log-likelihood per client, with noise")
    for heading in ("K", "behind the best", "noise (s.d.)", ""):
        table.add_column(heading, justify="right")
    for one in candidates:
        mark = "chosen" if one.n_components == chosen else ""
        table.add_row(str(one.n_components), f"{one.behind:.4f}", f"{one.noise:.4f}", mark)
    return table


def private_budget(
    context: typer.Context, *, epsilon: float | None, delta: float | None
) -> dict[str, Any] | None:
    """What a private fit is called with beside its model; None if none is asked for.

    Refuses what would be released without noise, and options that a private fit does not hear.
    """
    from polyurn.storage.ledger_file import open_ledger

    asked = context.params
    if epsilon is None:
        refuse_options(context, ["delta", "ledger", "ledger_epsilon"], "without --epsilon")
        return None
    refuse_options(context, [name for name in _SEARCH if name in asked], "with --epsilon")
    if delta is None:
        raise ParameterError(
            "expected --delta with --epsilon, well below one over the number of clients: 1e-6, say"
        )
    if asked["categories"] is None or asked["max_size"] is None:
        raise ParameterError(
            "expected --categories and --max-size with --epsilon: what is taken from the table would "
            "be released without noise"
        )
    if asked["sizes"] == "exact":
        raise ParameterError("expected --sizes binned or shared with --epsilon, got exact")
    budget: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
    if asked["ledger"] is not None:
        whole = asked["ledger_epsilon"] or epsilon
        budget["ledger"] = open_ledger(asked["ledger"], epsilon=whole, delta=delta)
    else:
        refuse_options(context, ["ledger_epsilon"], "without --ledger")
    return budget

"""What a selection looks like: one row per number of components.

Only shows the record; how it came about is not asked.
"""

from rich.table import Table

from polyurn.server.results import Candidate, Selection
from polyurn.wording.numbers import counted


def selection_table(choice: Selection) -> Table:
    """One row per number of components; the chosen one is marked."""
    from polyurn.server.results import HALF_WIDTH

    table = Table(
        title=f"held-out log-likelihood per client ({counted(choice.n_held_out, 'client')})"
    )
    if any(c.outdone for c in choice.candidates):
        table.caption = "stopped early: a smaller K was already better than this one could become"
    for heading in ("K", "mean ± 95 %", "behind the best (s.e.)", "rounds", "parameters", ""):
        table.add_column(heading, justify="right")
    for c in choice.candidates:
        table.add_row(
            str(c.n_components),
            f"{c.log_likelihood:.4f} ± {HALF_WIDTH * c.standard_error:.4f}",
            f"{c.behind:.4f} ({c.behind_error:.4f})",
            f"{c.n_rounds:,}",
            f"{c.n_parameters:,}",
            _state(c, choice),
        )
    return table


def _state(candidate: Candidate, choice: Selection) -> str:
    """What became of a candidate, in a word or two."""
    if candidate.outdone:
        return "stopped early"
    words = ["chosen"] if candidate is choice.chosen else []
    return ", ".join(words + ([] if candidate.converged else ["unfinished"]))

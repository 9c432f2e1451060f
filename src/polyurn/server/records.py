"""How a fit or a selection came about, as JSON values: what an MDM file keeps, and a report shows.

Sums and settings only; nothing is fitted or written here.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from polyurn.server.results import Fit, Selection

# Paths are for the eye: a millionth of a nat is finer than any tolerance.
_DIGITS = 6


def fit_record(done: Fit) -> dict[str, Any]:
    """The rounds of a fit, for JSON.

    Returns
    -------
    dict
        "n_clients" of the last round, "fewest_clients" that a sum is over, "n_rounds", "converged",
        "stopped" (what ended the rounds), "n_dropped" and "multinomial" components, "n_numbers" (the
        most that a client sent in a round), "n_numbers_by_round", "log_likelihoods" (of each round that
        has one) and "paths" (see `start_paths`).

    Examples
    --------
    >>> import polyurn as pu
    >>> from polyurn.model.paper_truths import truth
    >>> clients = pu.LocalAggregator(truth("low/1").sample(200, rng=0), rng=1)
    >>> record = fit_record(pu.fit(clients, n_components=1, n_categories=10, max_size=20, rng=2))
    >>> record["converged"], len(record["paths"])
    (True, 1)
    """
    numbers = [r.n_numbers for r in done.rounds]
    return {
        "n_clients": done.rounds[-1].n_clients,
        "fewest_clients": min(r.n_clients for r in done.rounds),
        "n_rounds": done.n_rounds,
        "converged": done.converged,
        "stopped": done.stopped,
        "n_dropped": done.n_dropped,
        "multinomial": list(done.multinomial),
        "n_numbers": max(numbers),
        "n_numbers_by_round": numbers,
        "log_likelihoods": done.log_likelihoods.tolist(),
        "paths": start_paths((r.number, r.starts) for r in done.rounds),
    }


def selection_record(choice: Selection) -> dict[str, Any]:
    """The table of a selection and the rounds of the chosen number of components, for JSON.

    Returns
    -------
    dict
        "chosen", "skipped", "stopped" (what ended the rounds), "n_rounds", "n_clients" (that were
        fitted), "fewest_clients", "n_held_out", "n_numbers" and "n_numbers_by_round" as in `fit_record`,
        "candidates" (one record each) and "paths", those of the starts of the chosen number of
        components.
    """
    numbers = [r.n_numbers for r in choice.rounds]
    return {
        "chosen": choice.n_components,
        "skipped": list(choice.skipped),
        "stopped": choice.stopped,
        "n_rounds": choice.n_rounds,
        "n_clients": max(r.n_clients for r in choice.rounds),
        "fewest_clients": min(r.n_clients for r in choice.rounds),
        "n_held_out": choice.n_held_out,
        "n_numbers": max(numbers),
        "n_numbers_by_round": numbers,
        "candidates": [
            {
                "n_components": c.n_components,
                "log_likelihood": c.log_likelihood,
                "standard_error": c.standard_error,
                "behind": c.behind,
                "behind_error": c.behind_error,
                "n_rounds": c.n_rounds,
                "n_parameters": c.n_parameters,
                "n_dropped": c.n_dropped,
                "multinomial": list(c.multinomial),
                "converged": c.converged,
                "outdone": c.outdone,
            }
            for c in choice.candidates
        ],
        "paths": start_paths(
            (r.number, r.starts.get(choice.n_components, {})) for r in choice.rounds
        ),
    }


def start_paths(rounds: Iterable[tuple[int, Mapping[int, float]]]) -> list[dict[str, Any]]:
    """The path of every start: its number, its first round, and its likelihood in each round from there.

    A start that was away for some rounds has two.

    Parameters
    ----------
    rounds : iterable of (round, {start: mean log-likelihood})

    Examples
    --------
    >>> start_paths([(2, {1: -5.0, 2: -6.0}), (3, {1: -4.5})])
    [{'start': 1, 'first_round': 2, 'values': [-5.0, -4.5]},
     {'start': 2, 'first_round': 2, 'values': [-6.0]}]
    >>> [path["first_round"] for path in start_paths([(2, {1: -5.0}), (4, {1: -4.5})])]
    [2, 4]
    """
    paths: list[dict[str, Any]] = []
    last: dict[int, dict[str, Any]] = {}
    for number, starts in rounds:
        for start, value in sorted(starts.items()):
            path = last.get(start)
            if path is None or path["first_round"] + len(path["values"]) != number:
                path = last[start] = {"start": start, "first_round": number, "values": []}
                paths.append(path)
            path["values"].append(round(value, _DIGITS))
    return paths

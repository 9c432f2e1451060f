"""The choice of K and the rounds of a fit as rows, from the record that an MDM file keeps.

Numbers only; `server/records.py` says what is in a record.
"""

from collections.abc import Mapping
from typing import Any

from polyurn.report.parts import Rows

# 95 % of a normal distribution.
_REACH = 1.96


def candidate_rows(selection: Mapping[str, Any]) -> Rows:
    """One row per number of components: held-out log-likelihood with its 95 % interval."""
    return [
        {
            "n_components": c["n_components"],
            "log_likelihood": c["log_likelihood"],
            "low": c["log_likelihood"] - _REACH * c["standard_error"],
            "high": c["log_likelihood"] + _REACH * c["standard_error"],
            "behind": c["behind"],
            "behind_low": c["behind"] - c["behind_error"],
            "behind_high": c["behind"] + c["behind_error"],
            "behind_error": c["behind_error"],
            "n_rounds": c["n_rounds"],
            "n_parameters": c["n_parameters"],
            "converged": c["converged"],
            "outdone": c.get("outdone", False),  # older files do not say
            "chosen": c["n_components"] == selection["chosen"],
        }
        for c in selection["candidates"]
    ]


def path_rows(record: Mapping[str, Any]) -> Rows:
    """The likelihood of every start, round by round; `winner` marks the start that ended best.

    Examples
    --------
    >>> paths = [{"start": 1, "first_round": 3, "values": [-5.0, -4.0]},
    ...          {"start": 2, "first_round": 3, "values": [-6.0]}]
    >>> [(r["start"], r["round"], r["winner"]) for r in path_rows({"paths": paths})]
    [(1, 3, True), (1, 4, True), (2, 3, False)]
    """
    paths = record["paths"]
    if not paths:
        return []
    # Likelihoods of a start that left may be those of other clients.
    last = max(_last_round(path) for path in paths)
    there = [path for path in paths if _last_round(path) == last]
    winner = max(there, key=lambda path: path["values"][-1])["start"]
    return [
        {
            "start": path["start"],
            "round": path["first_round"] + i,
            "log_likelihood": value,
            "winner": path["start"] == winner,
        }
        for path in paths
        for i, value in enumerate(path["values"])
    ]


def _last_round(path: Mapping[str, Any]) -> int:
    return int(path["first_round"]) + len(path["values"])

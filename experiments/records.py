"""One JSON record per run, appended the moment it ends; a run that is there is not repeated.

Each record says which version of polyurn made it, with which command, and the version of the experiment:
what a script measures changes with that, and a record of another one is made again. Records from before
these were kept have no field `made`; they count, and it is said. What the runs are is up to the scripts.
"""

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import polyurn

RESULTS = Path(__file__).parent / "results"


def run_all(
    name: str,
    settings: Iterable[dict[str, Any]],
    run: Callable[..., dict[str, Any]],
    *,
    version: int = 1,
) -> Iterator[dict[str, Any]]:
    """The record of every setting, from the file where it is there, and else from a run.

    Parameters
    ----------
    name : str
        Of the experiment, and of its file.
    settings : iterable of dict
    run : function of a setting
    version : int
        Of the experiment: raise it when a record would come out differently.
    """
    path = RESULTS / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    lines = path.read_text().splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines]
    done = {_key(r["settings"]): r for r in records if _version(r) in (None, version)}
    _say_which(name, [*done.values()])
    for setting in settings:
        key = _key(setting)
        if key not in done:
            made = {
                "polyurn": polyurn.__version__,
                "experiment": version,
                "command": shlex.join(["python", *sys.argv]),
            }
            record = {"settings": setting, "made": made, **run(**setting)}
            with path.open("a") as file:
                file.write(json.dumps(record) + "\n")
            done[key] = record
        yield done[key]


def _key(setting: dict[str, Any]) -> str:
    return json.dumps(setting, sort_keys=True)


def _version(record: dict[str, Any]) -> int | None:
    """The version of the experiment that made a record; None from before there were any."""
    version: int | None = record.get("made", {}).get("experiment")
    return version


def _say_which(name: str, records: list[dict[str, Any]]) -> None:
    """Say how many of the records that are taken from the file are not of this version of polyurn."""
    old = sum("made" not in record for record in records)
    if old:
        print(f"{name}: {old} records made before records had versions", file=sys.stderr)
    others = sum(
        record["made"]["polyurn"] != polyurn.__version__ for record in records if "made" in record
    )
    if others:
        print(f"{name}: {others} records made by other versions of polyurn", file=sys.stderr)

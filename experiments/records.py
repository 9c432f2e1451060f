"""One JSON record per run, appended the moment it ends; a run that is there is not repeated."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def run_all(
    name: str, settings: Iterable[dict[str, Any]], run: Callable[..., dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """The record of every setting, from the file where it is there, and else from a run."""
    path = RESULTS / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    lines = path.read_text().splitlines() if path.exists() else []
    done = {json.dumps(r["settings"], sort_keys=True): r for r in map(json.loads, lines)}
    for setting in settings:
        key = json.dumps(setting, sort_keys=True)
        if key not in done:
            record = {"settings": setting, **run(**setting)}
            with path.open("a") as file:
                file.write(json.dumps(record) + "\n")
            done[key] = record
        yield done[key]

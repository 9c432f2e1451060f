"""The kinds of bad input: one module each, with a function `cases(rng) -> Case`."""

from collections.abc import Callable

import numpy as np

from fuzz.case import Case, stream
from fuzz.cases import (
    api,
    arrays,
    checkpoints,
    damaged_files,
    frames,
    messages,
    nodes,
    options,
    records,
    runs,
    styles,
    sweeps,
    tables,
)

KINDS: dict[str, Callable[[np.random.Generator], Case]] = {
    "tables": tables.cases,
    "frames": frames.cases,
    "options": options.cases,
    "records": records.cases,
    "runs": runs.cases,
    "styles": styles.cases,
    "sweeps": sweeps.cases,
    "arrays": arrays.cases,
    "checkpoints": checkpoints.cases,
    "damaged_files": damaged_files.cases,
    "messages": messages.cases,
    "nodes": nodes.cases,
    "api": api.cases,
}


def case_of(name: str) -> Case:
    """The case of a name such as `tables/4711`."""
    kind, number = name.split("/")
    return KINDS[kind](stream(kind, int(number)))

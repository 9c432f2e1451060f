"""Every file that a command reads, with some of its bytes changed."""

import gzip

import numpy as np

from fuzz.case import Case, one_of
from fuzz.material import material, some
from fuzz.mutations import mutated

_COMMANDS = (
    ("clients.csv", ("histogram", "clients.csv", "--json"), ()),
    ("clients.csv", ("fit", "clients.csv", "--components", "2", "--rounds", "2", "-o", "out.json"),
        ("out.json",)),
    ("records.csv", ("histogram", "records.csv", "--bins", "0,1,9", "-o", "out.parquet"),
        ("out.parquet",)),
    ("packed.csv.gz", ("histogram", "packed.csv.gz", "-o", "out.csv"), ("out.csv",)),
    ("simulated.parquet", ("histogram", "simulated.parquet", "-o", "out.tsv"), ("out.tsv",)),
    ("simulated.parquet", ("score", "simulated.parquet", "mdm.json"), ()),
    ("mdm.json", ("show", "mdm.json"), ()),
    ("mdm.json", ("report", "mdm.json", "-o", "out.html"), ("out.html",)),
    ("selected.json", ("report", "selected.json", "-o", "out.html"), ("out.html",)),
    ("mdm.json", ("sample", "mdm.json", "--clients", "3"), ()),
    ("comparison.json", ("report", "comparison.json", "-o", "out.html"), ("out.html",)),
    ("labels.csv", ("partition", "labels.csv", "simulated.csv", "-o", "out.json"), ("out.json",)),
    ("simulated.csv", ("partition", "labels.csv", "simulated.csv", "-o", "out.parquet"),
        ("out.parquet",)),
    ("runs/runs.jsonl", ("compare", "runs"), ()),
    ("runs/runs.jsonl", ("report", "runs", "-o", "out.html"), ("out.html",)),
    ("runs/runs.jsonl", ("sweep", "sweep.toml", "-o", "runs", "--jobs", "1"), ("runs",)),
    ("sweep.toml", ("sweep", "sweep.toml", "-o", "swept", "--jobs", "1"), ("swept",)),
    ("points.npz", ("sweep", "sweep.toml", "-o", "swept", "--jobs", "1"), ("swept",)),
    ("plain.json", ("sweep", "sweep.toml", "-o", "swept", "--jobs", "1"), ("swept",)),
)  # fmt: skip


def cases(rng: np.random.Generator) -> Case:
    """A command that reads a file with a few bytes changed."""
    name, command, writes = one_of(rng, _COMMANDS)
    files = some(*command, "sweep.toml", "points.npz", "plain.json", "simulated.csv", "labels.csv")
    whole = (
        gzip.compress(material()["clients.csv"], mtime=0)
        if name.endswith(".gz")
        else material()[name]
    )
    files[name] = mutated(whole, rng=rng)
    if command[0] == "sweep":
        return Case(command, files, keeps=writes)
    return Case(command, files, outputs=writes)

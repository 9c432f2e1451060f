"""JSON files that polyurn wrote, with a few parts missing, foreign or out of range."""

import json

import numpy as np

from damage import damaged
from fuzz.case import Case, Ran, chance, one_of
from fuzz.material import record, some

_MODELS = ("mdm.json", "plain.json", "selected.json")


def cases(rng: np.random.Generator) -> Case:
    """A command that reads a damaged MDM or comparison."""
    if chance(rng, 0.3):
        files = some("mdm.json", "held-out.csv", "runs")
        files["comparison.json"] = _text(damaged(record("comparison.json"), rng=rng), rng)
        things = one_of(rng, (("comparison.json",), ("mdm.json", "comparison.json")))
        return Case(("report", *things, "-o", "out.html"), files, outputs=("out.html",))
    name = one_of(rng, _MODELS)
    model = damaged(record(name), rng=rng)
    files = some("held-out.csv", "labels.csv", "numbers.csv", "simulated.csv", "comparison.json")
    files["model.json"] = _text(model, rng)
    table = "numbers.csv" if name == "plain.json" else "held-out.csv"
    match int(rng.integers(8)):
        case 0 | 1 | 2:
            return Case(("show", "model.json", "--json"), files, oracle=_shows(model))
        case 3:
            command = ("sample", "model.json", "--clients", "5", "-o", "out.csv")
            return Case(command, files, outputs=("out.csv",))
        case 4:
            return Case(("score", table, "model.json", "--json"), files)
        case 5:
            command = (
                "compare",
                table,
                "m=model.json",
                "--draws",
                "splits=100",
                "--folds",
                "0",
                "-o",
                "out.json",
            )
            return Case(command, files, outputs=("out.json",))
        case 6:
            labels = ("partition", "labels.csv", "model.json", "--cover", "-o", "out.json")
            return Case(labels, files, outputs=("out.json",))
        case _:
            return Case(("report", "model.json", "-o", "out.html"), files, outputs=("out.html",))


def _text(value: object, rng: np.random.Generator) -> bytes:
    """JSON as Python writes it: NaN and infinities are words of their own."""
    return json.dumps(value, indent=one_of(rng, (None, 1))).encode()


def _shows(model: object):
    """Whether `polyurn show --json` says what is in the file."""

    def oracle(ran: Ran) -> str | None:
        said = json.loads(ran.out)
        for name in ("weights", "alphas"):
            written = model[name]
            if not _equal(said[name], written):
                return f"{name} are {said[name]}, the file has {written}"
        names = model["categories"]
        return None if said["categories"] == names else f"categories are not {names}"

    return oracle


def _equal(said: list, written: list) -> bool:
    return np.shape(said) == np.shape(written) and bool(np.all(np.equal(said, written)))

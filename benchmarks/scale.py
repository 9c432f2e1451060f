"""Clients beyond memory: what packing, a round, a fit and drawing cost, and how the cost grows.

Every measurement runs in a process of its own and is one JSON line in results/scale.jsonl, written when
it ends; one that is there is not repeated, so this can be stopped and goes on. Tables and shards stay
in a folder meanwhile: 5 GB for 10^8 clients.

    python benchmarks/scale.py                        # everything (an hour on two busy cores)
    python benchmarks/scale.py --only growth          # one part: bars looks growth dask
    python benchmarks/scale.py --table                # no run: the tables of what is there
    python benchmarks/scale.py --picture              # no run: docs/pictures/scale.png (extra report)

Clients are drawn from the mixture high/3 of the paper: 10 categories, 20 points each. Processor time
counts all threads and processes of a command; rounds and fits have one thread. Wall time includes what
everything else on the machine does, and `load` is its load average afterwards. A round is one `Update`,
the best of three after the shards are in the page cache. Peak memory is `ru_maxrss`, which counts mapped
pages too.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import polyurn as pu
from polyurn.model.paper_truths import truth
from polyurn.storage.shards import is_packed
from polyurn.wire import Update

RECORDS = Path(__file__).parent / "results" / "scale.jsonl"
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "scale.png"
RUN = [sys.executable, "-c", "from polyurn.cli import main; main()"]
MANY = 100_000_000
REPEATS = 3


@dataclass(frozen=True)
class Settings:
    """What is measured."""

    n_clients: tuple[int, ...] = (100_000, 1_000_000, 10_000_000, MANY)
    n_categories: tuple[int, ...] = (10, 30, 100, 300, 1_000, 3_000, 10_000)
    n_components: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128)
    n_points: tuple[int, ...] = (10, 30, 100, 300, 1_000, 3_000, 10_000)
    n_looks: tuple[int, ...] = (100_000, 1_000_000)
    n_for_categories: int = 50_000
    n_for_points: int = 300_000
    n_for_components: int = 1_000_000
    n_shards: int = 200
    dask_clients: int = 10_000_000


SETTINGS = Settings()


def main() -> None:
    """Measure what is missing, or show what is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["bars", "looks", "growth", "dask"])
    parser.add_argument("--folder", type=Path, default=Path("build/scale"))
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--picture", action="store_true")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, arguments = options.child
        print(json.dumps(CHILDREN[name](options.folder, **json.loads(arguments))))
    elif options.picture:
        draw()
    elif options.table:
        show()
    else:
        options.folder.mkdir(parents=True, exist_ok=True)
        for part, name, arguments in cases():
            if options.only in (None, part):
                measure(options.folder, part, name, arguments)
        show()


def cases() -> list[tuple[str, str, dict[str, Any]]]:
    """(part, what, its arguments), in the order in which they are measured."""
    listed: list[tuple[str, str, dict[str, Any]]] = [
        ("bars", "sample", {"n": MANY}),
        ("bars", "pack", {"n": MANY}),
        ("bars", "local", {"n": 1_000_000}),
        ("bars", "round", {"n": MANY}),
        ("bars", "fit", {"n": MANY}),
        ("bars", "unsorted", {"n": 10_000_000}),
    ]
    listed += [
        ("looks", what, {"n": n}) for n in SETTINGS.n_looks for what in ("describe", "score")
    ]
    listed += [("growth", "round", {"n": n}) for n in SETTINGS.n_clients]
    n = SETTINGS.n_for_components
    listed += [("growth", "round", {"n": n, "k": k}) for k in SETTINGS.n_components]
    n = SETTINGS.n_for_categories
    listed += [("growth", "round", {"n": n, "c": c}) for c in SETTINGS.n_categories]
    n = SETTINGS.n_for_points
    listed += [("growth", "round", {"n": n, "points": p}) for p in SETTINGS.n_points]
    listed += [("dask", "dask_overhead", {}), ("dask", "dask_speed", {})]
    return listed


def measure(folder: Path, part: str, name: str, arguments: dict[str, Any]) -> None:
    """Run a measurement in a process of its own, unless it is there."""
    key = {"part": part, "what": name, "arguments": arguments}
    if found(part, name, arguments):
        return
    command = [sys.executable, __file__, "--folder", str(folder), "--child", name]
    started = time.perf_counter()
    done = subprocess.run(
        [*command, json.dumps(arguments)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{key}: {done.stderr}")
    said = json.loads(done.stdout.splitlines()[-1])
    took = time.perf_counter() - started
    record = {**key, **said, "seconds": round(took, 1), "load": round(os.getloadavg()[0], 1)}
    print(record, flush=True)
    with open(RECORDS, "a") as file:
        file.write(json.dumps(record) + "\n")


def records() -> list[dict[str, Any]]:
    """What was measured."""
    return (
        [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []
    )


# ------------------------------------------------------------------------ what a child does


def command(*arguments: object) -> dict[str, float]:
    """Run a command of polyurn: its wall and processor time, and peak memory."""
    started = time.perf_counter()
    process = subprocess.Popen([*RUN, *map(str, arguments), "-q"])
    _, status, used = os.wait4(process.pid, 0)
    wall, process.returncode = time.perf_counter() - started, status
    if status:
        raise RuntimeError(f"{arguments} ended with {status}")
    cpu = used.ru_utime + used.ru_stime
    return {"wall": round(wall, 2), "cpu": round(cpu, 2), "gb": round(used.ru_maxrss / 2**20, 3)}


def drawn(folder: Path, n: int) -> Path:
    """A folder of Parquet files with simulated clients."""
    pu.save(truth("high/3"), folder / "mdm.json")
    place = folder / f"simulated-{n}"
    if not place.exists():
        sample = ["sample", folder / "mdm.json", "--clients", n, "-o", place]
        subprocess.run([*RUN, *map(str, sample), "-q"], check=True)
    return place


def packed(folder: Path, n: int) -> Path:
    """A folder of shards with simulated clients."""
    place = folder / f"packed-{n}"
    if not is_packed(place):
        # By a process of its own: what this one held at its peak would count as its next command's.
        pack = ["pack", drawn(folder, n), "--categories", 10, "-o", place]
        subprocess.run([*RUN, *map(str, pack), "-q"], check=True)
    return place


def sample(folder: Path, n: int) -> dict[str, float]:
    """`polyurn sample`."""
    pu.save(truth("high/3"), folder / "mdm.json")
    place = folder / f"simulated-{n}"
    return command("sample", folder / "mdm.json", "--clients", n, "-o", place)


def pack(folder: Path, n: int) -> dict[str, float]:
    """`polyurn pack` of sorted Parquet files."""
    return command("pack", drawn(folder, n), "--categories", 10, "-o", folder / f"packed-{n}")


def unsorted(folder: Path, n: int) -> dict[str, float]:
    """`polyurn pack` of the same rows in any order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = folder / f"shuffled-{n}"
    place.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    for i, path in enumerate(sorted(drawn(folder, n).glob("*.parquet"))):
        table = pq.read_table(path)
        # An odd factor moves every client to another place of 2^24, so that all files share the range.
        moved = (table["client"].to_numpy() * 9_973_861 + 7) % 2**24
        rows = rng.permutation(len(table))
        table = table.set_column(0, "client", pa.array(moved)).take(pa.array(rows))
        pq.write_table(table, place / f"{i:03d}.parquet")
    found = command("pack", place, "--categories", 10, "-o", folder / f"packed-shuffled-{n}")
    subprocess.run(["rm", "-r", str(place), str(folder / f"packed-shuffled-{n}")], check=True)
    return found


def fit(folder: Path, n: int) -> dict[str, float]:
    """`polyurn fit`, K = 3, everything by default, on one thread; and a round of the same process."""
    options = ["--components", 3, "--max-size", 20, "--categories", 10]
    return command("fit", packed(folder, n), *options, "-o", folder / "fitted.json")


def describe(folder: Path, n: int) -> dict[str, float]:
    """`polyurn describe` of packed clients: one pass."""
    return command("describe", packed(folder, n), "--json")


def score(folder: Path, n: int) -> dict[str, float]:
    """`polyurn score` of packed clients with noise: one pass; without it the likelihoods are another."""
    noise = ["--epsilon", 1, "--delta", 1e-7]
    return command("score", packed(folder, n), folder / "mdm.json", "--json", *noise)


def local(folder: Path, n: int) -> dict[str, float]:
    """A round of a `LocalAggregator`."""
    mdm = truth("high/3")
    clients = pu.LocalAggregator(mdm.sample(n, rng=0))
    return best_round(lambda: clients.aggregate(Update(mdm), None))


def one_round(folder: Path, n: int, k: int = 3, c: int = 10, points: int = 20) -> dict[str, float]:
    """A round of a `ShardAggregator` on one thread."""
    if (c, points) == (10, 20):
        place, mdm = packed(folder, n), truth("high/3") if k == 3 else mixture(k, c, points)
        clients = pu.ShardAggregator(place)
    else:
        place, mdm = folder / f"packed-{n}-{c}-{points}", mixture(k, c, points)
        if not is_packed(place):
            from polyurn.storage.drawn_clients import write_drawn

            write_drawn(mdm, n, tables := folder / f"simulated-{n}-{c}-{points}")
            pu.pack_shards(tables, place, categories=c)
            subprocess.run(["rm", "-r", str(tables)], check=True)
        clients = pu.ShardAggregator(place)
    found = best_round(lambda: clients.aggregate(Update(mdm), None))
    gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {**found, "gb": round(gb, 3), "bytes": clients.folder.n_bytes}


def mixture(k: int, c: int, points: int) -> pu.MDM:
    """K components with concentrations 30, whatever the number of categories."""
    rng = np.random.default_rng(k)
    alphas = 30 * rng.dirichlet(np.ones(c), size=k) + 1e-3
    return pu.MDM(np.ones(k) / k, alphas, pu.Sizes.constant(points, n_components=k))


def best_round(ask: Callable[[], object]) -> dict[str, float]:
    """Wall and processor time of the fastest of some rounds."""
    ask()
    walls, cpus = [], []
    for _ in range(REPEATS):
        wall, cpu = time.perf_counter(), time.process_time()
        ask()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return {"wall": round(min(walls), 4), "cpu": round(min(cpus), 4)}


def dask_overhead(folder: Path) -> dict[str, Any]:
    """A round over many shards with next to nothing in them, on two workers (median of 5)."""
    import distributed

    mdm, place = truth("high/3"), folder / "packed-small"
    if not is_packed(place):
        n = SETTINGS.n_shards * 100
        pu.write_histograms(mdm.sample(n, rng=0), folder / "small.parquet")
        pu.pack_shards(folder / "small.parquet", place, categories=10, clients_per_shard=100)
    with (
        distributed.LocalCluster(**cluster(2)) as workers,
        distributed.Client(workers) as client,
    ):
        clients = pu.DaskAggregator(client, place, rng=0)
        took = [best_round(lambda: clients.aggregate(Update(mdm), None))["wall"] for _ in range(5)]
        there = clients.aggregate(Update(mdm), None).to_vector()
    here = pu.ShardAggregator(place, rng=0).aggregate(Update(mdm), None).to_vector()
    return {"wall": sorted(took)[2], "same_bits": bool(there.tobytes() == here.tobytes())}


def dask_speed(folder: Path) -> dict[str, float]:
    """The same round on one worker and on two, in turns: wall time, and that of the busiest processor.

    On a machine that others use, two workers get hardly more of it than one; what they would take on
    processors of their own is the processor time of the one that has most to do.
    """
    import distributed

    mdm, place = truth("high/3"), packed(folder, SETTINGS.dask_clients)
    walls: dict[int, list[float]] = {1: [], 2: []}
    busiest: dict[int, list[float]] = {1: [], 2: []}
    for n in (1, 2) * 2:
        with (
            distributed.LocalCluster(**cluster(n)) as workers,
            distributed.Client(workers) as client,
        ):
            clients = pu.DaskAggregator(client, place, rng=0)
            clients.aggregate(Update(mdm), None)
            for _ in range(5):
                before, started = client.run(time.process_time), time.perf_counter()
                clients.aggregate(Update(mdm), None)
                walls[n].append(time.perf_counter() - started)
                after = client.run(time.process_time)
                busiest[n].append(max(after[name] - before[name] for name in after))
    return {
        **{f"wall_{n}": round(min(took), 3) for n, took in walls.items()},
        **{f"busiest_{n}": round(min(took), 3) for n, took in busiest.items()},
        "ratio": round(min(walls[1]) / min(walls[2]), 2),
        "busiest_ratio": round(min(busiest[1]) / min(busiest[2]), 2),
    }


def cluster(n_workers: int) -> dict[str, Any]:
    """Worker processes of one thread each."""
    quiet = {"dashboard_address": "127.0.0.1:0", "memory_limit": 0}
    return {"n_workers": n_workers, "threads_per_worker": 1, **quiet}


CHILDREN: dict[str, Callable[..., dict[str, float]]] = {
    "sample": sample, "pack": pack, "unsorted": unsorted, "fit": fit, "local": local,
    "round": one_round, "describe": describe, "score": score, "dask_overhead": dask_overhead,
    "dask_speed": dask_speed,
}  # fmt: skip


# ---------------------------------------------------------------------------- what is shown


def found(part: str, what: str, arguments: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """The last such measurement."""
    matching = [
        {**record, **record["arguments"]}
        for record in records()
        if (record["part"], record["what"]) == (part, what)
        and arguments in (None, record["arguments"])
    ]
    return matching[-1] if matching else None


def show() -> None:
    """Print what was measured: bars, then growth."""
    print("| what | clients | wall s | processor s | peak GB | load |\n|---|---|---|---|---|---|")
    for what in ("sample", "pack", "unsorted", "round", "fit"):
        row = found("bars", what)
        if row is not None:
            names = ("what", "n", "wall", "cpu", "gb", "load")
            print(f"| {' | '.join(str(row[name]) for name in names)} |")
    for one in (row for row in records() if row["part"] == "looks"):
        cells = (
            one["what"],
            *one["arguments"].values(),
            one["wall"],
            one["cpu"],
            one["gb"],
            one["load"],
        )
        print(f"| {' | '.join(map(str, cells))} |")
    one, here, whole = (found("bars", what) for what in ("round", "local", "fit"))
    if one and here:
        ns, local_ns = (row["cpu"] / row["n"] * 1e9 for row in (one, here))
        print(
            f"\nround: {ns:.1f} ns a client; LocalAggregator: {local_ns:.1f}; {local_ns / ns:.0%}"
        )
    if one and whole:
        cpu, wall = (whole[name] / one[name] for name in ("cpu", "wall"))
        print(f"fit in rounds: {cpu:.1f} by processor time, {wall:.1f} by wall time")
    for name, points in growth().items():
        if len(points) > 1:
            print(f"\n| {name} | ns a client |\n|---|---|")
            for x, ns in points:
                print(f"| {x:,} | {ns:.1f} |")
            print(f"\nexponent {exponent(points):.2f}")
    print()
    for what in ("dask_overhead", "dask_speed"):
        print(found("dask", what))


def growth() -> dict[str, list[tuple[int, float]]]:
    """Processor nanoseconds of a round for each client, by what grows."""
    ways = {
        "clients": ("n", [{"n": n} for n in SETTINGS.n_clients]),
        "components": (
            "k", [{"n": SETTINGS.n_for_components, "k": k} for k in SETTINGS.n_components],
        ),
        "categories": (
            "c", [{"n": SETTINGS.n_for_categories, "c": c} for c in SETTINGS.n_categories],
        ),
        "points of a client": (
            "points", [{"n": SETTINGS.n_for_points, "points": p} for p in SETTINGS.n_points],
        ),
    }  # fmt: skip
    curves: dict[str, list[tuple[int, float]]] = {}
    for name, (key, listed) in ways.items():
        rows = [found("growth", "round", arguments) for arguments in listed]
        curves[name] = [(r[key], r["cpu"] / r["n"] * 1e9) for r in rows if r is not None]
    return curves


def exponent(points: list[tuple[int, float]]) -> float:
    """The slope of log cost over log size, by least squares."""
    x, y = np.log(np.array(points, dtype=float)).T
    return float(np.polyfit(x, y, 1)[0])


def draw() -> None:
    """The curves of growth, each with its exponent."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    curves = growth()
    figure, axes = plt.subplots(1, len(curves), figsize=(11, 2.8), layout="constrained")
    for axis, (name, points) in zip(axes, curves.items(), strict=True):
        axis.loglog(*zip(*points, strict=True), "o-", color="#0f766e", markersize=4)
        axis.set_title(f"by {name}: exponent {exponent(points):.2f}", fontsize=9)
        axis.set_xlabel(name, fontsize=9)
        axis.set_ylim(10, 1_000)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("ns of a round for each client", fontsize=9)
    figure.savefig(PICTURE, dpi=120)


if __name__ == "__main__":
    main()

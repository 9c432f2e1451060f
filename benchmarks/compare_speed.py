"""Processor time of `polyurn compare` and `polyurn report` on 50,000 clients, and where it goes.

    python benchmarks/compare_speed.py                      # this checkout, and where its time goes
    python benchmarks/compare_speed.py --baseline 8edc026   # also that commit, in turns; the ratios

Every command runs in a process of its own, imports included, as a user's does; all threads count. The
first run of each, which compiles, is left out; of the others the median counts.
"""

import argparse
import json
import os
import pstats
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import polyurn as pu

ROOT = Path(__file__).parents[1]
N_CLIENTS, N_COMPONENTS, MAX_SIZE, REPEATS = 50_000, 4, 100, 3
WIDTHS = (10, 100)  # categories
RUN = "from polyurn.cli import main; main()"
PROFILED = (
    "import cProfile; from polyurn.cli import main; p = cProfile.Profile()\n"
    "try: p.runcall(main)\n"
    "except SystemExit: pass\n"
    "p.dump_stats('stages')"
)
# What is looked up in a profile: the stage, and the functions whose time is its time.
STAGES = {
    "compare": {
        "imports": ("_find_and_load",),
        "reading the tables": ("read_clients",),
        "classifier test": ("two_sample_auc",),
        "noise floors": ("_floors",),
        "energy distances and ranges": ("energy_distance", "energy_null"),
        "heterogeneity": ("heterogeneity",),
        "log-likelihoods": ("_log_likelihoods",),
    },
    "report": {
        "imports": ("_find_and_load",),
        "reading the tables": ("read_clients",),
        "t-SNE": ("joint_plane",),
        "JavaScript of the charts": ("javascript",),
    },
}


def main() -> None:
    """Measure and print; one JSON object as the last line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--baseline", help="a commit to compare with")
    baseline = parser.parse_args().baseline
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sources = {"now": ROOT / "src"}
        if baseline is not None:
            git = ["git", "-C", str(ROOT), "worktree"]
            subprocess.run(
                [*git, "add", "-q", "--detach", f"{folder}/before", baseline], check=True
            )
            sources = {"before": Path(folder, "before", "src"), **sources}
        try:
            result = {f"{name} x {c}": measure(c, name, sources) for c in WIDTHS for name in STAGES}
        finally:
            if baseline is not None:
                subprocess.run([*git, "remove", "--force", f"{folder}/before"], check=True)
    print(json.dumps(result))


def measure(n_categories: int, name: str, sources: dict[str, Path]) -> dict[str, float]:
    """Processor seconds of a command with each source, their ratio, and the stages of this one."""
    arguments = commands(n_categories)[name]
    took: dict[str, list[float]] = {which: [] for which in sources}
    for _ in range(1 + REPEATS):
        for which, source in sources.items():
            took[which].append(seconds([sys.executable, "-c", RUN, *arguments], source))
    medians = {which: statistics.median(found[1:]) for which, found in took.items()}
    seconds([sys.executable, "-c", PROFILED, *arguments], ROOT / "src")
    print(f"{name}, {N_CLIENTS:,} clients x {n_categories} categories:",
          ", ".join(f"{which} {s:.1f} s" for which, s in medians.items()))  # fmt: skip
    if "before" in medians:
        medians["ratio"] = round(medians["before"] / medians["now"], 2)
        print(f"  before / now: {medians['ratio']:.2f}")
    for stage, spent in stages(name).items():
        print(f"  {stage:<28} {spent:.2f} s")
    return {which: round(value, 2) for which, value in medians.items()}


def commands(n_categories: int) -> dict[str, list[str]]:
    """The commands' arguments; the files that they read are written."""
    rng = np.random.default_rng(0)
    bins = pu.SizeBins.logarithmic(MAX_SIZE)
    sizes = pu.Sizes(bins, np.full((N_COMPONENTS, bins.n_bins), 1 / bins.n_bins))
    alphas = rng.gamma(1.0, 0.5, (N_COMPONENTS, n_categories)) + 0.01
    mdm = pu.MDM([0.4, 0.3, 0.2, 0.1], alphas, sizes)
    pu.save(mdm, "mdm.json")
    for name, seed in (("true", 1), ("simulated", 2)):
        pu.write_histograms(mdm.sample(N_CLIENTS, rng=seed), f"{name}.csv")
    populations = ["mdm=mdm.json", "simulated=simulated.csv"]
    compare = ["compare", "true.csv", *populations, "-o", "comparison.json", "-q"]
    tables = ["true=true.csv", "simulated=simulated.csv"]
    if not Path("comparison.json").exists():
        seconds([sys.executable, "-c", RUN, *compare], ROOT / "src")
    return {"compare": compare, "report": ["report", "mdm.json", "comparison.json", *tables, "-q"]}


def seconds(command: list[str], source: Path) -> float:
    """Processor seconds of a child process, all its threads, with polyurn from a source folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": str(source)}
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def stages(name: str) -> dict[str, float]:
    """Seconds of each part of a profiled run, which makes Python, and so imports, slower.

    What a part imports for itself is in both.
    """
    found = pstats.Stats("stages").stats  # type: ignore[attr-defined]
    return {
        stage: sum(row[3] for (_, _, function), row in found.items() if function in functions)
        for stage, functions in STAGES[name].items()
    }


if __name__ == "__main__":
    main()

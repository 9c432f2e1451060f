"""What a sweep costs beside a trainer that is a command: the same commands with and without it.

    python benchmarks/command_sweep.py        # a line, and one JSON object

The command writes two lines of metrics; the partition has 500 clients with 100 points each. The sweep
and the bare commands take turns, one run at a time; the difference per run is what the sweep adds.
"""

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

import polyurn as pu

N_RUNS, N_TURNS = 10, 5
WORDS = (
    """'import json, sys; [print(json.dumps({{"round": r, "accuracy": {lr}}})) for r in (1, 2)]'"""
)


def main() -> None:
    """Measure and print."""
    rng = np.random.default_rng(0)
    parts = pu.Partition(np.arange(501) * 100, rng.permutation(50_000))
    labels = rng.integers(0, 10, 50_000)
    rates = [0.1 + i / 100 for i in range(N_RUNS)]
    trainer = pu.CommandTrainer(f"{sys.executable} -c {WORDS}")
    code = WORDS.strip("'").format(lr=0.1)
    swept, bare = [], []
    for _ in range(N_TURNS):
        with TemporaryDirectory() as folder:
            started = perf_counter()
            done = pu.sweep_trainer(
                trainer, labels, populations={"true": parts}, seeds=[0], noise_floor=False,
                grid={"lr": rates}, folder=Path(folder) / "runs", n_jobs=1,
            )  # fmt: skip
            swept.append((perf_counter() - started) / N_RUNS)
        assert len(done.runs) == N_RUNS
        started = perf_counter()
        for _ in rates:
            subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        bare.append((perf_counter() - started) / N_RUNS)
    added = median(a - b for a, b in zip(swept, bare, strict=True))
    print(
        f"{median(swept):.3f} s a run in a sweep, {median(bare):.3f} s without: {added:.3f} s more"
    )
    print(json.dumps({"swept": median(swept), "bare": median(bare), "added": added}))


if __name__ == "__main__":
    main()

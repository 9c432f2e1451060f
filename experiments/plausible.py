"""How much of a sweep's forecast hangs on the fit: digits, whose mixture few clients taught.

    python experiments/plausible.py    # resumes; writes results/plausible.jsonl and prints the verdicts

The true clients are those of a mixture of the paper. Another mixture is fitted to some of its clients,
with standard errors; the sweep trains on its clients, and on those of three mixtures that are as
plausible.
"""

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polyurn as pu
from polyurn.model.paper_truths import truth

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from records import run_all


@dataclass(frozen=True)
class Settings:
    """Components of two kinds of clients, of 20 points each: few points for ten categories."""

    truth: str = "medium/2"
    n_fitted: tuple[int, ...] = (100,)
    seeds: tuple[int, ...] = (0, 1, 2, 3)


SETTINGS = Settings()
SWEEP = """
seeds = {seeds}
model = "softmax"
[data]
builtin = "digits"
[clients.true]
mdm = "truth.json"
n_clients = 100
[clients.mdm]
mdm = "mdm.json"
n_clients = 100
plausible = 3
[fedavg]
n_rounds = 20
cohort_size = 10
evaluate_every = 2
[grid]
local_learning_rate = [0.01, 0.1]
"""


def run(n_fitted: int) -> dict[str, Any]:
    """What the sweep says of a mixture that so many clients taught."""
    mdm = truth(SETTINGS.truth)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pu.save(mdm, folder / "truth.json")
        fitted = pu.fit(mdm.sample(n_fitted, rng=1), n_components=2, rng=1).mdm
        pu.save(fitted, folder / "mdm.json")
        (folder / "sweep.toml").write_text(SWEEP.format(seeds=[*SETTINGS.seeds]))
        command = [sys.executable, "-m", "polyurn.cli", "sweep", "sweep.toml", "-o", "runs"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        verdict = pu.compare_sweeps(pu.read_runs(folder / "runs"))
    return {
        "sentence": verdict.sentence(),
        "signed": {one.population: one.signed.value for one in verdict.populations},
    }


def main() -> None:
    """Run what is missing, then print the verdicts."""
    grid = [{"n_fitted": n} for n in SETTINGS.n_fitted]
    for record in run_all("plausible", grid, run):
        n = record["settings"]["n_fitted"]
        print(f"{n:,} clients: {record['sentence']}")


if __name__ == "__main__":
    main()

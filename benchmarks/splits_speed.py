"""What splits and laws cost: simulated clients a second, and a fit beside one without.

Processor seconds on one thread, kernels compiled, the best of three. The mixtures are the zoo's of
digits and speech by speaker, which have laws; without them the same splits are beta-binomials. The fit
is that of experiments/shapes.py: K among 1 to 12, all writers. POLYURN_DATA is the folder with the
tables.

    python benchmarks/splits_speed.py
"""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import polyurn as pu
from turns import load

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))
from shapes import COMPONENTS, clients_of

N_DRAWN = 200_000


def main() -> None:
    """Print both tables."""
    print(f"load average {load()}\n")
    print("| clients | splits | clients a second |\n|---|---|---|")
    for name in ("digits", "speech"):
        bent = pu.load(f"zoo:{name}")
        assert bent.splits is not None
        straight = replace(bent, splits=replace(bent.splits, laws=None))
        for kind, mdm in (("beta-binomial", straight), ("laws", bent)):
            seconds = best(lambda mdm=mdm: mdm.sample(N_DRAWN, rng=0))
            print(f"| {name} | {kind} | {N_DRAWN / seconds:,.0f} |", flush=True)
    counts, seconds = clients_of("digits"), {}
    print("\n| fit of digits | s | rounds | kept |\n|---|---|---|---|")
    for shape in ("dirichlet", "tree", "laws", "auto"):
        done = pu.fit(counts, n_components=COMPONENTS, shape=shape, rng=0)
        seconds[shape] = best(
            lambda shape=shape: pu.fit(counts, n_components=COMPONENTS, shape=shape, rng=0)
        )
        kept = ", ".join(stage.shape for stage in done.stages if stage.kept) or "–"
        print(f"| {shape} | {seconds[shape]:.2f} | {done.n_rounds} | {kept} |", flush=True)
    print(f"\nlaws: {seconds['laws'] / seconds['dirichlet']:.1f} times as long as without")


def best(work: Callable[[], object]) -> float:
    """Processor seconds of the best of three, after one that compiles."""
    work()
    took = []
    for _ in range(3):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return min(took)


if __name__ == "__main__":
    main()

"""Against `dmn` of Bioconductor's DirichletMultinomial: time, and the likelihood reached.

Both fit the same tables with the same number of components and their default settings, one thread
each; on the Twins table, few rows for many categories, our scikit-learn estimator keeps the best of
`n_init` fits, which all count in its time. Times are of the fit alone: inside R by `system.time`, here
by the clock around packing the table and fitting it, once the kernels are compiled. Likelihoods are
log p(c | n) of either's parameters, summed over clients by our code.

    apt-get install r-bioc-dirichletmultinomial     # Debian and Ubuntu; or --install as root
    python benchmarks/dmn.py                        # tables, and one JSON object as the last line
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import polyurn as pu
from polyurn.integrations.sklearn import DirichletMultinomialMixture
from polyurn.model.paper_truths import truth

PACKAGE = "r-bioc-dirichletmultinomial"
ADVICE = f"get it with: apt-get install {PACKAGE} (or run this with --install, as root)"
DATA = Path(os.environ.get("POLYURN_DATA", Path(__file__).parents[2] / "shared" / "data"))

# Written to files because R prints numbers to seven digits only.
R_SCRIPT = """
suppressMessages(library(DirichletMultinomial))
count <- as.matrix(read.csv("counts.csv", header = FALSE))
storage.mode(count) <- "integer"
dimnames(count) <- list(paste0("s", seq_len(nrow(count))), paste0("c", seq_len(ncol(count))))
took <- system.time(fit <- dmn(count, k = {k}, verbose = FALSE, seed = {seed}))[["elapsed"]]
options(digits = 17)
write.table(took, "seconds.csv", row.names = FALSE, col.names = FALSE)
write.table(mixturewt(fit)$pi, "weights.csv", row.names = FALSE, col.names = FALSE, sep = ",")
write.table(t(fitted(fit)), "alphas.csv", row.names = FALSE, col.names = FALSE, sep = ",")
"""


@dataclass(frozen=True)
class Settings:
    """The two comparisons and what is required of each."""

    truth: str = "medium/3"
    n_clients: int = 10_000
    size: int = 100
    n_components: int = 3
    required_speedup: float = 40.0
    twins: str = "twins_microbiome"
    twins_components: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    turns: int = 3  # at 10,000 clients: so often dmn once and then ours, of which medians count
    repeats: int = 5  # of ours in each turn


@dataclass(frozen=True)
class Fitted:
    """Parameters of a mixture and the seconds that they took."""

    weights: np.ndarray
    alphas: np.ndarray
    seconds: float


def main() -> None:
    """Run both comparisons and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--scale", type=float, default=1.0, help="fraction of the synthetic clients"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--twins", type=int, nargs="+", help="only Twins, with so many components")
    parser.add_argument("--n-init", type=int, default=3, help="of our estimator, on Twins")
    parser.add_argument("--install", action="store_true", help=f"apt-get install {PACKAGE}")
    options = parser.parse_args()
    settings = Settings()
    if options.install:
        subprocess.run(["apt-get", "update"], check=True)
        subprocess.run(["apt-get", "install", "-y", PACKAGE], check=True)
    missing = what_is_missing()
    if missing:
        print(f"{missing}; {ADVICE}", file=sys.stderr)
        sys.exit(1)
    ours(truth("low/2").sample(500, rng=0), 2, seed=0)  # compiles
    print(f"{'table':<26} {'K':>2} {'dmn s':>8} {'polyurn s':>9} {'ratio':>7} "
          f"{'dmn log p':>14} {'polyurn log p':>14} {'ours - dmn':>11}  bar")  # fmt: skip
    result: dict[str, object] = {} if options.twins else {"speed": synthetic(options, settings)}
    table = twins(settings)
    if table is None:
        print(f"no {settings.twins} under {DATA}: skipped (set POLYURN_DATA)")
    else:
        rows = []
        for k in options.twins or settings.twins_components:
            theirs = dmn(table, k, seed=options.seed)
            mine = estimator(table, k, seed=options.seed, n_init=options.n_init)
            name = f"twins {table.shape[0]} x {table.shape[1]}"
            row = compare(name, table, k, [theirs], [mine])
            row["met"] = row["difference"] >= 0 and row["ratio"] > 1
            print(f"  at least dmn's likelihood, and faster: {'met' if row['met'] else 'MISSED'}")
            rows.append(row)
        result["twins"] = rows
    print(json.dumps(result))


def synthetic(options: argparse.Namespace, settings: Settings) -> dict[str, object]:
    """Clients of a known mixture: how many times as fast."""
    hidden = truth(settings.truth, size=settings.size)
    counts = hidden.sample(int(settings.n_clients * options.scale), rng=options.seed)
    name = f"{settings.truth} {len(counts)} x {counts.shape[1]}, n={settings.size}"
    k, seed = settings.n_components, options.seed
    theirs, mine = [], []
    for _ in range(settings.turns):  # in turn: the machine's speed changes from minute to minute
        theirs.append(dmn(counts, k, seed=seed))
        mine += [ours(counts, k, seed=seed) for _ in range(settings.repeats)]
    speed = compare(name, counts, k, theirs, mine)
    speed["met"] = speed["ratio"] >= settings.required_speedup
    print(f"  >= {settings.required_speedup:.0f}x: {'met' if speed['met'] else 'MISSED'}")
    return speed


def compare(
    name: str, counts: np.ndarray, k: int, theirs: Sequence[Fitted], mine: Sequence[Fitted]
) -> dict[str, object]:
    """One row: median times, and the likelihoods of both by our code."""
    they, we = (float(np.median([f.seconds for f in fits])) for fits in (theirs, mine))
    before, after = (log_likelihood(fits[0], counts) for fits in (theirs, mine))
    ratio = they / we
    print(f"{name:<26} {k:>2} {they:>8.2f} {we:>9.3f} {ratio:>7.1f} "
          f"{before:>14.3f} {after:>14.3f} {after - before:>11.3f}", end="", flush=True)  # fmt: skip
    return {
        "k": k,
        "dmn_seconds": they,
        "polyurn_seconds": round(we, 4),
        "all_seconds": [[round(f.seconds, 4) for f in fits] for fits in (theirs, mine)],
        "ratio": round(ratio, 2),
        "dmn_log_likelihood": before,
        "polyurn_log_likelihood": after,
        "difference": after - before,
    }


def estimator(counts: np.ndarray, k: int, *, seed: int, n_init: int) -> Fitted:
    """The best of several fits, checks included."""
    start = time.perf_counter()
    fitted = DirichletMultinomialMixture(k, n_init=n_init, random_state=seed).fit(counts)
    return Fitted(fitted.weights_, fitted.alphas_, time.perf_counter() - start)


def ours(counts: np.ndarray, k: int, *, seed: int) -> Fitted:
    """Our fit, packing included."""
    start = time.perf_counter()
    mdm = pu.fit(
        pu.LocalAggregator(counts, rng=seed),
        n_components=k,
        n_categories=counts.shape[1],
        max_size=int(counts.sum(axis=1).max()),
        sizes="shared",
        rng=seed,
    ).mdm
    return Fitted(mdm.weights, mdm.alphas, time.perf_counter() - start)


def dmn(counts: np.ndarray, k: int, *, seed: int) -> Fitted:
    """R's fit, through files in a directory of its own."""
    with tempfile.TemporaryDirectory() as folder:
        np.savetxt(Path(folder) / "counts.csv", counts, fmt="%d", delimiter=",")
        script = R_SCRIPT.format(k=k, seed=seed)
        subprocess.run(["Rscript", "-e", script], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        seconds, weights, alphas = (
            np.loadtxt(Path(folder) / f"{name}.csv", delimiter=",")
            for name in ("seconds", "weights", "alphas")
        )
    return Fitted(weights.reshape(k), alphas.reshape(k, -1), float(seconds))


def log_likelihood(fitted: Fitted, counts: np.ndarray) -> float:
    """Sum over clients of log p(c | n); sizes that all components share cancel."""
    bins = pu.SizeBins.logarithmic(int(counts.sum(axis=1).max()))
    masses = np.full((len(fitted.weights), bins.n_bins), 1.0 / bins.n_bins)
    weights = fitted.weights / fitted.weights.sum()
    mdm = pu.MDM(weights, fitted.alphas, pu.Sizes(bins, masses))
    return float(mdm.logpmf_given_size(counts).sum())


def twins(settings: Settings) -> np.ndarray | None:
    """The Twins table, samples by genera."""
    path = DATA / settings.twins / "histograms.parquet"
    if not path.exists():
        return None
    n_genera = len((path.parent / "classes.csv").read_text().splitlines()) - 1
    counts = pu.table_histograms(pu.read_table(path), categories=n_genera, count="count").counts
    return counts.toarray()


def what_is_missing() -> str | None:
    """What of R is not there, in words."""
    if shutil.which("Rscript") is None:
        return "R is not installed: no Rscript on the path"
    probe = "quit(status = !requireNamespace('DirichletMultinomial', quietly = TRUE))"
    if subprocess.run(["Rscript", "-e", probe], capture_output=True, check=False).returncode:
        return "R has no package DirichletMultinomial"
    return None


if __name__ == "__main__":
    main()

"""Speed of one full round of Algorithm 2, against the same round in vectorised NumPy.

All run in this process, on the same clients, one thread each, and their sums are compared before
anything is timed. Two NumPy rounds stand for "vectorised". *Plain* writes the paper's formulas with
whole arrays and `scipy.special`. *Tuned* does the same in blocks that stay in the cache, converts
once, computes what components share once, and takes what no client changes out of the sums.

    python benchmarks/fit_speed.py            # a table, and one JSON object as the last line
"""

import argparse
import json
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln, logsumexp

import polyurn as pu
from polyurn.wire import Update, UpdateStatistics


@dataclass(frozen=True)
class Case:
    """Clients x categories, components and sizes of one row of the table."""

    name: str
    n_clients: int
    n_categories: int
    n_components: int
    sizes: tuple[int, int]
    alphas: tuple[float, float]  # shape and scale of the gamma law that alphas are drawn from
    required: float


CASES = (
    Case("1e6 x 10, K=3, n=20", 1_000_000, 10, 3, (20, 20), (4.0, 0.4), 60),
    Case("1e5 x 62, K=3, n~225", 100_000, 62, 3, (150, 300), (4.0, 0.4), 100),
    Case("1e4 x 1000, K=5, n~500", 10_000, 1_000, 5, (300, 700), (0.3, 0.4), 200),
)
NUMPY_BLOCK_CELLS = 200_000
REPEATS = 4


def main() -> None:
    """Measure every case and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the clients")
    scale = parser.parse_args().scale
    print(f"{'case':<24} {'non-zero':>8} {'plain ns':>9} {'tuned ns':>9} {'polyurn ns':>10} "
          f"{'plain/':>7} {'tuned/':>7} {'required':>8} {'2 threads':>9} {'pack ns':>8}")  # fmt: skip
    result: dict[str, object] = {}
    for case in CASES:
        mdm, counts = population(case, scale)
        took = measure(mdm, counts)
        ratios = {name: took[name] / took["one"] for name in ("plain", "tuned")}
        threads = took["one"] / took["two"]
        ns = {name: best / len(counts) * 1e9 for name, best in took.items()}
        print(f"{case.name:<24} {np.count_nonzero(counts) / counts.size:>8.0%} {ns['plain']:>9.0f} "
              f"{ns['tuned']:>9.0f} {ns['one']:>10.1f} {ratios['plain']:>7.1f} "
              f"{ratios['tuned']:>7.1f} {case.required:>8.0f} {threads:>9.2f} "
              f"{ns['pack']:>8.0f}")  # fmt: skip
        result[case.name] = {
            "ratio": round(ratios["plain"], 1),
            "ratio_to_tuned": round(ratios["tuned"], 1),
            "two_threads": round(threads, 2),
        }
    result["peak_memory_in_uint16_tables"] = round(memory_ratio(scale), 2)
    print(f"peak memory, 1e6 x 10, counts included: "
          f"{result['peak_memory_in_uint16_tables']} x the counts as uint16")  # fmt: skip
    print(json.dumps(result))


def measure(mdm: pu.MDM, counts: np.ndarray) -> dict[str, float]:
    """Best of several runs of each, interleaved so that a slow spell hits all of them."""
    query = Update(mdm)
    one, two = (pu.LocalAggregator(counts, rng=0, n_threads=t) for t in (1, 2))
    check(one.aggregate(query, None), plain_round(mdm, counts))
    check(one.aggregate(query, None), tuned_round(mdm, counts))
    work: dict[str, Callable[[], object]] = {
        "plain": lambda: plain_round(mdm, counts),
        "tuned": lambda: tuned_round(mdm, counts),
        "one": lambda: one.aggregate(query, None),
        "two": lambda: two.aggregate(query, None),
        "pack": lambda: pu.LocalAggregator(counts, rng=0),
    }
    repeats = {"plain": 1, "tuned": 1, "one": 4, "two": 4, "pack": 1}
    best = dict.fromkeys(work, float("inf"))
    for _ in range(REPEATS):
        for name, call in work.items():
            best[name] = min([best[name], *(seconds(call) for _ in range(repeats[name]))])
    return best


def population(case: Case, scale: float) -> tuple[pu.MDM, np.ndarray]:
    """Clients of a random mixture, and parameters a little off it: a round in mid-fit."""
    rng = np.random.default_rng(1)
    shape, unit = case.alphas
    alphas = rng.gamma(shape, unit, (case.n_components, case.n_categories)) + 0.01
    low, high = case.sizes
    table = np.zeros((case.n_components, high + 1))
    table[:, low : high + 1] = 1.0 / (high + 1 - low)
    weights = np.full(case.n_components, 1.0 / case.n_components)
    truth = pu.MDM(weights, alphas, table)
    counts = truth.sample(int(case.n_clients * scale), rng=2).astype(np.uint16)
    return pu.MDM(weights, alphas * rng.uniform(0.8, 1.25, alphas.shape), table), counts


def plain_round(mdm: pu.MDM, counts: np.ndarray) -> UpdateStatistics:
    """Algorithm 2's lines as the paper writes them, for all clients at once."""
    k = mdm.n_components
    n = counts.sum(axis=1)
    sizes = mdm.sizes.table()
    joint = np.empty((len(counts), k))
    for i, alpha in enumerate(mdm.alphas):
        joint[:, i] = (
            np.log(mdm.weights[i]) + np.log(sizes[i, n])
            + gammaln(alpha.sum()) + gammaln(n + 1) - gammaln(n + alpha.sum())
            + (gammaln(counts + alpha) - gammaln(alpha) - gammaln(counts + 1)).sum(axis=1)
        )  # fmt: skip
    log_q = logsumexp(joint, axis=1)
    omega = np.exp(joint - log_q[:, None])
    size_counts = np.zeros((k, mdm.max_size + 1))
    u, v = np.empty(mdm.alphas.shape), np.empty(k)
    for i, alpha in enumerate(mdm.alphas):
        w = omega[:, i]
        size_counts[i] = np.bincount(n, w, minlength=mdm.max_size + 1)
        u[i] = (w[:, None] * (digamma(counts + alpha) - digamma(alpha))).sum(axis=0)
        v[i] = (w * (digamma(n + alpha.sum()) - digamma(alpha.sum()))).sum()
    return UpdateStatistics(
        len(counts), float(log_q.sum()), omega.sum(axis=0), size_counts[:, 1:], u, v
    )


def tuned_round(mdm: pu.MDM, counts: np.ndarray) -> UpdateStatistics:
    """The same sums in blocks, with everything that is shared computed once."""
    k, c = mdm.alphas.shape
    alpha_0, log_sizes = mdm.alphas.sum(axis=1), np.log(np.maximum(mdm.sizes.table(), 1e-300))
    omega, u, v = np.zeros(k), np.zeros((k, c)), np.zeros(k)
    size_counts, log_likelihood = np.zeros((k, mdm.max_size + 1)), 0.0
    step = max(1, NUMPY_BLOCK_CELLS // c)
    for start in range(0, len(counts), step):
        block = counts[start : start + step].astype(np.float64)
        n = counts[start : start + step].sum(axis=1)
        coefficient = gammaln(n + 1.0) - gammaln(block + 1.0).sum(axis=1)
        joint = np.empty((len(block), k))
        for i in range(k):
            alpha = mdm.alphas[i]
            joint[:, i] = (
                np.log(mdm.weights[i]) + log_sizes[i, n] + coefficient
                + gammaln(alpha_0[i]) - gammaln(n + alpha_0[i])
                + gammaln(block + alpha).sum(axis=1) - gammaln(alpha).sum()
            )  # fmt: skip
        peak = joint.max(axis=1, keepdims=True)
        w = np.exp(joint - peak)
        total = w.sum(axis=1, keepdims=True)
        w /= total
        log_likelihood += float((peak + np.log(total)).sum())
        omega += w.sum(axis=0)
        for i in range(k):
            size_counts[i] += np.bincount(n, w[:, i], minlength=mdm.max_size + 1)
            u[i] += w[:, i] @ digamma(block + mdm.alphas[i]) - w[:, i].sum() * digamma(
                mdm.alphas[i]
            )
            v[i] += w[:, i] @ (digamma(n + alpha_0[i]) - digamma(alpha_0[i]))
    return UpdateStatistics(len(counts), log_likelihood, omega, size_counts[:, 1:], u, v)


def check(ours: UpdateStatistics, theirs: UpdateStatistics) -> None:
    """Refuse to time two rounds that do not agree."""
    np.testing.assert_allclose(ours.to_vector(), theirs.to_vector(), rtol=1e-9, atol=1e-6)


def memory_ratio(scale: float) -> float:
    """Peak memory of packing and one round, the counts themselves included."""
    mdm, counts = population(CASES[0], scale)
    tracemalloc.start()
    held = counts.copy()
    pu.LocalAggregator(held, rng=0).aggregate(Update(mdm), None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / counts.nbytes


def seconds(work: Callable[[], object]) -> float:
    """Wall-clock time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()

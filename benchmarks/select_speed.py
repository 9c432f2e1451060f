"""A fit of six K against fitting those K one after the other, and the rounds both need.

python benchmarks/select_speed.py            # a table, and one JSON object as the last line
"""

import json
import time

import numpy as np

import polyurn as pu

N_CLIENTS, N_CATEGORIES, SIZES = 5_000, 62, (150, 300)
NUMBERS = (1, 2, 3, 4, 5, 6)


def main() -> None:
    """Measure and print."""
    rng = np.random.default_rng(0)
    low, high = SIZES
    table = np.zeros((3, high + 1))
    table[:, low : high + 1] = 1.0 / (high + 1 - low)
    truth = pu.MDM([0.5, 0.3, 0.2], rng.gamma(1.0, 0.5, (3, N_CATEGORIES)) + 0.02, table)
    counts = truth.sample(N_CLIENTS, rng=1)
    bounds = {"n_categories": N_CATEGORIES, "max_size": high}
    pu.fit(pu.LocalAggregator(counts), n_components=2, max_rounds=8, rng=0, **bounds)  # compile

    start = time.perf_counter()
    choice = pu.fit(pu.LocalAggregator(counts, rng=2), n_components=NUMBERS, rng=3, **bounds)
    together = time.perf_counter() - start
    slowest = max(c.n_rounds for c in choice.candidates)

    # One start each: as many numbers as a single start sends, so that there is room for no other.
    start = time.perf_counter()
    for k in NUMBERS:
        one = 2 + k * (3 * N_CATEGORIES + 40 + 2)
        pu.fit(pu.LocalAggregator(counts, rng=2), n_components=k, max_upload=one, rng=3, **bounds)
    in_turn = time.perf_counter() - start

    ratio = together / in_turn
    print(f"select {NUMBERS[0]} to {NUMBERS[-1]}: chose {choice.n_components}")
    print(f"rounds: {choice.n_rounds}; the slowest K alone: {slowest}")
    print(
        f"seconds: {together:.1f} together, {in_turn:.1f} one after the other with one start each"
    )
    print(
        json.dumps(
            {
                "rounds": choice.n_rounds,
                "slowest_k_rounds": slowest,
                "time_ratio": round(ratio, 2),
                "chosen": choice.n_components,
            }
        )
    )


if __name__ == "__main__":
    main()

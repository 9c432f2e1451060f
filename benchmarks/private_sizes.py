"""What a private fit says of clients' sizes: log-likelihood of held-out sizes, and who is impossible.

Only the sizes' part of the survey is played: sums over the bins plus noise, as `fit_private` asks for
them. Fitted clients are drawn with replacement from three quarters of a real
table; the others are held out. Every cell is one JSON line in results/private_sizes.jsonl, written when
it ends; a cell that is there is not repeated.

    python benchmarks/private_sizes.py            # all cells, then the table
    python benchmarks/private_sizes.py --table    # no run

`uniform` is the law that calls all sizes of the declared range equally likely, `no noise` the shares of
the bins with one client more, spread like the prior. `cut at 2 sd` is the rule before, two
before, of which the last column says how many held-out clients it calls impossible at epsilon 1.
"""

import argparse
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import polyurn as pu
from polyurn.model.sizes import SizeBins
from polyurn.privacy.accounting import sigma_for
from polyurn.server.private.plan import DEFAULT, SINGLE, Plan
from polyurn.server.private.steps import surveyed
from polyurn.wire.private_queries import BoundedSurvey
from privacy import DATA, TABLES

RECORDS = Path(__file__).parent / "results" / "private_sizes.jsonl"
PLANS = {"several": DEFAULT, "one": SINGLE}
NAMES, N_CLIENTS = ("ratings", "speech", "flights"), (100, 300, 1000, 10_000)
EPSILONS = (0.5, 1, 2, 8)
DELTA, N_DRAWS, SEED = 1e-6, 40, 3000


def main() -> None:
    """Run what is not there yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true", help="run nothing")
    only_table = parser.parse_args().table
    done = {key(record): record for record in records()}
    for cell in product(PLANS, NAMES, N_CLIENTS, EPSILONS):
        if cell in done or only_table:
            continue
        record = dict(zip(KEY, cell, strict=True)) | run(*cell)
        RECORDS.parent.mkdir(exist_ok=True)
        with RECORDS.open("a") as file:
            file.write(json.dumps(record) + "\n")
        done[cell] = record
    for plan in PLANS:
        show(plan, done)


KEY = ("plan", "data", "n_clients", "epsilon")


def key(record: dict[str, object]) -> tuple[object, ...]:
    """What makes a cell that cell."""
    return tuple(record[name] for name in KEY)


def records() -> Iterator[dict[str, object]]:
    """The cells that are there."""
    if RECORDS.exists():
        yield from (json.loads(line) for line in RECORDS.read_text().splitlines())


def sizes_of(name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sizes of three quarters of a real table's clients, and of the others."""
    folder = DATA / TABLES[name][0]
    n_categories = len((folder / "classes.csv").read_text().splitlines()) - 1
    read = pu.read_table(folder / "histograms.parquet")
    counts = pu.table_histograms(read, categories=n_categories, count="count").counts
    sizes = np.asarray(counts.sum(axis=1)).ravel().astype(np.int64)
    order = np.random.default_rng(0).permutation(len(sizes))
    held_out, train = np.split(sizes[order], [len(sizes) // 4])
    return train, held_out


def run(plan: str, name: str, n_clients: int, epsilon: float) -> dict[str, object]:
    """Means over the draws of one cell, and the worst draw against the uniform law."""
    train, held_out = sizes_of(name)
    most = 1 << (int(max(train.max(), held_out.max())) - 1).bit_length()
    bins = SizeBins.logarithmic(most, per_doubling=2)
    sigma, of_size = noise_of(PLANS[plan], epsilon), np.sqrt(BoundedSurvey.PARTS["sizes"])
    rng = np.random.default_rng([SEED, n_clients])  # the same clients for every epsilon
    values, noiseless, cut, impossible = [], [], [], 0
    for _ in range(N_DRAWS):
        fitted = rng.choice(train, n_clients)
        in_bins = np.bincount(bins.locate(fitted), minlength=bins.n_bins)
        noised = in_bins + rng.standard_normal(bins.n_bins) * sigma / of_size
        sizes = learned(bins, noised, n_clients + rng.standard_normal() * sigma / 0.1**0.5, sigma)
        values.append(float(sizes.logpmf(held_out).mean()))
        impossible += int(np.isneginf(sizes.logpmf(np.append(fitted, held_out))).sum())
        before = np.diff(np.log(bins.edges)) / np.log(bins.edges[-1])
        exact = pu.Sizes(bins, (in_bins + before)[None] / (n_clients + 1))
        noiseless.append(float(exact.logpmf(held_out).mean()))
        kept = np.maximum(noised - 2 * sigma / of_size, 0.0)
        cut.append(float((kept[bins.locate(held_out)] == 0).mean()) if kept.any() else 0.0)
    return {
        "uniform": -float(np.log(most)),
        "value": float(np.mean(values)),
        "worst": float(np.min(values)),
        "no_noise": float(np.mean(noiseless)),
        "impossible": impossible,
        "cut_impossible": float(np.mean(cut)),
    }


def noise_of(plan: Plan, epsilon: float) -> float:
    """The standard deviation of the survey's noise."""
    return float(sigma_for(float(epsilon), DELTA) * np.sqrt(plan.total / plan.survey))


def learned(bins: SizeBins, noised: NDArray[np.float64], n: float, sigma: float) -> pu.Sizes:
    """What the package makes of noised bins; categories play no part in it."""
    of_clients, _, of_size, of_p = np.sqrt([*BoundedSurvey.PARTS.values()])
    pairs, p = [0.5 * n], np.full(2, 0.5 * n) * of_p
    values = np.concatenate([[of_clients * n], pairs, of_size * noised, p])
    return surveyed(BoundedSurvey(2, bins), values, sigma).sizes


def show(plan: str, done: dict[tuple[object, ...], dict[str, object]]) -> None:
    """A line for each table and number of clients."""
    columns = "".join(f"{f'eps {e:g}':>9}" for e in EPSILONS)
    print(f"{plan}\n{'data':<9}{'clients':>8}{'uniform':>9}{columns}{'no noise':>10}"
          f"{'impossible':>12}{'cut at 2 sd':>13}")  # fmt: skip
    for name, n_clients in product(NAMES, N_CLIENTS):
        cells = [done.get((plan, name, n_clients, e)) for e in EPSILONS]
        if None in cells:
            continue
        values = "".join(f"{c['value']:>9.3f}" for c in cells)
        print(f"{name:<9}{n_clients:>8}{cells[0]['uniform']:>9.3f}{values}"
              f"{cells[0]['no_noise']:>10.3f}{sum(c['impossible'] for c in cells):>12}"
              f"{cells[1]['cut_impossible']:>13.0%}")  # fmt: skip
    mine = [c for c in done.values() if c["plan"] == plan]
    print("least above uniform: mean {:.3f}, worst draw {:.3f}; most behind no noise at epsilon 1 with "
          "10,000: {:.3f}\n".format(
              min(c["value"] - c["uniform"] for c in mine), min(c["worst"] - c["uniform"] for c in mine),
              max((c["no_noise"] - c["value"] for c in mine if c["epsilon"] == 1 and
                   c["n_clients"] == 10_000), default=np.nan)))  # fmt: skip


if __name__ == "__main__":
    main()

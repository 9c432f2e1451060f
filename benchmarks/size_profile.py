"""Does the profile of sizes inside a bin predict the sizes of clients that were held out?

    python benchmarks/size_profile.py

Prints, for each federation of ../shared/data, the concentration that was fitted, and the held-out
log-probability of a client's size inside its bin with the profile and without one (every size of a bin
equally likely): means over five splits, in nats per client. Needs the extra `tables`.
"""

import os
from pathlib import Path

import numpy as np

import polyurn as pu
from polyurn.counts import client_sizes
from polyurn.server.starts import survey, with_profile

FOLDER = Path(os.environ.get("POLYURN_DATA", Path(__file__).parents[2] / "shared" / "data"))
TABLES = {
    "race": ("acs2024_race", 9),
    "income": ("acs2024_income", 41),
    "ratings": ("insteval_lecturer", 5),
    "speech": ("speech_commands", 35),
    "digits": ("nist_digits_by_writer", 10),
    "flights": ("flights_plane_destination", 104),
}
N_SPLITS = 5
HELD_OUT = 0.2


def main() -> None:
    """Print the table."""
    print("| clients | sizes up to | with the profile | even | gain |")
    print("|---|---|---|---|---|")
    for name, (table, n_categories) in TABLES.items():
        read = pu.read_table(FOLDER / table / "histograms.parquet")
        counts = pu.table_histograms(read, categories=n_categories, count="count").counts
        sizes = client_sizes(counts)
        bins = pu.SizeBins.logarithmic(int(sizes.max()))
        fine = survey(n_categories, bins, max_upload=50_000).size_bins
        found = []
        for seed in range(N_SPLITS):
            order = np.random.default_rng(seed).permutation(sizes)
            held_out, fitted = np.split(order, [round(HELD_OUT * len(order))])
            seen = np.bincount(fine.locate(fitted), minlength=fine.n_bins).astype(float)
            learned = with_profile(bins, fine, seen, size_prior=1.0)
            found.append([b.log_inside(held_out).mean() for b in (learned, bins)])
        profile, even = np.mean(found, axis=0)
        print(f"| {name} | {sizes.max():,} | {profile:.4f} | {even:.4f} | {profile - even:+.4f} |")


if __name__ == "__main__":
    main()

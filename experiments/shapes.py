"""Splits on a tree, and laws on them, on every table of natural clients with at least 300 of them.

    python experiments/shapes.py  # resumes; writes results/shapes.jsonl and tables

80 % of the clients are learned from: K is chosen among 1 to 12 by a fifth of them, and the mixture is
what `shape` says. The other 20 % are compared with as many simulated clients as `compare` draws. Pairs:
both shapes learn from the same clients with the same seeds. POLYURN_DATA is the folder with the tables.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import polyurn as pu
from polyurn.counts import client_sizes

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from populations import FOLDER
from records import RESULTS, run_all

TABLES = {
    "digits": ("nist_digits_by_writer", 10),
    "speech": ("speech_commands", 35),
    "race": ("acs2024_race", 9),
    "income": ("acs2024_income", 41),
    "genres": ("movielens_user_genre", 20),
    "stars": ("movielens_user_rating", 10),
    "rodents": ("portal_rodents_plot_year", 29),
    "brown_pos": ("brown_pos", 70),
    "lecturers": ("insteval_lecturer", 5),
    "flights": ("flights_plane_destination", 104),
    "hair": ("celeba_hair", 7),
    "chat": ("nps_chat_user_act", 15),
    "letters": ("femnist_lowercase_q_to_z", 10),
    "codons": ("ecoli_gene_codon", 64),
    "smiling": ("celeba_smiling_full", 2),
    "sentiment": ("sent140_test_part", 2),
    "airlines": ("openflights_airline_country", 224),
    "counties": ("us_county_vote_2024", 3),
    "UN votes": ("un_votes_country_session", 3),
    "commits": ("django_author_hour", 24),
    "households": ("completejourney_household_category", 290),
    "gut": ("atlas1006_gut_genus", 130),
    "emotions": ("meld_speaker_emotion", 7),
}
# Of energy, AUC and log q, for splits and laws; the others are to be not worse than without.
BARS = {
    "digits": (3.0, 0.62, -12.8),
    "speech": (1.5, 0.63, -35.4),
    "race": (1.2, 0.60, -27.85),
    "income": (1.3, 0.57, -113.0),
    "genres": (1.6, 0.62, -46.4),
    "stars": (1.3, 0.59, -18.95),
    "rodents": (1.3, 0.60, -22.2),
    "brown_pos": (1.5, 0.68, -186.2),
}
NOT_WORSE = ("lecturers", "flights", "hair", "chat")
MEASURES = ("energy", "AUC", "log q")
COMPONENTS = (1, 2, 3, 4, 6, 8, 12)
N_SEEDS = 5
VERSION = 2  # 1: before laws of fewer components were preferred to fewer knots


def run(table: str, seed: int) -> dict[str, Any]:
    """One split of the clients: Dirichlet-multinomials, and what `auto` keeps."""
    counts = clients_of(table)
    split = pu.split_clients(counts, held_out=0.2, rng=[seed, 1])
    return {shape: _learned(split, counts, shape, seed) for shape in ("dirichlet", "auto")}


def clients_of(table: str) -> Any:
    """The histograms of a table's clients."""
    folder, n_categories = TABLES[table]
    read = pu.read_table(FOLDER / folder / "histograms.parquet")
    return pu.table_histograms(read, categories=n_categories, count="count").counts


def _learned(split: pu.ClientSplit, counts: Any, shape: Any, seed: int) -> dict[str, Any]:
    began = time.process_time()
    choice = pu.fit(
        pu.LocalAggregator(split.fitted, rng=[seed, 2]), n_components=COMPONENTS,
        n_categories=counts.shape[1], max_size=int(client_sizes(counts).max()), shape=shape,
        rng=np.random.default_rng([seed, 3]),
    )  # fmt: skip
    seconds = time.process_time() - began
    row = pu.compare({"mdm": choice.mdm}, split, n_bootstrap=100, n_splits=300, rng=[seed, 4])[
        "mdm"
    ]
    assert row.log_likelihood_given_size is not None
    assert row.auc is not None
    return {
        "n_components": choice.n_components,
        "stages": [vars(stage) for stage in choice.stages],
        "n_rounds": choice.n_rounds,
        "upload": max(one.n_numbers for one in choice.rounds),
        "cpu_seconds": seconds,
        "log q": row.log_likelihood_given_size.value,
        "AUC": row.auc.value,
        "energy": row.energy_ratio,
    }


def main() -> None:
    """Run what is missing, then print the tables."""
    parser = argparse.ArgumentParser(description="Splits and laws on natural clients.")
    parser.add_argument("--seeds", type=int, default=N_SEEDS, help="splits per table")
    parser.add_argument("--only", nargs="*", choices=[*TABLES], default=[*TABLES], help="tables")
    given = parser.parse_args()
    grid = [{"table": name, "seed": s} for s in range(given.seeds) for name in given.only]
    records = list(run_all("shapes", grid, run, version=VERSION))
    print("\n".join(tables(records)))


def kept_records() -> list[dict[str, Any]]:
    """The records of this version of the experiment."""
    lines = (RESULTS / "shapes.jsonl").read_text().splitlines()
    return [r for r in map(json.loads, lines) if r["made"]["experiment"] == VERSION]


def tables(records: list[dict[str, Any]]) -> Iterator[str]:
    """What was measured on each table of clients, then the bars."""
    yield "| clients | shape | K | energy | AUC | log q(c given n) | rounds | upload | CPU, s |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, mine in _by_table(records).items():
        for shape in ("dirichlet", "auto"):
            rows = [r[shape] for r in mine]
            cells = [
                _kept(rows) if shape == "auto" else "dirichlet",
                ", ".join(str(r["n_components"]) for r in rows),
                *(f"{np.mean([r[what] for r in rows]):.3f}" for what in MEASURES),
                f"{max(r['n_rounds'] for r in rows)}",
                f"{max(r['upload'] for r in rows):,}",
                f"{np.mean([r['cpu_seconds'] for r in rows]):.1f}",
            ]
            yield f"| {name} | {' | '.join(cells)} |"
    yield ""
    yield from summary(records)


def summary(records: list[dict[str, Any]]) -> Iterator[str]:
    """Means over the splits, in brackets those without splits and laws, and the bars."""
    yield f"| clients | kept | {' | '.join(MEASURES)} | bars |"
    yield "|---|---|---|---|---|---|"
    for name, mine in _by_table(records).items():
        plain, found = (
            [np.mean([r[shape][what] for r in mine]) for what in MEASURES]
            for shape in ("dirichlet", "auto")
        )
        bars = plain if name in NOT_WORSE else BARS.get(name, ())
        cells = [f"{a:.2f} ({b:.2f})" for a, b in zip(found, plain, strict=True)]
        for i, bar in enumerate(bars):
            met = found[i] >= bar if MEASURES[i] == "log q" else found[i] <= bar
            cells[i] += " met" if met else " missed"
        cells.append("not worse" if name in NOT_WORSE else ", ".join(map(str, bars)))
        who = name if len(mine) == N_SEEDS else f"{name}, {len(mine)} of {N_SEEDS} splits"
        yield f"| {who} | {_kept([r['auto'] for r in mine])} | {' | '.join(cells)} |"


def _by_table(records: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    of = {name: [r for r in records if r["settings"]["table"] == name] for name in TABLES}
    return {name: mine for name, mine in of.items() if mine}


def _kept(rows: list[dict[str, Any]]) -> str:
    """How many splits ended at which shape."""
    last = [next((s["shape"] for s in r["stages"][::-1] if s["kept"]), "none") for r in rows]
    return ", ".join(f"{last.count(shape)} {shape}" for shape in sorted({*last}))


if __name__ == "__main__":
    main()

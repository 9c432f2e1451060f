"""`auto` for a live federation, where rounds are dear: how many it takes, and what that costs.

Nine natural federations are played twice, with the same held-out clients: as a federation behind an
aggregator that counts its rounds, which is offered 1, 2, 4, ... components in the same rounds, and as a
table, where `auto` tries more and more. A row compares the mixtures that were chosen or best, on the
held-out clients. One JSON line a row in results/auto_rounds.jsonl; what is there is not repeated.

    python benchmarks/auto_rounds.py [--table] [name ...]
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import polyurn as pu
from privacy import DATA

RECORDS = Path(__file__).parent / "results" / "auto_rounds.jsonl"
FOLDERS = {
    "lecturers": "insteval_lecturer", "film fans": "movielens_user_genre", "hair": "celeba_hair",
    "race": "acs2024_race", "speech": "speech_commands", "flights": "flights_plane_destination",
    "writers": "femnist_lowercase_q_to_z", "UN votes": "un_votes_country_session",
    "chat users": "nps_chat_user_act",
}  # fmt: skip
SEED = 0


class Counted:
    """Clients elsewhere: only their aggregator is known, which counts its rounds."""

    def __init__(self, inner: pu.LocalAggregator) -> None:
        self._inner, self.n_rounds = inner, 0

    def aggregate(self, query: Any, cohort_size: int | None) -> Any:
        self.n_rounds += 1
        return self._inner.aggregate(query, cohort_size)


def counts_of(name: str) -> Any:
    """The histograms of a federation."""
    folder = DATA / FOLDERS[name]
    n_categories = len((folder / "classes.csv").read_text().splitlines()) - 1
    read = pu.read_table(folder / "histograms.parquet")
    return pu.table_histograms(read, categories=n_categories, count="count").counts


def row(name: str) -> dict[str, object]:
    """One federation, played and as a table."""
    counts = counts_of(name)
    play = np.random.default_rng(SEED).spawn(2)[0]  # as `fit` plays a table with this seed
    inner = pu.LocalAggregator(counts, rng=play)
    judges = counts[inner.held_out(0.2)]
    live, started = Counted(inner), time.process_time()
    bounds = {"n_categories": counts.shape[1], "max_size": int(counts.sum(axis=1).max())}
    few = pu.fit(live, rng=SEED, **bounds)
    middle = time.process_time()
    many = pu.fit(counts, rng=SEED)
    ended = time.process_time()
    offered = [one.n_components for one in few.candidates]
    among = [one for one in many.candidates if one.n_components in offered]
    best = max(among, key=lambda one: one.log_likelihood).mdm
    own = max(few.candidates, key=lambda one: one.log_likelihood).mdm
    short = best.logpmf(judges) - own.logpmf(judges)
    return {
        "name": name, "n_clients": counts.shape[0], "n_categories": counts.shape[1],
        "rounds": live.n_rounds, "numbers": few.n_numbers, "offered": offered[-1],
        "chosen": few.n_components, "unfinished": few.unfinished, "seconds": middle - started,
        "short": float(short.mean()), "error": float(short.std(ddof=1) / len(short) ** 0.5),
        "table_rounds": many.n_rounds, "table_largest": many.candidates[-1].n_components,
        "table_chosen": many.n_components, "table_stopped": many.stopped,
        "table_seconds": ended - middle,
    }  # fmt: skip


def main() -> None:
    """Run what is not there yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true", help="run nothing")
    parser.add_argument("names", nargs="*", default=[*FOLDERS])
    options = parser.parse_args()
    lines = RECORDS.read_text().splitlines() if RECORDS.exists() else []
    done = {one["name"]: one for one in map(json.loads, lines)}
    for name in options.names:
        if name not in done and not options.table:
            done[name] = row(name)
            with RECORDS.open("a") as file:
                file.write(json.dumps(done[name]) + "\n")
            print(json.dumps(done[name]), flush=True)
    print(
        "| federation | rounds | offered up to | chosen | behind auto's best of these (s.e.) | ",
        end="",
    )
    print("table: chosen | tried up to | rounds | seconds |")
    for one in done.values():
        cells = [
            one["name"], one["rounds"], one["offered"], one["chosen"],
            f"{one['short']:.4f} ({one['error']:.4f})", one["table_chosen"], one["table_largest"],
            one["table_rounds"], f"{one['table_seconds']:.1f}",
        ]  # fmt: skip
        print("| " + " | ".join(map(str, cells)) + " |")


if __name__ == "__main__":
    main()

"""Two causes of too few components: a generous tie, and held-out clients that are never fitted.

    python experiments/choose_then_fit.py   # resumes; writes results/choose_then_fit.jsonl and a table

70 % of the clients of six real tables are given to `select` without what follows the choice, which holds
out a fifth of them. Each rule for ties then chooses among the same candidates: the smallest number of
components within so many standard errors of the best. The chosen mixture is taken as it is, or goes on
with all of the 70 %. The other 30 % of the clients judge all of them: pairs on the same clients.
"""

import argparse
import sys
from functools import partial
from typing import Any

import numpy as np

import polyurn as pu
from polyurn.comparison.estimates import mean_and_error
from polyurn.counts import client_sizes
from polyurn.server import fitting, stages
from polyurn.server.em import Problem
from polyurn.server.fit_settings import Settings

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from populations import FOLDER
from records import run_all

TABLES = {
    "stars": ("movielens_user_rating", 10),
    "genres": ("movielens_user_genre", 20),
    "rodents": ("portal_rodents_plot_year", 29),
    "lecturers": ("insteval_lecturer", 5),
    "race": ("acs2024_race", 9),
    "chat": ("nps_chat_user_act", 15),
}
COMPONENTS = (1, 2, 3, 4, 6, 8, 12, 16)
TIES = (1.0, 0.5, 0.25, 0.0)
N_SEEDS = 10


def run(table: str, seed: int) -> dict[str, Any]:
    """One split: every rule's choice, as it was chosen and gone on with everybody."""
    folder, n_categories = TABLES[table]
    read = pu.read_table(FOLDER / folder / "histograms.parquet")
    counts = pu.table_histograms(read, categories=n_categories, count="count").counts
    split = pu.split_clients(counts, held_out=0.3, rng=[seed, 1])
    clients = pu.LocalAggregator(split.fitted, rng=[seed, 2])
    max_size = int(client_sizes(counts).max())
    bounds = {"n_categories": n_categories, "max_size": max_size, "held_out": 0.2}
    choice = pu.fit(clients, n_components=COMPONENTS, **bounds, rng=[seed, 3])
    chosen = {tie: _within(choice.candidates, tie) for tie in TIES}
    arms = {}
    for one in {c.n_components: c for c in chosen.values()}.values():
        arms[f"{one.n_components}"] = one.mdm
        arms[f"{one.n_components}, everybody"] = _with_everybody(one.mdm, clients, seed)
    return {
        "chosen": {str(tie): one.n_components for tie, one in chosen.items()},
        "arms": {name: _judged(mdm, split, seed) for name, mdm in arms.items()},
    }


def _within(candidates: tuple[Any, ...], tie: float) -> Any:
    return next(c for c in candidates if c.behind <= tie * c.behind_error)


def _with_everybody(mdm: pu.MDM, clients: pu.LocalAggregator, seed: int) -> pu.MDM:
    problem = Problem(mdm.n_components, mdm.n_categories, mdm.sizes.bins, False, 1.0, 1e-3)
    ask, rng = partial(clients.aggregate, cohort_size=None), np.random.default_rng([seed, 4])
    *_, (state, _) = stages.join(mdm, problem, Settings(), ask, number=1, rng=rng)
    return fitting.populated(state)


def _judged(mdm: pu.MDM, split: pu.ClientSplit, seed: int) -> dict[str, float]:
    row = pu.compare({"mdm": mdm}, split, n_bootstrap=100, n_splits=300, rng=[seed, 5])["mdm"]
    assert row.log_likelihood_given_size is not None
    assert row.auc is not None
    return {
        "log q": row.log_likelihood_given_size.value,
        "AUC": row.auc.value,
        "energy": row.energy_ratio,
    }


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(
        description="Ties, and held-out clients that are never fitted."
    )
    parser.add_argument("--seeds", type=int, default=N_SEEDS, help="splits per table")
    grid = [{"table": name, "seed": s} for s in range(parser.parse_args().seeds) for name in TABLES]
    records = list(run_all("choose_then_fit", grid, run))
    print("| clients | tie | mean K | log q, AUC, energy | everybody: gain ± standard error |")
    print("|---|---|---|---|---|")
    for name in TABLES:
        mine = [r for r in records if r["settings"]["table"] == name]
        for tie in TIES:
            print(f"| {name} | {tie:g} | {_cells(mine, str(tie))} |")


def _cells(records: list[dict[str, Any]], tie: str) -> str:
    ks = [r["chosen"][tie] for r in records]
    alone = [r["arms"][f"{k}"] for k, r in zip(ks, records, strict=True)]
    joined = [r["arms"][f"{k}, everybody"] for k, r in zip(ks, records, strict=True)]
    values, gains = [], []
    for measure, digits in (("log q", 3), ("AUC", 3), ("energy", 2)):
        before, after = (np.array([one[measure] for one in arm]) for arm in (alone, joined))
        gain, error = mean_and_error(after - before)
        values.append(f"{before.mean():.{digits}f}")
        gains.append(f"{gain:+.{digits}f} ± {error:.{digits}f}")
    return f"{np.mean(ks):.1f} | {', '.join(values)} | {', '.join(gains)}"


if __name__ == "__main__":
    main()

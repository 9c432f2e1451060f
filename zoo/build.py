"""Learn the models of `polyurn.zoo`, and write a card for each.

    python zoo/build.py            # every federation that is not up to date
    python zoo/build.py flights    # these; --again: even if they are up to date

For each federation of federations.toml: learn a mixture from 70 % of the clients and compare it with the
others, then learn it from all of them. Models and cards are written to src/polyurn/zoo/data, one file
each, whole or not at all: several of these commands may run at a time, each takes what no other has
begun. A card is up to date if table, description and `VERSION` are those that it was made from.
POLYURN_DATA is the folder with the tables, ../shared/data by default.
"""

import argparse
import csv
import hashlib
import json
import os
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import polyurn as pu
from polyurn.comparison.estimates import Estimate
from polyurn.counts import client_sizes
from polyurn.storage.documents import save_document
from polyurn.storage.models import ZOO_FOLDER
from polyurn.typed.json_form import to_json
from polyurn.zoo.cards import Card, CardLikeness, profile

HERE = Path(__file__).parent
DATA = Path(os.environ.get("POLYURN_DATA", HERE.parents[1] / "shared" / "data"))
FEDERATIONS = tomllib.loads((HERE / "federations.toml").read_text())
# Raise it when a model or card would come out differently.
VERSION = 3
HELD_OUT, SEED = 0.3, 0
# Digits that a client's likelihood can feel are far fewer.
DIGITS = 6
# A profile of the sizes inside the bins has at most so many finer bins; it is published, and needs not
# be everybody's size.
MOST_FINE = 512


def learned(counts: sparse.csr_array, max_size: int, rng: int) -> pu.MDM:
    """The mixture of all these clients: with splits or laws where held-out clients are likelier by more
    than an error; else with the K that they like best, for no K is a tie here.
    """
    tried = pu.fit(counts, shape="auto", max_size=max_size, rng=rng)
    if tried.mdm.splits is not None:
        return tried.mdm
    best = max(tried.candidates, key=lambda candidate: candidate.log_likelihood).n_components
    return pu.fit(counts, n_components=best, max_size=max_size, rng=rng).mdm


def build(name: str, fingerprint: str) -> Card:
    """Learn, compare and write one federation."""
    about = dict(FEDERATIONS[name])
    counts, categories = read(about.pop("folder"))
    n = client_sizes(counts)
    split = pu.split_clients(counts, held_out=HELD_OUT, rng=SEED)
    populations = {
        "mdm": learned(split.fitted, int(n.max()), SEED),
        "dirichlet": pu.fit(split.fitted, n_components=1, max_size=int(n.max()), rng=SEED).mdm,
        "iid": pu.IID.like(split.fitted),
    }  # fmt: skip
    compared = pu.compare(populations, split, rng=SEED)
    mdm = compact(learned(counts, int(n.max()), SEED), categories)
    card = Card(
        name=name, caveat=about.pop("caveat", None), **about,
        n_clients=len(n), n_points=int(n.sum()), n_categories=counts.shape[1],
        n_components=mdm.n_components, sizes=(int(n.min()), float(np.median(n)), int(n.max())),
        profile=profile(counts, rng=SEED), n_held_out=split.held_out.shape[0],
        likeness={
            row.name: CardLikeness(row.energy_ratio, row.energy_null, row.auc or _NOTHING)
            for row in compared.rows
        },
        command=f"python zoo/build.py {name}",
    )  # fmt: skip
    made = {"command": card.command, "seed": SEED}
    pu.save(mdm, path("models", name), provenance=made)
    save_document(rounded(to_json(card)), path("cards", name), kind="zoo-card",
                  provenance={**made, "fingerprint": fingerprint})  # fmt: skip
    return card


_NOTHING = Estimate(np.nan, np.nan, np.nan)


def read(folder: str) -> tuple[sparse.csr_array, list[str]]:
    """The histograms of a table's clients, and the names of its categories."""
    with (DATA / folder / "classes.csv").open(newline="") as file:
        names = [row[1] for row in list(csv.reader(file))[1:]]
    table = pu.read_table(DATA / folder / "histograms.parquet")
    return pu.table_histograms(table, categories=len(names), count="count").counts, names


def compact(mdm: pu.MDM, categories: list[str]) -> pu.MDM:
    """The mixture in fewer digits, and with a coarser profile of sizes if it is long."""
    bins, masses = mdm.sizes.bins, _digits(mdm.sizes.masses)
    fine = bins.fine
    if len(fine) > MOST_FINE:
        each = MOST_FINE // bins.n_bins
        parts = [
            np.linspace(a, b, each + 1) for a, b in zip(bins.edges, bins.edges[1:], strict=False)
        ]
        wanted = np.unique(np.concatenate(parts))
        fine = np.unique(np.append(fine[np.searchsorted(fine, wanted[:-1])], bins.edges))
    shares = np.add.reduceat(bins.shares, np.searchsorted(bins.fine, fine[:-1]))
    of_bin = np.searchsorted(fine, bins.edges[:-1])
    shares = _digits(shares)
    shares /= np.repeat(np.add.reduceat(shares, of_bin), np.diff(np.append(of_bin, len(fine) - 1)))
    sizes = pu.Sizes(pu.SizeBins(bins.edges, fine, shares), masses / masses.sum(axis=1)[:, None])
    if mdm.splits is not None:
        laws = mdm.splits.laws and pu.Laws(mdm.splits.laws.knots, mdm.splits.laws.values.round(3))
        splits = pu.Splits(mdm.splits.tree, _digits(mdm.splits.concentrations), laws)
        return pu.MDM(mdm.weights, None, sizes, categories=categories, splits=splits)
    weights = _digits(mdm.weights)
    return pu.MDM(weights / weights.sum(), _digits(mdm.alphas), sizes, categories=categories)


def _digits(values: np.ndarray) -> np.ndarray:
    return np.array([float(f"{v:.{DIGITS}g}") for v in values.ravel()]).reshape(values.shape)


def rounded(value: Any) -> Any:
    """A document with six digits of each number."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(v) for key, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list | tuple) else value


def path(kind: str, name: str) -> Path:
    """The file of a model or card."""
    return ZOO_FOLDER / kind / f"{name}.json"


def fingerprint_of(name: str) -> str:
    """What a federation's model is made from."""
    about = FEDERATIONS[name]
    files = [DATA / about["folder"] / file for file in ("histograms.parquet", "classes.csv")]
    whole = json.dumps([VERSION, about]).encode() + b"".join(f.read_bytes() for f in files)
    return hashlib.sha256(whole).hexdigest()[:16]


def is_made(name: str, fingerprint: str) -> bool:
    """Whether a federation is up to date."""
    if not (path("cards", name).exists() and path("models", name).exists()):
        return False
    card = json.loads(path("cards", name).read_text())
    return bool(card["provenance"].get("fingerprint") == fingerprint)


def begin(name: str) -> Path | None:
    """A mark that this command has begun a federation; None if another one, which still runs, has."""
    mark = ZOO_FOLDER / f"{name}.building"
    try:
        mark.open("x").write(str(os.getpid()))
    except FileExistsError:
        if Path(f"/proc/{mark.read_text() or 0}").exists():
            return None
        mark.write_text(str(os.getpid()))
    return mark


def main() -> None:
    """Build what is asked for and not up to date."""
    parser = argparse.ArgumentParser(description="Learn the models of the zoo.")
    parser.add_argument("names", nargs="*", choices=[*FEDERATIONS, []], help="federations; all")
    parser.add_argument("--again", action="store_true", help="even if they are up to date")
    given = parser.parse_args()
    for kind in ("models", "cards"):
        (ZOO_FOLDER / kind).mkdir(parents=True, exist_ok=True)
    for name in given.names or FEDERATIONS:
        fingerprint = fingerprint_of(name)
        if not given.again and is_made(name, fingerprint):
            continue
        mark = begin(name)
        if mark is None:
            continue
        try:
            began = time.perf_counter()
            card = build(name, fingerprint)
            mdm = card.likeness["mdm"]
            low, high = mdm.energy_null
            print(
                f"{name}: K {card.n_components}, energy {mdm.energy_ratio:.2f} ({low:.2f} to "
                f"{high:.2f}), AUC {mdm.auc:.2f}, {time.perf_counter() - began:.0f} s",
                file=sys.stderr,
            )
        finally:
            mark.unlink()


if __name__ == "__main__":
    main()

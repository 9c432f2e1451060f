"""The picture on the first page: what forty clients hold, true ones and three kinds of simulated ones.

    python experiments/strips.py  # writes results/strips.jsonl and ../docs/pictures/strips.png

Census areas by race, the first split of populations.py: forty held-out areas, and as many IID ones, of
Dirichlet(0.1) and of the mixture, with the distance of each population to all held-out areas.
Dirichlet(0.1) is around the pooled shares (alpha_j = 0.1 C q_j), as in which_alpha.py: a symmetric one
would be further off, because races are not balanced. The record keeps the distances; clients are drawn
from the data each time, and stand nowhere but in the picture.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

import polyurn as pu
from polyurn.counts import client_sizes
from polyurn.report.charts import paper_colours

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import Patch

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from populations import FEDERATIONS, HELD_OUT, read_counts
from records import run_all

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "strips.png"
FEDERATION = "race, K to 24"
N_SHOWN = 40
ALPHA = 0.1
FILLS = [paper_colours()[f"fill-{i}"] for i in range(9)]
NAMES = (
    "White", "Black", "American Indian", "Alaska Native", "Native, tribe unknown",
    "Asian", "Pacific Islander", "some other race", "two or more",
)  # fmt: skip


def main() -> None:
    """Draw the picture unless it is there and its record kept, and print how far each population is."""
    asked = {"federation": FEDERATION, "seed": 0, "n_shown": N_SHOWN}
    for record in run_all("strips", [asked], run):
        print(record["n_components"], record["energy_ratio"], record["energy_null"])


def run(federation: str, seed: int, n_shown: int) -> dict[str, Any]:
    """One split of the clients: fit one part, compare the other with each population, draw some."""
    counts = read_counts(federation)
    split = pu.split_clients(counts, held_out=HELD_OUT, rng=[seed, 1])
    choice = pu.fit(
        pu.LocalAggregator(split.fitted, rng=[seed, 2]),
        n_components=FEDERATIONS[federation].components or "auto",
        n_categories=FEDERATIONS[federation].n_categories,
        max_size=int(client_sizes(counts).max()),
        rng=[seed, 3],
    )
    pooled = np.asarray(split.fitted.sum(axis=0)).reshape(-1)
    alphas = ALPHA * len(pooled) * pooled / pooled.sum()
    populations = {
        "IID": pu.IID.like(split.fitted),
        f"Dirichlet({ALPHA})": pu.Dirichlet(alphas, client_sizes(split.fitted)),
        "polyurn": choice.mdm,
    }
    verdict = pu.compare(populations, split, n_folds=0, rng=[seed, 4])
    rng = np.random.default_rng([seed, 5])
    held_out = split.held_out.toarray()
    shown = {"true": held_out[np.sort(rng.permutation(len(held_out))[:n_shown])]}
    shown |= {name: drawn.sample(n_shown, rng=rng) for name, drawn in populations.items()}
    record = {
        "n_components": choice.n_components,
        "energy_ratio": {row.name: row.energy_ratio for row in verdict.rows},
        "energy_null": verdict["polyurn"].energy_null,
    }
    draw(shown, record)
    return record


def draw(counts: Mapping[str, NDArray[np.int64]], record: Mapping[str, Any]) -> None:
    """Each client a column of its shares, and how far its population is from true clients."""
    common = np.argsort(-sum(table.sum(axis=0) / table.sum() for table in counts.values()))
    figure, axes = plt.subplots(4, 1, figsize=(7.6, 4.9), layout="constrained")
    for ax, (name, table) in zip(axes, counts.items(), strict=True):
        shares = (table / table.sum(axis=1, keepdims=True))[:, common]
        order = np.lexsort((-shares.max(axis=1), shares.argmax(axis=1)))
        reached = np.zeros(len(table))
        for j, colour in enumerate(FILLS):
            ax.bar(range(len(table)), shares[order, j], bottom=reached, width=0.92, color=colour)
            reached += shares[order, j]
        ax.set(xticks=[], yticks=[], xlim=(-0.6, len(table) - 0.4), ylim=(0, 1))
        ax.spines[:].set_visible(False)
        ax.set_title(title(name, record), loc="left", fontsize=10)
    named = zip(FILLS, (NAMES[j] for j in common), strict=True)
    patches = [Patch(color=fill, label=name) for fill, name in named]
    figure.legend(handles=patches, loc="outside right upper", fontsize=8.5, frameon=False)
    figure.savefig(PICTURE, dpi=160)
    plt.close(figure)


def title(name: str, record: Mapping[str, Any]) -> str:
    """What a strip shows."""
    if name == "true":
        return f"True: {N_SHOWN} held-out census areas, a column each, by race"
    ratio = record["energy_ratio"][name]
    times = f"{ratio:.{1 if ratio < 10 else 0}f} times"
    far = f"{name}: {times} as far from held-out areas as true areas are"
    low, high = record["energy_null"]
    return f"{far} (95 % of true ones: {low:.1f} to {high:.1f})" if name == "polyurn" else far


if __name__ == "__main__":
    main()

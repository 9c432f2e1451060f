"""The picture on the first page: what forty clients hold, true ones and three kinds of simulated ones.

    python experiments/strips.py  # writes results/strips.jsonl; docs/make_pictures.py draws it

Census areas by race, the first split of populations.py: forty held-out areas, and as many IID ones, of
Dirichlet(0.1) and of the mixture, with the distance of each population to all held-out areas.
Dirichlet(0.1) is around the pooled shares (alpha_j = 0.1 C q_j), as in which_alpha.py: a symmetric one
would be further off, because races are not balanced.
"""

import sys
from typing import Any

import numpy as np

import polyurn as pu
from polyurn.counts import client_sizes

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from populations import FEDERATIONS, HELD_OUT, iid, read_counts
from records import run_all

FEDERATION = "race, K to 24"
N_SHOWN = 40
ALPHA = 0.1
NAMES = (
    "White", "Black", "American Indian", "Alaska Native", "Native, tribe unknown",
    "Asian", "Pacific Islander", "some other race", "two or more",
)  # fmt: skip


def run(federation: str, seed: int, n_shown: int) -> dict[str, Any]:
    """One split of the clients: fit one part, compare the other with each population, draw some."""
    n_categories = FEDERATIONS[federation].n_categories
    counts = read_counts(federation)
    split = pu.split_clients(counts, held_out=HELD_OUT, rng=[seed, 1])
    choice = pu.select(
        pu.LocalAggregator(split.fitted, rng=[seed, 2]),
        FEDERATIONS[federation].components or "auto",
        n_categories=n_categories,
        max_size=int(client_sizes(counts).max()),
        rng=[seed, 3],
    )
    populations = {
        "iid": iid(split.fitted),
        f"Dirichlet({ALPHA})": lambda n, rng: pu.dirichlet_counts(
            n,
            alpha=ALPHA * n_categories,
            sizes=client_sizes(split.fitted),
            marginal=np.asarray(split.fitted.sum(axis=0)).reshape(-1),
            rng=rng,
        ),
        "mdm": lambda n, rng: choice.mdm.sample(n, rng=rng),
    }
    verdict = pu.compare(populations, split, n_folds=0, rng=[seed, 4])
    rng = np.random.default_rng([seed, 5])
    held_out = split.held_out.toarray()
    shown = held_out[np.sort(rng.permutation(len(held_out))[:n_shown])]
    return {
        "categories": NAMES,
        "n_components": choice.n_components,
        "energy_ratio": {row.name: row.energy_ratio for row in verdict.rows},
        "energy_null": verdict["mdm"].energy_null,
        "counts": {
            "true": shown.tolist(),
            **{name: draw(n_shown, rng).tolist() for name, draw in populations.items()},
        },
    }


def main() -> None:
    """Draw the clients unless they are kept, and print how far each population is."""
    for record in run_all(
        "strips", [{"federation": FEDERATION, "seed": 0, "n_shown": N_SHOWN}], run
    ):
        print(record["n_components"], record["energy_ratio"], record["energy_null"])


if __name__ == "__main__":
    main()

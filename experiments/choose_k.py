"""The number of components by held-out likelihood: Figure 6 (Appendix A) of the paper.

    python experiments/choose_k.py               # resumes; writes results/choose_k.jsonl and a table

The paper fits K = 1 to 6 on M clients of a known mixture with three components, scores 1,000 others, and
reports that its rule leads to K = 3 for each M.
"""

import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

import polyurn as pu
from polyurn.model.paper_truths import truth

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from records import run_all


@dataclass(frozen=True)
class Settings:
    """Appendix A, "Experimental evaluation"."""

    n_clients: tuple[int, ...] = (100, 200, 1_000)
    n_validation: int = 1_000
    n_components: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    n_repetitions: int = 20


SETTINGS = Settings()


def run(n_clients: int, seed: int) -> dict[str, Any]:
    """One selection. Clients fall into the two parts at random, so M is met up to chance."""
    hidden = truth("appendix-a")
    everyone = n_clients + SETTINGS.n_validation
    choice = pu.fit(
        pu.LocalAggregator(hidden.sample(everyone, rng=[seed, 1]), rng=[seed, 2]),
        n_components=SETTINGS.n_components,
        n_categories=hidden.n_categories,
        max_size=hidden.max_size,
        held_out=SETTINGS.n_validation / everyone,
        sizes="shared",
        rng=[seed, 3],
    )
    return {
        "chosen": choice.n_components,
        "n_rounds": choice.n_rounds,
        "n_held_out": choice.n_held_out,
        "behind": [round(c.behind, 5) for c in choice.candidates],
        "log_likelihoods": [round(c.log_likelihood, 5) for c in choice.candidates],
    }


def main() -> None:
    """Run what is missing, then print the table."""
    grid = [
        {"n_clients": m, "seed": seed}
        for m in SETTINGS.n_clients
        for seed in range(SETTINGS.n_repetitions)
    ]
    records = list(run_all("choose_k", grid, run))
    ks = " | ".join(f"K={k}" for k in SETTINGS.n_components)
    print(f"| M | paper chooses | ours chooses | {ks} (mean held-out, behind the best) |")
    print("|---|---|---|" + "---|" * len(SETTINGS.n_components))
    for m in SETTINGS.n_clients:
        mine = [r for r in records if r["settings"]["n_clients"] == m]
        chosen = Counter(r["chosen"] for r in mine)
        said = ", ".join(f"{k}: {n} of {len(mine)}" for k, n in sorted(chosen.items()))
        behind = np.mean([r["behind"] for r in mine], axis=0)
        print(f"| {m} | 3 | {said} | {' | '.join(f'-{b:.3f}' for b in behind)} |")


if __name__ == "__main__":
    main()

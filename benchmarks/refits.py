"""Rounds of a fit that begins at an earlier mixture, against those of a fresh one, and where both end.

    python benchmarks/refits.py      # three minutes; results/refits.json, and a table

3,000 clients of a truth of the paper are fitted; then .05 of the weight moves from its first component
to its second, and as many new clients are fitted twice, with the truth's number of components: anew, and
from the first mixture. The gap is the mean log-likelihood of the fresh fit less that of the other.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import polyurn as pu
from polyurn.model.paper_truths import truth

OUT = Path(__file__).parent / "results" / "refits.json"


@dataclass(frozen=True)
class Settings:
    """What is tried."""

    truths: tuple[str, ...] = ("low/2", "medium/2", "medium/3", "high/2", "high/3", "appendix-a")
    n_clients: int = 3_000
    moved: float = 0.05
    n_seeds: int = 5


SETTINGS = Settings()


def row(name: str, settings: Settings) -> dict[str, object]:
    """The rounds of both fits under each seed, the gaps, and the numbers that a client sends."""
    was = truth(name)
    weights = was.weights.copy()
    weights[0] -= settings.moved
    weights[1] += settings.moved
    now = pu.MDM(weights, was.alphas, was.sizes)
    rounds, again, gaps, numbers = [], [], [], []
    for seed in range(settings.n_seeds):
        first, second = np.random.default_rng((72, seed)).spawn(2)
        k, n = was.n_components, settings.n_clients
        start = pu.fit(was.sample(n, rng=first), n_components=k, rng=seed).mdm
        clients = now.sample(n, rng=second)
        fresh, refit = (
            pu.fit(clients, rng=seed, **how) for how in ({"n_components": k}, {"start": start})
        )
        rounds.append(fresh.n_rounds)
        again.append(refit.n_rounds)
        gaps.append(float(fresh.log_likelihoods[-1] - refit.log_likelihoods[-1]))
        numbers.append(refit.n_numbers / fresh.n_numbers)
    return {"truth": name, "fresh": rounds, "refit": again, "gaps": gaps, "numbers": numbers}


def main() -> None:
    """Run all, keep them, and print the table."""
    rows = [row(name, SETTINGS) for name in SETTINGS.truths]
    OUT.write_text(json.dumps({**asdict(SETTINGS), "rows": rows}) + "\n")
    print("| clients of | rounds anew | rounds from the start | largest gap, nats | numbers sent |")
    print("|---|---|---|---|---|")
    for one in rows:
        fresh, refit, gaps, numbers = (
            np.array(one[name]) for name in ("fresh", "refit", "gaps", "numbers")
        )
        print(
            f"| {one['truth']} | {fresh.min()} to {fresh.max()} | {refit.min()} to {refit.max()} | "
            f"{gaps.max():.1e} | {numbers.mean():.0%} |"
        )


if __name__ == "__main__":
    main()

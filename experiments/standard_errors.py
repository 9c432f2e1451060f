"""How often 95 % intervals of a fit cover the truth that its clients were drawn from.

    python experiments/standard_errors.py      # ten minutes; results/standard_errors.jsonl, a table
    python experiments/standard_errors.py --show

Clients are drawn from a mixture of the paper and fitted anew, 200 times. Components are matched with
those of the truth by their shares. "telling sizes": the sizes of the two components overlap.
"""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import norm

import polyurn as pu
from polyurn.model.paper_truths import truth

OUT = Path(__file__).parent / "results" / "standard_errors.jsonl"


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    truth: str
    n_clients: int
    sizes: str


@dataclass(frozen=True)
class Settings:
    """What is tried."""

    cases: tuple[Case, ...] = (
        Case("medium/2", 2_000, "20 points"),
        Case("medium/2", 2_000, "telling sizes"),
        Case("medium/2", 500, "20 points"),
        Case("medium/3", 2_000, "20 points"),
    )
    means: tuple[float, float] = (18.0, 25.0)  # of telling sizes
    deviations: tuple[float, float] = (6.0, 8.0)
    n_draws: int = 200
    half_width: float = 1.96


SETTINGS = Settings()


def known(case: Case, settings: Settings) -> pu.MDM:
    """The truth that clients are drawn from."""
    mdm = truth(case.truth)
    if case.sizes == "20 points":
        return mdm
    mean, deviation = (np.array([of]).T for of in (settings.means, settings.deviations))
    table = norm.pdf(np.arange(61), mean, deviation)
    table[:, 0] = 0
    return pu.MDM(mdm.weights, mdm.alphas, table / table.sum(axis=1, keepdims=True))


def coverage(case: Case, settings: Settings) -> dict[str, float | int]:
    """The share of intervals that cover, by what they are about; and fits without any."""
    mdm = known(case, settings)
    was = {"weights": mdm.weights, "shares": mdm.shares, "concentrations": mdm.alphas.sum(axis=1)}
    inside: dict[str, list[float]] = {name: [] for name in was}
    for draw in range(settings.n_draws):
        clients = mdm.sample(case.n_clients, rng=np.random.default_rng((71, draw)))
        found = pu.fit(clients, n_components=mdm.n_components, rng=draw).mdm
        if found.standard_errors is None or found.n_components < mdm.n_components:
            continue
        apart = np.abs(mdm.shares[:, None] - found.shares[None]).sum(axis=2)
        _, order = linear_sum_assignment(apart)
        now = {
            "weights": found.weights, "shares": found.shares,
            "concentrations": found.alphas.sum(axis=1),
        }  # fmt: skip
        for name, value in was.items():
            error = getattr(found.standard_errors, name)[order]
            inside[name].append(
                float((np.abs(now[name][order] - value) < settings.half_width * error).mean())
            )
    shares = {name: float(np.mean(values)) for name, values in inside.items()}
    sizes = [was[name].size for name in was]
    together = float(np.average(list(shares.values()), weights=sizes))
    return {
        "n_draws": settings.n_draws,
        "n_given": len(inside["weights"]),
        **shares,
        "all": together,
    }


def show() -> None:
    """The table."""
    print("| clients of | clients | sizes | weights | shares | concentrations | all | given |")
    print("|---|---|---|---|---|---|---|---|")
    for line in OUT.read_text().splitlines():
        row = json.loads(line)
        cells = [f"{row[name]:.1%}" for name in ("weights", "shares", "concentrations", "all")]
        given = f"{row['n_given']} of {row['n_draws']}"
        head = f"| {row['truth']} | {row['n_clients']:,} | {row['sizes']} |"
        print(head, " | ".join([*cells, given]), "|")


def main() -> None:
    """Run what is not there yet, and show all."""
    OUT.touch()
    done = [json.loads(line) for line in OUT.read_text().splitlines()]
    if "--show" not in sys.argv:
        for case in SETTINGS.cases:
            if any(asdict(case).items() <= row.items() for row in done):
                continue
            row = {**asdict(case), **coverage(case, SETTINGS)}
            with OUT.open("a") as file:
                file.write(json.dumps(row) + "\n")
    show()


if __name__ == "__main__":
    main()

"""Who was in the federation? A membership attack on an ordinary fit's sums and on a private fit's.

    python experiments/membership.py    # resumes; writes results/membership.jsonl, a table and a picture

Each of 400 candidates, lecturers with their ratings, takes part with probability 1/2. The attacker knows
all their histograms and every question, and sees what the server sees: the sums of the rounds. A sum is
linear in who takes part, so the attacker takes the best linear estimate of each candidate's part in it
(the posterior mean, were everything normal): with b in {0, 1} for each candidate, vectors v_i and noise
of standard deviation sigma in the sum, the estimate of b is 1/2 + (G + 4 I)⁻¹ V s, V = (v_i / sigma),
G = V V' and s the sum less its expectation, divided by sigma. Rounds add up in G and V s.

Two worlds that differ in one candidate differ by one client added or removed, so no attack on releases
that are μ-GDP has an area under its ROC curve above Φ(μ / √2); pooled over candidates as well, because
the bound of the curve is concave.
"""

import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

import polyurn as pu
from polyurn.privacy.accounting import spent
from polyurn.privacy.ledger import PrivacyLedger
from polyurn.privacy.private_aggregator import PrivateAggregator
from polyurn.report.charts import paper_colours
from polyurn.wire import Noised, Query

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from populations import read_counts
from records import run_all

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "membership.png"


@dataclass(frozen=True)
class Settings:
    """A table of which the ordinary fit's first round alone gives away more than 80 %."""

    federation: str = "ratings"
    n_candidates: int = 400
    n_components: int = 2
    max_size: int = 800
    epsilon: float = 1.0
    delta: float = 1e-5
    n_runs: int = 20


SETTINGS = Settings()
# What is attacked, and what it is called in the picture.
RELEASES = {
    "two rounds": "ordinary fit, its first two rounds",
    "one round": "ordinary fit, its first round",
    "private": "private fit, all of its rounds",
}
# Of a sum without noise, as a share of the mean square of a vector: so that G can be solved.
_RIDGE = 1e-6
TONES = [paper_colours()[f"tone-{i}"] for i in range(9)]


class Seen:
    """An aggregator whose answers somebody writes down."""

    def __init__(self, aggregator: Any) -> None:
        self._aggregator, self.rounds = aggregator, []

    @property
    def n_clients(self) -> int:
        return int(self._aggregator.n_clients)

    def aggregate(self, query: Query[Any], cohort_size: int | None) -> Any:
        answer = self._aggregator.aggregate(query, cohort_size)
        self.rounds.append((query, answer.to_vector()))
        return answer


class SeenPrivate(PrivateAggregator):
    """A private one whose releases somebody writes down."""

    def __init__(self, aggregator: Any, ledger: PrivacyLedger) -> None:
        super().__init__(aggregator, ledger=ledger)
        self.rounds: list[tuple[Any, NDArray[np.float64]]] = []

    def aggregate(self, query: Any, cohort_size: int | None) -> Any:
        answer = super().aggregate(query, cohort_size)
        self.rounds.append((query, answer.to_vector()))
        return answer


def run(release: str, seed: int) -> dict[str, Any]:
    """Statistics of the candidates that took part, and of those that did not, after one fit."""
    table = read_counts(SETTINGS.federation)
    candidates = np.asarray(table.toarray() if hasattr(table, "toarray") else table)
    order = np.random.default_rng(0).permutation(len(candidates))
    candidates = candidates[order[: SETTINGS.n_candidates]]
    took_part = np.random.default_rng([1, seed]).random(len(candidates)) < 0.5
    clients = pu.LocalAggregator(candidates[took_part], rng=seed)
    rounds, bound = private(clients, seed) if release == "private" else ordinary(clients, seed)
    if release != "private":
        rounds = rounds[: 1 if release == "one round" else 2]
    guesses = estimated(candidates, rounds)
    return {
        "auc": round(area(guesses, took_part), 4),
        "bound": bound,
        "n_rounds": len(rounds),
        "n_numbers": sum(len(numbers) for _, numbers in rounds),
        "took_part": guesses[took_part].round(4).tolist(),
        "did_not": guesses[~took_part].round(4).tolist(),
    }


def bounds() -> dict[str, Any]:
    """What is declared."""
    n_categories = read_counts(SETTINGS.federation).shape[1]
    return {
        "n_components": SETTINGS.n_components,
        "n_categories": n_categories,
        "max_size": SETTINGS.max_size,
    }


def ordinary(clients: pu.LocalAggregator, seed: int) -> tuple[list[Any], float]:
    """What a server sees of an ordinary fit; nothing bounds what it tells."""
    seen = Seen(clients)
    pu.fit(seen, **bounds(), rng=seed)
    return seen.rounds, 1.0


def private(clients: pu.LocalAggregator, seed: int) -> tuple[list[Any], float]:
    """What it sees of a private one, and the largest area that its guarantee allows."""
    ledger = PrivacyLedger(SETTINGS.epsilon, SETTINGS.delta)
    seen = SeenPrivate(clients, ledger)
    pu.fit_private(seen, epsilon=SETTINGS.epsilon, delta=SETTINGS.delta, **bounds(), rng=seed)
    sigma = 1 / math.sqrt(spent(charge.sigma for charge in ledger.charges))
    return seen.rounds, round(largest_auc(sigma), 4)


def largest_auc(sigma: float) -> float:
    """The largest area under the ROC curve of any test of whether one client took part.

    Releases that are μ-GDP with μ = 1 / sigma tell at most what N(0, 1) and N(μ, 1) do: Φ(μ / √2).
    """
    return float(norm.cdf(1 / (sigma * math.sqrt(2))))


def estimated(
    candidates: NDArray[np.int64], rounds: Iterable[tuple[Query[Any], NDArray[np.float64]]]
) -> NDArray[np.float64]:
    """The attacker's estimate of who took part, shape (n_candidates,)."""
    n = len(candidates)
    gram, score, noisy = np.zeros((n, n)), np.zeros(n), False
    for query, total in rounds:
        asked = query.query if isinstance(query, Noised) else query
        vectors = np.array(list(answers(asked, candidates)))
        noisy = isinstance(query, Noised)
        # With noise, a number counts by it; without, numbers of any size count alike.
        scale = np.full(len(total), query.sigma) if noisy else vectors.std(axis=0)
        used = scale > 1e-9 * max(scale.max(), 1e-300)
        v = vectors[:, used] / scale[used]
        gram += v @ v.T
        score += v @ (total[used] / scale[used] - v.sum(axis=0) / 2)
    ridge = 4.0 if noisy else _RIDGE * np.trace(gram) / n
    return 0.5 + np.linalg.solve(gram + ridge * np.eye(n), score)


def answers(query: Query[Any], candidates: NDArray[np.int64]) -> Iterator[NDArray[np.float64]]:
    """What each candidate would say; buckets are the server's to choose, and not used here."""
    for counts in candidates:
        yield pu.answer(query, counts, buckets=np.zeros(1), rng=0).to_vector()


def area(guesses: NDArray[np.float64], took_part: NDArray[np.bool_]) -> float:
    """The area under the ROC curve: how often one who took part has a higher guess."""
    ranks, n = rankdata(guesses), int(took_part.sum())
    return float((ranks[took_part].sum() - n * (n + 1) / 2) / (n * (len(guesses) - n)))


def curve(records: list[dict[str, Any]]) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """False and true positive rates over all runs, and the area."""
    members = np.concatenate([record["took_part"] for record in records])
    others = np.concatenate([record["did_not"] for record in records])
    thresholds = np.sort(np.unique(np.concatenate([members, others, [-np.inf, np.inf]])))[::-1]
    true = np.array([(members >= t).mean() for t in thresholds])
    false = np.array([(others >= t).mean() for t in thresholds])
    took_part = np.repeat([True, False], [len(members), len(others)])
    return false, true, area(np.concatenate([members, others]), took_part)


def draw(found: dict[str, list[dict[str, Any]]]) -> None:
    """The curves, and what the guarantee allows at most."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from scipy.special import ndtr, ndtri

    figure, ax = plt.subplots(figsize=(4.6, 4.4), layout="constrained")
    for tone, (release, records) in zip(TONES, found.items(), strict=False):
        false, true, auc = curve(records)
        ax.plot(false, true, color=tone, label=f"{RELEASES[release]}: {auc:.2f}")
    (bound,) = {record["bound"] for record in found["private"]}
    rates = np.linspace(0, 1, 201)
    mu = math.sqrt(2) * ndtri(bound)
    allowed = ndtr(ndtri(rates) + mu)
    ax.plot(rates, allowed, color="0.4", linestyle=":", label=f"what ε = 1 allows: {bound:.2f}")
    ax.plot([0, 1], [0, 1], color="0.8", linewidth=0.8, zorder=0)
    ax.set(xlabel="of those who did not take part, called members", ylabel="of members, found")
    ax.legend(title="area under the curve", loc="lower right", fontsize=8, title_fontsize=8)
    figure.savefig(PICTURE, dpi=110, metadata={"Software": None})


def main() -> None:
    """Run what is missing, then print the table and draw."""
    grid = [
        {"release": release, "seed": seed}
        for release in RELEASES
        for seed in range(SETTINGS.n_runs)
    ]
    found: dict[str, list[dict[str, Any]]] = {release: [] for release in RELEASES}
    for record in run_all("membership", grid, run):
        found[record["settings"]["release"]].append(record)
    print("| what is attacked | numbers | area under the curve | allowed at most |")
    print("|---|---|---|---|")
    for release, records in found.items():
        numbers = max(record["n_numbers"] for record in records)
        (bound,) = {record["bound"] for record in records}
        auc, name = curve(records)[2], RELEASES[release]
        print(f"| {name} | {numbers:,} | {auc:.3f} | {bound:.3f} |")
    draw(found)


if __name__ == "__main__":
    main()

"""Does the noise of a private fit keep its word? A canary in all of its rounds, 20,000 times.

    python experiments/audit.py    # resumes; writes results/audit.jsonl and a table

The attacker knows every client but the canary, and so the exact sums without it. It sees the releases
and tests by their likelihood ratio whether the canary is in them. A test that is too good refutes a
claim; no test proves one. The trade-off curve is assumed to be a Gaussian's; without that assumption the
same runs show far less.

The questions are those of one private fit, every round of it; releases come from the package's own
aggregator. The canary holds all its points in the rarest category: its vector is as long as a client's
can be in nearly every round. One component has 4 rounds of 50 numbers in all, with OpenDP's noise. Three
have 12 rounds of about 1,000, which is 40 million draws; NumPy's seeded noise, rounded to the same grid,
takes its place. The last row breaks the mechanism on purpose.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import polyurn as pu
from polyurn.errors import ParameterError
from polyurn.model.paper_truths import truth
from polyurn.privacy.accounting import epsilon_of
from polyurn.privacy.ledger import PrivacyLedger
from polyurn.privacy.noise import Noise, discrete_gaussian
from polyurn.privacy.private_aggregator import PrivateAggregator
from polyurn.typed.declared import Floats, Ints
from polyurn.wire import Aggregator, Noised, Query

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from records import run_all


@dataclass(frozen=True)
class Settings:
    """As many runs as tell a claim from its half at ε = 1."""

    truth: str = "medium/3"
    n_clients: int = 1_000
    size: int = 20
    delta: float = 1e-5
    n_runs: int = 20_000
    n_broken_runs: int = 2_000


SETTINGS = Settings()
# Numbers of noise that are drawn at once; one call per release would take three times as long.
_BLOCK = 2**14
_RNG = np.random.default_rng(17)


def numpy_noise(n_numbers: int, scale: float) -> NDArray[np.int64]:
    """A Gaussian in whole steps of the grid, which can be repeated."""
    return np.rint(_RNG.normal(0.0, scale, n_numbers)).astype(np.int64)


def halved(n_numbers: int, scale: float) -> NDArray[np.int64]:
    """What a mistake in the scale would add."""
    return discrete_gaussian(n_numbers, scale / 2)


NOISE = {"OpenDP": discrete_gaussian, "NumPy": numpy_noise, "halved": halved}


class Asked(PrivateAggregator):
    """A private aggregator that keeps the questions."""

    def __init__(self, aggregator: Any, **options: Any) -> None:
        super().__init__(aggregator, **options)
        self.rounds: list[Noised[Any]] = []

    def aggregate(self, query: Any, cohort_size: int | None) -> Any:
        self.rounds.append(query)
        return super().aggregate(query, cohort_size)


def run(n_components: int, epsilon: float, noise: str) -> dict[str, Any]:
    """What the canary gives away."""
    table = truth(SETTINGS.truth).sample(SETTINGS.n_clients, rng=0)
    canary = np.zeros_like(table[:1])
    canary[0, table.sum(axis=0).argmin()] = SETTINGS.size
    rounds = questions(table, n_components, epsilon)
    draw = in_blocks(NOISE[noise])
    found = audit(
        lambda clients: PrivateAggregator(
            clients, ledger=PrivacyLedger(epsilon, SETTINGS.delta), noise=draw
        ),
        rounds,
        without=pu.LocalAggregator(table),
        with_canary=pu.LocalAggregator(np.vstack([table, canary])),
        delta=SETTINGS.delta,
        n_runs=SETTINGS.n_broken_runs if noise == "halved" else SETTINGS.n_runs,
    )
    norms = [float(np.linalg.norm(pu.answer(q.query, canary).to_vector())) for q in rounds]
    return {
        "claimed": round(found.claimed, 4),
        "found": round(found.found, 4),
        "n_runs": found.n_runs,
        "n_false_alarms": found.n_false_alarms,
        "n_missed": found.n_missed,
        "canary_norms": [round(norm, 4) for norm in norms],
    }


def questions(table: NDArray[np.int64], n_components: int, epsilon: float) -> list[Noised[Any]]:
    """Every question of one private fit."""
    ledger = PrivacyLedger(epsilon, SETTINGS.delta)
    asked = Asked(pu.LocalAggregator(table), ledger=ledger)
    pu.fit_private(
        asked,
        epsilon=epsilon,
        delta=SETTINGS.delta,
        n_components=n_components,
        n_categories=table.shape[1],
        max_size=SETTINGS.size,
        rng=1,
    )
    return asked.rounds


@dataclass(frozen=True)
class Audit:
    """The result of an attack.

    `claimed` is the ε of the releases' noise multipliers at `delta`, and `found` the least that it can
    be, at `confidence`. There were `n_runs` with the canary and as many without it; in `n_missed` of the
    first it was not detected, in `n_false_alarms` of the others it was.
    """

    claimed: float
    found: float
    delta: float
    n_runs: int
    n_false_alarms: int
    n_missed: int
    confidence: float

    @property
    def refuted(self) -> bool:
        """Whether the claim is wrong; a right one is refuted with probability 1 - `confidence`."""
        return self.found > self.claimed


def audit(
    private: Callable[[Aggregator], Aggregator],
    rounds: Sequence[Noised[Any]],
    *,
    without: Aggregator,
    with_canary: Aggregator,
    delta: float,
    n_runs: int = 20_000,
    confidence: float = 0.95,
) -> Audit:
    """Put the same questions to the same clients with and without a canary, many times over.

    The statistic is Σ_t <release_t - sum_t, v_t> / sigma_t² over the rounds, v_t being the canary's
    vector; the threshold is half of what the canary adds to it, fixed beforehand. The two error rates
    get Clopper-Pearson upper bounds a and b, μ ≥ Φ⁻¹(1 - a) - Φ⁻¹(b) bounds the releases' μ-GDP from
    below, and ε follows at δ.

    Parameters
    ----------
    private : function of an aggregator
        Wraps one that sums exactly into one that releases sums with noise, anew for each run: a
        `PrivateAggregator` with a fresh ledger.
    rounds : sequence of Noised
        The questions, with the noise multipliers that are claimed.
    without, with_canary : Aggregator
        Sum exactly over the same clients, but for the canary. Each is asked each question once.
    delta : float
    n_runs : int
    confidence : float
    """
    if n_runs < 1 or not rounds or not 0 < confidence < 1:
        raise ParameterError("expected n_runs and rounds of at least 1, and confidence from 0 to 1")
    known, more = _Remembered(without), _Remembered(with_canary)
    sums = [known.exact(asked.query) for asked in rounds]
    canary = [more.exact(q.query) - exact for q, exact in zip(rounds, sums, strict=True)]
    weights = [v / asked.sigma**2 for v, asked in zip(canary, rounds, strict=True)]
    threshold = sum(float(v @ w) for v, w in zip(canary, weights, strict=True)) / 2

    def statistic(clients: Aggregator) -> float:
        released = private(clients)
        answers = (released.aggregate(asked, None).to_vector() for asked in rounds)
        return sum(
            float((answer - exact) @ weight)
            for answer, exact, weight in zip(answers, sums, weights, strict=True)
        )

    n_false_alarms = sum(statistic(known) > threshold for _ in range(n_runs))
    n_missed = sum(statistic(more) <= threshold for _ in range(n_runs))
    return Audit(
        claimed=epsilon_of([asked.sigma for asked in rounds], delta),
        found=_found(n_false_alarms, n_missed, n_runs, delta, confidence), delta=delta, n_runs=n_runs,
        n_false_alarms=n_false_alarms, n_missed=n_missed, confidence=confidence,
    )  # fmt: skip


def in_blocks(noise: Noise = discrete_gaussian) -> Noise:
    """Noise that is drawn in blocks, each number used once: the same draws in less time.

    >>> draw = in_blocks()
    >>> len(draw(3, 2.0**20)), len(draw(20_000, 2.0**20))
    (3, 20000)
    """
    left: dict[float, Ints] = {}

    def draw(n_numbers: int, scale: float) -> Ints:
        drawn = left.get(scale, np.empty(0, dtype=np.int64))
        if len(drawn) < n_numbers:
            drawn = np.append(drawn, noise(max(_BLOCK, n_numbers), scale))
        left[scale] = drawn[n_numbers:]
        return drawn[:n_numbers]

    return draw


class _Remembered:
    """Asks each question once: the exact answer does not change from run to run."""

    def __init__(self, aggregator: Aggregator) -> None:
        self._aggregator = aggregator
        self._answers: dict[int, tuple[Query[Any], Any]] = {}

    def aggregate(self, query: Query[Any], cohort_size: int | None) -> Any:
        if id(query) not in self._answers:  # the query is kept too, so that no other gets its id
            self._answers[id(query)] = query, self._aggregator.aggregate(query, cohort_size)
        return self._answers[id(query)][1]

    def exact(self, query: Query[Any]) -> Floats:
        return np.asarray(self.aggregate(query, None).to_vector())


def _found(
    n_false_alarms: int, n_missed: int, n_runs: int, delta: float, confidence: float
) -> float:
    from scipy.special import ndtri
    from scipy.stats import beta

    def most(n: int) -> float:
        """The Clopper-Pearson upper bound of a rate; each of two gets half of the error."""
        level = 1 - (1 - confidence) / 2
        return 1.0 if n == n_runs else float(beta.ppf(level, n + 1, n_runs - n))

    mu = float(ndtri(1 - most(n_false_alarms)) - ndtri(most(n_missed)))
    return epsilon_of([1 / mu], delta) if mu > 0 else 0.0


def main() -> None:
    """Run what is missing, then print the table."""
    grid = [
        {"n_components": 1, "epsilon": 1.0, "noise": "OpenDP"},
        {"n_components": 1, "epsilon": 4.0, "noise": "OpenDP"},
        {"n_components": 3, "epsilon": 1.0, "noise": "NumPy"},
        {"n_components": 3, "epsilon": 4.0, "noise": "NumPy"},
        {"n_components": 1, "epsilon": 1.0, "noise": "halved"},
    ]
    print("| components | noise | runs | rounds | claimed ε | found at least |")
    print("|---|---|---|---|---|---|")
    for record in run_all("audit", grid, run):
        settings, n_rounds = record["settings"], len(record["canary_norms"])
        what = f"{settings['n_components']} | {settings['noise']} | {record['n_runs']:,}"
        found = f"{record['claimed']:.3f} | {record['found']:.3f}"
        print(f"| {what} | {n_rounds} | {found} |", flush=True)


if __name__ == "__main__":
    main()

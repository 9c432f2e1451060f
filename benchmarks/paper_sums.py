"""The paper's sums under differential privacy: a layer between `fit_paper` and a private aggregator.

The paper suggests to add noise to what Algorithms 1 and 2 sum. That is done here as well as it can be:
blocks of bounded norm, equal noise in every round. `fit_private` asks for other sums; this is the
baseline that it is compared with.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from polyurn.client import answers
from polyurn.client.cohort import Cohort
from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM, mixture_logpmf
from polyurn.model.rising_factorials import digamma_rise
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Floats, Ints
from polyurn.wire import (
    Aggregator,
    Initialise,
    Noised,
    Query,
    S,
    StartStatistics,
    Statistics,
    Update,
    UpdateStatistics,
)
from polyurn.wire.private_grid import unit_rows
from polyurn.wire.query import Around

# Each of three blocks has a third of the square of the norm.
_BLOCK = math.sqrt(1 / 3)
_MOST_INCREMENTS = 2**20
_BLOCK_CLIENTS, _BLOCK_NUMBERS = 8_192, 2**24


@checked
class PaperSums:
    """Answers `Initialise` and `Update` with noisy sums, in the place of clients.

    Pass it to `fit_paper` with priors above 0: what noise made negative is 0 here. The number of clients
    and the responsibilities are sums of the noisy `size_counts`; there is no log-likelihood (NaN).
    `sigma` is the noise multiplier of each round; for T rounds and a budget, `sigma_for(epsilon, delta)
    * √T`. No component has fewer clients than `least`, nor fewer tables in its restaurants: noise may
    leave one with less than nothing.

    Examples
    --------
    >>> import polyurn as pu
    >>> from polyurn.model.paper_truths import truth
    >>> from polyurn.privacy.accounting import sigma_for
    >>> from polyurn.privacy.private_aggregator import PrivateAggregator
    >>> from polyurn.privacy.ledger import PrivacyLedger
    >>> clients = pu.LocalAggregator(truth("medium/1").sample(5000, rng=0), rng=1)
    >>> private = PrivateAggregator(clients, ledger=PrivacyLedger(8.0, 1e-6))
    >>> sums = PaperSums(private, sigma=sigma_for(8.0, 1e-6) * 5**0.5)
    >>> fit = pu.fit_paper(
    ...     sums, n_components=1, n_categories=10, max_size=20, n_rounds=5, sizes="binned",
    ...     size_prior=1.0, category_prior=0.01, moments="pooled",
    ... )
    >>> 4900 < fit.rounds[-1].n_clients < 5100
    True
    """

    def __init__(self, aggregator: Aggregator, *, sigma: float, least: float = 1.0) -> None:
        self._aggregator, self._sigma, self._least = aggregator, sigma, least

    def aggregate(self, query: Query[S], cohort_size: int | None) -> S:
        """The noisy sums over all clients, as the query has them."""
        if not isinstance(query, Initialise | Update):
            raise ParameterError(f"expected a query of the paper, got {type(query).__name__}")
        asked: ScaledPaper[Any] = ScaledPaper(query)
        answer = self._aggregator.aggregate(Noised(asked, self._sigma), cohort_size)
        scales = asked.scales
        sent = np.where(scales > 0, answer.to_vector() / np.where(scales > 0, scales, 1.0), 0.0)
        noisy = query.shaped(np.maximum(sent, 0.0))
        return cast(S, self._filled_in(query, noisy))

    def _filled_in(self, query: Query[Any], noisy: Statistics) -> Statistics:
        """What was not sent follows from the sizes."""
        match query, noisy:
            case Initialise(), StartStatistics():
                n_clients = float(noisy.size_counts.sum())
                return StartStatistics(
                    n_clients, noisy.size_counts, noisy.first_moments, noisy.second_moments
                )
            case Update(mdm), UpdateStatistics():
                alpha_0 = mdm.alphas.sum(axis=1)
                omega: Floats = np.maximum(noisy.size_counts.sum(axis=1), self._least)
                return UpdateStatistics(
                    n_clients=float(omega.sum()),
                    log_likelihood=float("nan"),
                    responsibilities=omega,
                    size_counts=noisy.size_counts,
                    numerators=noisy.numerators,
                    denominators=np.maximum(noisy.denominators, self._least / alpha_0),
                )
        raise AssertionError("the answer to one of the two")


@dataclass(frozen=True, eq=False)
class ScaledPaper(Around[S]):
    """The paper's `Initialise` or `Update`, each number times its scale, cut to norm 1.

    Algorithms 1 and 2 of Scott and Cahill (2024) sum blocks of different size, some of them unbounded as
    α goes to 0. Here each of three blocks is divided by the largest norm that one client's can have, and
    has a third of the squared norm. No number is negative, so that two vectors of norm at most 1 are at
    most √2 apart. The question has no kind: it is asked in this process only.
    """

    query: Query[S]

    unit_norm = True
    change_norm = math.sqrt(2.0)

    @property
    def text(self) -> str:
        return f"scaled {self.query.text}"

    def bounds(self) -> Floats:
        return Query.bounds(self)

    @property
    def scales(self) -> Floats:
        """What each number is multiplied by, shape (n_numbers,); 0 where none is sent.

        The number of clients and the responsibilities are sums of `size_counts`, and are not sent; the
        log-likelihood is not bounded, and is not sent. In `Initialise` every block has norm at most 1.
        In `Update`, α ⊙ u is divided by the bound of `largest_tables`, and α_0 v by the most tables of
        a client of the largest size.
        """
        if not isinstance(self.query, Update):
            return _BLOCK * np.append(0.0, np.ones(self.n_numbers - 1))
        mdm = self.query.mdm
        k, n_bins, alpha_0 = mdm.n_components, mdm.sizes.bins.n_bins, mdm.alphas.sum(axis=1)
        tables = mdm.alphas.reshape(-1) / largest_tables(mdm.alphas, mdm.max_size)
        total = (alpha_0 * digamma_rise(alpha_0, mdm.max_size)).max()
        blocks = [np.zeros(2 + k), np.ones(k * n_bins), tables, alpha_0 / total]
        return _BLOCK * np.concatenate(blocks)


def answer_scaled_paper(query: ScaledPaper[Any], cohort: Cohort) -> Statistics:
    """The sum of the members' vectors, each cut to norm 1; a client that is too large sends zeros."""
    rng, total = np.random.default_rng(), np.zeros(query.n_numbers)
    cohort = replace(cohort, members=cohort.members[cohort.sizes <= query.max_size])
    for some in cohort.blocks(max(1, min(_BLOCK_CLIENTS, _BLOCK_NUMBERS // query.n_numbers))):
        counts = some.counts().toarray().astype(np.int64, copy=False)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            match query.query:
                case Update(mdm):
                    vectors = _update(mdm, counts)
                case asked:
                    vectors = _initialise(asked, counts, rng)
            total += unit_rows(vectors * query.scales).sum(axis=0)
    return cast(Statistics, query.shaped(total))


# The row of the table of answers that every question has; this one only where this module is loaded.
answers._ANSWERS[ScaledPaper] = answer_scaled_paper


def _initialise(query: Initialise, counts: Ints, rng: np.random.Generator) -> Floats:
    """Algorithm 1, lines 4 to 7, of each client, shape (n_clients, n_numbers)."""
    n, k = len(counts), query.n_components
    chosen = np.zeros((n, k))
    chosen[np.arange(n), rng.integers(k, size=n)] = 1.0
    p = counts / counts.sum(axis=1, keepdims=True)
    sizes = query.size_bins.locate(counts.sum(axis=1))
    blocks = (chosen[:, :, None] * p[:, None], chosen[:, :, None] * (p * p)[:, None])
    by_size = _in_bins(chosen, sizes, query.size_bins.n_bins)
    return np.hstack([np.ones((n, 1)), by_size, *(block.reshape(n, -1) for block in blocks)])


def _update(mdm: MDM, counts: Ints) -> Floats:
    """Algorithm 2, lines 7 to 10, of each client, shape (n_clients, n_numbers)."""
    n, sizes = len(counts), counts.sum(axis=1)
    # The row of a client with probability zero is NaN.
    joint = np.log(mdm.weights) + mixture_logpmf(counts, mdm.alphas) + mdm.sizes.logpmf(sizes)
    omega = np.exp(joint - joint.max(axis=1, keepdims=True))
    omega /= omega.sum(axis=1, keepdims=True)
    size_counts = _in_bins(omega, mdm.sizes.bins.locate(sizes), mdm.sizes.bins.n_bins)
    there = np.where(mdm.alphas > 0, mdm.alphas, np.inf)  # no rise where α is 0
    numerators = omega[:, :, None] * digamma_rise(there, counts[:, None, :])
    denominators = omega * digamma_rise(mdm.alphas.sum(axis=1), sizes[:, None])
    unsent = np.zeros((n, 2))  # the number of clients, and the log-likelihood
    return np.hstack([unsent, omega, size_counts, numerators.reshape(n, -1), denominators])


def _in_bins(values: Floats, where: Ints, n_bins: int) -> Floats:
    """Each client's values, one for each component, at the bin of its size and 0 elsewhere, as a row."""
    table = np.zeros((*values.shape, n_bins))
    table[np.arange(len(values)), :, where] = values
    return table.reshape(len(values), -1)


def largest_tables(alphas: Floats, max_size: int) -> float:
    """An upper bound of the norm of ω ⊗ t(c), t_kj(c) = α_kj (ψ(c_j + α_kj) - ψ(α_kj)), over clients.

    ω has norm at most 1, so the largest component counts. Σ_j t_j(c_j)² is a sum of n ≤ max_size
    increments t_j(m + 1)² - t_j(m)², all of them positive: at most that of the max_size largest. Where
    there are more than 2**20 increments, all of them are added, which is Σ_j t_j(max_size)².
    `alphas` has the shape (n_components, n_categories).

    >>> largest_tables(np.array([[1.0, 1.0]]), 1), round(largest_tables(np.array([[1.0, 1.0]]), 2), 3)
    (1.0, 1.581)
    """
    if alphas.shape[1] * max_size > _MOST_INCREMENTS:
        with np.errstate(invalid="ignore"):  # where α is 0, and there are no tables
            all_points = np.nan_to_num(alphas * digamma_rise(alphas, max_size))
        return math.sqrt((all_points**2).sum(axis=1).max())
    squares = []
    for alpha in alphas:
        m = np.arange(max_size)
        with np.errstate(invalid="ignore"):  # where α is 0, and there are no tables
            steps = np.nan_to_num(alpha[:, None] / (alpha[:, None] + m))
        rises = np.diff(np.cumsum(steps, axis=1) ** 2, axis=1, prepend=0.0).reshape(-1)
        squares.append(np.partition(rises, -max_size)[-max_size:].sum())
    return math.sqrt(max(squares))

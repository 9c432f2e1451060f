"""The paper's sums under differential privacy: a layer between `fit_paper` and a private aggregator.

The paper suggests to add noise to what Algorithms 1 and 2 sum. That is done here as well as it can be:
blocks of bounded norm, equal noise in every round. `fit_private` asks for other sums; this is the
baseline that it is compared with.
"""

from typing import Any, cast

import numpy as np

from polyurn.errors import ParameterError
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Floats
from polyurn.wire import (
    Aggregator,
    Initialise,
    Noised,
    Query,
    S,
    Scaled,
    StartStatistics,
    Statistics,
    Update,
    UpdateStatistics,
)


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
        asked: Scaled[Any] = Scaled(query)
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

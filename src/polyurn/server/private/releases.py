"""The one place where a private fit asks: each question has its share of the budget, its answer noise.

Noise and the ledger are those of `privacy/`; what to ask is decided beside this module.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.model.mdm import MDM
from polyurn.privacy.accounting import sigma_for
from polyurn.privacy.aggregator import PrivateAggregator
from polyurn.privacy.ledger import PrivacyLedger, Trust
from polyurn.privacy.noise import Noise, discrete_gaussian
from polyurn.privacy.statement import Guarantee
from polyurn.server.fit import Rounds
from polyurn.server.results import Round
from polyurn.wire import Aggregator, Bounded, BoundedStatistics, Noised


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What one private fit may spend, and where that is written down.

    Attributes
    ----------
    epsilon, delta : float
        Of this fit alone.
    trust : {"central", "distributed", "local"}
    ledger : PrivacyLedger or None
        Of these clients; None for one of this fit's own, in memory.
    noise : function
        OpenDP's, or a seeded one for tests and simulations.
    """

    epsilon: float
    delta: float
    trust: Trust = "central"
    ledger: PrivacyLedger | None = None
    noise: Noise = discrete_gaussian


class Releases:
    """Puts bounded questions to clients through a private aggregator.

    Parameters
    ----------
    aggregator : Aggregator
        A plain one is wrapped; a `PrivateAggregator`, or a record of one, is used as it is, with its own
        ledger.
    budget : Budget
    total : float
        The sum of all shares that will be asked for.
    on_round : callable, optional
        Called with each `Round` as it ends.
    """

    def __init__(
        self,
        aggregator: Aggregator,
        budget: Budget,
        *,
        total: float,
        on_round: Callable[[Round], None] | None = None,
    ) -> None:
        self._sigma = sigma_for(budget.epsilon, budget.delta) * np.sqrt(total)
        self._layer: Any = aggregator
        if not hasattr(aggregator, "guarantee"):  # neither private, nor a record of one that is
            ledger = budget.ledger or PrivacyLedger(budget.epsilon, budget.delta)
            self._layer = PrivateAggregator(
                aggregator, ledger=ledger, trust=budget.trust, noise=budget.noise
            )
        self._rounds = Rounds(on_round)

    def sigma(self, share: float) -> float:
        """The standard deviation of the noise of a release with this share of the budget."""
        return float(self._sigma / np.sqrt(share))

    def ask(self, query: Bounded, share: float) -> NDArray[np.float64]:
        """The noised sum of the clients' vectors."""
        self._asked = query.n_numbers
        answer: BoundedStatistics = self._layer.aggregate(Noised(query, self.sigma(share)), None)
        return answer.values

    def done(self, mdm: MDM | None, n_clients: float) -> None:
        """A round is over; whoever watches is told what it came to."""
        number = len(self._rounds.done) + 1
        done = Round(number, mdm, float("nan"), max(round(n_clients), 1), self._asked)
        self._rounds.add(done)

    @property
    def rounds(self) -> tuple[Round, ...]:
        return tuple(self._rounds.done)

    def guarantee(self) -> Guarantee:
        """What the releases so far guarantee."""
        guarantee: Guarantee = self._layer.guarantee()
        return guarantee

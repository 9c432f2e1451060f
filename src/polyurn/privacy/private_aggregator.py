"""An aggregator that releases only sums with noise, each of which is charged to a ledger first.

It wraps another aggregator. Its trust model says who adds the noise; the query says how much. A server
with a guarantee learns nothing else about its clients.
"""

import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from polyurn.errors import ParameterError
from polyurn.privacy.ledger import Entries, PrivacyLedger, Trust, enter_exact
from polyurn.privacy.noise import Noise, check_scale, discrete_gaussian, noised
from polyurn.privacy.statement import Guarantee
from polyurn.typed.arguments import checked
from polyurn.wire import Aggregator, Noised, Query, S


class _Entering:
    """Asks another aggregator once the question has been entered, under the name of a run."""

    def __init__(self, aggregator: Aggregator, run: str | None) -> None:
        self._aggregator, self._run = aggregator, secrets.token_hex(8) if run is None else run
        self.categories = getattr(aggregator, "categories", None)

    def skip(self) -> None:
        """Leave a round out that was recorded, and entered when it was."""
        getattr(self._aggregator, "skip", lambda: None)()

    def _after(self, before: Callable[[], None], query: Query[S], cohort_size: int | None) -> S:
        """The answer, with a call of `before` each time it is asked for."""
        retried: Callable[..., S] | None = getattr(self._aggregator, "retried", None)
        if retried is not None:
            return retried(query, cohort_size, before=before)
        before()
        return self._aggregator.aggregate(query, cohort_size)


@checked
class PrivateAggregator(_Entering):
    """Asks all clients, for sums with noise.

    There is no `n_clients`: whether a client takes part is private.

    Parameters
    ----------
    aggregator : Aggregator
        Puts queries to clients. A round that it begins again is charged again, if it has a method
        `retried(query, cohort_size, *, before)`, which calls `before` before each attempt.
    ledger : PrivacyLedger
        Charged before every question.
    trust : {"central", "distributed", "local"}
        Who adds the noise. `central`: this process adds it to the exact sum, which its operator could
        see. `distributed`: every node adds its share inside a secure sum, and nobody ever has a sum
        without noise; `n_reporters` nodes have to stay to the end, or there is no sum. `local`: every
        client adds the whole noise to its own answer and trusts nobody; the noise of n clients is √n
        times as large.
    n_reporters, n_colluding : int
        Distributed: the fewest nodes that a sum is over, and how many of them may tell the server
        their noise or add none; as in `polyurn.wire.Noised`.
    run : str, optional
        The name of its charges. A resumed run has the same name, so that its earlier charges count as
        its own; by default a new name.
    noise : function of (n_numbers, scale), optional
        For tests, of central noise; OpenDP's discrete Gaussian by default. Clients and nodes always draw
        their own noise.

    Examples
    --------
    docs/private-sums.md has a private sum of a table.
    """

    def __init__(
        self,
        aggregator: Aggregator,
        *,
        ledger: PrivacyLedger,
        trust: Trust = "central",
        n_reporters: int = 1,
        n_colluding: int = 0,
        run: str | None = None,
        noise: Noise = discrete_gaussian,
    ) -> None:
        if trust == "distributed" and n_reporters - n_colluding < 2:
            raise ParameterError(
                "expected n_reporters for distributed noise, at least 2 more than n_colluding, got "
                f"{n_reporters} and {n_colluding}"
            )
        super().__init__(aggregator, run)
        self.ledger, self._trust, self._noise = ledger, trust, noise
        self._nodes = n_reporters, n_colluding

    def aggregate(self, query: Query[S], cohort_size: int | None) -> S:
        """The sum of the answers of all clients, with noise, to a `Noised` query.

        `cohort_size` is None: in a cohort of fixed size another client would replace a removed one, and
        the sum would change by two vectors. If the rest of the budget is too small, that is a
        `BudgetError`; nobody was asked.
        """
        if not isinstance(query, Noised):
            raise ParameterError(
                f"expected Noised(query, sigma), got {type(query).__name__}; there are no sums "
                "without noise here"
            )
        if cohort_size is not None:
            raise ParameterError(f"expected cohort_size None, all clients, got {cohort_size}")
        if self._trust == "central":
            check_scale(query.sigma)  # before it is charged
            total = self._asked(query.query, query)
            vector = noised(total.to_vector(), query.sigma, noise=self._noise)
            return cast(S, query.shaped(vector))
        n_reporters, n_colluding = self._nodes if self._trust == "distributed" else (1, 0)
        asked: Noised[S] = Noised(query.query, query.sigma, self._trust, n_reporters, n_colluding)
        check_scale(asked.share)
        return cast(S, self._asked(asked, query))

    def guarantee(self) -> Guarantee:
        """The guarantee of this run's releases, and of all releases on the ledger, at its δ.

        A release that was charged counts, whether or not its answer came.
        """
        charges = self.ledger.charges
        own = [charge for charge in charges if charge.run == self._run]
        others = [charge for charge in charges if charge.run != self._run]
        noised = Guarantee.of(own, self.ledger.budget.delta, earlier=others)
        return replace(noised, n_exact=self.ledger.n_exact)

    def __repr__(self) -> str:
        return f"PrivateAggregator({self._trust}, {self.ledger!r})"  # not how many clients

    def _asked(self, asked: Query[S], release: Noised[S]) -> S:
        """The answer; every attempt is charged before it is asked."""

        def charge() -> None:
            self.ledger.charge(
                release.query.text, release.sigma, release.n_numbers,
                trust=self._trust, change_norm=release.query.change_norm, run=self._run,
            )  # fmt: skip

        return self._after(charge, asked, None)


class ExactAggregator(_Entering):
    """Asks for exact sums, each of which is in a ledger before it is asked for; `run` as above."""

    def __init__(self, aggregator: Aggregator, entries: Entries, *, run: str | None = None) -> None:
        super().__init__(aggregator, run)
        self._entries = entries

    @property
    def n_clients(self) -> int:
        """How many clients there are, if the other aggregator says so (AttributeError if not)."""
        return int(self._aggregator.n_clients)  # type: ignore[attr-defined]

    def aggregate(self, query: Query[S], cohort_size: int | None) -> S:
        """The sum of a cohort's answers."""

        def enter() -> None:
            enter_exact(self._entries, query.text, query.n_numbers, run=self._run)

        return self._after(enter, query, cohort_size)


def as_private(
    aggregator: Aggregator, epsilon: float, delta: float, *, trust: Trust,
    ledger: PrivacyLedger | None, noise: Noise,
) -> Any:  # fmt: skip
    """The aggregator itself if it is private, or a replay of one that is; else a private one around it.

    Without a ledger it gets a new one with this budget, which has nothing that was spent before.
    """
    if hasattr(aggregator, "guarantee"):
        return aggregator
    own = ledger or PrivacyLedger(epsilon, delta)
    return PrivateAggregator(aggregator, ledger=own, trust=trust, noise=noise)

"""A budget of privacy and what was spent of it: every release is charged before it is asked for.

Everything that is asked of the same clients is charged to one ledger: a round that is asked again,
another fit, another K. A charge is never taken back, whether or not an answer came.
`storage/ledger_file.py` has the file, `accounting.py` the cost of a charge.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal, Protocol, TypeAlias

from polyurn.errors import BudgetError, ParameterError
from polyurn.privacy.accounting import MOST_EPSILON, check_budget, epsilon_of, sigma_for, spent
from polyurn.typed.arguments import checked
from polyurn.typed.declared import IF_GIVEN
from polyurn.typed.json_form import Count, Finite

Trust: TypeAlias = Literal["central", "distributed", "local"]

# A plan's shares add up to its budget; their sum in float64 may be a little above it.
_ROUNDING = 1e-9


# How many characters of a date in UTC, 2026-11-19, name its period.
_PERIODS = {"daily": 10, "monthly": 7, "yearly": 4}


@dataclass(frozen=True)
class Renewal:
    """What the charges of one calendar day, month or year (UTC) may spend together."""

    every: str
    epsilon: Finite

    def __post_init__(self) -> None:
        if self.every not in _PERIODS or not 0 < self.epsilon < MOST_EPSILON:
            raise ParameterError(
                f"expected a renewal {', '.join(_PERIODS)} with an epsilon above 0 and below "
                f"{MOST_EPSILON:g}, got {self.every} with {self.epsilon:g}"
            )

    @classmethod
    def of(
        cls, text: str | None, epsilon: float | None = None, entries: Sequence["Entry"] = ()
    ) -> "Renewal | None":
        """What "monthly:0.5" stands for; None of no text.

        "monthly" keeps the monthly rule of the last budget; without one, it is of this epsilon.

        >>> Renewal.of("monthly:0.5")
        Renewal(every='monthly', epsilon=0.5)
        """
        if not text:
            return None
        budget = last_budget(entries)
        if budget is not None and budget.renewal is not None and budget.renewal.every == text:
            return budget.renewal
        every, colon, number = text.partition(":")
        try:
            value = float(number) if colon else epsilon
        except ValueError:
            value = None
        if value is None or every not in _PERIODS:
            raise ParameterError(
                f"expected a renewal as monthly:0.5, daily:0.1 or yearly:2, got {text!r}"
            )
        return cls(every, value)

    def period(self, when: str) -> str:
        """The period that a time belongs to."""
        return when[: _PERIODS[self.every]]


@dataclass(frozen=True)
class Budget:
    """What all charges together may spend, those before it and those after it; within a renewal less.

    Only the renewal's epsilon begins anew with each period.
    """

    epsilon: Finite
    delta: Finite
    renewal: Renewal | None = field(default=None, metadata=IF_GIVEN)

    def __post_init__(self) -> None:
        check_budget(self.epsilon, self.delta)

    def allows(self, sigmas: Sequence[float]) -> bool:
        """Whether it pays for all releases with these noise multipliers."""
        return spent(sigmas) <= sigma_for(self.epsilon, self.delta) ** -2 * (1 + _ROUNDING)


@dataclass(frozen=True)
class Charge:
    """One release: what was asked, in a word, and of how many numbers from each client.

    `sigma` is its noise multiplier, and `trust` says who adds the noise: "central", "distributed" or
    "local". `change_norm` is how far a client's vector moves at most if one of its records becomes
    another. `run` is the run that it belongs to: the same for all rounds of a fit, also after a stop.
    `when` is its time (UTC); a charge without one counts in every period of a renewal.
    """

    what: str
    sigma: Finite
    n_numbers: Count
    trust: str = "central"
    change_norm: Finite = 2.0
    run: str = ""
    when: str | None = field(default=None, metadata=IF_GIVEN)

    def __post_init__(self) -> None:
        if not (self.sigma > 0 and 0 < self.change_norm <= 2):
            raise ParameterError(
                "expected a charge with sigma above 0 and a change_norm above 0 and at most 2, got "
                f"{self.sigma} and {self.change_norm}"
            )


@dataclass(frozen=True)
class ExactRelease:
    """One release without noise, which no ε covers: the question, by which run, and when (UTC)."""

    what: str
    n_numbers: Count
    run: str
    when: str


Entry: TypeAlias = Budget | Charge | ExactRelease


class Entries(Protocol):
    """A list of entries that outlives the process."""

    def turn(self) -> AbstractContextManager[object]:
        """Make other processes wait, from reading to appending."""

    @property
    def mark(self) -> str:
        """Names the entries so far to whoever looks for them later; empty if none will."""

    def read(self) -> Sequence[Entry]:
        """All entries so far, in their order."""

    def append(self, entry: Entry) -> None:
        """Append an entry, which is on disk when this returns."""


def enter_exact(entries: Entries, what: str, n_numbers: int, *, run: str = "") -> None:
    """Enter a release without noise, before it is made."""
    with entries.turn():
        entries.read()
        entries.append(ExactRelease(what, n_numbers, run, _now()))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class _InMemory:
    """Entries in memory."""

    mark = ""

    def __init__(self) -> None:
        self._kept: list[Entry] = []

    def turn(self) -> AbstractContextManager[None]:
        return nullcontext()

    def read(self) -> Sequence[Entry]:
        return self._kept

    def append(self, entry: Entry) -> None:
        self._kept.append(entry)


@checked
class PrivacyLedger:
    """The privacy budget of some clients.

    Parameters
    ----------
    epsilon, delta : float
        The budget, for one client added or removed. A ledger that has one already is opened with the
        same; `raise_to` is the way to a larger one.
    entries : Entries, optional
        Where entries are kept: `polyurn.storage.ledger_file.LedgerFile`. By default in memory, which is
        lost when the process ends.
    renewal : Renewal, optional
        What a day, a month or a year may spend of the budget, from now on. By default what the entries
        say; there is no way back to none.
    now : function that returns a time, optional
        In UTC, as in ISO 8601. A clock that goes back begins no period anew.

    Examples
    --------
    >>> ledger = PrivacyLedger(1.0, 1e-6)
    >>> ledger.charge("survey", 6.0, 20)
    >>> round(ledger.epsilon_spent, 3)
    0.686
    >>> ledger.charge("score", 5.0, 32)
    Traceback (most recent call last):
    ...
    polyurn.errors.BudgetError: score (sigma 5) would bring epsilon to 1.108 of 1 (delta 1e-06); it was
    not asked: take more noise (a smaller epsilon), or raise the budget
    """

    def __init__(
        self, epsilon: float, delta: float, *, entries: Entries | None = None,
        renewal: Renewal | None = None, now: Callable[[], str] = _now,
    ) -> None:  # fmt: skip
        given = Budget(epsilon, delta, renewal)
        self.entries: Entries = _InMemory() if entries is None else entries
        self._now = now
        with self.entries.turn():
            was = last_budget(self.entries.read())
            if was is None or replace(was, renewal=given.renewal or was.renewal) == given != was:
                self.entries.append(given)
            elif (was.epsilon, was.delta) != (epsilon, delta):
                raise ParameterError(
                    f"expected the ledger's budget, epsilon {was.epsilon:g} and delta {was.delta:g}, "
                    f"got {epsilon:g} and {delta:g}; open it with its own, and raise_to a larger one"
                )

    @property
    def budget(self) -> Budget:
        """The whole budget."""
        return self._read()[0]

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges so far, in their order."""
        return self._read()[1]

    @property
    def n_exact(self) -> int:
        """How many releases without noise there were, which no ε covers."""
        return sum(isinstance(entry, ExactRelease) for entry in self.entries.read())

    @property
    def epsilon_spent(self) -> float:
        """The ε of everything that was charged, at the ledger's δ."""
        return epsilon_of([charge.sigma for charge in self.charges], self.budget.delta)

    def charge(
        self,
        what: str,
        sigma: float,
        n_numbers: int,
        *,
        trust: Trust = "central",
        change_norm: float = 2.0,
        run: str = "",
    ) -> None:
        """Spend what one release costs, before it is asked for.

        If it is more than the budget, that is a `BudgetError`: nothing was spent, and nothing may be
        asked.
        """
        entry = Charge(what, float(sigma), int(n_numbers), trust, float(change_norm), run)
        with self.entries.turn():
            when = self._check([entry.sigma], f"{what} (sigma {sigma:g})")
            self.entries.append(replace(entry, when=when))

    def check(self, sigmas: Sequence[float], what: str, *, run: str | None = None) -> None:
        """Refuse releases that the budget cannot pay for, before any of them is asked or charged.

        The charges of `run` so far are taken to be among `sigmas`.
        """
        with self.entries.turn():
            self._check(sigmas, what, run)

    def _check(self, sigmas: Sequence[float], what: str, run: str | None = None) -> str:
        """The time at which the releases are charged; a BudgetError if they may not be."""
        budget, charges = self._read()
        now = max([self._now(), *(charge.when or "" for charge in charges)])
        others = [charge for charge in charges if run is None or charge.run != run]
        caps = [(budget, "", "raise the budget", others)]
        if (renewal := budget.renewal) is not None:
            period = renewal.period(now)
            of_period = [one for one in others if renewal.period(one.when or now) == period]
            of_renewal = Budget(renewal.epsilon, budget.delta)
            caps += [(of_renewal, f" for {period}", "wait for the next period", of_period)]
        for cap, whose, otherwise, some in caps:
            before = [charge.sigma for charge in some]
            if not cap.allows(together := [*sigmas, *before]):
                has_rest = epsilon_of(before, budget.delta) < 0.99 * cap.epsilon
                raise BudgetError(
                    f"{what} would bring epsilon to {epsilon_of(together, budget.delta):.4g} of "
                    f"{cap.epsilon:g}{whose} (delta {budget.delta:g}); it was not asked: "
                    f"{'take more noise (a smaller epsilon), or ' * has_rest}{otherwise}"
                )
        return now

    def raise_to(self, epsilon: float) -> None:
        """Raise the budget, at the same δ; the new budget is an entry among the charges."""
        with self.entries.turn():
            was = self.budget
            if not epsilon > was.epsilon:
                raise ParameterError(f"expected epsilon above {was.epsilon:g}, got {epsilon:g}")
            self.entries.append(replace(was, epsilon=epsilon))

    def _read(self) -> tuple[Budget, tuple[Charge, ...]]:
        kept = self.entries.read()
        budget = last_budget(kept)
        assert budget is not None
        return budget, tuple(entry for entry in kept if isinstance(entry, Charge))

    def __repr__(self) -> str:
        budget = self.budget
        return (
            f"PrivacyLedger(epsilon {self.epsilon_spent:.4g} of {budget.epsilon:g} spent, "
            f"delta {budget.delta:g})"
        )


def last_budget(entries: Sequence[Entry]) -> Budget | None:
    """The budget that holds; None if there is none among the entries."""
    return next((entry for entry in reversed(entries) if isinstance(entry, Budget)), None)

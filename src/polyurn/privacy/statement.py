"""What a model's releases guarantee, as a value and in words; or in as many words that they do not.

The numbers come from a ledger's charges. Nothing is spent or measured here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from polyurn.errors import ParameterError
from polyurn.privacy.accounting import epsilon_of
from polyurn.privacy.ledger import Charge
from polyurn.typed.arguments import checked
from polyurn.typed.json_form import Count, Finite
from polyurn.wording import counted

NO_GUARANTEE = (
    "no guarantee: clients' exact sums were released without noise, and a small federation's clients "
    "can be worked out from them"
)

# Weakest first: of releases under several, the weakest holds.
_TRUST = {
    "central": "central: the process that adds up the answers saw exact sums, and is trusted with them",
    "distributed": "distributed: every node added its share of the noise inside a secure sum; it "
    "holds if no more nodes colluded than was declared",
    "local": "local: every client added all of the noise to its own answers, and trusts nobody",
}

_NO_BETTER = ", which is no better: one record can change all of its answers."


@checked
@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """(ε, δ)-differential privacy of one model, for one client added or removed.

    Attributes
    ----------
    epsilon, delta : float
        Of the releases that the model was made of.
    total_epsilon : float
        Of those and of all earlier releases about the same clients, at the same δ.
    record_epsilon : float
        The same as `epsilon`, if instead one record of one client becomes another. A client's vector
        moves by 2 at most, as if it were replaced, or less where that is proved; so this is usually
        larger than `epsilon`, and never a reason to call a model more private.
    trust : str
        Who added the noise: "central", "distributed" or "local".
    n_rounds, n_numbers : int
        Releases, and the numbers that one client sent in all of them.
    n_exact : int
        Releases without noise about the same clients, which are known and no ε covers.

    Examples
    --------
    >>> charges = [Charge("survey", 6.0, 20, change_norm=0.8), Charge("score", 6.0, 32)]
    >>> guarantee = Guarantee.of(charges, 1e-6)
    >>> round(guarantee.epsilon, 3), round(guarantee.record_epsilon, 3)
    (0.995, 1.57)
    >>> print(in_words(guarantee))
    (0.996, 1e-06)-differentially private for one client, added or removed. Trust model central:
    the process that adds up the answers saw exact sums, and is trusted with them. 2 rounds, 52
    numbers sent by each client. If one record of one client becomes another: epsilon 1.57, which is
    no better: one record can change all of its answers.
    """

    epsilon: Finite
    delta: Finite
    total_epsilon: Finite
    record_epsilon: Finite
    trust: str
    n_rounds: Count
    n_numbers: Count
    n_exact: Count = 0

    def __post_init__(self) -> None:
        numbers = self.epsilon, self.total_epsilon, self.record_epsilon
        if self.trust not in _TRUST or not (min(numbers) >= 0 and 0 < self.delta < 1):
            raise ParameterError(
                f"expected a trust model of {', '.join(_TRUST)}, epsilons of at least 0 and delta "
                f"from 0 to 1, got {self.trust!r}, {numbers} and {self.delta}"
            )

    @classmethod
    def of(cls, charges: Sequence[Charge], delta: float, *, earlier: Sequence[Charge] = ()) -> Self:
        """What some releases guarantee: those of the rounds that a model was made of, retried ones
        included.

        `earlier` is what else was ever released about the same clients.
        """
        if not charges:
            raise ParameterError("expected at least one release, got none: there is no guarantee")
        sigmas = [charge.sigma for charge in charges]
        moved = [charge.sigma / charge.change_norm for charge in charges]
        return cls(
            epsilon=epsilon_of(sigmas, delta), delta=delta, record_epsilon=epsilon_of(moved, delta),
            total_epsilon=epsilon_of([*sigmas, *(charge.sigma for charge in earlier)], delta),
            trust=min((charge.trust for charge in charges), key=list(_TRUST).index),
            n_rounds=len(charges), n_numbers=sum(charge.n_numbers for charge in charges),
        )  # fmt: skip


def in_words(guarantee: Guarantee | None) -> str:
    """What is guaranteed, for `show`, reports and the model's file; None is no guarantee.

    >>> in_words(None)[:13]
    'no guarantee:'
    """
    if guarantee is None:
        return NO_GUARANTEE
    g = guarantee
    beside = f", beside {counted(g.n_exact, 'exact release')}, which no ε covers" * (g.n_exact > 0)
    text = (
        f"({_up(g.epsilon)}, {g.delta:g})-differentially private for one client, added or removed"
        f"{beside}. Trust model {_TRUST[g.trust]}. {counted(g.n_rounds, 'round')}, "
        f"{counted(g.n_numbers, 'number')} sent by each client. "
    )
    if g.total_epsilon > g.epsilon:
        text += (
            f"With all earlier releases about the same clients: epsilon {_up(g.total_epsilon)}. "
        )
    text += f"If one record of one client becomes another: epsilon {_up(g.record_epsilon)}"
    return text + (_NO_BETTER if g.record_epsilon >= g.epsilon else ".")


def _up(epsilon: float) -> str:
    """Three digits, never rounded down: a guarantee is not to sound better than it is."""
    from decimal import ROUND_CEILING, Context, Decimal

    # A billionth is the margin that `accounting.py` has on the safe side.
    exact = Decimal(epsilon * (1 - 2e-9))
    return f"{Context(prec=3, rounding=ROUND_CEILING).create_decimal(exact).normalize():f}"

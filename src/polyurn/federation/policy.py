"""What the owner of a node lets a server ask: a TOML file, which no message can change.

Whether a node's clients have an answer is not known here.
"""

import math
import os
import tomllib
from dataclasses import dataclass, fields
from typing import Annotated, Any

import numpy as np

from polyurn.errors import FileError, ParameterError
from polyurn.federation.messages import Refusal
from polyurn.privacy.accounting import check_budget
from polyurn.storage.files import read_regular
from polyurn.typed.arguments import checked
from polyurn.typed.declared import AtLeast, Between
from polyurn.typed.json_form import from_json, shown
from polyurn.wire import Noised, Query

# 0.3 and 0.1 + 0.2 count as the same end of a part; no client is between them.
_ROUNDING = 1e-12


@checked
@dataclass(frozen=True)
class NodePolicy:
    """The limits of one node.

    Attributes
    ----------
    secure_only : bool
        It answers in secure sums only; a plain question is refused.
    largest_max_size : int
        The largest `max_size` that a question may have.
    most_numbers : int
        The largest number of numbers that it sends in one answer.
    narrowest_part : float
        The narrowest interval of buckets that a question may separate from others, by a `Part` or by
        the difference of two parts. A secure sum is over many nodes, but a narrow part may have only one
        of all their clients, and a `Batch` may have hundreds of parts. Parts of different questions are
        not compared.
    fewest, majority : int, float
        As in `Participant`: the smallest secure sum that it takes part in, itself included, and the
        share that thresholds have to exceed.
    rounds_per_day : int
        How many questions it puts to its clients in any 24 hours.
    least_noise : float
        The smallest noise multiplier of a question. Above 0, it answers only with noise of its own,
        local or in shares of a secure sum: noise that a server promises to add does not count.
    most_epsilon, delta : float
        The owner's budget for everything that is ever asked of these clients, as in `PrivacyLedger`.
        Above 0 it answers only with noise of its own, too. With 0 there is no ledger.

    Examples
    --------
    >>> NodePolicy(fewest=1)
    Traceback (most recent call last):
    ...
    polyurn.errors.ParameterError: expected fewest as an integer of at least 2, got 1
    """

    secure_only: bool = True
    largest_max_size: Annotated[int, AtLeast(1)] = 100_000
    most_numbers: Annotated[int, AtLeast(1)] = 50_000
    narrowest_part: Annotated[float, Between(0, 1)] = 0.001
    fewest: Annotated[int, AtLeast(2)] = 3
    majority: float = 0.5
    rounds_per_day: Annotated[int, AtLeast(0)] = 200
    least_noise: Annotated[float, Between(0, math.inf)] = 0.0
    most_epsilon: float = 0.0
    delta: float = 1e-6

    def __post_init__(self) -> None:
        if self.most_epsilon != 0:
            check_budget(self.most_epsilon, self.delta)
        if not 0.5 <= self.majority < 1:
            raise ParameterError(f"expected majority from 0.5 to less than 1, got {self.majority}")

    @property
    def demands_noise(self) -> bool:
        """Whether a question without noise of the node's own is refused."""
        return self.least_noise > 0 or self.most_epsilon > 0

    def objection(self, query: Query[Any], *, secure: bool) -> Refusal | None:
        """Why this question is not answered; None if the policy allows it.

        Parameters
        ----------
        query : Query
        secure : bool
            Whether it comes in a secure sum.

        Examples
        --------
        >>> from polyurn.model.sizes import SizeBins
        >>> from polyurn.wire import Survey
        >>> query = Survey(2, SizeBins.exact(50), pairs=False)
        >>> NodePolicy().objection(query, secure=False).name
        'SECURE_ONLY'
        >>> NodePolicy(largest_max_size=20).objection(query, secure=True).name
        'TOO_LARGE_SIZE'
        """
        in_shares = isinstance(query, Noised) and query.trust == "distributed"
        if (self.secure_only or in_shares) and not secure:
            return Refusal.SECURE_ONLY
        if self.demands_noise:
            if not isinstance(query, Noised):
                return Refusal.PRIVATE_ONLY
            if self.noise_of(query) < self.least_noise:
                return Refusal.TOO_LITTLE_NOISE
        if query.n_numbers > self.most_numbers:
            return Refusal.TOO_MANY_NUMBERS
        leaves = list(query.leaves())
        if any(max(high - low, 0.0) < self.narrowest_part - _ROUNDING for _, low, high in leaves):
            return Refusal.TOO_NARROW_PART
        ends = np.unique([0.0, 1.0, *(end for _, low, high in leaves for end in (low, high))])
        between = np.diff(ends)
        if ((between > _ROUNDING) & (between < self.narrowest_part - _ROUNDING)).any():
            return Refusal.TOO_NARROW_PART
        if (query.max_size or 0) > self.largest_max_size:
            return Refusal.TOO_LARGE_SIZE
        return None

    def noise_of(self, query: Noised[Any]) -> float:
        """The noise multiplier that the owner can count on, whatever the server declares.

        With noise in shares, the owner trusts that at most the share c = 2 `majority` - 1 of the nodes
        colludes, as for the secure sum itself: the shares of the others count.

        Examples
        --------
        >>> from polyurn.model.sizes import SizeBins
        >>> from polyurn.wire import Initialise, Scaled
        >>> query = Scaled(Initialise(1, 2, SizeBins.exact(50)))
        >>> asked = Noised(query, 3.0, "distributed", n_reporters=10)
        >>> NodePolicy().noise_of(asked), round(NodePolicy(majority=0.6).noise_of(asked), 2)
        (3.0, 2.68)
        """
        if query.trust == "local":
            return query.sigma
        n_colluding = math.ceil((2 * self.majority - 1) * query.n_reporters - 1e-9)
        return min(query.sigma, query.share * math.sqrt(query.n_reporters - n_colluding))


def read_policy(path: str | os.PathLike[str]) -> NodePolicy:
    """The policy in a TOML file, with the names of `NodePolicy`, whose defaults fill in the others.

    An unknown name or an invalid value is an error: a misspelt limit would limit nothing.
    """
    try:
        document = tomllib.loads(read_regular(path).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        text = " ".join(str(error).split())
        raise FileError(f"{path} is not a policy: expected TOML, got {text}") from error
    names = [field.name for field in fields(NodePolicy)]
    for name in document:
        if name not in names:
            raise FileError(f"{path}: expected {', '.join(names)}, got {shown(name)}")
    try:
        return from_json(NodePolicy, document)
    except FileError as error:
        raise FileError(f"{path}: {error}") from error

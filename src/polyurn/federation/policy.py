"""What the owner of a node lets a server ask: a TOML file, which no message can change.

Whether a node's clients have an answer is not known here.
"""

import json
import math
import os
import tomllib
from dataclasses import dataclass, fields
from itertools import chain
from typing import Annotated, Any

import numpy as np

from polyurn.errors import FileError, ParameterError
from polyurn.federation.messages import Refusal
from polyurn.model.mdm import MAX_CONCENTRATION
from polyurn.privacy.accounting import check_budget
from polyurn.privacy.ledger import Renewal
from polyurn.privacy.noise import LEAST_SCALE, MOST_SCALE
from polyurn.storage.files import read_regular
from polyurn.typed.arguments import checked
from polyurn.typed.declared import AtLeast, Between
from polyurn.typed.json_form import from_json, shown
from polyurn.wire import Noised, Query
from polyurn.wire.private_grid import STEP

# 0.3 and 0.1 + 0.2 count as the same end of a part; no client is between them.
_ROUNDING = 1e-12
# The cap of a fit's concentrations, rounding aside.
_MOST_CONCENTRATED = MAX_CONCENTRATION * (1 + 1e-9)


# The file that `init` writes, which says what each limit is; all values are JSON and TOML.
_FILE = """\
# What this node lets a server ask. It is yours: no message from the server changes it.
# docs/guides/federation.md says what each line means.
questions = {questions}  # of these methods
secure_only = {secure_only:11}# answer in secure sums only: the server never sees your numbers alone
allow_exact = {allow_exact:11}# true: also without noise; a server that lies can ask about one client
fewest_clients = {fewest_clients:<8}# that this node must hold with allow_exact
most_numbers = {most_numbers:<10}# in one answer
most_bytes = {most_bytes:<12}# in one question
most_parameters = {most_parameters:<7}# of mixtures in one question
most_components = {most_components:<7}# of a mixture
narrowest_part = {narrowest_part:<8}# of all clients; 0.001 serves from 20,000 clients on
fewest = {fewest:<16}# nodes in a secure sum, yours included
majority = {majority:<14}# which thresholds of a secure sum have to exceed
neighbours = {neighbours:<12}# at least, in a sum over more than 100 nodes
rounds_per_day = {rounds_per_day:<8}# questions put to your clients in any 24 hours
least_noise = {least_noise:<11}# the least noise multiplier of a question
most_epsilon = {most_epsilon:<10}# your privacy budget for all time, kept in privacy.ledger; 0: no limit
delta = {delta:<17}# of that budget
renew = {renew:<17}# what a day, month or year may spend of it: "monthly:0.5"; "": any
"""


@checked
@dataclass(frozen=True)
class NodePolicy:
    """The limits of one node. No limit depends on its clients' data, so that no refusal does.

    The file that `init` writes says what each is, and docs/guides/federation.md why. Noise that a server
    promises to add counts as none: without `allow_exact` the node adds its own. A secure sum is over
    many nodes, but in a narrow part only one of all their clients may be left, and a `Batch` may have
    hundreds of them: `narrowest_part` holds for each `Part` and for the difference of two. Two questions
    are not compared. `fewest`, `majority` and `neighbours` are as in `Participant`.
    """

    questions: tuple[str, ...] = (
        "fit", "fit_private", "fit_style", "describe", "describe_column", "feature_differences", "score",
    )  # fmt: skip
    secure_only: bool = True
    allow_exact: bool = False
    fewest_clients: Annotated[int, AtLeast(1)] = 20
    most_numbers: Annotated[int, AtLeast(1)] = 50_000
    most_bytes: Annotated[int, AtLeast(1)] = 50_000_000
    most_parameters: Annotated[int, AtLeast(1)] = 100_000
    most_components: Annotated[int, AtLeast(1)] = 256
    narrowest_part: Annotated[float, Between(0, 1)] = 0.001
    fewest: Annotated[int, AtLeast(2)] = 3
    majority: float = 0.5
    neighbours: Annotated[int, AtLeast(2)] = 40
    rounds_per_day: Annotated[int, AtLeast(0)] = 200
    least_noise: Annotated[float, Between(0, math.inf)] = 0.5
    most_epsilon: float = 4.0
    delta: float = 1e-6
    renew: str = ""

    def __post_init__(self) -> None:
        if self.most_epsilon != 0:
            check_budget(self.most_epsilon, self.delta)
        if Renewal.of(self.renew) is not None and self.most_epsilon == 0:
            raise ParameterError(
                "expected most_epsilon above 0 with renew: without one nothing is kept"
            )
        if not 0.5 <= self.majority < 1:
            raise ParameterError(f"expected majority from 0.5 to less than 1, got {self.majority}")
        methods = (kind.method for kind in Query.KINDS.values())  # others ask what is inside
        known = {method for method in methods if isinstance(method, str)}
        if unknown := set(self.questions) - known:
            raise ParameterError(
                f"expected questions of {', '.join(sorted(known))}, got {', '.join(unknown)[:80]}"
            )

    def objection(
        self, query: Query[Any], *, secure: bool, max_size: int, clients_per_node: int
    ) -> Refusal | None:
        """Why this question is not answered; None if nothing speaks against it.

        `secure` says whether it comes in a secure sum; the node's own files declare `max_size` and
        `clients_per_node`.
        """
        leaves = list(query.leaves())
        if any(leaf.method not in self.questions for leaf, _, _ in leaves):
            return Refusal.NOT_APPROVED
        in_shares = isinstance(query, Noised) and query.trust == "distributed"
        if (self.secure_only or in_shares) and not secure:
            return Refusal.SECURE_ONLY
        if any(leaf.max_size not in (None, max_size) for leaf, _, _ in leaves):
            return Refusal.OTHER_SIZE
        if isinstance(query, Noised):
            noise = self._objection_to_noise(query, clients_per_node)
        else:
            noise = self._objection_to_exact(query)
        return noise or self._objection_to_work(query) or self._objection_to_parts(query)

    def _objection_to_noise(self, query: Noised[Any], clients_per_node: int) -> Refusal | None:
        """Too little of it, or more than can be added, whatever the number of clients is."""
        if self.noise_of(query) < self.least_noise:
            return Refusal.TOO_LITTLE_NOISE
        n_adders = clients_per_node if query.trust == "local" else 1
        most = query.share * math.sqrt(n_adders)
        in_range = query.share >= LEAST_SCALE * STEP and most <= MOST_SCALE * STEP
        return None if in_range else Refusal.TOO_LITTLE_NOISE

    def _objection_to_exact(self, query: Query[Any]) -> Refusal | None:
        """A client of probability zero has no answer, which everybody would see."""
        if not self.allow_exact:
            return Refusal.PRIVATE_ONLY
        for one in query.all_mixtures():
            least = one.alphas.min()
            if (sizes := getattr(one, "sizes", None)) is not None:
                least = min(least, sizes.masses.min(), sizes.bins.shares.min())
            splits = getattr(one, "splits", None)
            of_all = one.alphas if splits is None else splits.concentrations
            if least == 0 or of_all.sum(axis=-1).max() > _MOST_CONCENTRATED:
                return Refusal.NOT_APPROVED
        return None

    def _objection_to_work(self, query: Query[Any]) -> Refusal | None:
        mixtures = list(query.all_mixtures())
        of_splits = [one.splits for one in mixtures if getattr(one, "splits", None) is not None]
        n_parameters = sum(one.alphas.size for one in mixtures)
        n_parameters += sum(splits.n_parameters for splits in of_splits)
        if query.n_numbers > self.most_numbers or n_parameters > self.most_parameters:
            return Refusal.TOO_MANY_NUMBERS
        groups = (leaf.n_groups for leaf, _, _ in query.leaves())
        n_components = max([*groups, *(len(one.weights) for one in mixtures)], default=0)
        return Refusal.TOO_MANY_NUMBERS if n_components > self.most_components else None

    def _objection_to_parts(self, query: Query[Any]) -> Refusal | None:
        parts = [(low, high) for _, low, high in query.leaves()]
        if any(max(high - low, 0.0) < self.narrowest_part - _ROUNDING for low, high in parts):
            return Refusal.TOO_NARROW_PART
        between = np.diff(np.unique([0.0, 1.0, *chain.from_iterable(parts)]))
        narrow = (between > _ROUNDING) & (between < self.narrowest_part - _ROUNDING)
        return Refusal.TOO_NARROW_PART if narrow.any() else None

    def noise_of(self, query: Noised[Any]) -> float:
        """The noise multiplier that the owner can count on, whatever the server declares.

        With noise in shares, the owner trusts that at most the share c = 2 `majority` - 1 of the nodes
        colludes, as for the secure sum itself: the shares of the others count.

        >>> from polyurn.model.sizes import SizeBins
        >>> from polyurn.wire import BoundedSurvey
        >>> query = BoundedSurvey(2, SizeBins.exact(50))
        >>> asked = Noised(query, 3.0, "distributed", n_reporters=10)
        >>> NodePolicy().noise_of(asked), round(NodePolicy(majority=0.6).noise_of(asked), 2)
        (3.0, 2.68)
        """
        if query.trust == "local":
            return query.share
        n_colluding = math.ceil((2 * self.majority - 1) * query.n_reporters - 1e-9)
        return min(query.sigma, query.share * math.sqrt(query.n_reporters - n_colluding))


def policy_file(policy: NodePolicy) -> str:
    """A policy as the TOML file that `init` writes."""
    return _FILE.format(**{name: json.dumps(value) for name, value in vars(policy).items()})


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

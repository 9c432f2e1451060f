"""A mixture given sizes, and the score of each client: the gradient of its log-likelihood.

Sizes are given here: a client's score is that of log q(c | n) with sizes that do not tell components
apart. Server and clients compute the same: the server of clients that it draws itself, a client of its
own histogram. What is done with scores is `server/private/` and `client/private_answers.py`.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from polyurn.typed.arrays import FrozenArrays
from polyurn.typed.declared import Floats, Ints, Shape

# Counts are gathered from tables of so many numbers, and at least up to the least; a series continues
# them, which from there on is exact to the last digits.
_TABLE_NUMBERS, _LEAST_TABULATED = 2**16, 32


@dataclass(frozen=True, eq=False)
class Mixture(FrozenArrays):
    """τ and A of a mixture of Dirichlet-multinomials, in an order that does not change.

    Its coordinates θ are log α_k1, ..., log α_kC and the logit of τ_k, component after component:
    K (C + 1) numbers, of which one is redundant (adding to all logits changes nothing).
    Weights are positive and sum to one; alphas are positive.
    """

    weights: Annotated[Floats, Shape("K")]
    alphas: Annotated[Floats, Shape("K", "C")]

    @property
    def n_components(self) -> int:
        return len(self.weights)

    @property
    def n_categories(self) -> int:
        return int(self.alphas.shape[1])

    @property
    def n_coordinates(self) -> int:
        """The length of θ."""
        return int(self.alphas.size) + len(self.weights)

    @property
    def concentrations(self) -> Floats:
        """α_0 of each component, shape (n_components,)."""
        return np.asarray(self.alphas.sum(axis=1))


def log_likelihoods(mixture: Mixture, counts: Ints, *, max_size: int | None = None) -> Floats:
    """Log q(c | n) of each client, up to the multinomial coefficient, which no parameter changes; shape
    (n_clients,).

    `max_size` is the declared largest size: what is allocated then does not depend on the counts.

    >>> coin = Mixture(np.array([1.0]), np.array([[1.0, 1.0]]))
    >>> np.exp(log_likelihoods(coin, np.array([[2, 0], [1, 1]]))).round(4).tolist()
    [0.3333, 0.1667]
    """
    return _Tables(mixture, counts, max_size).values


def responsibilities(mixture: Mixture, counts: Ints, *, max_size: int | None = None) -> Floats:
    """ω of each client, given its size, shape (n_clients, n_components)."""
    return _Tables(mixture, counts, max_size).omega


def scores(mixture: Mixture, counts: Ints, *, max_size: int | None = None) -> Floats:
    """The gradient of log q(c | n) in θ, shape (n_clients, n_components * (n_categories + 1)).

    With responsibilities ω it is ω_k α_kj [ψ(c_j + α_kj) - ψ(α_kj) - ψ(n + α_k0) + ψ(α_k0)] in log α_kj,
    and ω_k - τ_k in the logit of τ_k. Its expectation under the mixture itself is 0.

    >>> coin = Mixture(np.array([1.0]), np.array([[1.0, 1.0]]))
    >>> scores(coin, np.array([[2, 0]])).round(3).tolist()
    [[0.667, -0.833, 0.0]]
    """
    return _Tables(mixture, counts, max_size).scores()


class _Tables:
    """What the kernels gather from, for one mixture and some clients; each client is a row by itself."""

    def __init__(self, mixture: Mixture, counts: Ints, max_size: int | None = None) -> None:
        from polyurn.model import model_kernels as kernels

        self._kernels, self._mixture, self._counts = kernels, mixture, counts
        self._sizes, self._alpha_0 = counts.sum(axis=1), mixture.concentrations
        largest = int(self._sizes.max(initial=0)) if max_size is None else max_size
        most = min(largest, max(_LEAST_TABULATED, _TABLE_NUMBERS // mixture.alphas.size))
        needed = np.full(counts.shape[1], most)
        if max_size is None:
            needed = np.minimum(needed, counts.max(axis=0, initial=0))
        logs, self._rises = kernels.tabulate(mixture.alphas, needed, most)
        size_logs, self._size_rises = kernels.tabulate(
            self._alpha_0[:, None], np.array([most]), most
        )
        self.omega = np.empty((len(counts), mixture.n_components))
        self.values: Floats = kernels.e_step(
            counts, self._sizes, np.log(mixture.weights), mixture.alphas, self._alpha_0, logs,
            size_logs, self.omega,
        )  # fmt: skip

    def scores(self) -> Floats:
        mixture, out = self._mixture, np.empty((len(self._counts), self._mixture.n_coordinates))
        self._kernels.gradients(
            self._counts, self._sizes, mixture.weights, mixture.alphas, self._alpha_0, self._rises,
            self._size_rises, self.omega, out,
        )  # fmt: skip
        return out

"""The paper's two questions, asked so that noise can be added: sums in blocks of bounded norm.

Algorithms 1 and 2 of Scott and Cahill (2024) sum blocks of different size, some of them unbounded as α
goes to 0. Here each block is divided by the largest norm that one client's can have, and the blocks
share the norm 1 between them. It is the baseline that `fit_private` is compared with; how clients answer
is `client/scaled_sums.py`.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import ParameterError
from polyurn.model.rising_factorials import digamma_rise
from polyurn.wire.queries import Initialise, Query, Update
from polyurn.wire.statistics import Dimensions, S

# Each of three blocks has a third of the square of the norm.
_BLOCK = math.sqrt(1 / 3)
_MOST_INCREMENTS = 2**20


@dataclass(frozen=True, eq=False)
class Scaled(Query[S]):
    """`Initialise` or `Update`, each number times its scale, and the client's vector clipped at norm 1.

    No number is negative, so that two vectors of norm at most 1 are at most √2 apart.
    """

    query: Query[S]

    unit_norm = True
    change_norm = math.sqrt(2.0)

    def __post_init__(self) -> None:
        if not isinstance(self.query, Initialise | Update):
            raise ParameterError(
                f"expected Initialise or Update to be scaled, got {type(self.query).__name__}"
            )

    @property
    def dimensions(self) -> Dimensions:
        return self.query.dimensions

    @property
    def n_numbers(self) -> int:
        return self.query.n_numbers

    def shaped(self, vector: NDArray[np.float64]) -> S:
        return self.query.shaped(vector)

    @property
    def scales(self) -> NDArray[np.float64]:
        """What each number is multiplied by, shape (n_numbers,); 0 where none is sent.

        The number of clients and the responsibilities are sums of `size_counts`, and are not sent; the
        log-likelihood is not bounded, and is not sent. In `Initialise` every block has norm at most 1.
        In `Update`, α ⊙ u is divided by the bound of `largest_tables`, and α_0 v by the most tables of
        a client of the largest size.
        """
        asked: Query[Any] = self.query
        if not isinstance(asked, Update):
            return _BLOCK * np.append(0.0, np.ones(self.n_numbers - 1))
        mdm = asked.mdm
        k, n_bins, alpha_0 = mdm.n_components, mdm.sizes.bins.n_bins, mdm.alphas.sum(axis=1)
        tables = mdm.alphas.reshape(-1) / largest_tables(mdm.alphas, mdm.max_size)
        total = (alpha_0 * digamma_rise(alpha_0, mdm.max_size)).max()
        blocks = [np.zeros(2 + k), np.ones(k * n_bins), tables, alpha_0 / total]
        return _BLOCK * np.concatenate(blocks)


def largest_tables(alphas: NDArray[np.float64], max_size: int) -> float:
    """An upper bound of the norm of ω ⊗ t(c), t_kj(c) = α_kj (ψ(c_j + α_kj) - ψ(α_kj)), over clients.

    ω has norm at most 1, so the largest component counts. Σ_j t_j(c_j)² is a sum of n ≤ max_size
    increments t_j(m + 1)² - t_j(m)², all of them positive: at most that of the max_size largest. Where
    there are more than 2**20 increments, all of them are added, which is Σ_j t_j(max_size)².

    Parameters
    ----------
    alphas : float array of shape (n_components, n_categories)
    max_size : int

    Examples
    --------
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

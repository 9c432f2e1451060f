"""Cuts that people use in place of a federation: what simulated clients have to be better than.

Each is a population, as the paper that is named with it made its clients from proxy data with so many
points of each category. `IID`, `Dirichlet` and `Dirichlet.hsu` stand in `populations.py`.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from polyurn.errors import ParameterError
from polyurn.model.populations import Drawn, SizesLike, size_distribution
from polyurn.model.sizes import Sizes
from polyurn.typed.arguments import checked
from polyurn.typed.arrays import numbers
from polyurn.typed.declared import Above, AtLeast, Ints
from polyurn.wording import counted


class _OfProxyData(Drawn):
    available: Ints

    @property
    def n_categories(self) -> int:
        """The number of categories, C."""
        return len(self.available)

    def _points(self, n_clients: int, each: int) -> int:
        """How many points there are, if they are enough for so many clients with so many each."""
        n_points = int(self.available.sum())
        if n_clients > (most := n_points // each):
            points = counted(n_points, "point")
            raise ParameterError(f"{points} are enough for at most {most}, got {n_clients}")
        return n_points


@checked
@dataclass(frozen=True, eq=False)
class Pathological(_OfProxyData):
    """Each client holds k categories, drawn at random, and equally many points of each.

    "#C = k" of Li, Diao, Chen and He (2022). Categories that the data lack are not drawn.

    Parameters
    ----------
    k : int
    available : int array of shape (n_categories,)
        The proxy points of each category.
    sizes : int array of shape (n_true_clients,), or Sizes of one component

    Examples
    --------
    >>> (Pathological(2, [50, 30, 0, 20], sizes=[6]).sample(99, rng=0) == [3, 3, 0, 0]).all(1).any()
    np.True_
    """

    k: int
    available: Ints
    sizes: Sizes

    def __init__(self, k: int, available: ArrayLike, sizes: SizesLike) -> None:
        given = _counts(available)
        there = np.count_nonzero(given)
        if not 1 <= k <= there:
            raise ParameterError(
                f"expected 1 to {there} categories per client, those of which there are points, got {k}"
            )
        self._freeze({"k": k, "available": given, "sizes": size_distribution(sizes)})

    def _draw(self, n_clients: int, rng: np.random.Generator) -> Ints:
        there = np.flatnonzero(self.available)
        sizes = self.sizes.sample(np.zeros(n_clients, np.int64), rng=rng)
        held = there[rng.random((n_clients, len(there))).argsort(axis=1)[:, : self.k]]
        each = sizes[:, None] // self.k + (np.arange(self.k) < sizes[:, None] % self.k)
        table = np.zeros((n_clients, self.n_categories), np.int64)
        np.put_along_axis(table, held, each, axis=1)
        return table


@checked
@dataclass(frozen=True, eq=False)
class Shards(_OfProxyData):
    """The data in the order of their categories, cut into shards, of which each client has s.

    McMahan, Moore, Ramage, Hampson and Agüera y Arcas (2017), with s = 2. Every point is held once.

    Parameters
    ----------
    s : int
    available : int array of shape (n_categories,)
        The proxy points of each category.

    Examples
    --------
    >>> Shards(2, [8, 4]).sample(2, rng=1).tolist()
    [[6, 0], [2, 4]]
    """

    s: int
    available: Ints

    def __init__(self, s: Annotated[int, AtLeast(1)], available: ArrayLike) -> None:
        self._freeze({"s": s, "available": _counts(available)})

    def _draw(self, n_clients: int, rng: np.random.Generator) -> Ints:
        n_points = self._points(n_clients, self.s)
        cuts = np.linspace(0, n_points, n_clients * self.s + 1).astype(np.int64)
        before = np.minimum(cuts[:, None], np.cumsum([0, *self.available]))
        shards = np.diff(np.diff(before, axis=1), axis=0)
        dealt = rng.permutation(shards).reshape(n_clients, self.s, -1)
        return np.asarray(dealt.sum(axis=1))


@checked
@dataclass(frozen=True, eq=False)
class QuantitySkew(_OfProxyData):
    """Clients alike but for their sizes, which are shares of the data drawn from Dirichlet(β).

    Li, Diao, Chen and He (2022); here each client holds at least one point.

    Parameters
    ----------
    beta : float
        The smaller, the more sizes differ.
    available : int array of shape (n_categories,)
        The proxy points of each category.

    Examples
    --------
    >>> int(QuantitySkew(0.5, [50, 50]).sample(4, rng=0).sum())
    100
    """

    beta: float
    available: Ints

    def __init__(self, beta: Annotated[float, Above(0)], available: ArrayLike) -> None:
        self._freeze({"beta": beta, "available": _counts(available)})

    def _draw(self, n_clients: int, rng: np.random.Generator) -> Ints:
        n_points = self._points(n_clients, 1)
        shares = rng.dirichlet(np.full(n_clients, self.beta))
        sizes = 1 + rng.multinomial(n_points - n_clients, shares)
        return rng.multinomial(sizes, self.available / n_points)


def _counts(available: ArrayLike) -> Ints:
    given = numbers(available, "available")
    whole = given.ndim == 1 and len(given) > 1 and given.dtype.kind in "iu"
    if not whole or given.min() < 0 or given.sum() < 1:
        raise ParameterError("expected available as the number of points of each category")
    return given.astype(np.int64)

"""Binary trees over categories: learned from clients' shares, declared, or by share.

A tree of C categories has 2C - 1 nodes, which have numbers: inner nodes 0 to C - 2, the root 0 and each
before those below it; then C - 1 + j is category j. What happens at a node is `splits.py`.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.errors import ParameterError
from polyurn.typed.arguments import checked, got
from polyurn.typed.arrays import EqualArrays, finite_array, numbers
from polyurn.typed.declared import Floats, Ints
from polyurn.wording import counted

# A tree is not learned for more categories: its question has C (C + 1) / 2 numbers.
MOST_LEARNED = 300
# Added to the variance of √share, so that categories which nearly nobody has are not taken for twins.
_VARIANCE_RIDGE = 1e-5


@checked
@dataclass(frozen=True, eq=False)
class Tree(EqualArrays):
    """A binary tree over categories.

    Parameters
    ----------
    children : int array of shape (n_categories - 1, 2)
        The left and the right child of each inner node.

    Examples
    --------
    >>> tree = Tree([[1, 4], [2, 3]])  # categories 0 and 1 against category 2
    >>> tree.totals([[5, 2, 1]]).tolist()
    [[8, 7, 5, 2, 1]]
    >>> tree.nested(["ham", "eggs", "tea"])
    [['ham', 'eggs'], 'tea']
    """

    children: Ints

    def __init__(self, children: ArrayLike) -> None:
        given = numbers(children, "children")
        if given.ndim != 2 or given.shape[1] != 2 or len(given) == 0:
            raise ParameterError(
                f"expected children of shape (n_categories - 1, 2), got {given.shape}"
            )
        above = np.arange(len(given))[:, None]
        once = np.array_equal(np.sort(given, axis=None), np.arange(1, 2 * len(given) + 1))
        if not once or not (given > above).all():
            raise ParameterError(
                "expected each node but the root as the child of one inner node before it"
            )
        self._freeze({"children": given.astype(np.int64)})

    @property
    def n_categories(self) -> int:
        """The number of categories, C."""
        return len(self.children) + 1

    @property
    def n_splits(self) -> int:
        """The number of inner nodes, J = C - 1."""
        return len(self.children)

    @cached_property
    def sides(self) -> Ints:
        """The side that each node is of its parent, 2 parent + (0 left, 1 right); -1 for the root."""
        sides = np.full(2 * self.n_splits + 1, -1)
        sides[self.children.ravel()] = np.arange(2 * self.n_splits)
        return sides

    def totals(self, values: ArrayLike) -> NDArray[Any]:
        """Sums over the categories below each node, shape (..., 2C - 1), of values by category."""
        leaves = np.moveaxis(np.asarray(values), -1, 0)
        return np.moveaxis(np.stack(self.joined([*leaves], np.add)), 0, -1)

    def joined(self, leaves: Sequence[Any], join: Callable[[Any, Any], Any]) -> list[Any]:
        """A value for each node: those of the categories, then of what both children have, joined."""
        out: list[Any] = [None] * self.n_splits + list(leaves)
        for node, (left, right) in reversed([*enumerate(self.children)]):
            out[node] = join(out[left], out[right])
        return out

    def shares(self, left: Floats) -> Floats:
        """Shares of the categories, shape (..., C), from the left share of each inner node."""
        out = np.ones((*left.shape[:-1], 2 * self.n_splits + 1))
        for node, (first, second) in enumerate(self.children):
            out[..., first] = out[..., node] * left[..., node]
            out[..., second] = out[..., node] * (1 - left[..., node])
        return out[..., self.n_splits :]

    def members(self) -> list[list[int]]:
        """The categories below each node, from left to right."""
        return self.joined([[j] for j in range(self.n_categories)], list.__add__)

    def nested(self, categories: Sequence[str]) -> Any:
        """The same tree as lists in lists of the categories' names: what `Tree.declared` reads."""
        return self.joined(categories, lambda *both: [*both])[0]

    @classmethod
    def declared(cls, nested: object, categories: Sequence[str]) -> "Tree":
        """The tree of a taxonomy: lists in lists of the categories' names, each of them once.

        A list of more than two is halved in its order until there are two.

        Examples
        --------
        >>> Tree.declared([["oak", "beech"], "pine"], ["oak", "pine", "beech"]).nested(list("opb"))
        [['o', 'b'], 'p']
        """
        codes = {name: code for code, name in enumerate(categories)}
        seen: Counter[str] = Counter()

        def cut(part: Any) -> Any:
            while isinstance(part, list | tuple) and len(part) == 1:
                (part,) = part
            if isinstance(part, str) and part in codes:
                seen[part] += 1
                return codes[part]
            if not isinstance(part, list | tuple) or not part:
                arrived = "an empty list" if isinstance(part, list) else got(part)
                raise ParameterError(
                    f"expected a tree of lists of the categories' names, got {arrived}"
                )
            half = (len(part) + 1) // 2
            return list(part[:half]), list(part[half:])

        children = _children(nested, cut, most=len(codes))
        wrong = [name for name in codes if seen[name] != 1]
        if wrong:
            raise ParameterError(
                f"expected a tree with each category once, got {wrong[0]!r} "
                f"{counted(seen[wrong[0]], 'time')}"
            )
        return cls(children)

    @classmethod
    def learned(cls, n_clients: float, first: ArrayLike, second: ArrayLike) -> "Tree":
        """Hierarchical clustering of the categories by the correlation of √shares, average linkage.

        Parameters
        ----------
        n_clients : float
        first, second : float arrays of shape (n_categories,) and (n_categories, n_categories)
            Sums over clients of √p and of √p √pᵀ, p the shares of a client's points.

        Examples
        --------
        >>> p = np.sqrt([[0.4, 0.4, 0.2], [0.1, 0.1, 0.8], [0.3, 0.2, 0.5]])
        >>> Tree.learned(3, p.sum(axis=0), p.T @ p).nested(["ham", "eggs", "tea"])
        ['tea', ['ham', 'eggs']]
        """
        from scipy.cluster.hierarchy import linkage

        sums, squares = finite_array(first, "first moments"), finite_array(second, "second moments")
        c = sums.size
        if not n_clients > 0 or sums.ndim != 1 or c < 2 or squares.shape != (c, c):
            raise ParameterError("expected moments of a client or more, of at least two categories")
        covariance = squares / n_clients - np.outer(sums / n_clients, sums / n_clients)
        deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0) + _VARIANCE_RIDGE)
        correlation = covariance / np.outer(deviation, deviation)
        joined = linkage(1.0 - correlation[np.triu_indices(c, 1)], "average")[:, :2].astype(int)
        return cls(_children(2 * c - 2, lambda i: i if i < c else tuple(joined[i - c]), most=c))

    @classmethod
    def by_share(cls, shares: ArrayLike) -> "Tree":
        """Categories in order of decreasing share, cut where the shares of both sides are nearest.

        Shannon's and Fano's code (1948, 1949): few splits lie above a frequent category.

        Examples
        --------
        >>> Tree.by_share([0.1, 0.5, 0.2, 0.2]).nested(list("abcd"))
        ['b', ['c', ['d', 'a']]]
        """
        given = finite_array(shares, "shares")
        if given.ndim != 1:
            raise ParameterError(f"expected shares of shape (n_categories,), got {given.shape}")
        order = np.argsort(-given, kind="stable")
        below = np.concatenate([[0.0], np.cumsum(given[order])])

        def cut(part: tuple[int, int]) -> Any:
            start, stop = part
            if stop - start == 1:
                return int(order[start])
            middle = (below[start] + below[stop]) / 2
            at = start + 1 + int(np.abs(below[start + 1 : stop] - middle).argmin())
            return (start, at), (at, stop)

        return cls(_children((0, len(given)), cut, most=len(given)))

    def __repr__(self) -> str:
        return f"Tree(n_categories={self.n_categories})"


def _children(root: Any, cut: Callable[[Any], Any], *, most: int) -> list[list[int]]:
    """The children of each inner node, from the root down: `cut` says what a part's two parts are, or
    which category it is.
    """
    if most < 2:
        raise ParameterError(f"expected a tree of at least two categories, got {most}")
    children: list[list[int]] = []
    waiting: list[tuple[Any, int, int]] = [(root, -1, 0)]
    while waiting:
        part, parent, side = waiting.pop()
        parts = cut(part)
        is_category = isinstance(parts, int | np.integer)
        node = most - 1 + int(parts) if is_category else len(children)
        if parent >= 0:
            children[parent][side] = node
        if not is_category:
            if len(children) == most - 1:
                raise ParameterError("expected a tree with each category once, got more")
            children.append([0, 0])
            waiting += [(parts[1], node, 1), (parts[0], node, 0)]
    return children

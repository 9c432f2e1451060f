"""Splits on a tree: clients that vary less than chance, and categories that go together.

One binary tree over the categories serves the whole model, and every component goes down it. At an inner
node with N points, x of them go left with probability

    p(x | N) = f_l(x) f_r(N - x) / Z(N),   log f(c) = log Γ(a + c)/(Γ(a) c!) + Σ_b θ_b h_b(c).

Without laws (θ = 0) this is a beta-binomial with concentrations a_l and a_r: the Dirichlet-tree
multinomial (Dennis 1991; Minka 1999; Tang and Nicolae 2017), in a chain the generalised
Dirichlet-multinomial (Connor and Mosimann 1969). If the two concentrations of each node add up to the
one of its side, it is the Dirichlet-multinomial. Laws bend log f by hat functions h_b on knots, so that
x may vary less than chance.

A histogram's log-probability is a sum of one term for each node, which depends on the node's total only:
log f of the side that the node is, less log Z of the split below it. How a mixture uses splits is
`mdm.py`.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from polyurn.counts import Counts, gathered, row_blocks
from polyurn.errors import ParameterError
from polyurn.memory import check_memory
from polyurn.model.rising_factorials import log_rising
from polyurn.model.sizes import Sizes
from polyurn.model.trees import Tree
from polyurn.typed.arguments import checked
from polyurn.typed.arrays import EqualArrays, finite_array, floats, numbers
from polyurn.typed.declared import IF_GIVEN, Floats, Ints

_EXACT_TOTALS = 128  # where means are propagated down the tree


@checked
@dataclass(frozen=True, eq=False)
class Laws(EqualArrays):
    """What bends the laws of the splits: values of hat functions on knots.

    Parameters
    ----------
    knots : int array of shape (n_knots,)
        Counts from 0 on, increasing. A hat is 1 at its knot and falls to 0 at its neighbours; beyond the
        last knot the last hat stays 1.
    values : float array of shape (n_components, n_splits, 2, n_knots)
        θ of the left and the right side of each split; 0 is the beta-binomial.

    Examples
    --------
    >>> Laws([0, 1, 4], np.zeros((1, 1, 2, 3))).hats(3).round(2).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.67, 0.33], [0.0, 0.33, 0.67]]
    """

    knots: Ints
    values: Floats

    def __init__(self, knots: ArrayLike, values: ArrayLike) -> None:
        at, theta = numbers(knots, "knots"), finite_array(values, "values of laws")
        if at.ndim != 1 or len(at) < 2 or at[0] != 0 or not (np.diff(at) > 0).all():
            raise ParameterError("expected at least two knots, increasing whole numbers from 0 on")
        if theta.ndim != 4 or theta.shape[2:] != (2, len(at)):
            raise ParameterError(
                f"expected values of laws of shape (n_components, n_splits, 2, {len(at)}), "
                f"got {theta.shape}"
            )
        self._freeze({"knots": at.astype(np.int64), "values": theta})

    def hats(self, most: int) -> Floats:
        """The hat functions at counts 0 to `most`, shape (most + 1, n_knots); rows add up to one."""
        return hats(self.knots, np.arange(most + 1))


@checked
@dataclass(frozen=True, eq=False)
class Splits(EqualArrays):
    """How each component splits the points of a client, from the root of a tree down.

    Parameters
    ----------
    tree : Tree
    concentrations : float array of shape (n_components, n_splits, 2)
        a_l and a_r of each split; not negative. A side of 0 never gets a point; both may be 0 where no
        point arrives.
    laws : Laws, optional
        Beta-binomial splits without.

    Examples
    --------
    >>> tree = Tree([[1, 4], [2, 3]])
    >>> Splits.of_alphas(tree, [[1.0, 2.0, 4.0]]).concentrations.tolist()
    [[[3.0, 4.0], [1.0, 2.0]]]
    """

    tree: Tree
    concentrations: Floats
    laws: Laws | None = field(default=None, metadata=IF_GIVEN)

    def __init__(self, tree: Tree, concentrations: ArrayLike, laws: Laws | None = None) -> None:
        given = floats(concentrations, "concentrations") + 0.0
        if given.ndim != 3 or given.shape[1:] != (tree.n_splits, 2) or len(given) == 0:
            raise ParameterError(
                f"expected concentrations of shape (n_components, {tree.n_splits}, 2), got {given.shape}"
            )
        if not (np.isfinite(given).all() and (given >= 0).all()):
            raise ParameterError("expected concentrations that are finite and not negative")
        if laws is not None and laws.values.shape[:2] != given.shape[:2]:
            raise ParameterError(
                f"expected laws of {given.shape[:2]} components and splits, got {laws.values.shape[:2]}"
            )
        self._freeze({"tree": tree, "concentrations": given, "laws": laws})
        arrives = np.ones((len(given), 2 * tree.n_splits + 1), bool)
        arrives[:, 1:] = self.of_sides > 0
        if not (self.of_inner[arrives[:, : tree.n_splits]] > 0).all():
            raise ParameterError("expected a positive concentration in each split that gets points")

    @classmethod
    def of_alphas(cls, tree: Tree, alphas: ArrayLike) -> "Splits":
        """The splits that are exactly the Dirichlet-multinomials with these alphas, shape (K, C)."""
        given = finite_array(alphas, "alphas")
        if given.ndim != 2 or given.shape[1] != tree.n_categories:
            raise ParameterError(
                f"expected alphas of shape (n_components, {tree.n_categories}), got {given.shape}"
            )
        return cls(tree, tree.totals(given)[:, tree.children])

    @property
    def n_components(self) -> int:
        """The number of components, K."""
        return len(self.concentrations)

    @property
    def n_parameters(self) -> int:
        """Free numbers: of a law all but three a split, which change no probability.

        Those are a factor of f_l, one of f_r, and c log r added to both.
        """
        bent = 0 if self.laws is None else self.laws.values.size - 3 * self.of_inner.size
        return self.concentrations.size + bent

    @cached_property
    def of_sides(self) -> Floats:
        """The concentration of the side that each node but the root is, shape (K, 2J)."""
        flat = self.concentrations.reshape(self.n_components, -1)
        return np.asarray(flat[:, self.tree.sides[1:]])

    @cached_property
    def of_inner(self) -> Floats:
        """a_l + a_r of each split, shape (K, J)."""
        return np.asarray(self.concentrations.sum(axis=2))

    def alphas(self) -> Floats:
        """Dirichlet-multinomials with the mean shares and the root's concentration, shape (K, C).

        Laws do not enter. For splits of a Dirichlet-multinomial they are its alphas, up to rounding.
        """
        left = self.concentrations[:, :, 0] / self._scales()
        return self.tree.shares(left) * self.of_inner[:, :1]

    def some(self, components: NDArray[np.integer] | list[int]) -> "Splits":
        """The splits of some components, in this order."""
        laws = self.laws and Laws(self.laws.knots, self.laws.values[components])
        return Splits(self.tree, self.concentrations[components], laws)

    def renamed(self, labels: NDArray[np.integer]) -> "Splits":
        """The same splits with category j as category labels[j], of a permutation."""
        j = self.tree.n_splits
        children = self.tree.children
        leaves = j + np.asarray(labels)[np.maximum(children - j, 0)]
        renamed = Tree(np.where(children < j, children, leaves))
        return Splits(renamed, self.concentrations, self.laws)

    def log_laws(self, most: int) -> Floats:
        """Log f of each side at counts 0 to `most`, shape (K, J, 2, most + 1).

        Divided by (a_l + a_r)^c, which cancels in p(x | N) and keeps the digits of large concentrations.
        """
        check_memory(
            8 * self.concentrations.size * (most + 1),
            f"the laws of {self.concentrations.size:,} sides for clients of up to {most:,} points",
            "take mixtures without laws, or a smaller max_size",
        )
        before, scales = np.arange(most), self._scales()[:, :, None, None]
        out = np.zeros((*self.concentrations.shape, most + 1))
        with np.errstate(divide="ignore"):  # a side of 0 has no count but 0
            rises = np.log((self.concentrations[..., None] + before) / (scales * (before + 1)))
        np.cumsum(rises, axis=3, out=out[..., 1:])
        if self.laws is not None:
            out += self.laws.values @ self.laws.hats(most).T
        return np.asarray(out)

    def logpmf(self, counts: Counts) -> Floats:
        """Log p(c | n, k) of each client under each component, shape (n_clients, K)."""
        out = np.empty((counts.shape[0], self.n_components))
        for block in row_blocks(counts.shape[0], 2 * self.tree.n_categories):
            part = counts[block]
            dense = part if isinstance(part, np.ndarray) else part.toarray()
            totals = self.tree.totals(dense.astype(np.int64))
            out[block] = gathered(scipy.sparse.csr_array(totals), self.terms)
        return out

    def draw(self, components: Ints, sizes: Ints, rng: np.random.Generator) -> Ints:
        """Histograms of clients of these components and sizes, shape (n_clients, C)."""
        from polyurn.model import model_kernels as kernels

        counts = np.empty((len(sizes), self.tree.n_categories), np.int64)
        children = self.tree.children
        if self.laws is None:
            kernels.draw_down(children, self.concentrations, components, sizes, counts, rng)
            return counts
        log_laws = self.log_laws(int(sizes.max(initial=0)))
        for block in row_blocks(len(sizes), 2 * self.tree.n_categories):
            some = components[block], sizes[block], counts[block]
            kernels.draw_bent(children, log_laws, *some, rng)
        return counts

    def shares(self, sizes: Sizes) -> Floats:
        """Expected share of each category in the points of clients of these sizes, shape (K, C)."""
        if self.laws is None:
            return self.tree.shares(self.concentrations[:, :, 0] / self._scales())
        points = self.totals_given(sizes.table()) @ np.arange(sizes.max_size + 1)
        return np.asarray((points[self.tree.n_splits :] / points[0]).T)

    def totals_given(self, sizes: Floats) -> Floats:
        """The distribution of each node's total, shape (2C - 1, K, N + 1); of sizes: (K, N + 1).

        Exact to a total of 128. Larger ones are moved to the nearest two of a grid with steps of 2 %, so
        that means stay: that changes expected shares by less than 1e-4.
        """
        from polyurn.model.model_kernels import expected_counts

        shape = (2 * self.tree.n_splits + 1, *sizes.shape)
        check_memory(
            8 * math.prod(shape), f"the totals of {shape[0]:,} nodes", "take a smaller max_size"
        )
        out, log_laws = np.zeros(shape), self.log_laws(sizes.shape[1] - 1)
        out[0] = sizes
        grid = law_knots(sizes.shape[1] - 1, dense=_EXACT_TOTALS, ratio=1.02)
        to_grid = hats(grid, np.arange(sizes.shape[1]))
        for node, sides in enumerate(self.tree.children):
            there = out[node] @ to_grid
            arrive = np.flatnonzero(there.any(axis=0))
            weights = np.ascontiguousarray(there[:, None, arrive])
            laws = np.ascontiguousarray(log_laws[:, node : node + 1])
            out[sides] = np.moveaxis(expected_counts(laws, grid[arrive], weights)[1][:, 0], 1, 0)
        return out

    def terms(self, nodes: Ints, totals: Ints) -> Floats:
        """What a node with so many points adds to log p(c | n, k), shape (n_pairs, K); 0 without points.

        The sum over all nodes of a client is log p(c | n, k); -inf where a component has no such client.
        The pairs of nodes and totals have shape (n_pairs,).
        """
        if self.laws is not None:
            return self._bent_terms(nodes, totals)
        out, scales = np.zeros((len(nodes), self.n_components)), self._scales().T
        below, inner = nodes > 0, nodes < self.tree.n_splits
        parents, c = self.tree.sides[nodes[below]] // 2, totals[below, None]
        a = self.of_sides.T[nodes[below] - 1]  # log f of the side
        out[below] += log_rising(a, c, scale=scales[parents]) - scipy.special.gammaln(c + 1)
        n, s = totals[inner, None], scales[nodes[inner]]
        possible = self.of_inner.T[nodes[inner]] > 0
        out[inner] -= np.where(possible, log_rising(s, n, scale=s), 0.0)  # less log Z
        out[inner] += scipy.special.gammaln(n + 1)
        return out

    def _bent_terms(self, nodes: Ints, totals: Ints) -> Floats:
        from polyurn.model.model_kernels import log_normalisers

        log_laws = self.log_laws(int(totals.max(initial=0)))
        log_laws -= log_laws[..., :1]  # a factor of f changes no probability
        out = np.zeros((len(nodes), self.n_components))
        below, inner = nodes > 0, nodes < self.tree.n_splits
        parents, side = np.divmod(self.tree.sides[nodes[below]], 2)
        out[below] = log_laws[:, parents, side, totals[below]].T
        log_z = log_normalisers(log_laws, nodes[inner], totals[inner])
        out[inner] -= np.where(np.isneginf(log_z), 0.0, log_z)  # no point arrives there
        return out

    def expected_hats(self, totals: Ints, weights: Floats) -> Floats:
        """The gradient of Σ w log Z(N) in θ, shape (K, J, 2, n_knots): expected sums of hat functions.

        The weights of the totals N, w, have shape (K, J, n_totals).
        """
        from polyurn.model.model_kernels import expected_counts

        assert self.laws is not None
        most = int(totals.max(initial=0))
        _, counts = expected_counts(self.log_laws(most), totals, weights)
        return np.asarray(counts @ self.laws.hats(most))

    def _scales(self) -> Floats:
        """a_l + a_r, and 1 where both are 0."""
        return np.where(self.of_inner > 0, self.of_inner, 1.0)

    def __repr__(self) -> str:
        bent = "" if self.laws is None else f", laws on {len(self.laws.knots)} knots"
        return f"Splits(n_components={self.n_components}, {self.tree!r}{bent})"


def hats(knots: Ints, counts: NDArray[np.integer]) -> Floats:
    """The hat functions on knots at these counts, shape (n_counts, n_knots); rows add up to one."""
    c = np.minimum(counts, knots[-1])
    left = np.clip(np.searchsorted(knots, c, side="right") - 1, 0, len(knots) - 2)
    share = (c - knots[left]) / (knots[left + 1] - knots[left])
    out, rows = np.zeros((len(c), len(knots))), np.arange(len(c))
    out[rows, left] = 1 - share
    out[rows, left + 1] = share
    return out


def law_knots(max_size: int, *, dense: int = 32, ratio: float = 1.25) -> Ints:
    """Knots for counts up to `max_size`: every count to `dense`, then `ratio` times the one before.

    >>> law_knots(20, dense=4, ratio=1.5).tolist()
    [0, 1, 2, 3, 4, 6, 9, 14, 20]
    """
    knots = list(range(min(max_size, dense) + 1))
    while knots[-1] < max_size:
        knots.append(min(max_size, max(knots[-1] + 1, int(np.ceil(knots[-1] * ratio)))))
    return np.array(knots)

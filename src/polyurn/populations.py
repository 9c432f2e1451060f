"""Who the simulated clients are: a population is an object that draws the histograms of its clients.

`MDM` is one, and a mixture given label totals (`model/given_labels.py`). Here are the others: the
paper's two baselines (`IID`, `Oracle`) and one `Dirichlet`, what the field uses today; `Styled` is any
of them whose clients differ in their style, too. Which points the clients hold is `partitioning/`.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.counts import Counts, check_counts, client_sizes
from polyurn.errors import ParameterError
from polyurn.memory import check_memory
from polyurn.model.mdm import MDM
from polyurn.model.population import Population, check_population
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.model.style import Style
from polyurn.typed.arguments import checked
from polyurn.typed.arrays import FrozenArrays, floats, numbers
from polyurn.wording.numbers import counted

__all__ = [
    "IID", "Dirichlet", "Oracle", "Population", "SizesLike", "Styled", "check_population",
    "drawn_from",
]  # fmt: skip

# The sizes of clients to draw from, or their distribution.
SizesLike: TypeAlias = Sizes | ArrayLike


@checked
@dataclass(frozen=True, eq=False)
class IID(FrozenArrays):
    """*Fully IID* clients: a true size each, and every point from one marginal.

    Two baselines have names. `IID.like` takes the marginal of the true clients, so that what differs
    from them is heterogeneity alone. `IID.proxy` takes that of the proxy data, as the paper does: it
    differs in the marginal, too.

    Parameters
    ----------
    marginal : float array of shape (n_categories,)
        How frequent each category is: counts or probabilities. Kept as probabilities.
    sizes : int array of shape (n_true_clients,), or Sizes of one component
        The sizes of true clients, each as likely as the others, or the distribution of sizes. Kept
        as their distribution.

    Examples
    --------
    >>> IID([50, 30, 20], sizes=[4, 9]).sample(3, rng=0).sum(axis=1).tolist()
    [9, 4, 4]
    """

    marginal: NDArray[np.float64]
    sizes: Sizes

    def __init__(self, marginal: ArrayLike, sizes: SizesLike) -> None:
        object.__setattr__(self, "marginal", _marginal(marginal))
        object.__setattr__(self, "sizes", _distribution(sizes))

    @classmethod
    def like(cls, counts: object) -> "IID":
        """IID clients with the sizes and the pooled categories of these clients.

        Parameters
        ----------
        counts : int array or scipy.sparse of shape (n_clients, n_categories)

        Examples
        --------
        >>> IID.like([[3, 1], [0, 4]])
        IID(n_categories=2, max_size=4)
        """
        table = check_counts(counts)
        return cls(np.asarray(table.sum(axis=0)).reshape(-1), client_sizes(table))

    @classmethod
    def proxy(cls, labels: ArrayLike, *, n_categories: int, sizes: SizesLike) -> "IID":
        """IID clients that draw from the proxy data as they are: the paper's baseline.

        Parameters
        ----------
        labels : int array of shape (n_points,)
            The category of each proxy point.
        n_categories : int
        sizes : int array of shape (n_true_clients,), or Sizes of one component

        Examples
        --------
        >>> IID.proxy([0, 1, 1, 1], n_categories=3, sizes=[4, 9]).marginal.tolist()
        [0.25, 0.75, 0.0]
        """
        given = numbers(labels, "labels")
        whole = given.ndim == 1 and len(given) > 0 and given.dtype.kind in "iu"
        if not whole or given.min() < 0 or given.max() >= n_categories:
            raise ParameterError(
                f"expected labels as categories from 0 to {n_categories - 1}, one for each proxy "
                "point; raise n_categories if there are more"
            )
        check_memory(
            8 * n_categories, f"{n_categories:,} categories", "take a smaller n_categories"
        )
        return cls(np.bincount(given, minlength=n_categories), sizes)

    @property
    def n_categories(self) -> int:
        """The number of categories, C."""
        return len(self.marginal)

    def sample(
        self, n_clients: int, *, rng: int | np.random.Generator | None = None
    ) -> NDArray[np.int64]:
        """Draw the histograms of clients, shape (n_clients, n_categories)."""
        n_clients = _checked(n_clients, self.n_categories)
        rng = np.random.default_rng(rng)
        sizes = self.sizes.sample(np.zeros(n_clients, np.int64), rng=rng)
        return rng.multinomial(sizes, self.marginal)

    def __repr__(self) -> str:
        return f"IID(n_categories={self.n_categories}, max_size={self.sizes.max_size})"


@checked
@dataclass(frozen=True, eq=False)
class Dirichlet(FrozenArrays):
    """Clients whose proportions come from one Dirichlet: what the field uses today.

    Parameters
    ----------
    alpha : float array of shape (n_categories,)
        [0.1] * C is the symmetric Dirichlet(0.1) of C categories; `a0 * p` has the concentration a0
        and the marginal p.
    sizes : int array of shape (n_true_clients,), or Sizes of one component
        The sizes of true clients, each as likely as the others, or the distribution of sizes. Kept
        as their distribution.

    Examples
    --------
    >>> Dirichlet([0.1] * 3, sizes=[20]).sample(2, rng=0).sum(axis=1).tolist()
    [20, 20]
    """

    alpha: NDArray[np.float64]
    sizes: Sizes

    def __init__(self, alpha: ArrayLike, sizes: SizesLike) -> None:
        given = floats(alpha, "alpha")
        if given.ndim != 1:
            raise ParameterError(
                f"expected alpha of shape (n_categories,), got shape {given.shape}; the symmetric "
                "Dirichlet(0.1) of 10 categories is [0.1] * 10"
            )
        mdm = MDM([1.0], given[None], _distribution(sizes))  # it checks what is left to check
        object.__setattr__(self, "alpha", mdm.alphas[0])
        object.__setattr__(self, "sizes", mdm.sizes)

    @classmethod
    def like(cls, counts: object, *, alpha: float) -> "Dirichlet":
        """The symmetric Dirichlet with the sizes and the number of categories of these clients.

        Parameters
        ----------
        counts : int array or scipy.sparse of shape (n_clients, n_categories)
        alpha : float
            Of each category.

        Examples
        --------
        >>> Dirichlet.like([[3, 1], [0, 4]], alpha=0.1)
        Dirichlet(alpha=[0.1, 0.1], max_size=4)
        """
        table = check_counts(counts)
        return cls(np.full(table.shape[1], alpha), client_sizes(table))

    @property
    def n_categories(self) -> int:
        """The number of categories, C."""
        return len(self.alpha)

    def sample(
        self, n_clients: int, *, rng: int | np.random.Generator | None = None
    ) -> NDArray[np.int64]:
        """Draw the histograms of clients, shape (n_clients, n_categories)."""
        n_clients = _checked(n_clients, self.n_categories)
        return MDM([1.0], self.alpha[None], self.sizes).sample(n_clients, rng=rng)

    def __repr__(self) -> str:
        shown = np.array2string(self.alpha, separator=", ", threshold=6, edgeitems=2)
        return f"Dirichlet(alpha={shown}, max_size={self.sizes.max_size})"


@checked
@dataclass(frozen=True, eq=False)
class Oracle:
    """The true clients' own histograms, for *conditionally IID* clients.

    Partitioned, these clients have exactly the true clients' histograms of the modelled feature, and
    given that feature everything else is IID. An oracle: no server may have these histograms.

    Parameters
    ----------
    counts : int array or scipy.sparse of shape (n_true_clients, n_categories)

    Examples
    --------
    >>> Oracle([[1, 2], [3, 0]]).sample(3, rng=1).tolist()
    [[1, 2], [3, 0], [3, 0]]
    """

    counts: Counts

    def __init__(self, counts: object) -> None:
        object.__setattr__(self, "counts", check_counts(counts))

    @property
    def n_categories(self) -> int:
        """The number of categories, C."""
        return int(self.counts.shape[1])

    def sample(
        self, n_clients: int, *, rng: int | np.random.Generator | None = None
    ) -> NDArray[np.int64]:
        """Take true clients at random, each once before any twice: (n_clients, n_categories)."""
        n_clients, n_true = _checked(n_clients, self.n_categories), self.counts.shape[0]
        rng = np.random.default_rng(rng)
        rounds, rest = divmod(n_clients, n_true)
        chosen = [rng.permutation(n_true) for _ in range(rounds)]
        chosen.append(rng.choice(n_true, rest, replace=False))
        table = self.counts[np.concatenate(chosen)]
        return (table if isinstance(table, np.ndarray) else table.toarray()).astype(np.int64)

    def __repr__(self) -> str:
        n_clients, n_categories = self.counts.shape
        return f"Oracle(n_clients={n_clients}, n_categories={n_categories})"


@checked
@dataclass(frozen=True, eq=False)
class Styled:
    """A population whose clients also have a style each, wherever they are given points.

    Parameters
    ----------
    population : Population
        Who draws the histograms. Its categories are the labels of the style.
    style : Style
    features : array of shape (n_points, ...), optional
        Of the proxy points, in which the style is measured: an embedding, say. Without it `sweep` takes
        what is trained on, and `partition` what it is given.

    Examples
    --------
    >>> from polyurn.model.style import Style, StyleSpace
    >>> space = StyleSpace([[0.0], [0.0]], [[1.0]], [[[1.0]], [[1.0]]], radius=4.0)
    >>> style = Style(space, [0.0], [[0.3]], [[0.1]], [[0.6]])
    >>> Styled(IID([3, 1], sizes=[4]), style).sample(2, rng=0).sum(axis=1).tolist()
    [4, 4]
    """

    population: Population
    style: Style
    features: ArrayLike | None = None

    def __post_init__(self) -> None:
        if self.style.space.n_labels != self.population.n_categories:
            raise ParameterError(
                f"expected a style of {counted(self.population.n_categories, 'label')}, the "
                f"population's categories, got one of {self.style.space.n_labels:,}"
            )

    @property
    def n_categories(self) -> int:
        """The number of categories, C."""
        return self.population.n_categories

    def sample(
        self, n_clients: int, *, rng: int | np.random.Generator | None = None
    ) -> NDArray[np.int64]:
        """Draw the histograms of clients, shape (n_clients, n_categories)."""
        return self.population.sample(n_clients, rng=rng)

    def __repr__(self) -> str:
        return f"Styled({self.population!r}, {self.style!r})"


def drawn_from(clients: object) -> Population | None:
    """The population that clients are to be drawn from; None for a table of their histograms.

    Raises
    ------
    ParameterError
        They are neither.
    """
    if isinstance(clients, Population) and not isinstance(clients, type):
        return clients
    return None if hasattr(clients, "__len__") else check_population(clients)


def _checked(n_clients: int, n_categories: int) -> int:
    """The number of clients, if it is one and their histograms fit into memory."""
    if not 1 <= n_clients < 2**31 or int(n_clients) != n_clients:
        raise ParameterError(f"expected a number of clients of at least 1, got {n_clients}")
    what = f"the histograms of {counted(n_clients, 'client')}"
    check_memory(8 * n_clients * n_categories, what, "draw fewer at a time")
    return int(n_clients)


def _distribution(sizes: SizesLike) -> Sizes:
    """The distribution of sizes; a list of sizes stands for its own histogram."""
    if isinstance(sizes, Sizes):
        if sizes.n_components != 1:
            raise ParameterError(
                f"expected sizes of one component, got {sizes.n_components}; mix them first "
                "(Sizes.from_table([mdm.size_marginal()]))"
            )
        return sizes
    given = numbers(sizes, "client sizes")
    if given.ndim != 1 or len(given) == 0 or given.dtype.kind == "b":
        raise ParameterError(
            f"expected client sizes as a list of whole numbers, got shape {given.shape}"
        )
    if not np.isfinite(given).all() or (given != np.rint(given)).any() or given.min() < 1:
        raise ParameterError("expected client sizes that are whole numbers of at least 1")
    return _empirical(given.astype(np.int64))


def _empirical(sizes: NDArray[np.int64]) -> Sizes:
    """The histogram of the sizes: a bin of width one for each that occurs, and gaps between them."""
    bins = SizeBins(np.unique(np.concatenate([[1], sizes, sizes + 1])))
    return Sizes(bins, np.bincount(bins.locate(sizes), minlength=bins.n_bins)[None] / len(sizes))


def _marginal(marginal: ArrayLike) -> NDArray[np.float64]:
    """How frequent each category is, summing to one."""
    given = floats(marginal, "the marginal")
    if given.ndim != 1 or len(given) < 2:
        raise ParameterError(f"expected a marginal of shape (n_categories,), got {given.shape}")
    if not (np.isfinite(given).all() and (given >= 0).all() and given.sum() > 0):
        raise ParameterError("expected a marginal of counts or probabilities, not all of them 0")
    probabilities = np.asarray(given / given.sum())
    probabilities.flags.writeable = False
    return probabilities

"""Who the simulated clients are: a population is an object that draws the histograms of its clients.

`MDM` is one. Here are the others: the paper's two baselines (`IID`, `Oracle`); one `Dirichlet`, what the
field uses today, and other cuts of proxy data, as the paper that is named with each made its clients;
and `Styled`, any of them whose clients differ in their style, too. Which points clients hold is decided
in `partitioning/`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from polyurn.counts import Counts, client_sizes
from polyurn.errors import ParameterError
from polyurn.memory import check_memory
from polyurn.model.mdm import MDM, checked_draw
from polyurn.model.names import check_names, columns_of, names_of
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.model.style import Style
from polyurn.model.style_coordinates import label_codes
from polyurn.typed.arguments import checked, expected_as
from polyurn.typed.arrays import FrozenArrays, floats, numbers
from polyurn.typed.declared import Above, AtLeast, Floats, Ints, Seed
from polyurn.wording import counted

# The sizes of clients to draw from, or their distribution.
SizesLike: TypeAlias = Sizes | ArrayLike


@expected_as("a population, an object with n_categories and sample(n_clients, *, rng)")
@runtime_checkable
class Population(Protocol):
    """Clients that can be drawn: what `partition`, `cover`, `compare` and `sweep` take.

    Any object with these two will do; `MDM`, `IID`, `Dirichlet` and `Oracle` have them.
    The number of categories is declared, because a table (a data frame, say) may have a `sample` of its
    own.
    """

    @property
    def n_categories(self) -> int:
        """The number of categories, C."""
        ...

    def sample(self, n_clients: int, *, rng: Seed = None) -> Ints:
        """Draw the histograms of clients, shape (n_clients, n_categories); each holds a point."""
        ...


@checked
class Drawn(FrozenArrays, ABC):
    """A population whose `_draw` makes a number of clients that has been checked.

    The last axis of the field that `by_category` names are the categories.
    """

    by_category: ClassVar[str]

    @property
    def n_categories(self) -> int:
        """The number of categories, C."""
        return int(getattr(self, self.by_category).shape[-1])

    def sample(self, n_clients: int, *, rng: Seed = None) -> Ints:
        """Draw the histograms of clients, shape (n_clients, n_categories)."""
        n_clients = checked_draw(n_clients, self.n_categories)
        return self._draw(n_clients, np.random.default_rng(rng))

    @abstractmethod
    def _draw(self, n_clients: int, rng: np.random.Generator) -> Ints: ...


@checked
@dataclass(frozen=True, eq=False)
class IID(Drawn):
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
    categories : sequence of str, optional
        The name of each category.

    Examples
    --------
    >>> IID([50, 30, 20], sizes=[4, 9]).sample(3, rng=0).sum(axis=1).tolist()
    [9, 4, 4]
    """

    by_category = "marginal"
    marginal: Floats
    sizes: Sizes
    categories: tuple[str, ...] | None = None

    def __init__(
        self, marginal: ArrayLike, sizes: SizesLike, *, categories: Sequence[str] | None = None
    ) -> None:
        given = _marginal(marginal)
        names = check_names(categories, len(given))
        self._freeze({"marginal": given, "sizes": size_distribution(sizes), "categories": names})

    @classmethod
    def like(cls, counts: object) -> "IID":
        """IID clients with the sizes and the pooled categories of these clients.

        Parameters
        ----------
        counts : int array or scipy.sparse of shape (n_clients, n_categories), or Histograms

        Examples
        --------
        >>> IID.like([[3, 1], [0, 4]])
        IID(n_categories=2, max_size=4)
        """
        table, names = columns_of(counts)
        marginal = np.asarray(table.sum(axis=0)).reshape(-1)
        return cls(marginal, client_sizes(table), categories=names)

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
        codes = label_codes(labels, None, n_labels=n_categories)
        check_memory(
            8 * n_categories, f"{n_categories:,} categories", "take a smaller n_categories"
        )
        return cls(np.bincount(codes, minlength=n_categories), sizes)

    def _draw(self, n_clients: int, rng: np.random.Generator) -> Ints:
        sizes = self.sizes.sample(np.zeros(n_clients, np.int64), rng=rng)
        return rng.multinomial(sizes, self.marginal)

    def __repr__(self) -> str:
        return f"IID(n_categories={self.n_categories}, max_size={self.sizes.max_size})"


@checked
@dataclass(frozen=True, eq=False)
class Dirichlet(Drawn):
    """Clients whose proportions come from one Dirichlet: what the field uses today.

    Parameters
    ----------
    alpha : float array of shape (n_categories,)
        [0.1] * C is the symmetric Dirichlet(0.1) of C categories; `a0 * p` has the concentration a0
        and the marginal p.
    sizes : int array of shape (n_true_clients,), or Sizes of one component
        The sizes of true clients, each as likely as the others, or the distribution of sizes. Kept
        as their distribution.
    categories : sequence of str, optional
        The name of each category.

    Examples
    --------
    >>> Dirichlet([0.1] * 3, sizes=[20]).sample(2, rng=0).sum(axis=1).tolist()
    [20, 20]
    """

    by_category = "alpha"
    alpha: Floats
    sizes: Sizes
    categories: tuple[str, ...] | None = None

    def __init__(
        self, alpha: ArrayLike, sizes: SizesLike, *, categories: Sequence[str] | None = None
    ) -> None:
        given = floats(alpha, "alpha")
        if given.ndim != 1:
            raise ParameterError(
                f"expected alpha of shape (n_categories,), got shape {given.shape}; the symmetric "
                "Dirichlet(0.1) of 10 categories is [0.1] * 10"
            )
        # It checks what is left to check.
        mdm = MDM([1.0], given[None], size_distribution(sizes), categories=categories)
        self._freeze({"alpha": mdm.alphas[0], "sizes": mdm.sizes, "categories": mdm.categories})

    @classmethod
    def like(cls, counts: object, *, alpha: float) -> "Dirichlet":
        """The symmetric Dirichlet with the sizes and the number of categories of these clients.

        Parameters
        ----------
        counts : int array or scipy.sparse of shape (n_clients, n_categories), or Histograms
        alpha : float
            Of each category.

        Examples
        --------
        >>> Dirichlet.like([[3, 1], [0, 4]], alpha=0.1)
        Dirichlet(alpha=[0.1, 0.1], max_size=4)
        """
        table, names = columns_of(counts)
        return cls(np.full(table.shape[1], alpha), client_sizes(table), categories=names)

    @classmethod
    def hsu(cls, available: ArrayLike, sizes: SizesLike, *, alpha: float) -> "Dirichlet":
        """Dirichlet(α p), p being the proxy data's shares of the categories: Hsu, Qi and Brown (2019).

        Parameters
        ----------
        available : int array of shape (n_categories,)
            The proxy points of each category.
        sizes : int array of shape (n_true_clients,), or Sizes of one component
        alpha : float
            The sum over categories: what others call α is this, divided by their number.
        """
        return cls(alpha * _marginal(available), sizes)

    def _draw(self, n_clients: int, rng: np.random.Generator) -> Ints:
        return MDM([1.0], self.alpha[None], self.sizes).sample(n_clients, rng=rng)

    def __repr__(self) -> str:
        shown = np.array2string(self.alpha, separator=", ", threshold=6, edgeitems=2)
        return f"Dirichlet(alpha={shown}, max_size={self.sizes.max_size})"


@checked
@dataclass(frozen=True, eq=False)
class Oracle(Drawn):
    """The true clients' own histograms, for *conditionally IID* clients; each once before any twice.

    Partitioned, these clients have exactly the true clients' histograms of the modelled feature, and
    given that feature everything else is IID. An oracle: no server may have these histograms.

    Parameters
    ----------
    counts : int array or scipy.sparse of shape (n_true_clients, n_categories), or Histograms

    Examples
    --------
    >>> Oracle([[1, 2], [3, 0]]).sample(3, rng=1).tolist()
    [[1, 2], [3, 0], [3, 0]]
    """

    by_category = "counts"
    counts: Counts
    categories: tuple[str, ...] | None

    def __init__(self, counts: object) -> None:
        table, names = columns_of(counts)
        self.__dict__.update(counts=table, categories=names)

    def _draw(self, n_clients: int, rng: np.random.Generator) -> Ints:
        n_true = self.counts.shape[0]
        rounds, rest = divmod(n_clients, n_true)
        chosen = [rng.permutation(n_true) for _ in range(rounds)]
        chosen.append(rng.choice(n_true, rest, replace=False))
        table = self.counts[np.concatenate(chosen)]
        return (table if isinstance(table, np.ndarray) else table.toarray()).astype(np.int64)

    def __repr__(self) -> str:
        n_clients, n_categories = self.counts.shape
        return f"Oracle(n_clients={n_clients}, n_categories={n_categories})"


class _OfProxyData(Drawn):
    by_category = "available"
    available: Ints

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

    @property
    def categories(self) -> tuple[str, ...] | None:
        """The names of the population's categories."""
        return names_of(self.population)

    def sample(self, n_clients: int, *, rng: Seed = None) -> Ints:
        """Draw the histograms of clients, shape (n_clients, n_categories)."""
        return self.population.sample(n_clients, rng=rng)

    def __repr__(self) -> str:
        return f"Styled({self.population!r}, {self.style!r})"


def check_population(population: object) -> Population:
    """The same population; a `ParameterError` if it is none."""
    if not isinstance(population, Population) or isinstance(population, type):
        raise ParameterError(
            "expected a population, an object with n_categories and sample(n_clients, *, rng), "
            f"got {type(population).__name__}"
        )
    return population


def drawn_from(clients: object) -> Population | None:
    """The population that clients are to be drawn from; None for a table of their histograms."""
    is_population = isinstance(clients, Population) and not isinstance(clients, type)
    is_table = hasattr(clients, "__len__") or hasattr(clients, "counts")
    return None if is_table and not is_population else check_population(clients)


def size_distribution(sizes: SizesLike) -> Sizes:
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
    whole = given.astype(np.int64)  # a bin of width one for each that occurs, and gaps between them
    bins = SizeBins(np.unique(np.concatenate([[1], whole, whole + 1])))
    return Sizes(bins, np.bincount(bins.locate(whole), minlength=bins.n_bins)[None] / len(whole))


def _marginal(marginal: ArrayLike) -> Floats:
    """How frequent each category is, summing to one."""
    given = floats(marginal, "the marginal")
    if given.ndim != 1 or len(given) < 2:
        raise ParameterError(f"expected a marginal of shape (n_categories,), got {given.shape}")
    if not (np.isfinite(given).all() and (given >= 0).all() and given.sum() > 0):
        raise ParameterError("expected a marginal of counts or probabilities, not all of them 0")
    return np.asarray(given / given.sum())


def _counts(available: ArrayLike) -> Ints:
    given = numbers(available, "available")
    whole = given.ndim == 1 and len(given) > 1 and given.dtype.kind in "iu"
    if not whole or given.min() < 0 or given.sum() < 1:
        raise ParameterError("expected available as the number of points of each category")
    return given.astype(np.int64)

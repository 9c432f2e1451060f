"""The mixture of Dirichlet-multinomials: equations (1) to (3) of the paper, and sampling from it.

Parameters in, probabilities and histograms out. How the parameters are learned is `server/`; how they
are written down is `storage/models.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated

import numpy as np
import scipy  # its parts are loaded when they are used: showing a file does not wait for them
from numpy.typing import ArrayLike

from polyurn.counts import (
    Counts,
    check_counts,
    check_values,
    client_sizes,
    distinct,
    gathered,
    row_blocks,
)
from polyurn.errors import CountsError, ParameterError
from polyurn.memory import check_memory
from polyurn.model.names import (
    Side,
    check_names,
    in_words,
    laid,
    n_of,
    names_of,
    positions,
    side_of,
)
from polyurn.model.relabelling import (
    MeanSize,
    Rule,
    destinations,
    label_shares,
    scaled_sizes,
    with_marginal,
)
from polyurn.model.rising_factorials import log_rising
from polyurn.model.sizes import SUM_TOLERANCE, Sizes
from polyurn.model.splits import Splits
from polyurn.model.uncertainty import StandardErrors, plausible, standard_errors
from polyurn.typed.arguments import checked, expected_as
from polyurn.typed.arrays import EqualArrays, floats, numbers, symmetric
from polyurn.typed.declared import IF_GIVEN, UNSENT, AtLeast, Bools, Floats, Ints, Seed, Shape
from polyurn.typed.plotted import Plotted
from polyurn.wording import counted, listed

# A Pólya urn costs a step per point, a Dirichlet and a multinomial draw one per category, ten times as
# long. The urn has to be compiled or loaded first, which small tables are not worth.
_POINTS_PER_CATEGORY = 10
_CELLS_WORTH_AN_URN = 500_000
# No fit goes beyond this concentration: with clients of n points it changes the log-likelihood by about
# n²/α_0, and is a multinomial for all purposes.
MAX_CONCENTRATION = 1e6
# Alphas of splits are products down the tree, which another platform may round otherwise.
_ALPHAS_TOLERANCE = 1e-9
# Of eigenvalues that are 0 but for rounding, relative to the largest.
_COVARIANCE_TOLERANCE = 1e-9


@checked
@expected_as("an MDM", advice="of a fit or a selection, pass its .mdm")
@dataclass(frozen=True, eq=False)
class MDM(Plotted, EqualArrays):
    """A mixture of Dirichlet-multinomials over client histograms (equation 3).

    Components are kept in order of decreasing weight, whatever order they are given in, unless
    `as_given`.

    Parameters
    ----------
    weights : float array of shape (n_components,)
        τ: positive, sum to one.
    alphas : float array of shape (n_components, n_categories)
        A: not negative, at least one positive in each row. A zero says that the component never
        produces that category.
    sizes : Sizes, or float array of shape (n_components, max_size + 1)
        Π: column n of an array is the probability that a client holds n points; column 0 is 0.
    splits : Splits, optional
        How components split a client's points down a tree, instead of as Dirichlet-multinomials.
        `alphas` are then `splits.alphas()`, None for short.
    categories : sequence of str, optional
        The name of each category, one per column of `alphas`, all different. Names never cross the wire.
    as_given : bool, optional
        Whether components keep the order in which they are given: those of a fit that began at a
        mixture have the numbers that they had there.
    covariance : float array, optional
        Of log α_k1, ..., log α_kC and log τ_k of each component in turn, as a lower triangle: how
        uncertain a fit is. It never crosses the wire.

    Examples
    --------
    >>> mdm = MDM([0.3, 0.7], [[1.0, 2.0], [30.0, 10.0]], Sizes.constant(4, n_components=2))
    >>> mdm.weights.tolist()
    [0.7, 0.3]
    >>> mdm.logpmf([[3, 1], [0, 4]]).round(4).tolist()
    [-1.1353, -2.2628]

    Children's films with animated ones: the second split varies less than its side of the first.

    >>> from polyurn.model.trees import Tree
    >>> splits = Splits(Tree([[1, 4], [2, 3]]), [[[1.0, 2.0], [30.0, 20.0]]])
    >>> together = MDM([1.0], None, Sizes.constant(4), splits=splits)
    >>> together.alphas.round(2).tolist(), together.logpmf([2, 2, 0]).round(4)
    ([[0.6, 0.4, 2.0]], np.float64(-3.8062))
    """

    weights: Floats
    alphas: Floats
    sizes: Sizes
    splits: Splits | None = field(default=None, metadata=IF_GIVEN)
    categories: tuple[str, ...] | None = field(default=None, metadata=UNSENT)
    as_given: bool | None = field(default=None, metadata=IF_GIVEN)
    covariance: Floats | None = field(default=None, metadata=IF_GIVEN | UNSENT)

    def __init__(
        self,
        weights: ArrayLike,
        alphas: ArrayLike | None,
        sizes: Sizes | ArrayLike,
        *,
        splits: Splits | None = None,
        categories: Sequence[str] | None = None,
        as_given: bool | None = None,
        covariance: ArrayLike | None = None,
    ) -> None:
        weights = floats(weights, "weights")
        if alphas is None and splits is not None:
            alphas = splits.alphas()
        alphas = floats(alphas, "alphas") + 0.0  # -0.0 is 0
        sizes = sizes if isinstance(sizes, Sizes) else Sizes.from_table(sizes)
        _check_parameters(weights, alphas, sizes)
        if splits is not None:
            _check_splits(splits, alphas)
        order = np.arange(len(weights)) if as_given else np.argsort(-weights, kind="stable")
        sizes = Sizes.unchecked(sizes.bins, sizes.masses[order])
        names = check_names(categories, alphas.shape[1])
        ordered = {"weights": weights[order], "alphas": alphas[order], "sizes": sizes}
        ordered["splits"] = splits and splits.some(order)
        ordered["covariance"] = covariance
        if covariance is not None:
            ordered["covariance"] = _reordered(
                floats(covariance, "covariance"), alphas, splits, order
            )
        self._freeze(ordered | {"categories": names, "as_given": as_given or None})

    @property
    def n_components(self) -> int:
        """The number of components, K."""
        return len(self.weights)

    @property
    def n_categories(self) -> int:
        """The number of categories, C."""
        return int(self.alphas.shape[1])

    @property
    def max_size(self) -> int:
        """The largest size that a client may have, N."""
        return self.sizes.max_size

    @property
    def n_parameters(self) -> int:
        """How many weights, alphas or numbers of splits, and size probabilities are free.

        What a sum fixes is not among them, nor the profile of sizes inside the bins, which all
        components share.
        """
        k = self.n_components
        of_counts = self.alphas.size if self.splits is None else self.splits.n_parameters
        return (k - 1) + of_counts + k * (self.sizes.bins.n_bins - 1)

    @property
    def multinomial(self) -> tuple[int, ...]:
        """Components whose concentration is at a fit's cap of a million, as good as multinomials.

        Clients of n points show it from about n² = 10⁶ on: the cap costs them some n²/10⁶ nats.
        """
        return () if self.splits else tuple(np.flatnonzero(at_cap(self.alphas)).tolist())

    @cached_property
    def shares(self) -> Floats:
        """Expected share of each category in the points of each component's clients, shape (K, C)."""
        if self.splits is not None:
            return self.splits.shares(self.sizes)
        return np.asarray(self.alphas / self.alphas.sum(axis=1, keepdims=True))

    @cached_property
    def standard_errors(self) -> StandardErrors | None:
        """Of weights, shares and concentrations, by the fit; None if it has not given any."""
        if self.covariance is None:
            return None
        return standard_errors(self.weights, self.alphas, self.covariance)

    def draws(self, n: Annotated[int, AtLeast(1)], *, rng: Seed = None) -> tuple["MDM", ...]:
        """Mixtures that are as plausible as this one, by the normal approximation of its fit.

        Logarithms of alphas and weights are drawn with the covariance of the fit; sizes are as they are.

        Parameters
        ----------
        n : int
        rng : int or numpy.random.Generator

        Returns
        -------
        tuple of MDM
            Component i of each is component i of this mixture.

        Examples
        --------
        >>> import polyurn as pu
        >>> from polyurn.model.paper_truths import truth
        >>> mdm = pu.fit(truth("low/1").sample(500, rng=0), n_components=1, rng=0).mdm
        >>> mdm.standard_errors.concentrations.round(2), mdm.alphas.sum(axis=1).round(2)
        (array([0.38]), array([10.41]))
        >>> [float(one.alphas.sum().round(1)) for one in mdm.draws(3, rng=1)]
        [10.4, 10.3, 10.3]
        """
        if self.covariance is None:
            raise ParameterError(
                "expected a mixture with standard errors, which exact fits give where their clients "
                "tell enough: `Fit.no_errors` says why a fit has none"
            )
        rng = np.random.default_rng(rng)
        weights, alphas = plausible(self.weights, self.alphas, self.covariance, n, rng)
        alphas /= np.maximum(alphas.sum(axis=2, keepdims=True) / MAX_CONCENTRATION, 1.0)
        names = self.categories
        return tuple(
            MDM(tau, a, self.sizes, categories=names, as_given=True)
            for tau, a in zip(weights, alphas, strict=True)
        )

    def logpmf(self, counts: object) -> Floats:
        """Log-probability of each client's histogram and size, log q(c, n) (equation 3).

        Parameters
        ----------
        counts : int array or scipy.sparse of shape (n_clients, n_categories) or (n_categories,)
            With the columns of `alphas`; or `Histograms`, whose categories are found by name.

        Returns
        -------
        float array of shape (n_clients,)

        Raises
        ------
        SizeError
            A client holds more than `max_size` points.
        """
        return _per_client(scipy.special.logsumexp(self._joint(counts), axis=1), counts)

    def logpmf_given_size(self, counts: object) -> Floats:
        """Log-probability of each client's histogram given its size, log q(c | n).

        Parameters and shapes as in `logpmf`.
        """
        table = self._table(counts)
        log_sizes = self.sizes.logpmf(client_sizes(table))
        log_size = scipy.special.logsumexp(np.log(self.weights) + log_sizes, axis=1)
        with np.errstate(invalid="ignore"):  # NaN for a size that no component can have
            given_size = self.logpmf(table) - log_size
        return _per_client(given_size, counts)

    def responsibilities(self, counts: object) -> Floats:
        """Probability that each client came from each component, ω of Algorithm 2.

        Parameters
        ----------
        counts : int array or scipy.sparse of shape (n_clients, n_categories) or (n_categories,)

        Returns
        -------
        float array of shape (n_clients, n_components), or (n_components,) for one histogram

        Raises
        ------
        CountsError
            A client has probability zero under every component, so that ω is not defined.
        """
        joint = self._joint(counts)
        total = scipy.special.logsumexp(joint, axis=1, keepdims=True)
        if np.isneginf(total).any():
            n_impossible = int(np.isneginf(total).sum())
            raise CountsError(
                f"{counted(n_impossible, 'client has', 'clients have')} probability zero under every "
                "component: a category or size was never seen; fit with priors or size bins"
            )
        return _per_client(np.exp(joint - total), counts)

    def sample(self, n_clients: int, *, rng: Seed = None) -> Ints:
        """Draw the histograms of simulated clients.

        Parameters
        ----------
        n_clients : int
        rng : int or numpy.random.Generator

        Returns
        -------
        int array of shape (n_clients, n_categories)

        Raises
        ------
        MemoryLimitError
            They are larger than the memory that is available.
        """
        checked_draw(n_clients, self.n_categories + 2, least=0)  # with its component and size
        rng = np.random.default_rng(rng)
        if self.splits is not None or n_clients * self.n_categories >= _CELLS_WORTH_AN_URN:
            return self.drawn(n_clients, rng)[1]
        components = rng.choice(self.n_components, size=n_clients, p=self.weights)
        sizes = self.sizes.sample(components, rng=rng)
        proportions = dirichlet(self.alphas[components], rng)
        return rng.multinomial(sizes, proportions)

    def log_shares(self, counts: Counts) -> Floats:
        """Log p(c | n, k) of each client under each component, shape (n_clients, K) (equation 1)."""
        if self.splits is not None:
            return self.splits.logpmf(counts)
        return mixture_logpmf(counts, self.alphas)

    def mean(self) -> Floats:
        """Expected histogram of a client, E[c], shape (n_categories,)."""
        return np.asarray((self.weights * self.sizes.mean()) @ self.shares)

    def relabelled(
        self,
        categories: int | Sequence[str],
        rule: Rule = "rank",
        *,
        shares: ArrayLike | None = None,
        rng: Seed = None,
    ) -> "MDM | Relabelled":
        """The same clients with other labels: categories are merged, split and renamed.

        Weights, concentrations and sizes stay as they are. Merging is exact: clients have the sums of
        their counts, and never a larger entropy. Splitting divides a category's alpha among its labels
        by their shares: merging these labels again gives this mixture.

        Parameters
        ----------
        categories : int or sequence of str
            The labels: how many, or their names.
        rule : {"rank", "random", "marginal"}
            "rank" deals categories to labels in turn, the most frequent first, so that the order of
            frequencies stays; with as many labels as categories, so do the evenness of the pooled
            shares and the entropy of each client. "random" deals at random. "marginal" deals by rank,
            then gives the pooled shares the values of `shares`; what stays then are the odds ratios of
            components and labels, not evenness or entropy.
        shares : float array of shape (n_labels,), optional
            How frequent the labels are in the data to be cut; by default equally, and they have the
            given order. Labels of share 0 get no points.
        rng : int or numpy.random.Generator
            For "random".

        Returns
        -------
        MDM; or Relabelled, with splits and another number of labels
            Splits are not closed under merging, so that drawn counts are merged instead.

        Examples
        --------
        >>> mdm = MDM([1.0], [[6.0, 1.0, 3.0]], Sizes.constant(4), categories=["a", "b", "c"])
        >>> mdm.relabelled(["cat", "dog"]).alphas.tolist()
        [[7.0, 3.0]]
        >>> mdm.relabelled(4, shares=[0.4, 0.3, 0.2, 0.1]).alphas.round(2).tolist()
        [[4.8, 3.0, 1.0, 1.2]]
        """
        n_labels = categories if isinstance(categories, int) else len(categories)
        if n_labels < 2:
            raise ParameterError(f"expected at least 2 labels, got {n_labels}")
        given = label_shares(shares, n_labels)
        if rule == "marginal" and given is None:
            raise ParameterError("the rule 'marginal' needs shares=, how frequent each label is")
        wanted = np.full(n_labels, 1 / n_labels) if given is None else given
        parts = destinations(self.mean(), wanted, rule, np.random.default_rng(rng))
        names = check_names(None if isinstance(categories, int) else categories, n_labels)
        if self.splits is not None and rule == "marginal":
            raise ParameterError(
                "these clients cannot be given your labels' shares ('marginal'), because their mixture "
                "has splits: use 'rank' or 'random' (--match rank, --match random)"
            )
        if self.splits is not None and not _is_permutation(parts):
            return Relabelled(self, parts, names)
        if self.splits is not None:
            splits = self.splits.renamed(parts.argmax(axis=1))
            return replace(self, alphas=splits.alphas(), splits=splits, categories=names)
        alphas = self.alphas @ parts
        if rule == "marginal":
            alphas = with_marginal(alphas, self.weights * self.sizes.mean(), wanted)
        return replace(self, alphas=alphas, categories=names, covariance=None)

    def resized(self, mean_size: MeanSize) -> "MDM | Relabelled":
        """The same clients with all sizes scaled, so that a client holds `mean_size` points in the mean.

        Laws are known for the sizes that they were learned from: with them, drawn counts are scaled.

        Examples
        --------
        >>> mdm = MDM([1.0], [[6.0, 1.0]], Sizes.constant(4)).resized(100)
        >>> f"{mdm.mean().sum():.0f}"
        '100'
        """
        if self.splits is not None and self.splits.laws is not None:
            return Relabelled(self, np.eye(self.n_categories), self.categories).resized(mean_size)
        return replace(self, sizes=scaled_sizes(self.sizes, self.weights, mean_size))

    def in_order_of(self, side: Side) -> "MDM":
        """The same mixture with its categories in the order of this side, which has to have them all."""
        at = positions(side_of(self, self.n_categories), side)
        if sorted(at) != list(range(n_of(side))):
            raise ParameterError(f"expected a mixture over {in_words(side)}, got {self!r}")
        if (at == np.arange(len(at))).all() or self.splits is not None:
            return self
        order = np.argsort(at)
        names = self.categories and tuple(self.categories[j] for j in order)
        return replace(self, alphas=self.alphas[:, order], categories=names, covariance=None)

    def size_marginal(self) -> Floats:
        """Probability that a client holds n points, over components, shape (max_size + 1,)."""
        return self.weights @ self.sizes.table()

    def draw(self, components: Ints, sizes: Ints, rng: np.random.Generator) -> Ints:
        """Histograms of clients of these components and sizes, small clients out of urns."""
        from polyurn.model.model_kernels import draw_counts

        if self.splits is not None:
            return self.splits.draw(components, sizes, rng)
        counts = np.zeros((len(sizes), self.n_categories), dtype=np.int64)
        by_urn = sizes <= _POINTS_PER_CATEGORY * self.n_categories
        by_urn &= np.isfinite(self.alphas.sum(axis=1))[components]
        draw_counts(self.alphas, components, np.where(by_urn, sizes, 0), counts, rng)
        large = np.flatnonzero(~by_urn)
        for block in row_blocks(len(large), self.n_categories):
            mine = large[block]
            proportions = dirichlet(self.alphas[components[mine]], rng)
            counts[mine] = rng.multinomial(sizes[mine], proportions)
        return counts

    def drawn(self, n_clients: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Clients' components, shape (n_clients,), and their histograms."""
        components = rng.choice(self.n_components, size=n_clients, p=self.weights)
        return components, self.draw(components, self.sizes.sample(components, rng=rng), rng)

    def _table(self, counts: object) -> Counts:
        """The histograms with these categories: an array has them in order, a table by name."""
        if names_of(counts) is None:
            return check_counts(counts, n_categories=self.n_categories)
        return laid(counts, side_of(self, self.n_categories))

    def _joint(self, counts: object) -> Floats:
        """Log τ_k + log p(c | n, α_k) + log π_k(n), shape (n_clients, n_components)."""
        table = self._table(counts)
        log_sizes = self.sizes.logpmf(client_sizes(table))
        joint = np.log(self.weights) + self.log_shares(table) + log_sizes
        return np.asarray(joint)

    def __repr__(self) -> str:
        shape = f"n_components={self.n_components}, n_categories={self.n_categories}"
        if self.categories is not None:
            shape += f" ({listed(self.categories)})"
        if self.splits is not None:
            shape += ", with laws" if self.splits.laws else ", with splits"
        return f"MDM({shape}, max_size={self.max_size}, weights={self.weights.round(3).tolist()})"


@checked
@dataclass(frozen=True, eq=False)
class Relabelled(EqualArrays):
    """Clients of a mixture with splits, whose drawn counts are merged and split into other labels.

    `parts`, of shape (mdm.n_categories, n_labels), says which part of each category's points becomes
    which label: rows sum to one. Clients hold `factor` times as many points as they were drawn with,
    rounded at random.
    """

    mdm: MDM
    parts: Floats
    categories: tuple[str, ...] | None = None
    factor: float = 1.0

    @property
    def n_categories(self) -> int:
        """The number of labels."""
        return int(self.parts.shape[1])

    @property
    def n_components(self) -> int:
        """The number of components of the mixture."""
        return self.mdm.n_components

    def mean(self) -> Floats:
        """Expected histogram of a client, shape (n_labels,)."""
        return np.asarray(self.factor * self.mdm.mean() @ self.parts)

    def resized(self, mean_size: MeanSize) -> "Relabelled":
        """As `MDM.resized`, by scaling drawn counts."""
        return replace(self, factor=mean_size / float(self.mdm.mean().sum()))

    def sample(self, n_clients: int, *, rng: Seed = None) -> Ints:
        """Draw the histograms of simulated clients, shape (n_clients, n_labels).

        A category that is split gives each client shares of its labels as a Dirichlet does, of the
        category's alpha times `parts`.
        """
        rng = np.random.default_rng(rng)
        components, drawn = self.mdm.drawn(n_clients, rng)
        is_split = np.count_nonzero(self.parts, axis=1) > 1
        counts = drawn[:, ~is_split] @ self.parts[~is_split].astype(np.int64)
        for j in np.flatnonzero(is_split):
            labels = np.flatnonzero(self.parts[j])
            alphas = self.mdm.alphas[components, j][:, None] * self.parts[j, labels]
            counts[:, labels] += rng.multinomial(drawn[:, j], dirichlet(alphas, rng))
        if self.factor == 1:
            return np.asarray(counts)
        scaled = np.floor(self.factor * counts + rng.random(counts.shape)).astype(np.int64)
        empty = np.flatnonzero(scaled.sum(axis=1) == 0)
        scaled[empty, counts[empty].argmax(axis=1)] = 1
        return np.asarray(scaled)

    def __repr__(self) -> str:
        labels = f"{self.n_categories}" + (
            f" ({listed(self.categories)})" if self.categories else ""
        )
        return (
            f"Relabelled(n_categories={labels}, mean_size={self.mean().sum():.4g}, mdm={self.mdm})"
        )


@dataclass(frozen=True, eq=False)
class Parameters:
    """τ, A and Π with the components in an order that does not change: what a fit works on.

    An `MDM` sorts its components; a fit has to know which one is which from round to round.
    """

    weights: Annotated[Floats, Shape("K")]
    alphas: Annotated[Floats, Shape("K", "C")]
    sizes: Sizes

    def mdm(self) -> MDM:
        """The distribution with these parameters."""
        return MDM(self.weights, self.alphas, self.sizes)


def dirichlet_multinomial_logpmf(counts: ArrayLike, alpha: ArrayLike) -> Floats:
    """Log-probability of a histogram under a Dirichlet-multinomial (equation 1).

    Parameters
    ----------
    counts : int array of shape (..., n_categories)
    alpha : float array of shape (..., n_categories)
        Broadcasts against `counts`.

    Returns
    -------
    float array of shape (...)

    Examples
    --------
    >>> dirichlet_multinomial_logpmf([1, 2, 3], [3.0, 4.0, 5.0]).round(4)
    np.float64(-2.467)
    """
    counts, alpha = numbers(counts, "counts", error=CountsError), floats(alpha, "alpha")
    check_values(counts)
    shapes = [counts.shape, alpha.shape]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        shapes.append(())
    if () in shapes or counts.shape[-1] != alpha.shape[-1]:
        raise CountsError(
            "expected counts and alpha of shape (..., n_categories) that broadcast, got shapes "
            f"{counts.shape} and {alpha.shape}"
        )
    if not (np.isfinite(alpha).all() and (alpha >= 0).all() and (alpha.sum(axis=-1) > 0).all()):
        raise ParameterError(
            "expected alpha finite and not negative, with a positive one for some category"
        )
    n, alpha_0 = counts.sum(axis=-1), alpha.sum(axis=-1)
    # Γ(c + α)/Γ(α) over Γ(n + α_0)/Γ(α_0), each divided by α_0 per point so that α_0 → ∞ is exact.
    totals = scipy.special.gammaln(n + 1) - log_rising(alpha_0, n, scale=alpha_0)
    terms = log_rising(alpha, counts, scale=alpha_0[..., None]) - scipy.special.gammaln(counts + 1)
    return np.asarray(totals + terms.sum(axis=-1))[()]


def mixture_logpmf(counts: Counts, alphas: Floats) -> Floats:
    """Equation 1 for every client and component, shape (n_clients, n_components)."""
    n_clients, n_categories = counts.shape
    out = np.empty((n_clients, len(alphas)))
    for block in row_blocks(n_clients, n_categories):
        out[block] = _block_logpmf(scipy.sparse.csr_array(counts[block]), alphas)
    return out


def at_cap(alphas: Floats) -> Bools:
    """Which concentrations are at the cap, shape (..., n_components), rounding aside."""
    return np.asarray(alphas.sum(axis=-1) >= MAX_CONCENTRATION * (1 - np.finfo(float).eps ** 0.5))


def _block_logpmf(rows: "scipy.sparse.csr_array", alphas: Floats) -> Floats:
    """`dirichlet_multinomial_logpmf`, evaluated once per distinct (category, count) and gathered."""
    alpha_0 = alphas.sum(axis=1)
    n, which_n = distinct(client_sizes(rows))
    totals = scipy.special.gammaln(n + 1)[:, None] - log_rising(alpha_0, n[:, None], scale=alpha_0)

    def terms(category: Ints, count: Ints) -> Floats:
        of_pairs = log_rising(alphas.T[category], count[:, None], scale=alpha_0)
        return np.asarray(of_pairs - scipy.special.gammaln(count + 1)[:, None])

    return np.asarray(totals[which_n] + gathered(rows, terms))


def checked_draw(n_clients: int, n_categories: int, *, least: int = 1) -> int:
    """The number of clients, if it is one and their histograms fit into memory."""
    if not least <= n_clients < 2**31 or int(n_clients) != n_clients:
        raise ParameterError(f"expected {least} to 2**31 - 1 clients, got {n_clients}")
    what = f"the histograms of {counted(n_clients, 'client')}"
    check_memory(8 * n_clients * n_categories, what, "draw fewer at a time")
    return int(n_clients)


def dirichlet(alphas: Floats, rng: np.random.Generator) -> Floats:
    """One draw per row. Gamma variates of a small shape underflow, so they are kept as logs:
    G(α) = G(α + 1) U^(1/α) in distribution.
    """
    log_gamma = np.log(rng.standard_gamma(alphas + 1.0))
    with np.errstate(divide="ignore"):  # α = 0 gives log 0
        log_gamma += np.log(rng.random(alphas.shape)) / alphas
    log_gamma -= log_gamma.max(axis=1, keepdims=True)
    draws = np.exp(log_gamma)
    return np.asarray(draws / draws.sum(axis=1, keepdims=True))


def _per_client(values: Floats, counts: object) -> Floats:
    """The result for the caller's own shape: one histogram gives one value."""
    one = not scipy.sparse.issparse(counts) and np.asarray(counts).ndim == 1
    return values[0] if one else values


def _is_permutation(parts: Floats) -> bool:
    return all(np.array_equal(np.count_nonzero(parts, axis=i), np.ones(len(parts))) for i in (0, 1))


def _reordered(covariance: Floats, alphas: Floats, splits: Splits | None, order: Ints) -> Floats:
    """The covariance of the components in another order, checked."""
    n, each = alphas.shape[0] * (alphas.shape[1] + 1), alphas.shape[1] + 1
    if splits is not None or covariance.shape != (n * (n + 1) // 2,):
        raise ParameterError(
            f"expected a covariance of {n * (n + 1) // 2:,} numbers, and no splits, got shape "
            f"{covariance.shape}"
        )
    square = symmetric(covariance)
    values = np.linalg.eigvalsh(square) if np.isfinite(square).all() else np.full(1, -np.inf)
    if values[0] < -_COVARIANCE_TOLERANCE * values[-1]:
        raise ParameterError("expected a covariance that is finite, with no negative variance")
    at = np.arange(n).reshape(-1, each)[order].ravel()
    return np.asarray(square[np.ix_(at, at)][np.tri(n, dtype=bool)])


def _check_splits(splits: Splits, alphas: Floats) -> None:
    wanted = (splits.n_components, splits.tree.n_categories)
    if wanted != alphas.shape:
        raise ParameterError(
            f"expected splits of {counted(alphas.shape[0], 'component')} and "
            f"{counted(alphas.shape[1], 'category')}, got {wanted[0]} and {wanted[1]}"
        )
    if not np.allclose(alphas, splits.alphas(), rtol=_ALPHAS_TOLERANCE, atol=0):
        raise ParameterError("expected alphas that are those of the splits; pass None instead")


def _check_parameters(weights: Floats, alphas: Floats, sizes: Sizes) -> None:
    if weights.ndim != 1 or len(weights) == 0:
        raise ParameterError(f"expected weights of shape (n_components,), got {weights.shape}")
    if alphas.ndim != 2 or len(alphas) != len(weights) or alphas.shape[1] < 2:
        raise ParameterError(
            f"expected alphas of shape ({len(weights)}, at least 2 categories), got {alphas.shape}"
        )
    if sizes.n_components != len(weights):
        raise ParameterError(
            f"expected sizes for {counted(len(weights), 'component')}, got {sizes.n_components}"
        )
    if not (weights > 0).all() or not np.isfinite(weights).all():
        raise ParameterError("expected positive, finite weights")
    off = abs(weights.sum() - 1)
    if off > SUM_TOLERANCE:
        raise ParameterError(f"expected weights that sum to 1, got {weights.sum():.12g}")
    if not ((alphas >= 0).all() and np.isfinite(alphas).all() and (alphas.sum(axis=1) > 0).all()):
        raise ParameterError(
            "expected alphas that are finite and not negative, with a positive one in each row"
        )

"""Who the simulated clients are: histograms from the paper's baselines, and from one Dirichlet.

Each function returns counts, as `MDM.sample` does. Which points the clients hold is `partitioning.py`.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.counts import check_counts
from polyurn.errors import ParameterError
from polyurn.memory import check_room
from polyurn.model.mdm import MDM
from polyurn.model.sizes import SizeBins, Sizes

# The sizes of clients to draw from, or their distribution.
SizesLike: TypeAlias = Sizes | ArrayLike


def iid_counts(
    n_clients: int,
    *,
    sizes: SizesLike,
    marginal: ArrayLike,
    rng: int | np.random.Generator | None = None,
) -> NDArray[np.int64]:
    """Draw *fully IID* clients: a true size each, and every point from the proxy data's marginal.

    Parameters
    ----------
    n_clients : int
    sizes : int array of shape (n_true_clients,), or Sizes of one component
        The sizes of true clients, each as likely as the others, or the distribution of sizes.
    marginal : float array of shape (n_categories,)
        How frequent each category is in the proxy data: counts or probabilities.
    rng : int or numpy.random.Generator

    Returns
    -------
    int array of shape (n_clients, n_categories)

    Examples
    --------
    >>> iid_counts(3, sizes=[4, 9], marginal=[50, 30, 20], rng=0).sum(axis=1).tolist()
    [9, 4, 4]
    """
    rng = np.random.default_rng(rng)
    probabilities = _marginal(marginal)
    _check_room(_whole(n_clients), len(probabilities))
    return rng.multinomial(_draw_sizes(n_clients, sizes, rng), probabilities)


def dirichlet_counts(
    n_clients: int,
    *,
    alpha: ArrayLike,
    sizes: SizesLike,
    n_categories: int | None = None,
    marginal: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
) -> NDArray[np.int64]:
    """Draw clients whose proportions come from one Dirichlet: what everybody uses today.

    Parameters
    ----------
    n_clients : int
    alpha : float, or float array of shape (n_categories,)
        A vector is used as it is. A number is the alpha of each of `n_categories` (the symmetric
        Dirichlet); with `marginal` it is the concentration, and alpha is `alpha * marginal`.
    sizes : int array of shape (n_true_clients,), or Sizes of one component
        The sizes of true clients, each as likely as the others, or the distribution of sizes.
    n_categories : int, optional
        For a number as `alpha`, unless `marginal` is given.
    marginal : float array of shape (n_categories,), optional
        How frequent each category is: counts or probabilities.
    rng : int or numpy.random.Generator

    Returns
    -------
    int array of shape (n_clients, n_categories)

    Examples
    --------
    >>> dirichlet_counts(2, alpha=0.1, sizes=[20], n_categories=3, rng=0).sum(axis=1).tolist()
    [20, 20]
    >>> dirichlet_counts(1000, alpha=5.0, sizes=[20], marginal=[3, 1, 0], rng=0)[:, 2].any()
    np.False_
    """
    rng = np.random.default_rng(rng)
    mdm = MDM([1.0], _alphas(alpha, n_categories, marginal)[None], _distribution(sizes))
    return mdm.sample(_whole(n_clients), rng=rng)


def oracle_counts(
    counts: object,
    n_clients: int | None = None,
    *,
    rng: int | np.random.Generator | None = None,
) -> NDArray[np.int64]:
    """The true clients' own histograms, for *conditionally IID* clients.

    Partitioned, these clients have exactly the true clients' histograms of the modelled feature, and
    given that feature everything else is IID. An oracle: no server may have these histograms.

    Parameters
    ----------
    counts : int array or scipy.sparse of shape (n_true_clients, n_categories)
    n_clients : int, optional
        How many of them, drawn at random; each once before any is taken twice. All of them, in
        their order, by default.
    rng : int or numpy.random.Generator
        For `n_clients`.

    Returns
    -------
    int array of shape (n_clients, n_categories)

    Examples
    --------
    >>> oracle_counts([[1, 2], [3, 0]]).tolist()
    [[1, 2], [3, 0]]
    """
    table = check_counts(counts)
    _check_room(table.shape[0] if n_clients is None else _whole(n_clients), table.shape[1])
    if n_clients is not None:
        rng = np.random.default_rng(rng)
        rounds, rest = divmod(_whole(n_clients), table.shape[0])
        chosen = [rng.permutation(table.shape[0]) for _ in range(rounds)]
        chosen.append(rng.choice(table.shape[0], rest, replace=False))
        table = table[np.concatenate(chosen)]
    dense = table if isinstance(table, np.ndarray) else table.toarray()
    return dense.astype(np.int64)


def _check_room(n_clients: int, n_categories: int) -> None:
    what = f"the histograms of {n_clients} clients"
    check_room(8 * n_clients * n_categories, what, "draw fewer at a time")


def _draw_sizes(n_clients: int, sizes: SizesLike, rng: np.random.Generator) -> NDArray[np.int64]:
    distribution = _distribution(sizes)
    return distribution.sample(np.zeros(_whole(n_clients), np.int64), rng=rng)


def _distribution(sizes: SizesLike) -> Sizes:
    """The distribution of sizes; a list of sizes stands for its own histogram."""
    if isinstance(sizes, Sizes):
        if sizes.n_components != 1:
            raise ParameterError(
                f"expected sizes of one component, got {sizes.n_components}; mix them first "
                "(Sizes.from_table([mdm.size_marginal()]))"
            )
        return sizes
    given: NDArray[Any] = np.asarray(sizes)
    if given.ndim != 1 or len(given) == 0 or given.dtype.kind not in "iuf":
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


def _alphas(
    alpha: ArrayLike, n_categories: int | None, marginal: ArrayLike | None
) -> NDArray[np.float64]:
    given = np.asarray(alpha, dtype=np.float64)
    if given.ndim == 0 and marginal is not None:
        given = given * _marginal(marginal)
    elif given.ndim == 0:
        if n_categories is None:
            raise ParameterError("expected n_categories or marginal with a single alpha")
        given = np.full(_whole(n_categories), given)
    elif marginal is not None:
        raise ParameterError("expected a single alpha, the concentration, with marginal")
    if given.ndim != 1 or n_categories not in (None, len(given)):
        raise ParameterError(
            f"expected alpha as a number or of shape ({n_categories or 'n_categories'},), "
            f"got shape {given.shape}"
        )
    return given


def _marginal(marginal: ArrayLike) -> NDArray[np.float64]:
    """How frequent each category is, summing to one."""
    given = np.asarray(marginal, dtype=np.float64)
    if given.ndim != 1 or len(given) < 2:
        raise ParameterError(f"expected a marginal of shape (n_categories,), got {given.shape}")
    if not (np.isfinite(given).all() and (given >= 0).all() and given.sum() > 0):
        raise ParameterError("expected a marginal of counts or probabilities, not all of them 0")
    return np.asarray(given / given.sum())


def _whole(number: int) -> int:
    if not 1 <= number < 2**31 or int(number) != number:
        raise ParameterError(f"expected a whole number of at least 1, got {number}")
    return int(number)

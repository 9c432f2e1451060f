"""Clients that ask for more than is left, drawn again without the categories that have run out.

Clients are served in their order, each from what those before it left over. Which points they get is
`assign.py`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyurn.counts import Counts, check_counts
from polyurn.errors import ShortfallError
from polyurn.model.mdm import MDM
from polyurn.model.rising_factorials import log_rising
from polyurn.populations import Population
from polyurn.wording.numbers import counted

# How many clients of a population are looked at before it is said that it has none that fits.
_TRIES = 1024


@dataclass(frozen=True)
class Served:
    """The histograms that could be served.

    Attributes
    ----------
    counts : int array of shape (n_served, n_categories)
    stock : int array of shape (n_categories,)
        What is left.
    redrawn : int array of shape (n_redrawn,)
        Which of them are not what they asked for.
    cut : int
        How many points fewer than it asked for the last one holds, because nothing was left.
    """

    counts: NDArray[np.int64]
    stock: NDArray[np.int64]
    redrawn: NDArray[np.int64]
    cut: int


def serve(
    counts: NDArray[np.int64],
    stock: NDArray[np.int64],
    population: Population,
    rng: np.random.Generator,
) -> Served:
    """Serve clients one after the other until all are served or nothing is left.

    Parameters
    ----------
    counts : int array of shape (n_clients, n_categories)
    stock : int array of shape (n_categories,)
        How many points there are of each category.
    population : Population
        Where a client comes from that cannot have what it asks for.
    """
    counts, stock = counts.copy(), stock.copy()
    redrawn: list[int] = []
    start, step, cut = 0, 64, 0
    while start < len(counts) and stock.any():
        needed = np.cumsum(counts[start : start + step], axis=0)
        short = (needed > stock).any(axis=1)
        n_served = int(short.argmax()) if short.any() else len(needed)
        if n_served:
            stock -= needed[n_served - 1]
        start += n_served
        # Where one client is short the next ones will be: look at few of them at a time.
        step = max(1, step // 2) if short.any() else 2 * step
        if short.any() and stock.any():
            asked, left = int(counts[start].sum()), int(stock.sum())
            counts[start] = stock if asked >= left else redraw(asked, stock, population, rng)
            stock -= counts[start]
            redrawn.append(start)
            cut = max(asked - left, 0)
            start += 1
    return Served(counts[:start], stock, np.array(redrawn, np.int64), cut)


def redraw(
    size: int, stock: NDArray[np.int64], population: Population, rng: np.random.Generator
) -> NDArray[np.int64]:
    """A client of the population that holds `size` points, and of no category more than `stock`.

    Its points are drawn from the categories that are not empty. Where that empties another one, the
    points that are missing are drawn from those that are left then, given what the client holds: each
    time round there is one category fewer.

    Parameters
    ----------
    size : int
        At most `stock.sum()`.
    stock : int array of shape (n_categories,)
    population : Population

    Returns
    -------
    int array of shape (n_categories,)

    Raises
    ------
    ShortfallError
        The population has no client that holds only what is left.
    """
    counts = np.zeros(len(stock), np.int64)
    missing = size
    while missing:
        left = stock - counts > 0
        if isinstance(population, MDM):
            more = _continued(population, counts, missing, left, rng)
        else:
            more = _borrowed(population, missing, left, rng)
        more = np.minimum(more, stock - counts)
        counts += more
        missing -= int(more.sum())
    return counts


def _continued(
    mdm: MDM,
    counts: NDArray[np.int64],
    missing: int,
    left: NDArray[np.bool_],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """The next `missing` points of a client that holds `counts`, given that all are from `left`.

    A Pólya urn that goes on: component by its posterior probability, then a Dirichlet-multinomial of
    alpha + counts on the categories that are left.
    """
    size = int(counts.sum()) + missing
    alpha_0 = mdm.alphas.sum(axis=1)
    kept = np.where(left, mdm.alphas + counts, 0.0)
    # log_rising(0, n) is -inf: a component that makes nothing of what is left has probability 0.
    rest, all_of_it = log_rising([kept.sum(axis=1), alpha_0], [[missing], [size]], scale=alpha_0)
    logs = np.log(mdm.weights) + mdm.sizes.logpmf([size])[0] + rest - all_of_it
    if counts.any():
        logs += log_rising(mdm.alphas, counts, scale=alpha_0[:, None]).sum(axis=1)
    if np.isneginf(logs).all():
        raise _no_client(left, f"of {counted(size, 'point')}")
    odds = np.exp(logs - logs.max())
    alpha = kept[rng.choice(mdm.n_components, p=odds / odds.sum())]
    more = np.zeros(len(alpha), np.int64)
    more[alpha > 0] = rng.multinomial(missing, rng.dirichlet(alpha[alpha > 0]))
    return more


def _borrowed(
    population: Population,
    missing: int,
    left: NDArray[np.bool_],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """`missing` points like those that a client of the population has of what is `left`.

    A part of that client's points if it has enough of them, and all of them several times over if not.
    """
    tried = 0
    while tried < _TRIES:
        drawn = sample_counts(population, max(1, tried), rng)
        tried += len(drawn)
        drawn[:, ~left] = 0
        fits = np.flatnonzero(drawn.any(axis=1))
        if len(fits):
            client = drawn[fits[0]]
            times, rest = divmod(missing, int(client.sum()))
            part = rng.multivariate_hypergeometric(client, rest, method="marginals")
            return np.asarray(client * times + part)
    raise _no_client(left, f"among {tried}")


def sample_counts(
    population: Population, n_clients: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw clients of a population and check them; an array of their own."""
    drawn = population.sample(n_clients, rng=rng)
    return dense(check_counts(drawn, n_categories=population.n_categories))


def dense(counts: Counts) -> NDArray[np.int64]:
    """Histograms as a new array of 64-bit whole numbers."""
    return (counts if isinstance(counts, np.ndarray) else counts.toarray()).astype(np.int64)


def _no_client(left: NDArray[np.bool_], which: str) -> ShortfallError:
    return ShortfallError(
        f"the population has no client {which} that holds only categories of which points are left "
        "({}); use another population, or fewer clients",
        np.flatnonzero(left).tolist(),
    )

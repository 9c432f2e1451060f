"""Which proxy points each simulated client holds: histograms in, indices out.

Every histogram is matched exactly where the proxy data allow it; where they do not, the caller has
chosen what is to happen, and the report has what did. Clients are served in their order, each from what
those before it left over; one that asks for more than is left can be drawn again, without the categories
that have run out. How points are drawn is `draw_kernels.py`, and nothing is written here.
"""

import warnings
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from polyurn.counts import Counts, check_counts, client_sizes
from polyurn.errors import ParameterError, PartitionError, ShortfallError, StyleWarning
from polyurn.memory import check_memory
from polyurn.model.mdm import MDM
from polyurn.model.names import Labels, Match, Side, columns_of, positions, side_of
from polyurn.model.populations import Population, Styled, check_population, drawn_from
from polyurn.model.rising_factorials import log_rising
from polyurn.model.style import Style
from polyurn.partitioning.result import Partition, PartitionReport, check_labels
from polyurn.partitioning.styled import draw_with_style
from polyurn.typed.arguments import checked
from polyurn.typed.arrays import numbers
from polyurn.typed.declared import Bools, Ints, Seed
from polyurn.wording import counted

Shortfall: TypeAlias = Literal["reuse", "refuse", "resample"]

# Clients that `cover` draws at a time: 32 MB of histograms.
_BATCH_CELLS = 4_000_000
# How many clients of a population are drawn before an error says that it has none that fits.
_TRIES = 1024


@checked
def partition(
    labels: ArrayLike | Labels,
    clients: object,
    *,
    n_clients: int | None = None,
    replace: bool = True,
    shortfall: Shortfall = "reuse",
    population: Population | None = None,
    style: Style | None = None,
    features: ArrayLike | None = None,
    match: Match | None = None,
    test: float | None = None,
    rng: Seed = None,
) -> Partition:
    """Give each client proxy points that have its histogram.

    A client draws from each category at random, without replacement: it holds no point twice
    unless it asks for more than there are. Several clients may hold a point, unless `replace` is False
    and `shortfall` "refuse", or with `cover`. With a style, each client also has a style of its own and
    prefers points of that style; the histograms are the same.

    Parameters
    ----------
    labels : int or str array of shape (n_points,), or Labels
        The category of each proxy point: its number, 0 to C - 1, if the clients' categories have no
        names; else its name.
    clients : Population, Histograms, int array or scipy.sparse of shape (n_clients, n_categories)
        The histograms, or the population (an MDM, say) that they are drawn from.
    n_clients : int, optional
        How many clients are drawn, with a population and only then.
    replace : bool
        Whether a client's points go back before the next one draws, as in the paper. Clients are
        then independent of each other, and a point may serve several of them. If not, each point is
        given once until its category is used up.
    shortfall : {"reuse", "refuse", "resample"}
        What happens when a category is used up: for one client with `replace`, for all of them
        together without it. "reuse" gives points again, as evenly as possible: no point is given
        n + 2 times before all have been given n + 1 times. "refuse" raises an error. "resample"
        draws the client that comes too late again from `population`, with its own size and
        without the categories that are used up.
    population : Population, optional
        For "resample"; by default the one that the clients were drawn from.
    style : Style, optional
        What clients differ in besides their labels, from `fit_style`; a `Styled` population's own by
        default. Categories are then labels. A client draws points in proportion to how much more
        frequent they are in its style than in the proxy data. Clients are then not quite independent of
        each other: a point is 0.3 times as likely as before each time it is given, so that clients
        together are like the proxy data.
    features : array of shape (n_points, ...), optional
        Of the proxy points, as the style's space has them; with a style and only then.
    match : mapping of str to str, or "position", optional
        Labels that are called otherwise: {label: category}; or the distinct labels, sorted, are the
        categories in their order, and integers from 0 are positions.
    test : float, optional
        The share of each client's points that it is tested on: `Partition.with_test`.
    rng : int or numpy.random.Generator

    Raises
    ------
    PartitionError
        A category that is asked for has no points, labels are not categories, a category is short
        under "refuse", or a client cannot be drawn again.
    MemoryLimitError
        The partition is larger than the memory that is available.

    Warns
    -----
    StyleWarning
        The proxy data have too few points of the clients' styles; some directions of the style were
        left out, which `report.style` has.

    Examples
    --------
    >>> labels = [0, 1, 1, 2, 0, 1]
    >>> parts = partition(labels, [[1, 2, 0], [0, 1, 1]], rng=0)
    >>> [np.bincount(np.take(labels, mine), minlength=3).tolist() for mine in parts]
    [[1, 2, 0], [0, 1, 1]]
    >>> from polyurn.model.populations import IID
    >>> partition(labels, IID([2, 3, 1], sizes=[2, 4]), n_clients=3, rng=0).sizes.tolist()
    [4, 2, 2]
    """
    if isinstance(labels, str | Population):
        raise ParameterError("expected labels first, then clients: partition(labels, clients)")
    if isinstance(clients, str):
        raise ParameterError(
            f"expected clients as histograms or a population, got {clients!r}; of a federation of the "
            f"zoo: polyurn.zoo.like({clients!r}, labels)"
        )
    source = clients if isinstance(clients, Styled) else population
    style, features = _with_style(source, style, features)
    rng = np.random.default_rng(rng)
    table, categories = _histograms(clients, n_clients, rng)
    if shortfall == "resample" and population is None:
        population = drawn_from(clients)
    if (shortfall == "resample") != (population is not None):
        raise ParameterError("expected a population with shortfall='resample', and only then")
    if population is not None:  # whose categories may be in another order
        n_theirs = check_population(population).n_categories
        if n_theirs != table.shape[1]:
            raise ParameterError(
                f"expected a population of {table.shape[1]:,} categories, like the clients, got one of "
                f"{n_theirs:,}"
            )
        theirs, categories = categories, side_of(population, table.shape[1])
        table = table[:, np.argsort(positions(theirs, categories))]
    codes = check_labels(labels, categories, match)
    names = None if isinstance(categories, int) else tuple(categories)
    available = np.bincount(codes, minlength=table.shape[1])
    asked = _column_sums(table)
    redrawn = np.empty(0, np.int64)
    if shortfall == "refuse":
        _refuse(_column_max(table) if replace else asked, available, names)
    elif shortfall == "resample" and population is not None:
        table, redrawn = _resample(table, available, population, replace, rng)
    empty = np.flatnonzero((_column_sums(table) > 0) & (available == 0))
    if len(empty):
        raise ShortfallError(
            "clients ask for points of categories that the proxy data do not have: {}; draw clients "
            "without them, or use shortfall='resample' (--shortfall resample on the command line)",
            empty.tolist(),
            names=names,
        )
    done = _given(
        codes,
        table,
        style,
        features,
        rng,
        asked=asked,
        redrawn=redrawn,
        replace=replace,
        names=names,
    )
    return done if test is None else done.with_test(test, codes, rng=rng)


@checked
def cover(
    labels: ArrayLike | Labels,
    population: Population,
    *,
    style: Style | None = None,
    features: ArrayLike | None = None,
    match: Match | None = None,
    rng: Seed = None,
) -> Partition:
    """Draw clients until the proxy data are used up, each point once.

    Clients are drawn from the population one after the other. One that asks for more than is left
    is drawn again with its own size, without the categories that are used up; the last one takes what
    is left. The report says how many these were: where the proxy data's categories are not
    distributed as the population's, many.

    Parameters
    ----------
    labels : int or str array of shape (n_points,), or Labels
        The category of each proxy point, as in `partition`.
    population : Population
        An MDM, say; it has as many categories as the labels.
    style, features, match : optional
        As in `partition`. The last clients find few points to choose from, and differ less.
    rng : int or numpy.random.Generator

    Raises
    ------
    PartitionError
        The population has no clients that hold only the categories that are left.

    Examples
    --------
    >>> from polyurn.model.mdm import MDM
    >>> from polyurn.model.sizes import Sizes
    >>> mdm = MDM([1.0], [[2.0, 1.0]], Sizes.constant(4))
    >>> parts = cover([0, 1, 0, 0, 1, 0], mdm, rng=0)
    >>> parts.sizes.tolist(), sorted(parts.indices.tolist())
    ([4, 2], [0, 1, 2, 3, 4, 5])
    """
    style, features = _with_style(population, style, features)
    rng = np.random.default_rng(rng)
    n_categories = check_population(population).n_categories
    codes = check_labels(labels, side_of(population, n_categories), match)
    if len(codes) == 0:
        raise PartitionError("expected at least one proxy point, got none")
    available = np.bincount(codes, minlength=n_categories)
    left, asked = available, np.zeros(n_categories, np.int64)
    parts: list[Ints] = []
    redrawn: list[Ints] = []
    n_clients, n_drawn, cut = 0, 16, 0
    while left.any():  # every client takes a point at least
        drawn = sample_counts(population, n_drawn, rng)
        served = serve(drawn, left, population, rng)
        left, cut = served.left, served.cut
        asked += drawn[: len(served.counts)].sum(axis=0)
        parts.append(served.counts)
        redrawn.append(served.redrawn + n_clients)
        n_clients += len(served.counts)
        n_drawn = min(2 * n_drawn, _BATCH_CELLS // n_categories + 1)
    return _given(
        codes, np.concatenate(parts), style, features, rng, asked=asked,
        redrawn=np.concatenate(redrawn), cut=cut, replace=False,
    )  # fmt: skip


@checked
def held_categories(counts: object, labels: ArrayLike) -> Counts:
    """The same clients, without points of categories that the proxy data have none of.

    Clients who hold nothing else are left out. Small categories may be missing from a server's data by
    chance; if much is, the data cannot stand for these clients.

    Parameters
    ----------
    counts : int array or scipy.sparse of shape (n_clients, n_categories)
    labels : int array of shape (n_points,)
        The category of each proxy point.

    Returns
    -------
    int array or scipy.sparse of shape (n_left, n_categories)

    Examples
    --------
    >>> held_categories([[1, 2, 0], [0, 3, 0], [2, 0, 4]], [0, 0, 2]).tolist()
    [[1, 0, 0], [2, 0, 4]]
    """
    table = check_counts(counts)
    there = has_points(labels, table.shape[1])
    if isinstance(table, np.ndarray):
        kept: Counts = np.where(there, table, 0)
    else:
        kept = sparse.csr_array(table.multiply(there[None]))
        kept.eliminate_zeros()
    return kept[np.flatnonzero(client_sizes(kept))]


def has_points(labels: ArrayLike, n_categories: int) -> Bools:
    """Which of so many categories the proxy data have, shape (n_categories,)."""
    return np.isin(np.arange(n_categories), numbers(labels, "labels"))


def _histograms(
    clients: object, n_clients: int | None, rng: np.random.Generator
) -> tuple[Counts, Side]:
    """The histograms that clients ask for, drawn if they are given as a population; the categories."""
    population = drawn_from(clients)
    if population is None:
        if n_clients is not None:
            raise ParameterError(
                "n_clients has no effect with histograms, whose clients are all taken: leave it out"
            )
        table, _ = columns_of(clients)
        return table, side_of(clients, table.shape[1])
    if n_clients is None:
        raise ParameterError("expected how many clients of the population to draw: n_clients=500")
    table = sample_counts(population, n_clients, rng)
    return table, side_of(population, population.n_categories)


def _given(
    codes: Ints, table: Counts, style: Style | None, features: ArrayLike | None,
    rng: np.random.Generator, *, asked: Ints, redrawn: Ints, cut: int = 0, replace: bool,
    names: tuple[str, ...] | None = None,
) -> Partition:  # fmt: skip
    """The partition of clients with these histograms, all of which can be served."""
    from polyurn.partitioning import draw_kernels as draw

    offsets = np.concatenate([[0], np.cumsum(client_sizes(table))])
    n_given, n_points = int(offsets[-1]), len(codes)
    # The indices; for each proxy point its position in the urns and who holds it; cursors.
    check_memory(
        8 * n_given + 12 * n_points + 8 * len(offsets),
        f"the indices of the {counted(n_given, 'point')} that clients ask for",
        "partition fewer clients at a time",
    )
    indices = np.empty(n_given, np.int64)
    available = np.bincount(codes, minlength=table.shape[1])
    starts = np.concatenate([[0], np.cumsum(available)])
    urns = np.empty(n_points, np.int32 if n_points < 2**31 else np.int64)
    draw.fill_urns(codes, starts[:-1].copy(), urns)
    cursors, served = offsets[:-1].copy(), None
    if style is not None and features is not None:
        each = np.split(urns, starts[1:-1])
        served = draw_with_style(style, features, codes, each, table, indices, replace, rng)
        if served.remark is not None:
            warnings.warn(served.remark, StyleWarning, stacklevel=4)  # `checked` stands between
    elif isinstance(table, np.ndarray):
        draw.draw_dense(table, starts, urns, cursors, indices, replace, rng)
    else:
        cells = table.tocsc()
        draw.draw_sparse(
            cells.indptr, cells.indices, cells.data, starts, urns, cursors, indices, replace, rng
        )
    draw.shuffle_clients(offsets, indices, rng)
    n_used, n_shared = draw.count_held(offsets, indices, np.full(n_points, -1, np.int32))
    repeats = np.zeros(len(available), np.int64)  # beyond one of each point that there is
    if (_column_max(table) > available).any():
        held = sparse.coo_array(table)
        np.add.at(repeats, held.col, np.maximum(held.data - available[held.col], 0))
    report = PartitionReport(
        available=available, asked=asked, given=_column_sums(table), n_used=n_used, n_shared=n_shared,
        repeats=repeats, redrawn=redrawn, cut=cut, style=served, categories=names,
    )  # fmt: skip
    return Partition(offsets, indices, report)


def _with_style(
    clients: object, style: Style | None, features: ArrayLike | None
) -> tuple[Style | None, ArrayLike | None]:
    """The style, the caller's or the population's, and features for it."""
    if isinstance(clients, Styled):
        if style is not None:
            raise ParameterError("expected one style, got another one with a Styled population")
        style = clients.style
        features = clients.features if features is None else features
    if (style is None) != (features is None):
        raise ParameterError("expected features of the proxy points with a style, and only then")
    return style, features


def _column_sums(table: Counts) -> Ints:
    return np.asarray(table.sum(axis=0, dtype=np.int64)).reshape(-1)


def _column_max(table: Counts) -> Ints:
    if isinstance(table, np.ndarray):
        return np.asarray(table.max(axis=0), np.int64)
    return np.asarray(table.max(axis=0).toarray(), np.int64).reshape(-1)


def _refuse(needed: Ints, available: Ints, names: tuple[str, ...] | None) -> None:
    missing = np.maximum(needed - available, 0)
    if missing.any():
        short = np.flatnonzero(missing)
        raise ShortfallError(
            f"the proxy data are short of {counted(int(missing.sum()), 'point')}: {{}}; draw fewer "
            "clients, or let points be given again (shortfall reuse)",
            short.tolist(),
            missing[short].tolist(),
            names,
        )


def _resample(
    table: Counts, available: Ints, population: Population, replace: bool, rng: np.random.Generator
) -> tuple[Counts, Ints]:
    """The same histograms, those that cannot be served drawn again; and which these are."""
    sizes, n_points = client_sizes(table), int(available.sum())
    needed = int(sizes.max()) if replace else int(sizes.sum())
    if needed > n_points:
        whose = "a client asks" if replace else "the clients ask"
        raise PartitionError(
            f"{whose} for {counted(needed, 'point')} and the proxy data have {n_points:,}; draw smaller "
            "clients, fewer of them, or use shortfall='reuse' (--shortfall reuse on the command line)"
        )
    if not replace:
        if (_column_sums(table) <= available).all():
            return table, np.empty(0, np.int64)
        served = serve(dense(table), available, population, rng)
        return served.counts, served.redrawn
    cells = sparse.coo_array(table)
    short = np.unique(cells.row[cells.data > available[cells.col]]).astype(np.int64)
    if len(short) == 0:
        return table, short
    counts = dense(table)
    for client in short:
        counts[client] = redraw(int(sizes[client]), available, population, rng)
    return counts, short


@dataclass(frozen=True)
class Served:
    """The histograms that could be served, what is left then, and which are not as they were asked for.

    `cut` is how many points fewer than it asked for the last one holds, because nothing was left.
    """

    counts: Ints  # (n_served, n_categories)
    left: Ints  # (n_categories,)
    redrawn: Ints  # (n_redrawn,)
    cut: int


def serve(
    counts: Ints, available: Ints, population: Population, rng: np.random.Generator
) -> Served:
    """Serve clients one after the other until all are served or nothing is left.

    Who cannot have what it asks for is drawn again from the population.
    """
    counts, available = counts.copy(), available.copy()
    redrawn: list[int] = []
    start, step, cut = 0, 64, 0
    while start < len(counts) and available.any():
        needed = np.cumsum(counts[start : start + step], axis=0)
        short = (needed > available).any(axis=1)
        n_served = int(short.argmax()) if short.any() else len(needed)
        if n_served:
            available -= needed[n_served - 1]
        start += n_served
        # Where one client is short the next ones will be: look at few of them at a time.
        step = max(1, step // 2) if short.any() else 2 * step
        if short.any() and available.any():
            asked, left = int(counts[start].sum()), int(available.sum())
            counts[start] = (
                available if asked >= left else redraw(asked, available, population, rng)
            )
            available -= counts[start]
            redrawn.append(start)
            cut = max(asked - left, 0)
            start += 1
    return Served(counts[:start], available, np.array(redrawn, np.int64), cut)


def redraw(size: int, available: Ints, population: Population, rng: np.random.Generator) -> Ints:
    """A client of `size` points, with no more of a category than is available, at most `available.sum()`
    in all.

    Its points are drawn from the categories that are not empty. Where that empties another one, the
    points that are missing are drawn from those that are left then, given what the client holds: each
    time round there is one category fewer.
    """
    counts = np.zeros(len(available), np.int64)
    missing = size
    while missing:
        left = available - counts > 0
        if isinstance(population, MDM) and population.splits is None:
            more = _continued(population, counts, missing, left, rng)
        else:
            more = _borrowed(population, missing, left, rng)
        more = np.minimum(more, available - counts)
        counts += more
        missing -= int(more.sum())
    return counts


def _continued(mdm: MDM, counts: Ints, missing: int, left: Bools, rng: np.random.Generator) -> Ints:
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


def _borrowed(population: Population, missing: int, left: Bools, rng: np.random.Generator) -> Ints:
    """`missing` points like those that a client of the population has of what is `left`.

    A part of that client's points if it has enough of them, and all of them several times over if not.
    Splits are drawn from so, too: given what a client does not hold, they have no closed form.
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


def sample_counts(population: Population, n_clients: int, rng: np.random.Generator) -> Ints:
    """Draw clients of a population and check them; an array of their own."""
    drawn = population.sample(n_clients, rng=rng)
    return dense(check_counts(drawn, n_categories=population.n_categories))


def dense(counts: Counts) -> Ints:
    """Histograms as a new array of 64-bit whole numbers."""
    return (counts if isinstance(counts, np.ndarray) else counts.toarray()).astype(np.int64)


def _no_client(left: Bools, which: str) -> ShortfallError:
    return ShortfallError(
        f"the population has no client {which} that holds only categories of which points are left "
        "({}); use another population, or fewer clients",
        np.flatnonzero(left).tolist(),
    )

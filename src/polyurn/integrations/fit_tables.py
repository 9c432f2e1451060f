"""`polyurn.fit`: learn a mixture from whatever there is, a table of counts or clients elsewhere.

A table is played in this process, and its bounds are its own unless they are declared; an aggregator's
clients are elsewhere, and their bounds have to be declared. `server/fitting.py` does the rest.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np

from polyurn.aggregate.local import LocalAggregator
from polyurn.client.columns import as_arrow, check_missing, column_counts
from polyurn.client.counting import Histograms
from polyurn.client.layout import NO_COLUMNS
from polyurn.client.tables import layout_histograms, observed_categories, table_layout
from polyurn.counts import Counts, check_counts, client_sizes
from polyurn.errors import CountsError, ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.names import names_of
from polyurn.model.trees import Tree
from polyurn.server.fit_results import Fit, Round
from polyurn.server.fit_settings import DEFAULT, Policy, Settings, Shape, SizeModel
from polyurn.server.fitting import DEAR_ROUNDS, ROUNDS, Components, fit_sums
from polyurn.typed.arguments import checked
from polyurn.wire import Aggregator
from polyurn.wording import counted, listed

# So many counts that go up by one from row to row number the rows.
_FEWEST_IDS = 10


@checked
def fit(
    clients: object,
    *,
    n_components: Components = "auto",
    n_categories: int | None = None,
    max_size: int | None = None,
    held_out: float | None = None,
    shape: Shape = "auto",
    tree: Tree | None = None,
    max_rounds: int | None = None,
    cohort_size: int | None = None,
    tol: float = 1e-3,
    patience: int = 3,
    max_upload: int = 50_000,
    sizes: SizeModel = "binned",
    size_prior: float = 1.0,
    category_prior: float = 1e-3,
    policy: Policy = DEFAULT,
    start: MDM | None = None,
    rng: int | np.random.Generator | None = None,
    on_round: Callable[[Round], None] | None = None,
) -> Fit:
    """Learn a mixture of Dirichlet-multinomials from sums over clients.

    Many starts climb in the same rounds. Several numbers of components climb in the same rounds, too,
    and clients that were not fitted choose the smallest one whose likelihood is within a quarter of a
    standard error of the best one's, judged on the difference between the two, client by client.
    `fit_paper` has the algorithms of the paper.

    Parameters
    ----------
    clients : array, scipy.sparse, data frame, Histograms or Aggregator
        Counts of shape (n_clients, n_categories); a frame with such columns, and maybe one called
        "client"; or an aggregator, which puts queries to clients elsewhere.
    n_components : int, iterable of int, or "auto"
        K, or the candidates. For a table "auto" tries more and more, until to double them gains less
        than a standard error. For an aggregator it offers 1, 2, 4, 8, ... in the same rounds, as far as
        `max_upload` allows.
    n_categories, max_size : int
        C and N: by default a table's own, which `Fit.taken` states. For an aggregator they have to be
        declared: what is measured from clients is released.
    held_out : float, optional
        The share of the clients that scores and is never fitted. By default nobody with one number of
        components; with several 0.2, and once these have chosen, the chosen mixture goes on with all
        clients for up to six rounds (not with sampled cohorts).
    shape : {"auto", "dirichlet", "tree", "laws"}
        What the components are: Dirichlet-multinomials, splits on a tree, or splits with laws. "auto"
        keeps the splits, then the laws, if held-out clients are likelier by more than a standard error.
        Only where clients are held out, and not with sampled cohorts.
    tree : Tree, optional
        Of the categories; else it is learned, or, of more than 300 categories, by their shares.
    max_rounds : int, optional
        Maximum number of rounds, of each group of numbers that climb together: by default 50, and 34
        where "auto" asks an aggregator. The up to six rounds after a choice are not among them.
    cohort_size : int, optional
        Clients per round, another cohort each time; every client by default.
    tol : float
        The rounds stop when less than this seems to be left to gain, in nats per client.
    patience : int
        Rounds without a gain of `tol` before it stops: in each of them new combinations of starts try
        to find a better optimum. Not for sampled cohorts.
    max_upload : int
        Numbers that a client may send in a round; they limit the starts and trials of a round. Numbers
        of components that do not fit into it side by side are fitted in groups.
    sizes : {"exact", "binned", "shared"} or SizeBins
        Probabilities for every single size (the paper), for logarithmic bins (most sizes of real clients
        are seen once or never), or for bins that all components share, so that sizes do not tell
        components apart. Inside a bin, sizes are spread as those of all clients together.
    size_prior, category_prior : float
        Pseudo-clients per component and per size bin, and pseudo-tables per category: sizes and
        categories that a cohort did not show stay possible. The paper has no priors.
    policy : Policy
        Every tuned number of the search; the defaults serve all data that we know.
    start : MDM, optional
        An earlier mixture of these categories, at which the search begins: fewer rounds, its number of
        components, and component i of the result is component i of the start, whatever their weights.
        Its components are Dirichlet-multinomials, and nobody is held out.
    rng : int or numpy.random.Generator
        For the random starts, and to play the clients of a table.
    on_round : callable, optional
        Called with each `Round` as it ends, to show progress or to keep the parameters.

    Returns
    -------
    Fit
        With its `candidates` where there were several.

    Examples
    --------
    >>> import polyurn as pu
    >>> from polyurn.model.paper_truths import truth
    >>> fit = pu.fit(truth("appendix-a").sample(1000, rng=0), rng=2)
    >>> fit.n_components, [one.n_components for one in fit.candidates]
    (3, [1, 2, 3, 4, 6, 8, 12, 16])
    >>> fit.taken
    '5 categories and max_size 100 from the table'
    >>> clients = pu.LocalAggregator(truth("medium/2").sample(2000, rng=0), rng=1)
    >>> fit = pu.fit(clients, n_components=2, n_categories=10, max_size=20, rng=2)
    >>> fit.mdm.weights.round(1).tolist(), fit.converged
    ([0.6, 0.4], True)
    """
    is_table = not _is_aggregator(clients)
    if max_rounds is None:
        max_rounds = ROUNDS if is_table or n_components != "auto" else DEAR_ROUNDS
    settings = Settings(
        max_rounds=max_rounds, cohort_size=cohort_size, tol=tol, patience=patience,
        max_upload=max_upload, shape=shape, tree=tree, policy=policy,
    )  # fmt: skip
    taken, names, streams, asked = "", None, rng, clients
    if is_table:
        play, streams = np.random.default_rng(rng).spawn(2)
        counts, names, how = _table(clients, n_categories)
        taken = _taken(counts, n_categories, max_size, how)
        if max_size is None:
            max_size = max(int(client_sizes(counts).max()), 0 if start is None else start.max_size)
        n_categories, asked = counts.shape[1], LocalAggregator(counts, rng=play)
    elif n_categories is None or max_size is None:
        raise ParameterError(
            "expected n_categories and max_size, declared, with an aggregator: what is measured from "
            "clients would be released"
        )
    names = names or names_of(clients)
    if start is not None:
        start = start.in_order_of(names or n_categories)
    found = fit_sums(
        cast(Aggregator, asked), n_components, n_categories=n_categories, max_size=max_size,
        settings=settings, held_out=held_out, at_once=not is_table, sizes=sizes,
        size_prior=size_prior, category_prior=category_prior, start=start, rng=streams,
        on_round=on_round,
    )  # fmt: skip
    return replace(found.named(names), taken=taken)


def _is_aggregator(clients: object) -> bool:
    """Whether these are clients to be asked; a data frame has an `aggregate` of its own."""
    is_table = hasattr(clients, "__array__") or hasattr(clients, "__arrow_c_stream__")
    return callable(getattr(clients, "aggregate", None)) and not is_table


def _table(table: object, n_categories: int | None) -> tuple[Counts, tuple[str, ...] | None, str]:
    """The histograms of a table, the names of its categories, and how it was read."""
    if isinstance(table, Histograms):
        return check_counts(table.counts, n_categories=n_categories), table.categories, ""
    if not hasattr(table, "__arrow_c_stream__"):
        return check_counts(table, n_categories=n_categories), None, ""
    plain: Any = table
    frame = as_arrow(plain.reset_index(drop=True) if hasattr(plain, "reset_index") else plain)
    names = frame.column_names
    if "client" in map(str.casefold, names) or any(not _is_numeric(frame, name) for name in names):
        layout = table_layout(frame, NO_COLUMNS)
        check_missing(frame, layout.read)
        wide, category = layout.wide, layout.category
        shown = wide if category is None else observed_categories(frame, category=category)
        read = layout_histograms(frame, layout, shown)
        counts = check_counts(read.counts, n_categories=n_categories)
        return counts, read.categories, "; ".join(layout.remarks)
    ids = [name for name in names if name.casefold().endswith("id") or _numbers_rows(frame, name)]
    if ids:
        raise CountsError(
            f"expected columns of counts, and column {ids[0]!r} seems to hold ids: call it 'client', or "
            "leave it out"
        )
    check_missing(frame, names)
    columns = np.stack([column_counts(frame, name) for name in names], axis=1)
    how = f"one row per client; the categories are {listed(names)}"
    return check_counts(columns, n_categories=n_categories), tuple(names), how


def _numbers_rows(frame: Any, name: str) -> bool:
    """Whether a column goes up by one from row to row."""
    values = frame.column(name).to_numpy()
    return len(values) >= _FEWEST_IDS and bool((np.diff(values) == 1).all())


def _is_numeric(frame: Any, name: str) -> bool:
    kind = str(frame.schema.field(name).type)
    return kind.startswith(("int", "uint", "float", "double", "half"))


def _taken(counts: Counts, n_categories: int | None, max_size: int | None, read: str) -> str:
    """What is not declared and comes from the table, in words."""
    bounds = [] if n_categories is not None else [counted(counts.shape[1], "category")]
    if max_size is None:
        bounds.append(f"max_size {client_sizes(counts).max():,}")
    texts = [read] if read else []
    return "; ".join(texts + ([f"{' and '.join(bounds)} from the table"] if bounds else []))

"""What to model, from a data frame of pandas, polars or Arrow: what `polyurn features` does.

The frame's clients are played in this process. How they are counted is `client/candidates.py`, and how
much they differ is `server/feature_choice.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from polyurn.aggregate.local import LocalAggregator
from polyurn.client.bins import Bins
from polyurn.client.candidates import FeatureColumn, declared_records, label_by_column, lacking
from polyurn.client.columns import as_arrow
from polyurn.client.counting import Categories
from polyurn.client.layout import Columns
from polyurn.client.tables import table_layout
from polyurn.counts import client_sizes
from polyurn.errors import ParameterError
from polyurn.server.feature_choice import (
    FeatureChoice,
    FeatureDifference,
    choose_feature,
    feature_differences,
    thin_categories,
)
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Between, Seed
from polyurn.wire import Aggregator


@checked
@dataclass(frozen=True, eq=False, kw_only=True)
class TableFeatures(FeatureChoice):
    """How much the clients of a data frame differ in its columns, and what to model.

    Attributes
    ----------
    label, n_labels, differences, recommendation, sentences
        As in `FeatureChoice`.
    bins : mapping of str to Bins
        How the candidates that are many numbers were cut.
    remarks : tuple of str
        What was left out, and why; what was cut at the table's own quantiles.
    lacking_columns : tuple of str
        What the proxy data should have and have not: the label, the recommended column, and columns of
        many numbers whose range was not declared.
    n_lacking : int
        Combinations of label and recommended column that clients have, and the proxy data have not.
    """

    bins: Mapping[str, Bins]
    remarks: tuple[str, ...] = ()
    lacking_columns: tuple[str, ...] = ()
    n_lacking: int = 0


@checked
def table_features(
    table: object,
    *,
    label: str | Sequence[str],
    client: str | None = None,
    candidates: Sequence[str] | None = None,
    count: str | None = None,
    bins: Mapping[str, Bins] | None = None,
    n_bins: Annotated[int, Between(2, 1_000)] = 10,
    proxy: object = None,
    rng: Seed = None,
    categories: Categories | None = None,
    values: Mapping[str, Sequence[str]] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    through: Callable[[Aggregator], Aggregator] | None = None,
) -> TableFeatures:
    """Measure how much the clients of a data frame differ in its columns, and say what to model.

    With `epsilon` nothing is taken from the table: the label's `categories` are declared, and of each
    candidate its `values` or its `bins`.

    Parameters
    ----------
    table : pyarrow.Table, pandas.DataFrame, polars.DataFrame or any Arrow stream
        One row per point, or with a count.
    label : str or sequence of str
        The column with the label; several are crossed.
    client : str, optional
        The column that says whose row it is: "client".
    candidates : sequence of str, optional
        Columns that might be modelled beside the label: what the network sees, or what decides it. All
        others by default; those that cannot be one are left out then.
    count : str, optional
        The column of counts: "count" if there is one, else every row is one point, as "1" says.
    bins : mapping of str to Bins, optional
        The declared bins of some candidates.
    n_bins : int
        Into how many bins other candidates of many numbers are cut, at quantiles.
    proxy : data frame, optional
        The server's own table, whose quantiles are taken where it has the column.
    rng : int or numpy.random.Generator, optional
        Puts clients into the groups of the jackknife.
    categories, values : optional
        With `epsilon`: the declared labels and the values of candidates of texts, as in `table_records`.
        By default candidates are then the columns with declared values or bins.
    epsilon, delta : float, optional
        Ask for sums with this guarantee, which the candidates share evenly.
    through : function of an Aggregator, optional
        The aggregator to ask instead: ``lambda clients: pu.PrivateAggregator(clients, ledger=ledger)``.

    Raises
    ------
    CountsError
        There is no such column, or it cannot be what it was named for.
    ParameterError
        Fewer than two clients hold two points, or the proxy data cannot be read.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> plane = np.repeat(np.arange(60), 20)
    >>> flights = pa.table({"plane": plane, "dest": np.arange(1_200) % 3, "origin": plane % 2})
    >>> found = table_features(flights, client="plane", label="dest", rng=0)
    >>> found.recommendation.model, found.recommendation.feature
    ('label × feature', 'origin')
    """
    arrow = as_arrow(table)
    own = None if proxy is None else as_arrow(proxy)
    layout = table_layout(arrow, Columns(client, label, count))
    parts = layout.category if isinstance(layout.category, tuple) else (str(layout.category),)
    name = " × ".join(parts)
    ask = through or (lambda clients: clients)
    if epsilon is not None:
        if categories is None or proxy is not None:
            raise ParameterError(
                "expected declared categories (--categories) and no proxy with epsilon: what is taken "
                "from the table would be released without noise"
            )
        records, columns = declared_records(
            arrow, layout, candidates, categories=categories, values=values or {}, bins=bins or {}
        )
        whole: Any = {"label": name, "n_labels": records.n_labels}
        clients = ask(LocalAggregator(records))
        choice = choose_feature(clients, columns, epsilon=epsilon, delta=delta, **whole)
        return TableFeatures(**vars(choice), bins=bins or {})
    if any(one is not None for one in (categories, values, delta)):
        raise ParameterError("expected epsilon with categories, values and delta, got none")
    offered = label_by_column(arrow, layout, candidates, edges=bins, n_bins=n_bins, proxy=own)
    differences = {
        candidate.name: feature_differences(
            ask(LocalAggregator(candidate.counts, rng=rng)),
            n_labels=candidate.n_labels,
            n_values=candidate.n_values,
        )
        for candidate in offered.found
    }
    choice = FeatureChoice.of(name, offered.found[0].n_labels, differences)
    best = choice.recommendation.feature
    chosen = next((found for found in offered.found if found.name == best), None)
    absent, n_absent = ((), 0) if own is None else lacking(arrow, own, parts, offered.found, chosen)
    return TableFeatures(
        **vars(choice) | {"sentences": (*choice.sentences, *_about(chosen, differences))},
        bins={found.name: found.bins for found in offered.found if found.bins is not None},
        remarks=offered.remarks,
        lacking_columns=absent,
        n_lacking=n_absent,
    )


def _about(chosen: FeatureColumn | None, differences: Mapping[str, FeatureDifference]) -> list[str]:
    """What there is to say about the recommended column."""
    if chosen is None:
        return []
    found = []
    if chosen.bins is not None:
        found.append(f"{chosen.name} is a number: add a column of its bins to your tables first")
    mean_size = float(client_sizes(chosen.counts).mean())
    thin = thin_categories(differences[chosen.name].n_categories, mean_size)
    return found if thin is None else [*found, thin]

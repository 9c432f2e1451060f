"""Hugging Face datasets in and out: labels and histograms from columns, clients as datasets.

Everything is by reference: a client's dataset is a `select` of the proxy data, without a copy. Nothing
is downloaded here.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.client.counting import Histograms, category_names
from polyurn.client.layout import category_columns
from polyurn.client.tables import category_codes, observed_categories, table_histograms
from polyurn.errors import CountsError, MissingDependencyError, ParameterError
from polyurn.model.names import Labels, Match, Side, positions
from polyurn.partitioning.result import Partition, check_ids

try:
    from datasets import ClassLabel, Dataset, DatasetDict
except ImportError as error:
    raise MissingDependencyError("datasets", "huggingface", "Hugging Face datasets") from error


def dataset_labels(
    dataset: Dataset,
    column: str | Sequence[str] = "label",
    *,
    categories: Side | None = None,
    match: Match | None = None,
) -> Labels:
    """The category of each row of a dataset.

    Parameters
    ----------
    dataset : datasets.Dataset
    column : str or sequence of str
        A ClassLabel, whole numbers, or text. Several columns are crossed: "EWR × ATL" is a category, and
        a ClassLabel goes by its names.
    categories : int or sequence of str, optional
        C for categories without names, 0 to C - 1, or the names. Without it they are those of the
        ClassLabel, or those that the column shows: numbers up to the largest, or sorted text.
    match : mapping of str to str, or "position", optional
        What categories are called in the column: {its name: category}; or both are in the same order.
        Without it the column's names are to be among the categories.

    Raises
    ------
    CountsError
        There is no such column, a value is missing, or it is not one of the categories.

    Examples
    --------
    >>> proxy = Dataset.from_dict({"label": ["cat", "dog", "cat"]})
    >>> found = dataset_labels(proxy)
    >>> found.labels.tolist(), found.categories
    ([0, 1, 0], ('cat', 'dog'))
    >>> flights = Dataset.from_dict({"origin": ["EWR", "JFK"], "dest": ["ATL", "ATL"]})
    >>> dataset_labels(flights, ["origin", "dest"]).categories
    ('EWR × ATL', 'JFK × ATL')
    """
    column = category_columns(dataset.column_names, column, option="column")
    if isinstance(column, tuple):
        found = _crossed_labels(dataset, column)
    else:
        table, feature = _column(dataset, column), dataset.features[column]
        named = isinstance(feature, ClassLabel)
        declared = feature.num_classes if named else observed_categories(table, category=column)
        codes = category_codes(table, declared, category=column)
        found = Labels(codes, tuple(feature.names) if named else category_names(declared))
    if categories is None:
        return found
    at = positions(found.categories, categories, match)
    return Labels(at[found.labels], category_names(categories))


def dataset_features(dataset: Dataset, columns: str | Sequence[str]) -> NDArray[Any]:
    """Columns of a dataset as features of its rows, for a style.

    Parameters
    ----------
    dataset : datasets.Dataset
    columns : str or sequence of str
        A column of images, or of lists of numbers, all of the same shape; or columns of numbers.

    Returns
    -------
    array of shape (n_points, ...)

    Examples
    --------
    >>> proxy = Dataset.from_dict({"label": [0, 1], "height": [1.0, 2.0], "width": [3.0, 4.0]})
    >>> dataset_features(proxy, ["height", "width"]).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    names = [columns] if isinstance(columns, str) else list(columns)
    for name in names:
        if name not in dataset.column_names:
            listed = ", ".join(dataset.column_names[:8])
            raise ParameterError(f"expected a column {name!r} of features, got {listed}")
    arrays = [np.asarray([np.asarray(value) for value in dataset[name]]) for name in names]
    if len(arrays) == 1 and arrays[0].ndim > 1:
        return arrays[0]
    return np.column_stack(arrays)


def dataset_histograms(
    dataset: Dataset, *, client: str = "client", label: str | Sequence[str] = "label"
) -> Histograms:
    """The histograms of the clients that a column names.

    Parameters
    ----------
    dataset : datasets.Dataset
    client : str
        The column that says whose row it is.
    label : str or sequence of str
        The column with the modelled feature; several are crossed.

    Examples
    --------
    >>> federated = Dataset.from_dict({"client": ["a", "b", "a"], "label": [0, 1, 0]})
    >>> dataset_histograms(federated).counts.toarray().tolist()
    [[2, 0], [0, 1]]
    """
    parts = category_columns(dataset.column_names, label, option="label")
    if client in ([parts] if isinstance(parts, str) else parts):
        raise CountsError(
            f"expected another column for the label than the client's, got {client!r}"
        )
    found = dataset_labels(dataset, parts)
    owners = _column(dataset, client).rename_columns(["client"])
    table = owners.append_column("category", [found.labels])
    coded = table_histograms(table, categories=len(found.categories))
    return Histograms(coded.counts, coded.clients, found.categories)


def client_datasets(
    dataset: Dataset, partition: Partition, *, clients: Sequence[Any] | None = None
) -> DatasetDict:
    """One dataset for each client, by its id as text: the partition's own, or "0", "1", ..., by default.

    Examples
    --------
    >>> from polyurn import partition
    >>> proxy = Dataset.from_dict({"label": [0, 1, 0]})
    >>> federation = client_datasets(proxy, partition([0, 1, 0], [[2, 0], [1, 1]], rng=0))
    >>> federation["0"]["label"][:]
    [0, 0]
    """
    ids = check_ids(clients, partition)
    return DatasetDict(
        {str(ids[i]): client_dataset(dataset, partition, i) for i in range(len(partition))}
    )


def client_dataset(dataset: Dataset, partition: Partition, client: int) -> Dataset:
    """The dataset of client number `client`."""
    partition.check_points(len(dataset))
    return dataset.select(partition[client])


def with_clients(
    dataset: Dataset,
    partition: Partition,
    *,
    clients: Sequence[Any] | None = None,
    column: str = "client",
) -> Dataset:
    """All clients' points in one dataset, and a column that says whose they are.

    A point that several clients hold is there several times.

    Examples
    --------
    >>> from polyurn import partition
    >>> proxy = Dataset.from_dict({"label": [0, 1, 0]})
    >>> with_clients(proxy, partition([0, 1, 0], [[2, 0], [1, 1]], rng=0))["client"][:]
    [0, 0, 1, 1]
    """
    partition.check_points(len(dataset))
    if column in dataset.column_names:
        raise ParameterError(f"the dataset has a column {column!r} already; name another one")
    owners = check_ids(clients, partition)[partition.clients]
    return dataset.select(partition.indices).add_column(column, owners.tolist())


def _crossed_labels(dataset: Dataset, columns: tuple[str, ...]) -> Labels:
    """`dataset_labels` of several columns, with their own names."""
    table = dataset.select_columns(list(columns)).with_format("arrow")[:]
    for i, name in enumerate(columns):
        feature = dataset.features[name]
        if isinstance(feature, ClassLabel):
            codes = category_codes(table, feature.num_classes, category=name)
            table = table.set_column(i, name, [[feature.names[code] for code in codes]])
    names = observed_categories(table, category=columns)
    return Labels(category_codes(table, names, category=columns), category_names(names))


def _column(dataset: Dataset, name: str) -> Any:
    """A column as an Arrow table, its rows in the order that the dataset shows."""
    if name not in dataset.column_names:
        raise CountsError(f"expected a column {name!r}, got {', '.join(dataset.column_names[:8])}")
    return dataset.select_columns([name]).with_format("arrow")[:]

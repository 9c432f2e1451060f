"""Partitioners for flwr-datasets: simulated clients of a learned population inside `FederatedDataset`.

They read the columns that they partition by; how points are given is `partitioning/`.
"""

import os
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Self

from polyurn.errors import MissingDependencyError, ParameterError
from polyurn.integrations.huggingface import client_dataset, dataset_features, dataset_labels
from polyurn.model.mdm import MDM, Relabelled
from polyurn.model.names import Labels, Match
from polyurn.model.populations import Population, check_population
from polyurn.model.relabelling import Rule
from polyurn.model.style import Style
from polyurn.partitioning.assign import Shortfall, cover, partition
from polyurn.partitioning.result import Partition
from polyurn.storage.models import load
from polyurn.storage.partitions import load_partition
from polyurn.zoo.federations import like
from polyurn.zoo.federations import load as zoo_model

try:
    from flwr_datasets.partitioner import Partitioner

    from datasets import Dataset
except ImportError as error:
    raise MissingDependencyError("flwr-datasets", "flower", "the partitioner") from error


def partitioner_from_environment(
    otherwise: Partitioner | None = None,
    partition_by: str | Sequence[str] = "label",
    *,
    match: Match | None = None,
) -> Partitioner:
    """The clients that a sweep trains on, in the one line that a Flower app needs for that.

    `POLYURN_PARTITION` names a partition, as `polyurn partition` writes it, whose row numbers are those
    of the dataset. Without one, `POLYURN_POPULATION` names a model's file, whose clients are drawn:
    `POLYURN_CLIENTS` of them, or until the data are used up, with the seed `POLYURN_SEED` (0).

    Parameters
    ----------
    otherwise : Partitioner, optional
        Returned where neither is set: the app's own. By default that is an error.
    partition_by, match : optional
        As in `MDMPartitioner`, for drawn clients.
    """
    if path := os.environ.get("POLYURN_PARTITION"):
        return FixedPartitioner(load_partition(path))
    if path := os.environ.get("POLYURN_POPULATION"):
        n_clients, seed = (os.environ.get(f"POLYURN_{name}") for name in ("CLIENTS", "SEED"))
        try:
            n_partitions = None if not n_clients else int(n_clients)
            return MDMPartitioner(
                check_population(load(path)),
                partition_by,
                match=match,
                num_partitions=n_partitions,
                seed=int(seed or 0),
            )
        except ValueError as error:
            raise ParameterError(f"POLYURN_CLIENTS, POLYURN_SEED: {error}") from error
    if otherwise is None:
        raise ParameterError(
            "expected the path of a partition in POLYURN_PARTITION, or of a model in POLYURN_POPULATION"
        )
    return otherwise


class FixedPartitioner(Partitioner):  # type: ignore[misc,unused-ignore]
    """The clients of a `Partition`, in its order.

    >>> partitioner = FixedPartitioner(Partition.from_lists([[2, 0], [1]]))
    >>> partitioner.dataset = Dataset.from_dict({"label": [7, 8, 9]})
    >>> partitioner.num_partitions, partitioner.load_partition(0)["label"][:]
    (2, [9, 7])
    """

    def __init__(self, partition: Partition) -> None:
        super().__init__()
        self._partition = partition

    def load_partition(self, partition_id: int) -> Dataset:
        """The data of one client, as a selection from the dataset."""
        if not 0 <= partition_id < self.num_partitions:
            raise ParameterError(
                f"expected a partition from 0 to {self.num_partitions - 1}, got {partition_id}"
            )
        return client_dataset(self.dataset, self.partition, partition_id)

    @property
    def num_partitions(self) -> int:
        """How many clients there are."""
        return len(self.partition)

    @property
    def partition(self) -> Partition:
        """Which rows each client holds."""
        return self._partition


class MDMPartitioner(FixedPartitioner):
    """Partitions whose histograms are drawn from an MDM, in place of `DirichletPartitioner`.

    The clients are drawn and given their points when the first of them is asked for.

    Parameters
    ----------
    population : Population
        Who the clients are: an MDM, say. Its `categories` are found in the column by their names, which
        a ClassLabel has, and texts are; one without names fits a column of numbers.
    partition_by : str or sequence of str
        The column with the modelled feature; several are crossed.
    match : mapping of str to str, or "position", optional
        What the categories are called in the data, as in `dataset_labels`.
    num_partitions : int, optional
        How many clients to draw. Without it clients are drawn until the data are used up, each point
        once (`polyurn.cover`).
    replace, shortfall
        As in `polyurn.partition`, for `num_partitions` clients; "resample" draws from `population`.
    style : Style, optional
        What clients differ in besides the column's categories, which are its labels.
    features : str or sequence of str, optional
        With a style: a column of images or of lists of numbers, or columns of numbers.
    seed : int

    Examples
    --------
    >>> from polyurn import MDM, Sizes
    >>> mdm = MDM([0.5, 0.5], [[9.0, 1.0], [1.0, 9.0]], Sizes.constant(4, n_components=2))
    >>> partitioner = MDMPartitioner(mdm, partition_by="label", num_partitions=3)
    >>> partitioner.dataset = Dataset.from_dict({"label": [0, 1] * 10})
    >>> [len(partitioner.load_partition(i)) for i in range(partitioner.num_partitions)]
    [4, 4, 4]
    """

    def __init__(
        self,
        population: Population,
        partition_by: str | Sequence[str] = "label",
        *,
        match: Match | None = None,
        num_partitions: int | None = None,
        replace: bool = True,
        shortfall: Shortfall = "reuse",
        style: Style | None = None,
        features: str | Sequence[str] | None = None,
        seed: int = 42,
    ) -> None:
        Partitioner.__init__(self)
        self._give: Callable[..., Partition]
        if num_partitions is None:
            self._give = partial(cover, rng=seed)
            if not (replace and shortfall == "reuse"):
                raise ParameterError(
                    "without num_partitions each row is given once: leave out replace and shortfall, or "
                    "say how many partitions"
                )
        elif num_partitions < 1:
            raise ParameterError(f"expected at least one partition, got {num_partitions}")
        else:
            self._give = partial(
                partition, n_clients=num_partitions, replace=replace, shortfall=shortfall, rng=seed
            )
        self._population = check_population(population)
        self._partition_by = partition_by
        self._match = match
        self._n_clients = num_partitions
        self._style = style
        self._features = features
        self._relabel: Callable[[Labels], MDM | Relabelled] | None = None

    @classmethod
    def like(
        cls,
        federation: str | MDM,
        partition_by: str | Sequence[str] = "label",
        *,
        match: Rule = "rank",
        mean_size: float | None = None,
        num_partitions: int | None = None,
        seed: int = 42,
    ) -> Self:
        """Clients like those of a federation of `polyurn.zoo`, with the labels of the data.

        Parameters
        ----------
        federation : str or MDM
            A name of the zoo, or a mixture.
        partition_by, num_partitions, seed
            As in the class.
        match : {"rank", "random", "marginal"}
            Which of the federation's categories becomes which label: `MDM.relabelled`.
        mean_size : float, optional
            Points that a client holds in the mean; the federation's own sizes by default.

        Examples
        --------
        >>> partitioner = MDMPartitioner.like("celeba_hair", num_partitions=3)
        >>> partitioner.dataset = Dataset.from_dict({"label": ["cat", "dog", "bird"] * 99})
        >>> partitioner.num_partitions
        3
        """
        mdm = zoo_model(federation) if isinstance(federation, str) else federation
        partitioner = cls(mdm, partition_by, num_partitions=num_partitions, seed=seed)
        partitioner._relabel = partial(like, mdm, match=match, mean_size=mean_size, rng=seed)
        return partitioner

    @property
    def num_partitions(self) -> int:
        """How many clients there are."""
        return len(self.partition) if self._n_clients is None else self._n_clients

    @cached_property
    def partition(self) -> Partition:
        """Which rows each client holds, with its report."""
        labels = dataset_labels(self.dataset, self._partition_by)
        population = self._population if self._relabel is None else self._relabel(labels)
        columns = self._features
        features = None if columns is None else dataset_features(self.dataset, columns)
        return self._give(
            labels, population, match=self._match, style=self._style, features=features
        )

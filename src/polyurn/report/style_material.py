"""What a page knows about clients' styles: the law, proxy points, and clients that were drawn with both.

Checked here once; `style_sections.py` trusts it. Nothing is drawn on paper, and no file is read.
"""

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.counts import Counts
from polyurn.errors import ParameterError, StyleWarning
from polyurn.model.style import Style
from polyurn.model.style_coordinates import label_codes
from polyurn.partitioning.assign import in_stock, partition
from polyurn.partitioning.result import Partition, PartitionReport, StyleReport
from polyurn.storage.models import Saved
from polyurn.storage.provenance import Made
from polyurn.typed.arrays import numbers


@dataclass(frozen=True, eq=False)
class Pool:
    """Proxy points.

    Attributes
    ----------
    features : array of shape (n_points, ...)
    labels : int array of shape (n_points,)
    coordinates : float array of shape (n_points, n_directions)
        In the style's space.
    """

    features: NDArray[Any] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    coordinates: NDArray[np.float64] = field(repr=False)


@dataclass(frozen=True, eq=False)
class StyledClients:
    """Simulated clients with styles, and how well the pool could serve them.

    Attributes
    ----------
    clients : Partition
    report : PartitionReport
    style : StyleReport
    n_lacking : int
        Points of labels that the pool lacks, which clients were to hold and do not.
    """

    clients: Partition
    report: PartitionReport
    style: StyleReport
    n_lacking: int


@dataclass(frozen=True, eq=False)
class StyleMaterial:
    """A style and what can be shown of it; what there is not is None.

    Attributes
    ----------
    style : Style
    labels : tuple of str
        The name of each label, its number if it has none.
    features : tuple of str, or None
        The name of each feature, where they are columns.
    made : Made
    pool : Pool or None
    styled : StyledClients or None
    """

    style: Style
    labels: tuple[str, ...]
    features: tuple[str, ...] | None
    made: Made
    pool: Pool | None = None
    styled: StyledClients | None = None

    def named(self, labels: tuple[str, ...]) -> Self:
        """The same with names for the labels."""
        return replace(self, labels=labels)

    def served(self, counts: Counts, *, rng: np.random.Generator) -> Self:
        """The same with clients of these histograms, if there is a pool that has points for them.

        Parameters
        ----------
        counts : int array or scipy.sparse of shape (n_clients, n_labels)
        rng : numpy.random.Generator
        """
        if self.pool is None:
            return self
        wanted = in_stock(counts, self.pool.labels)
        if wanted.shape[0] == 0:
            return self
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StyleWarning)  # the page says it
            drawn = partition(
                self.pool.labels, wanted, style=self.style, features=self.pool.features, rng=rng
            )
        report = drawn.report
        if report is None or report.style is None:
            return self
        n_lacking = int(counts.sum() - wanted.sum())
        return replace(self, styled=StyledClients(drawn, report, report.style, n_lacking))


def gather_style(
    given: Style | Saved[Style] | None, *, features: ArrayLike | None, labels: ArrayLike | None
) -> StyleMaterial | None:
    """Bring a style and proxy points into one shape."""
    if (features is None) != (labels is None) or (given is None and features is not None):
        raise ParameterError(
            "expected features and labels of the proxy points together with a style, and only then"
        )
    if given is None:
        return None
    saved = given if isinstance(given, Saved) else Saved(given)
    numbered = tuple(str(label) for label in range(saved.model.space.n_labels))
    return StyleMaterial(
        style=saved.model,
        labels=saved.categories or numbered,
        features=_names(saved),
        made=saved.made,
        pool=None if features is None or labels is None else _pool(saved.model, features, labels),
    )


def _names(saved: Saved[Style]) -> tuple[str, ...] | None:
    """What features are called; those of one column with lists have no names of their own."""
    columns = saved.features
    return None if columns is None or len(columns) != saved.model.space.n_features else columns


def _pool(style: Style, features: ArrayLike, labels: ArrayLike) -> Pool:
    held = numbers(features, "features")
    coordinates = style.space.coordinates(held, labels)
    return Pool(held, label_codes(labels, len(held), n_labels=style.space.n_labels), coordinates)

"""The kinds of clients that a sweep's file can name: a class each, with its keys and how it is drawn.

Histograms out; `inputs.py` gives points to them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polyurn.client.tables import table_histograms
from polyurn.counts import Counts
from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM
from polyurn.partitioning.result import Partition
from polyurn.populations import IID, Dirichlet, Oracle, Population, SizesLike
from polyurn.storage.tables import read_table
from polyurn.typed.arguments import checked
from polyurn.typed.records import shown


@dataclass(frozen=True, eq=False)
class Proxy:
    """What kinds need to know of the points that clients are given.

    `codes` has the category of each point, shape (n_points,); `names` those of the categories, if there
    are any. `mdms` are the MDM files of the sweep, by what the file calls them.
    """

    codes: NDArray[np.int64]
    n_categories: int
    names: tuple[str, ...] | None
    folder: Path
    mdms: Mapping[str, MDM]

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many points there are of each category, shape (n_categories,)."""
        return np.bincount(self.codes, minlength=self.n_categories)

    def iid(self, sizes: SizesLike) -> IID:
        """IID clients with the categories of the data."""
        return IID.proxy(self.codes, n_categories=self.n_categories, sizes=sizes)

    def held_by(self, clients: Partition) -> NDArray[np.int64]:
        """The histograms of clients, shape (n_clients, n_categories)."""
        return clients.histograms(self.codes, self.n_categories)


@checked
@dataclass(frozen=True)
class ByColumn:
    """Who holds each point, as an array or column of the data says."""

    column: str


@checked
@dataclass(frozen=True)
class ByPartition:
    """Who holds each point, as a file says that `polyurn partition` wrote."""

    partition: str


@checked
@dataclass(frozen=True, kw_only=True)
class Drawn:
    """Clients that are drawn anew for each seed.

    Attributes
    ----------
    n_clients : int, optional
        How many are drawn: needed for `mdm` and a number of points; else as many as there are. More
        than there are true clients is allowed, and better for a sparse mixture: 400 draws of one have
        a noisy marginal of their own.
    style : str, optional
        A style file: drawn clients are given points of a style of their own.
    style_features : str, optional
        The array of the data in which the style is measured; what is trained on by default.
    """

    n_clients: int | None = None
    style: str | None = None
    style_features: str | None = None

    def __post_init__(self) -> None:
        for name, n in (("n_clients", self.n_clients), ("the number of points", self.like)):
            if isinstance(n, int) and n < 1:
                raise ParameterError(f"expected {name} as a whole number above 0, got {shown(n)}")
        if self.n_clients is None and not isinstance(self.like, str):
            raise ParameterError("needs n_clients: how many clients to draw")
        if self.style_features is not None and self.style is None:
            raise ParameterError("style_features has no meaning without style")

    # The key that names the population which they are like, above in the file, or a number of points.
    LIKE: ClassVar[str] = ""

    @property
    def like(self) -> str | int | None:
        return getattr(self, self.LIKE, None)

    def counts(self, proxy: Proxy, like: Any, rng: np.random.Generator) -> object:
        """Histograms, given the clients that they are like: so many of a population's."""
        n_clients = self.n_clients or (1 if like is None else len(like))
        return self.population(proxy, like).sample(n_clients, rng=rng)

    def population(self, proxy: Proxy, like: Partition | None) -> Population:
        """What they are drawn from."""
        raise NotImplementedError

    def _sizes(self, like: Partition | None) -> SizesLike:
        return [int(self.like or 0)] if like is None else like.sizes


@checked
@dataclass(frozen=True, kw_only=True)
class OfMDM(Drawn):
    """Clients of an MDM file."""

    mdm: str

    def population(self, proxy: Proxy, like: Partition | None) -> Population:
        return proxy.mdms[self.mdm]


@checked
@dataclass(frozen=True, kw_only=True)
class OfIIDProxy(Drawn):
    """Fully IID clients with the sizes of another population, or of so many points each, and the
    categories of the data: the paper's baseline.
    """

    iid_proxy: str | int
    LIKE = "iid_proxy"

    def population(self, proxy: Proxy, like: Partition | None) -> Population:
        return proxy.iid(self._sizes(like))


@checked
@dataclass(frozen=True, kw_only=True)
class OfIID(Drawn):
    """Fully IID clients with the sizes and the pooled categories of another population.

    With a number of points each there are no clients whose categories could be meant: those of the data.
    """

    iid: str | int
    LIKE = "iid"

    def population(self, proxy: Proxy, like: Partition | None) -> Population:
        return proxy.iid(self._sizes(like)) if like is None else IID.like(proxy.held_by(like))


@checked
@dataclass(frozen=True, kw_only=True)
class OfDirichlet(Drawn):
    """Clients of one Dirichlet with a concentration per category.

    Attributes
    ----------
    dirichlet : float
    sizes : str or int
        Those of another population, or so many points each.
    marginal : {"flat", "clients", "proxy"}
        The same concentration for each category, or in proportion to how frequent it is among the
        clients that `sizes` names, or in the data.
    """

    dirichlet: float
    sizes: str | int
    marginal: Literal["flat", "clients", "proxy"] = "flat"
    LIKE = "sizes"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.dirichlet < float("inf"):
            raise ParameterError(f"expected dirichlet above 0, got {self.dirichlet:g}")
        if self.marginal == "clients" and not isinstance(self.sizes, str):
            raise ParameterError(
                "marginal = 'clients' needs sizes as a population, whose clients are meant, "
                f"got {shown(self.sizes)}"
            )

    def population(self, proxy: Proxy, like: Partition | None) -> Population:
        """alpha_j = alpha C p_j, where the C categories are those that the data have points of."""
        frequent = (proxy.counts > 0).astype(np.int64)
        if self.marginal == "proxy":
            frequent = proxy.counts
        elif self.marginal == "clients" and like is not None:
            frequent = proxy.held_by(like).sum(axis=0)
        n_there = np.count_nonzero(proxy.counts)
        return Dirichlet(self.dirichlet * n_there * frequent / frequent.sum(), self._sizes(like))


@checked
@dataclass(frozen=True, kw_only=True)
class OfOracle(Drawn):
    """Conditionally IID clients with the histograms of another population, or of a table."""

    oracle: str
    LIKE = "oracle"

    def table(self, proxy: Proxy) -> Counts | None:
        """The histograms of a table; None if a population is meant."""
        path = proxy.folder / self.oracle
        if path.suffix not in (".csv", ".tsv", ".gz", ".parquet"):
            return None
        return table_histograms(
            read_table(path), categories=proxy.names or proxy.n_categories
        ).counts

    def counts(
        self, proxy: Proxy, like: Partition | Counts | None, rng: np.random.Generator
    ) -> object:
        """All of these clients in their order, or so many of them at random."""
        known = proxy.held_by(like) if isinstance(like, Partition) else like
        return known if self.n_clients is None else Oracle(known).sample(self.n_clients, rng=rng)


FileClients: TypeAlias = ByColumn | ByPartition | Drawn
KINDS: dict[str, type[FileClients]] = {
    "column": ByColumn,
    "partition": ByPartition,
    "mdm": OfMDM,
    "iid": OfIID,
    "iid_proxy": OfIIDProxy,
    "dirichlet": OfDirichlet,
    "oracle": OfOracle,
}

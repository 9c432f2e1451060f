"""A mixture over (label, style) categories, given how many points of each label clients hold.

By the Dirichlet's aggregation and neutrality its law is closed (Connor and Mosimann, 1969). With A_kl,
the sum of component k's alphas over the categories of label l, and π_k(n), its probability of size n:

    p(k | totals) ∝ τ_k π_k(n) DM(totals | A_k1, ..., A_kL),  and then
    the categories of label l  ~  DM(total_l, α_k on those categories), independently.

How the mixture and the totals' population are learned is not known here.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyurn.counts import check_counts
from polyurn.errors import ParameterError, ShortfallError
from polyurn.memory import check_memory
from polyurn.model.mdm import MDM, dirichlet
from polyurn.model.population import Population, check_population
from polyurn.typed.arguments import checked
from polyurn.typed.arrays import FrozenArrays, numbers
from polyurn.wording.numbers import counted


@checked
@dataclass(frozen=True, eq=False)
class GivenLabels(FrozenArrays):
    """Clients whose label totals come from one population, and their styles from a mixture given those.

    The mixture is over finer categories than labels: a label crossed with another feature. Styles have
    exactly its conditional law given the label totals and, with them, the size.

    Parameters
    ----------
    mdm : MDM
        Over the finer categories.
    labels : Population
        Over labels.
    label_of : int array of shape (n_categories,)
        The label of each category of `mdm`.
    codes : int array of shape (n_points,), optional
        The category of each proxy point. Clients are then drawn given, too, that they hold nothing of
        categories without such a point: their label totals stay. Kept as `possible`, whether clients
        may hold points of a category.

    Examples
    --------
    >>> from polyurn.model.sizes import Sizes
    >>> from polyurn.populations import Oracle
    >>> mdm = MDM([1.0], [[1.0, 2.0, 3.0, 0.5]], Sizes.constant(5))
    >>> clients = GivenLabels(mdm, Oracle([[3, 2], [5, 0]]), label_of=[0, 0, 1, 1], codes=[0, 1, 2])
    >>> drawn = clients.sample(2, rng=0)
    >>> drawn[:, :2].sum(axis=1).tolist(), drawn[:, 2:].tolist()
    ([3, 5], [[2, 0], [0, 0]])
    """

    mdm: MDM
    labels: Population
    label_of: NDArray[np.int64]
    possible: NDArray[np.bool_]

    def __init__(
        self, mdm: MDM, labels: Population, label_of: ArrayLike, codes: ArrayLike | None = None
    ) -> None:
        whose = _categories(label_of, "label_of", check_population(labels).n_categories)
        if len(whose) != mdm.n_categories:
            raise ParameterError(
                f"expected the label of each of {mdm.n_categories} categories, got {len(whose)}"
            )
        possible = np.ones(len(whose), bool)
        if codes is not None:
            possible = np.isin(np.arange(len(whose)), _categories(codes, "codes", len(whose)))
        whose.flags.writeable = possible.flags.writeable = False
        object.__setattr__(self, "mdm", mdm)
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "label_of", whose)
        object.__setattr__(self, "possible", possible)

    @property
    def n_categories(self) -> int:
        """The number of categories, C."""
        return self.mdm.n_categories

    def sample(
        self, n_clients: int, *, rng: int | np.random.Generator | None = None
    ) -> NDArray[np.int64]:
        """Draw the histograms of clients.

        Parameters
        ----------
        n_clients : int
        rng : int or numpy.random.Generator

        Returns
        -------
        int array of shape (n_clients, n_categories)
            Summed over the categories of each label, these are totals that `labels` drew.

        Raises
        ------
        ShortfallError
            Clients hold points of a label none of whose categories is possible.
        CountsError, SizeError
            No component of the mixture can have a client with these totals, or of this size.
        """
        self._check_memory(n_clients)
        rng = np.random.default_rng(rng)
        return self.fill(self.labels.sample(n_clients, rng=rng), rng=rng)

    def fill(
        self, totals: object, *, rng: int | np.random.Generator | None = None
    ) -> NDArray[np.int64]:
        """Draw the styles of clients whose label totals are known.

        Parameters
        ----------
        totals : int array or scipy.sparse of shape (n_clients, n_labels)
            How many points of each label they hold.
        rng : int or numpy.random.Generator

        Returns
        -------
        int array of shape (n_clients, n_categories)
            In the order of `totals`: summed over the categories of each label, they are these.

        Raises
        ------
        ShortfallError, CountsError, SizeError
            As `sample`.

        Examples
        --------
        >>> from polyurn.model.sizes import Sizes
        >>> mdm = MDM([1.0], [[1.0, 2.0, 3.0]], Sizes.constant(5))
        >>> clients = GivenLabels(mdm, MDM([1.0], [[1.0, 1.0]], Sizes.constant(5)), [0, 0, 1])
        >>> drawn = clients.fill([[5, 0], [2, 3]], rng=0)
        >>> drawn[:, :2].sum(axis=1).tolist(), drawn[:, 2].tolist()
        ([5, 2], [0, 3])
        """
        given = check_counts(totals, n_categories=self.labels.n_categories)
        self._check_memory(given.shape[0])
        rng = np.random.default_rng(rng)
        totals = (given if isinstance(given, np.ndarray) else given.toarray()).astype(np.int64)
        self._check_labels(totals)
        components = self._components(totals, rng)
        counts = np.zeros((len(totals), self.n_categories), np.int64)
        for label in range(totals.shape[1]):
            holders = np.flatnonzero(totals[:, label])
            mine = np.flatnonzero((self.label_of == label) & self.possible)
            if len(holders):
                shares = dirichlet(self.mdm.alphas[np.ix_(components[holders], mine)], rng)
                counts[np.ix_(holders, mine)] = rng.multinomial(totals[holders, label], shares)
        return counts

    def _check_memory(self, n_clients: int) -> None:
        what = f"the histograms of {counted(n_clients, 'client')}"
        check_memory(8 * n_clients * self.n_categories, what, "draw fewer at a time")

    def _components(self, totals: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Each client's component, drawn given its totals: responsibilities under the A_kl.

        What is not possible is one more label, of which every client holds nothing.
        """
        mdm, n_labels = self.mdm, totals.shape[1]
        blocks = np.zeros((mdm.n_components, n_labels + 1))
        np.add.at(blocks.T, np.where(self.possible, self.label_of, n_labels), mdm.alphas.T)
        nothing = np.zeros((len(totals), 1), np.int64)
        odds = MDM(mdm.weights, blocks, mdm.sizes).responsibilities(np.hstack([totals, nothing]))
        with np.errstate(divide="ignore"):  # log 0 is -inf: never the largest
            return np.asarray((np.log(odds) + rng.gumbel(size=odds.shape)).argmax(axis=1))

    def _check_labels(self, totals: NDArray[np.int64]) -> None:
        missing = np.setdiff1d(np.flatnonzero(totals.any(axis=0)), self.label_of[self.possible])
        if len(missing):
            raise ShortfallError(
                "clients hold labels of which there is no category, or no proxy point: {}; draw "
                "clients without them",
                missing.tolist(),
            )

    def __repr__(self) -> str:
        return f"GivenLabels({self.mdm!r}, {self.labels!r})"


def _categories(values: ArrayLike, what: str, n_categories: int) -> NDArray[np.int64]:
    """Numbers of categories, at least one, as a new array."""
    given = numbers(values, what)
    whole = given.ndim == 1 and len(given) > 0 and given.dtype.kind in "iu"
    if not whole or given.min() < 0 or given.max() >= n_categories:
        raise ParameterError(f"expected {what} as a list of integers from 0 to {n_categories - 1}")
    return given.astype(np.int64)

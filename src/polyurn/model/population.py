"""What a population is: an object that draws the histograms of clients.

`MDM` is one; `populations.py` has others. Nothing is drawn here.
"""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import ParameterError
from polyurn.typed.arguments import expected_as


@expected_as("a population, an object with n_categories and sample(n_clients, *, rng)")
@runtime_checkable
class Population(Protocol):
    """Clients that can be drawn: what `partition`, `cover`, `compare` and `sweep` take.

    Any object with these two will do; `MDM`, `IID`, `Dirichlet`, `Oracle` and `GivenLabels` have them.
    The number of categories is declared, because a table (a data frame, say) may have a `sample` of its
    own.
    """

    @property
    def n_categories(self) -> int:
        """The number of categories, C."""
        ...

    def sample(
        self, n_clients: int, *, rng: int | np.random.Generator | None = None
    ) -> NDArray[np.int64]:
        """Draw the histograms of clients, shape (n_clients, n_categories); each holds a point."""
        ...


def check_population(population: object) -> Population:
    """The same population.

    Raises
    ------
    ParameterError
        It is none.
    """
    if not isinstance(population, Population) or isinstance(population, type):
        raise ParameterError(
            "expected a population, an object with n_categories and sample(n_clients, *, rng), "
            f"got {type(population).__name__}"
        )
    return population

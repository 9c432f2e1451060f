import numpy as np
import pytest

from polyurn import MDM, Population, Sizes
from polyurn.errors import ParameterError
from polyurn.model.populations import check_population


class Ones:
    """Clients of one point each."""

    n_categories = 2

    def sample(self, n_clients, *, rng=None):
        return np.tile([1, 0], (n_clients, 1))


@pytest.mark.parametrize("one", [Ones(), MDM([1.0], [[1.0, 2.0]], Sizes.constant(3))])
def test_whatever_draws_clients_and_declares_its_categories_is_a_population(one):
    assert check_population(one) is one
    assert isinstance(one, Population)


@pytest.mark.parametrize("other", [None, np.ones((2, 2)), MDM, "iid"])
def test_tables_classes_and_names_are_no_populations(other):
    with pytest.raises(ParameterError, match="expected a population"):
        check_population(other)

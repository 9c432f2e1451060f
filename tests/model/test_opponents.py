"""Populations that other papers cut from proxy data."""

import numpy as np
import pytest

from polyurn import Dirichlet, Pathological, Population, QuantitySkew, Shards
from polyurn.errors import ParameterError

AVAILABLE = [40, 0, 30, 20, 10]


@pytest.mark.parametrize(
    "population",
    [Pathological(2, AVAILABLE, [7]), Shards(2, AVAILABLE), QuantitySkew(0.5, AVAILABLE)],
    ids=lambda one: type(one).__name__,
)
def test_no_client_is_empty_or_holds_a_category_that_the_data_lack(population):
    drawn = population.sample(20, rng=0)
    assert isinstance(population, Population)
    assert drawn.shape == (20, 5)
    assert drawn.sum(axis=1).min() >= 1
    assert drawn[:, 1].sum() == 0
    assert (population.sample(20, rng=0) == drawn).all()
    assert (population.sample(20, rng=1) != drawn).any()


def test_a_pathological_client_holds_k_categories_evenly():
    drawn = Pathological(3, AVAILABLE, [7, 12]).sample(500, rng=0)
    assert set((drawn > 0).sum(axis=1)) == {3}
    spread = [row[row > 0].max() - row[row > 0].min() for row in drawn]
    assert max(spread) == 1
    assert (np.count_nonzero(drawn, axis=0)[[0, 2, 3, 4]] > 300).all()


@pytest.mark.parametrize("n_clients", [1, 7, 50])
def test_shards_hold_every_point_once_and_few_categories(n_clients):
    drawn = Shards(2, AVAILABLE).sample(n_clients, rng=3)
    assert drawn.sum(axis=0).tolist() == AVAILABLE
    assert np.ptp(drawn.sum(axis=1)) <= 2
    if n_clients == 50:
        assert set(drawn.sum(axis=1)) == {2}


def test_quantity_skew_uses_all_points_and_sizes_differ_more_where_beta_is_small():
    sizes = {
        beta: QuantitySkew(beta, [500, 500]).sample(50, rng=0).sum(axis=1) for beta in (0.1, 50)
    }
    assert {int(found.sum()) for found in sizes.values()} == {1000}
    assert sizes[0.1].std() > 5 * sizes[50].std()


def test_hsu_is_the_dirichlet_whose_concentrations_sum_to_alpha():
    assert Dirichlet.hsu([3, 1], [9], alpha=2.0).alpha.tolist() == [1.5, 0.5]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Pathological(5, AVAILABLE, [7]), "expected 1 to 4 categories per client"),
        (lambda: Shards(0, AVAILABLE), "s as an integer of at least 1"),
        (lambda: QuantitySkew(0.0, AVAILABLE), "expected beta as a number above 0"),
        (lambda: Shards(2, AVAILABLE).sample(51), "100 points are enough for at most 50, got 51"),
        (lambda: Shards(2, [0.5, 0.5]), "the number of points of each category"),
    ],
)
def test_what_cannot_be_cut_is_one_line(make, says):
    with pytest.raises(ParameterError, match=says):
        make()

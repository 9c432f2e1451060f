"""Answers about a tree and about splits: gradients, sums by hand, and bounds that no client exceeds."""

import numpy as np
import pytest

from polyurn import MDM, LocalAggregator, SizeBins, Sizes, answer
from polyurn.errors import ParameterError
from polyurn.model.splits import Laws, Splits
from polyurn.model.trees import Tree
from polyurn.wire import Affinity, Divide, Expect, Parameters, Survey, check_answer

TREE = Tree([[1, 4], [2, 3]])
BINS = SizeBins.exact(6)
SIZES = Sizes(BINS, [[0.1, 0.2, 0.3, 0.1, 0.1, 0.2], [0.2, 0.2, 0.1, 0.2, 0.2, 0.1]])
EVERY = np.array([c for c in np.ndindex(7, 7, 7) if 1 <= sum(c) <= 6])
CONCENTRATIONS = np.random.default_rng(0).gamma(1.5, size=(2, 2, 2))
LAWS = Laws([0, 1, 2, 4], np.random.default_rng(1).normal(size=(2, 2, 2, 4)))


def mixture(concentrations=CONCENTRATIONS, laws=None):
    return MDM([0.7, 0.3], None, SIZES, splits=Splits(TREE, concentrations, laws))


def slopes(of, at, step=1e-6):
    """The derivative of the clients' log-likelihood in each number, by central differences."""
    found = np.empty(at.shape)
    for i in np.ndindex(at.shape):
        values = []
        for sign in (1, -1):
            moved = at.copy()
            moved[i] += sign * step
            values.append(of(moved).logpmf(EVERY).sum())
        found[i] = (values[0] - values[1]) / (2 * step)
    return found


def test_tables_give_the_gradient_in_the_concentrations():
    sums = answer(Divide(mixture()), EVERY)
    totals = (sums.total_tables / CONCENTRATIONS.sum(axis=2))[..., None]
    gradient = sums.tables.reshape(2, 2, 2) / CONCENTRATIONS - totals
    assert gradient == pytest.approx(slopes(mixture, CONCENTRATIONS), rel=1e-5, abs=1e-5)
    assert sums.log_likelihood == pytest.approx(mixture().logpmf(EVERY).sum())


def test_bends_are_the_gradient_in_the_laws():
    sums = answer(Divide(mixture(laws=LAWS)), EVERY)

    def bent(theta):
        return mixture(laws=Laws(LAWS.knots, theta))

    assert sums.bends.reshape(2, 2, 2, 4) == pytest.approx(slopes(bent, LAWS.values), abs=1e-5)
    assert sums.log_likelihood == pytest.approx(bent(LAWS.values).logpmf(EVERY).sum())


def test_arrivals_are_the_hat_functions_of_the_totals():
    one = MDM([1.0], None, SIZES.__class__(BINS, SIZES.masses[:1]),
              splits=mixture(laws=LAWS).splits.some([0]))  # fmt: skip
    sums = answer(Divide(one), [[2, 1, 0], [0, 0, 3]])
    root, below = sums.arrivals.reshape(2, 4)
    assert root.tolist() == [0.0, 0.0, 1.0, 1.0]  # two clients of three points, between 2 and 4
    assert below.tolist() == [0.0, 0.0, 0.5, 0.5]  # the second has none there


def test_splits_of_a_dirichlet_multinomial_have_its_sums():
    alphas = np.random.default_rng(2).gamma(2.0, size=(2, 3))
    parameters = Parameters(np.array([0.7, 0.3]), alphas, SIZES)
    whole = answer(Expect(parameters), EVERY)
    mdm = MDM([0.7, 0.3], None, SIZES, splits=Splits.of_alphas(TREE, alphas))
    divided = answer(Divide(mdm), EVERY)
    assert divided.log_likelihood == pytest.approx(whole.log_likelihood)
    assert divided.size_counts == pytest.approx(whole.size_counts)
    of_leaves = TREE.sides[2:]  # of categories 0, 1 and 2
    for name in ("present", "tables", "spread"):
        assert getattr(divided, name)[:, of_leaves] == pytest.approx(getattr(whole, name))
    assert divided.total_tables[:, 0] == pytest.approx(whole.total_tables)


def test_affinities_are_the_products_of_roots():
    counts = np.array([[4, 0, 5], [1, 1, 2]])
    sums = answer(Affinity(3), counts)
    p = np.sqrt(counts / counts.sum(axis=1, keepdims=True))
    assert sums.roots == pytest.approx(p.sum(axis=0))
    assert sums.affinities == pytest.approx((p.T @ p)[np.tril_indices(3)])
    alone = answer(Affinity(3), counts[:1])
    lower = np.zeros((3, 3))
    lower[np.tril_indices(3)] = alone.affinities
    whole = lower + np.tril(lower, -1).T
    assert np.linalg.norm(whole) == pytest.approx(1)


@pytest.mark.parametrize(
    "query", [Divide(mixture()), Divide(mixture(laws=LAWS)), Affinity(3)], ids=lambda q: q.text
)
def test_no_client_is_beyond_the_bounds(query):
    for client in EVERY:
        check_answer(query, answer(query, client))


@pytest.mark.parametrize("laws", [None, LAWS])
def test_the_sum_does_not_depend_on_how_clients_are_cut(laws):
    query = Divide(mixture(laws=laws))
    parts = answer(query, EVERY[:50]) + answer(query, EVERY[50:])
    whole = LocalAggregator(EVERY, rng=0).aggregate(query, None)
    assert whole.to_vector() == pytest.approx(parts.to_vector())


def test_questions_that_no_client_could_answer_are_refused():
    with pytest.raises(ParameterError, match="with splits"):
        Divide(MDM([1.0], [[1.0, 2.0]], Sizes.constant(3)))
    with pytest.raises(ParameterError, match="positive concentrations"):
        Divide(mixture(np.array([[[1.0, 1.0], [1.0, 0.0]]] * 2)))
    with pytest.raises(ParameterError, match="from 2 to 300"):
        Affinity(301)
    assert Survey(301, BINS, pairs=False).n_categories == 301

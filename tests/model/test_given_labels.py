from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from polyurn import MDM, GivenLabels, Oracle, Sizes
from polyurn.errors import CountsError, ParameterError, ShortfallError, SizeError
from strategies import mdms

# Two labels of two styles each; components differ in labels, in styles and in sizes.
LABEL_OF = np.array([0, 0, 1, 1])
MIXTURE = MDM(
    [0.6, 0.4],
    [[2.0, 0.5, 1.0, 1.0], [0.3, 3.0, 0.2, 4.0]],
    Sizes.from_table([[0.0, 0.1, 0.2, 0.3, 0.4], [0.0, 0.1, 0.2, 0.6, 0.1]]),
)
# False alarms of the chi-square tests below: one in 10,000 seeds, and the seeds are fixed.
LEVEL = 1e-4


def label_totals(counts):
    return np.stack([counts[:, label == LABEL_OF].sum(axis=1) for label in (0, 1)], axis=1)


def every_histogram(totals):
    """All histograms with these label totals."""
    a, b = totals
    return np.array([(i, a - i, j, b - j) for i, j in product(range(a + 1), range(b + 1))])


def frequencies(drawn, cells):
    return np.array([(drawn == cell).all(axis=1).sum() for cell in cells])


def conditional(cells):
    """The mixture's law on these histograms, normalised: no formula but that of the mixture itself."""
    joint = np.exp(MIXTURE.logpmf(cells))
    return joint / joint.sum()


@pytest.mark.parametrize("totals", [(2, 1), (3, 0), (1, 3)])
def test_the_law_is_the_mixtures_own_given_the_totals(totals):
    cells = every_histogram(totals)
    drawn = GivenLabels(MIXTURE, Oracle([totals]), LABEL_OF).sample(20_000, rng=0)
    seen = frequencies(drawn, cells)
    assert seen.sum() == 20_000
    assert stats.chisquare(seen, 20_000 * conditional(cells)).pvalue > LEVEL


def test_the_law_is_that_of_rejection_sampling():
    totals = (2, 1)
    cells = every_histogram(totals)
    everybody = MIXTURE.sample(300_000, rng=1)
    kept = everybody[(label_totals(everybody) == totals).all(axis=1)]
    drawn = GivenLabels(MIXTURE, Oracle([totals]), LABEL_OF).sample(len(kept), rng=2)
    table = [frequencies(kept, cells), frequencies(drawn, cells)]
    assert len(kept) > 10_000
    assert stats.chi2_contingency(table).pvalue > LEVEL


def test_a_law_that_forgets_the_components_sizes_would_be_seen():
    """The tests above can fail: without π_k(n) in the odds they do."""
    cells = every_histogram((1, 3))
    forgetful = MDM(MIXTURE.weights, MIXTURE.alphas, Sizes.constant(4, n_components=2))
    drawn = GivenLabels(forgetful, Oracle([(1, 3)]), LABEL_OF).sample(20_000, rng=0)
    seen = frequencies(drawn, cells)
    assert stats.chisquare(seen, 20_000 * conditional(cells)).pvalue < LEVEL


def test_given_the_mixtures_own_label_totals_clients_are_those_of_the_mixture():
    blocks = np.stack(
        [MIXTURE.alphas[:, label == LABEL_OF].sum(axis=1) for label in (0, 1)], axis=1
    )
    labels = MDM(MIXTURE.weights, blocks, MIXTURE.sizes)
    cells = np.concatenate([every_histogram((a, n - a)) for n in range(1, 5) for a in range(n + 1)])
    drawn = GivenLabels(MIXTURE, labels, LABEL_OF).sample(40_000, rng=3)
    expected = 40_000 * np.exp(MIXTURE.logpmf(cells))
    assert stats.chisquare(frequencies(drawn, cells), expected).pvalue > LEVEL


def test_without_categories_that_the_pool_lacks_the_law_is_given_that_too():
    cells = every_histogram((2, 2))
    cells = cells[cells[:, 3] == 0]
    clients = GivenLabels(MIXTURE, Oracle([(2, 2)]), LABEL_OF, codes=[2, 0, 1, 0])
    assert clients.possible.tolist() == [True, True, True, False]
    seen = frequencies(clients.sample(20_000, rng=4), cells)
    assert seen.sum() == 20_000
    assert stats.chisquare(seen, 20_000 * conditional(cells)).pvalue > LEVEL


@settings(max_examples=40, deadline=None)
@given(mdms(max_categories=6, max_size=20), st.integers(0, 2**32))
def test_label_totals_are_exactly_those_of_the_label_population(mdm, seed):
    rng = np.random.default_rng(seed)
    label_of = rng.integers(3, size=mdm.n_categories)
    one_hot = np.eye(3, dtype=int)[label_of]
    clients = mdm.sample(15, rng=seed) @ one_hot
    drawn = GivenLabels(mdm, Oracle(clients), label_of).sample(15, rng=seed)
    assert sorted((drawn @ one_hot).tolist()) == sorted(clients.tolist())


@settings(max_examples=40, deadline=None)
@given(mdms(max_categories=6, max_size=20), st.integers(0, 2**32))
def test_known_totals_are_filled_client_by_client(mdm, seed):
    label_of = np.random.default_rng(seed).integers(3, size=mdm.n_categories)
    one_hot = np.eye(3, dtype=int)[label_of]
    totals = mdm.sample(15, rng=seed) @ one_hot
    clients = GivenLabels(mdm, Oracle(totals), label_of)
    assert np.array_equal(clients.fill(totals, rng=seed) @ one_hot, totals)
    sparse_ones = clients.fill(sparse.csr_array(totals), rng=seed)
    assert np.array_equal(sparse_ones, clients.fill(totals, rng=seed))


def test_filled_totals_have_the_mixtures_law_given_them():
    cells = every_histogram((2, 1))
    clients = GivenLabels(MIXTURE, Oracle([(2, 1)]), LABEL_OF)
    seen = frequencies(clients.fill(np.tile([2, 1], (20_000, 1)), rng=0), cells)
    assert stats.chisquare(seen, 20_000 * conditional(cells)).pvalue > LEVEL


def test_tables_may_be_sparse_and_the_same_seed_gives_the_same_clients():
    totals = sparse.csr_array([[2, 1], [0, 4]])
    clients = GivenLabels(MIXTURE, Oracle(totals), LABEL_OF)
    assert np.array_equal(clients.sample(50, rng=5), clients.sample(50, rng=5))
    assert clients.n_categories == 4


class Sparse:
    """A population that draws sparse tables."""

    n_categories = 2

    def sample(self, n_clients, *, rng=None):
        return sparse.csr_array(np.tile([2, 1], (n_clients, 1)))


def test_a_population_of_sparse_tables_will_do():
    drawn = GivenLabels(MIXTURE, Sparse(), LABEL_OF).sample(4, rng=0)
    assert label_totals(drawn).tolist() == [[2, 1]] * 4


# ------------------------------------------------------------------------------ what is refused


def test_labels_that_the_pool_lacks_are_named():
    clients = GivenLabels(MIXTURE, Oracle([[2, 1]]), LABEL_OF, codes=[0, 1])
    with pytest.raises(ShortfallError, match="no proxy point: 1; draw clients without them"):
        clients.sample(3, rng=0)


def test_totals_and_sizes_that_the_mixture_cannot_have_are_refused():
    no_second_label = MDM([1.0], [[1.0, 1.0, 0.0, 0.0]], Sizes.constant(3))
    with pytest.raises(CountsError, match="probability zero under every component"):
        GivenLabels(no_second_label, Oracle([[2, 1]]), LABEL_OF).sample(1, rng=0)
    with pytest.raises(SizeError):
        GivenLabels(MIXTURE, Oracle([[9, 9]]), LABEL_OF).sample(1, rng=0)


@pytest.mark.parametrize(
    ("label_of", "codes", "message"),
    [
        ([0, 0, 1], None, "the label of each of 4 categories, got 3"),
        ([0, 0, 1, 2], None, "label_of as a list of integers from 0 to 1"),
        ([0, 0, 1, 1.0], None, "label_of as a list of integers"),
        ([0, 0, 1, 1], [4], "codes as a list of integers from 0 to 3"),
        ([0, 0, 1, 1], [], "codes as a list of integers"),
    ],
)
def test_labels_and_codes_that_do_not_fit_the_mixture_are_refused(label_of, codes, message):
    with pytest.raises(ParameterError, match=message):
        GivenLabels(MIXTURE, Oracle([[2, 1]]), label_of, codes)

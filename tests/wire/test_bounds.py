"""No client exceeds its bounds, and in each block some client comes near them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wire_cases
from polyurn import SizeBins, Sizes, answer
from polyurn.errors import InputError
from polyurn.model.mdm import MDM
from polyurn.wire import (
    Batch,
    Contrast,
    Expect,
    Group,
    Initialise,
    Parameters,
    Part,
    Score,
    Survey,
    Update,
    check_answer,
)

LOG_ALPHAS = st.floats(-6, 6)


def adversarial(n_categories, max_size, seed=0):
    """All points in one category, one point each, evenly, in two halves, at random; small and large."""
    rng = np.random.default_rng(seed)
    one = np.eye(n_categories, dtype=np.int64)
    even = np.bincount(np.arange(max_size) % n_categories, minlength=n_categories)
    first = np.minimum(
        1, np.arange(max_size, max_size - n_categories, -1).clip(0)
    )  # one point each
    halves = [
        one[i] * (max_size // 2) + one[j] * (max_size - max_size // 2)
        for i, j in itertools.combinations(range(n_categories), 2)
    ]
    sizes = rng.integers(1, max_size + 1, 8)
    drawn = [rng.multinomial(n, rng.dirichlet(np.full(n_categories, 0.5))) for n in sizes]
    return [*one, *(one * max_size), even, first, *halves, *drawn]


def every_client(n_categories, max_size):
    """All histograms of up to `max_size` points."""
    counts = itertools.product(range(max_size + 1), repeat=n_categories)
    return [c for c in counts if 1 <= sum(c) <= max_size]


def used(query, clients):
    """The largest share of its bound that any client takes up, place by place, as a `Statistics`."""
    bounds = query.bounds()
    assert bounds.shape == (query.n_numbers,)
    assert np.isfinite(bounds).all()
    assert (bounds > 0).all()
    said = np.array(
        [answer(query, c, buckets=[0.0], rng=i).to_vector() for i, c in enumerate(clients)]
    )
    said = said[np.isfinite(said).all(axis=1)]
    return query.read(np.abs(said).max(axis=0) / bounds)


def parameters_of(log_alphas, weights, masses, bins=None):
    masses = np.array(masses) / np.sum(masses, axis=1, keepdims=True)
    bins = SizeBins.exact(masses.shape[1]) if bins is None else bins
    weights = np.array(weights) / np.sum(weights)
    return Parameters(weights, 10.0 ** np.array(log_alphas), Sizes.unchecked(bins, masses))


@st.composite
def parameters(draw):
    k, c = draw(st.integers(1, 3)), draw(st.integers(2, 4))
    n = draw(st.sampled_from([1, 2, 3, 17, 60]))
    rows = st.lists(LOG_ALPHAS, min_size=c, max_size=c)
    if draw(st.booleans()):  # components that are alike, so that ω is not 0 or 1
        rows = st.just(draw(rows))
    shares = st.floats(1e-6, 1.0)
    weights = draw(st.lists(shares, min_size=k, max_size=k))
    masses = draw(st.lists(st.lists(shares, min_size=n, max_size=n), min_size=k, max_size=k))
    return parameters_of(draw(st.lists(rows, min_size=k, max_size=k)), weights, masses)


# -------------------------------------------------------------------------------------- never beyond


@given(parameters(), st.integers(0, 99))
def test_no_client_is_beyond_the_bounds_of_an_expect(given_parameters, seed):
    k, c = given_parameters.alphas.shape
    query = Expect(given_parameters, tuple(range(k)))
    shares = used(query, adversarial(c, given_parameters.sizes.max_size, seed)).to_vector()
    assert (shares <= 1).all()


@settings(max_examples=40)
@given(parameters(), parameters(), st.integers(0, 99))
def test_no_client_is_beyond_the_bounds_of_an_update_or_a_score(one, other, seed):
    c, n = one.alphas.shape[1], one.sizes.max_size
    mdms = tuple(p.mdm() for p in (one, other) if (p.alphas.shape[1], p.sizes.max_size) == (c, n))
    query = Batch((Update(one.mdm()), Score(mdms)))
    assert (used(query, adversarial(c, n, seed)).to_vector() <= 1).all()


@settings(max_examples=40)
@given(st.integers(2, 4), st.sampled_from([1, 2, 3, 17, 60]), st.booleans(), st.integers(0, 99))
def test_no_client_is_beyond_the_bounds_of_a_query_without_parameters(c, n, pairs, seed):
    rng, bins = np.random.default_rng(seed), SizeBins.logarithmic(n)
    group = Group(rng.normal(size=(3, c + 2)), rng.normal(size=3), bins)
    queries = [Initialise(2, c, bins), Survey(c, bins, pairs), group, Part(group, 0.0, 0.5)]
    queries += [Contrast(2, 2)] if c == 4 else []
    for query in queries:
        assert (used(query, adversarial(c, n, seed)).to_vector() <= 1).all()


@settings(max_examples=25)
@given(st.data())
def test_no_client_is_beyond_the_log_bound_of_components_that_lack_categories_and_sizes(data):
    k, c, n = data.draw(st.integers(1, 3)), 3, data.draw(st.sampled_from([1, 4, 6]))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    alphas = np.where(rng.random((k, c)) < 0.3, 0.0, 10 ** rng.uniform(-6, 6, (k, c)))
    alphas[:, 0] += ~(alphas > 0).any(axis=1)
    masses = np.where(rng.random((k, n)) < 0.3, 0.0, rng.random((k, n)))
    masses[:, 0] += ~(masses > 0).any(axis=1)
    mdm = MDM(
        rng.dirichlet(np.ones(k)),
        alphas,
        Sizes(SizeBins.exact(n), masses / masses.sum(1, keepdims=True)),
    )
    query = Batch((Update(mdm), Score((mdm, mdm))))
    possible = [client for client in every_client(c, n) if np.isfinite(mdm.logpmf(client))]
    assert (used(query, possible).to_vector() <= 1).all()


def test_a_profile_of_sizes_counts_in_the_bound_of_a_log_likelihood():
    spiked = SizeBins([1, 5, 13], fine=[1, 4, 5, 9, 13], shares=[1e-9, 1 - 1e-9, 0.0, 1.0])
    query = Expect(parameters_of([[0.0, 0.0]], [1.0], [[0.5, 0.5]], spiked))
    share = used(query, every_client(2, 12)).log_likelihood
    assert 0.5 < share <= 1


@pytest.mark.parametrize("name", wire_cases.QUERIES)
def test_the_client_of_every_test_vector_is_within_its_bounds(name):
    query = wire_cases.QUERIES[name]
    check_answer(query, answer(query, wire_cases.HELD, buckets=[wire_cases.BUCKET], rng=0))


# --------------------------------------------------------------------------------------- and tight

# Of each block, the share of its bound that some client takes up, in every place. Of one component all
# but the log-likelihood and the Hessian are attained.
ATTAINED = 1 - 1e-8
ONE_COMPONENT = {
    "log_likelihood": 1 / 2, "size_counts": ATTAINED, "present": ATTAINED, "tables": ATTAINED,
    "spread": ATTAINED, "total_tables": ATTAINED, "total_spread": ATTAINED,
}  # fmt: skip


@pytest.mark.parametrize("log_alpha", [-6, -2, 0, 2, 6])
@pytest.mark.parametrize("spread", [0.0, 1.0])
@pytest.mark.parametrize("max_size", [1, 7])
def test_bounds_of_one_component_are_tight_in_every_place(log_alpha, spread, max_size):
    log_alphas = np.array([[log_alpha, log_alpha + spread, log_alpha - spread]])
    even = np.ones((1, max_size))
    query = Expect(parameters_of(log_alphas, [1.0], even), (0,))
    shares = used(query, every_client(3, max_size))
    for name, least in ONE_COMPONENT.items():
        assert np.min(getattr(shares, name)) >= least, name
    update = used(Update(query.parameters.mdm()), every_client(3, max_size))
    for name in ("responsibilities", "size_counts", "numerators", "denominators"):
        assert np.min(getattr(update, name)) >= ATTAINED, name


def test_the_bound_of_a_log_likelihood_is_within_a_factor_of_2_of_one_component():
    """And of 5 for mixtures, of which the best component is taken, not the best for each client."""
    rng = np.random.default_rng(0)
    for k, factor in ((1, 2), (2, 5), (3, 5)):
        for _ in range(40):
            c, n = rng.integers(2, 5), rng.integers(2, 8)
            mdm = parameters_of(rng.uniform(-6, 6, (k, c)), rng.random(k), np.ones((k, n))).mdm()
            largest = -mdm.logpmf(np.array(every_client(c, n))).min()
            bound = Score((mdm,)).bounds()[1]
            assert largest <= bound <= factor * largest


def test_bounds_of_a_hessian_are_within_a_factor_of_4_where_components_overlap():
    """Two alike; every client of up to 8 points; all places of the diagonal, and the nearest place."""
    nearest = []
    for log_alphas in ([0.0, 0.0], [-2.0, -1.0], [2.0, 1.0], [4.0, 4.0], [-1.0, 2.0]):
        query = Expect(parameters_of([log_alphas] * 2, [0.5, 0.5], np.ones((2, 8))), (0, 1))
        shares = used(query, every_client(2, 8)).curvature
        square = np.zeros((6, 6))
        square[np.tri(6, dtype=bool)] = shares
        alphas = [0, 1, 3, 4]
        assert np.diag(square)[alphas].min() > 1 / 4
        nearest.append(shares.max())
    assert min(nearest) > 1 / 2


@pytest.mark.parametrize(("n_categories", "max_size", "factor"), [(2, 8, 5), (3, 6, 2)])
def test_bounds_of_a_hessian_are_within_a_factor_off_its_diagonal_too(
    n_categories, max_size, factor
):
    """Two alike, so that some client has ω = 1/2, as the bounds assume of all of them.

    Where a client's ω is near 0 or 1, as it is where components are far apart, its Hessian is smaller
    than that by any factor: no client decides what others' responsibilities are. In log τ of two alike
    it is 0, as ω = τ.
    """
    per = n_categories + 1
    for log_alphas in ([0.0, 0.0, 0.0], [-2.0, -1.0, 0.0], [2.0, 1.0, 1.5], [4.0, 4.0, 4.0]):
        rows = [log_alphas[:n_categories]] * 2
        query = Expect(parameters_of(rows, [0.5, 0.5], np.ones((2, max_size))), (0, 1))
        square = np.zeros((2 * per, 2 * per))
        square[np.tri(2 * per, dtype=bool)] = used(
            query, every_client(n_categories, max_size)
        ).curvature
        for i, j in itertools.combinations(range(2 * per), 2):
            if (i + 1) % per and (j + 1) % per:
                assert square[j, i] > 1 / factor
            elif (i + 1) % per or (j + 1) % per:
                assert square[j, i] > ATTAINED - 1e-6  # ω (1 - ω) g at the largest |g|


def test_the_hessian_of_one_component_is_within_a_factor_of_2_on_its_diagonal():
    for log_alphas in ([0.0, 0.0], [-3.0, -1.0], [2.0, 1.0], [4.0, 4.0], [-1.0, 2.0]):
        query = Expect(parameters_of([log_alphas], [1.0], np.ones((1, 8))), (0,))
        shares = used(query, every_client(2, 8)).curvature
        assert shares[[0, 2]].min() > 1 / 2
        assert shares[1] > 0.999  # p_i p_j S: at every client of max_size points


@pytest.mark.parametrize(
    ("query", "clients"),
    [
        (Initialise(1, 3, SizeBins.exact(4)), every_client(3, 4)),
        (Survey(3, SizeBins.exact(4), pairs=False), every_client(3, 4)),
        (Survey(3, SizeBins.exact(1), pairs=False), every_client(3, 1)),
        (Group(np.zeros((1, 5)), np.zeros(1), SizeBins.exact(4)), every_client(3, 4)),
        (Contrast(2, 2), every_client(4, 4)),
    ],
)
def test_bounds_without_parameters_are_attained_in_every_place(query, clients):
    shares = used(query, clients).to_vector()
    zero = query.bounds() < 1e-8  # log 1 of clients of one point
    assert (shares[~zero] >= ATTAINED).all()


def test_bounds_of_pairs_of_features_are_within_a_factor_of_2():
    """Two different proportions at 1/4; a proportion and Σ p² or log n at 1."""
    shares = used(Survey(3, SizeBins.exact(8), pairs=True), every_client(3, 8)).products
    assert shares.min() > ATTAINED / 2
    assert np.sum(shares > ATTAINED) == len(shares)


@given(parameters())
def test_no_bound_is_larger_than_the_page_says(given_parameters):
    n, query = given_parameters.sizes.max_size, Expect(given_parameters, (0,))
    bounds = query.read(query.bounds())
    slack = 1 + 1e-6
    for block in (bounds.tables, bounds.spread, bounds.total_tables, bounds.total_spread):
        assert (block <= n * slack).all()
    assert (bounds.curvature <= (n + n**2 / 4) * slack).all()
    update = Update(given_parameters.mdm())
    assert (update.read(update.bounds()).numerators * update.mdm.alphas <= n * slack).all()


def test_bounds_do_not_break_on_extremes():
    for alpha in (1e-150, 1e-11, 1e15, 1e149):
        for n in (1, 10**6):
            sizes = Sizes.unchecked(SizeBins([1, n + 1]), np.ones((2, 1)))
            query = Expect(Parameters(np.array([0.5, 0.5]), np.full((2, 3), alpha), sizes), (0, 1))
            bounds = Batch((query, Update(query.parameters.mdm()))).bounds()
            assert np.isfinite(bounds).all()
            assert (bounds > 0).all()


# ------------------------------------------------------------------------------------- the check


def test_an_answer_beyond_its_bounds_is_refused_without_showing_a_value():
    query = wire_cases.QUERIES["update"]
    said = answer(query, wire_cases.HELD)
    check_answer(query, said)
    check_answer(query, said + said, 2 * query.bounds())
    with pytest.raises(InputError, match="got number 0 beyond 1 ") as refused:
        check_answer(query, said + said)
    assert "\n" not in str(refused.value)
    for value in (1e149, -1e149):
        vector = said.to_vector()
        vector[1] = value
        with pytest.raises(InputError, match="got number 1 beyond"):
            check_answer(query, query.read(vector))
    with pytest.raises(InputError, match="bounds, got shape"):
        check_answer(query, said, np.ones(3))


def test_a_query_that_is_made_of_ours_has_its_bounds():
    class Gossip(Contrast):
        pass

    assert len(Gossip(2, 2).bounds()) == 18

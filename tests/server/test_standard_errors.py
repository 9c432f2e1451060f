"""Standard errors of a fit: right for small problems, honest where clients do not tell enough."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.stats import binom

import polyurn as pu
from polyurn.errors import ParameterError
from polyurn.model.paper_truths import truth
from polyurn.server.em import Point, covariance, to_x
from polyurn.storage.models import load_saved
from polyurn.storage.provenance import Provenance
from polyurn.typed.arrays import symmetric

TWO = pu.MDM([0.6, 0.4], [[4.0, 1.0, 2.0], [0.5, 1.5, 0.7]], pu.Sizes.constant(12, n_components=2))


def information(mdm, counts):
    """Minus the Hessian of Σ log q in x, by differences of the log-likelihood alone."""
    x, k, c = to_x(mdm.weights, mdm.alphas), *mdm.alphas.shape

    def value(at):
        logs = at.reshape(k, c + 1)
        weights = np.exp(logs[:, c]) / np.exp(logs[:, c]).sum()
        return replace(
            mdm, weights=weights, alphas=np.exp(logs[:, :c]), as_given=True, covariance=None
        )

    def total(*steps):
        return value(x + sum(steps)).logpmf(counts).sum()

    e = 1e-3 * np.eye(len(x))
    pairs = [[total(a, b) - total(a, -b) - total(-a, b) + total(-a, -b) for b in e] for a in e]
    return -np.array(pairs) / 4e-6


def at(alphas, gradient=0.0):
    """A judged point with equal weights and one size."""
    x = to_x(np.full(len(alphas), 1 / len(alphas)), alphas)
    sizes = pu.Sizes.constant(9, n_components=len(alphas))
    return Point(x, -1.0, np.full(x.shape, gradient), sizes, x, sizes.masses)


def test_covariance_is_the_inverse_of_the_information_of_all_clients():
    counts = TWO.sample(1500, rng=0)
    mdm = pu.fit(counts, n_components=2, sizes="shared", rng=0).mdm
    found, c = symmetric(mdm.covariance), mdm.n_categories
    null = np.zeros(len(found))
    null[c :: c + 1] = 0.5**0.5  # a shift of all log τ changes nothing
    inverse = np.linalg.inv(information(mdm, counts) + 1e6 * np.outer(null, null))
    expected = inverse - 1e-6 * np.outer(null, null)
    np.testing.assert_allclose(found, expected, atol=0.005 * np.abs(expected).max())


def test_sizes_that_are_learned_add_to_the_errors():
    table = binom.pmf(np.arange(13), 12, [[0.45], [0.65]])
    table[:, 0] = 0
    known = pu.MDM(TWO.weights, TWO.alphas, table / table.sum(axis=1, keepdims=True))
    counts = known.sample(3000, rng=1)
    mdm = pu.fit(counts, n_components=2, tol=1e-6, rng=0).mdm
    k, c = mdm.alphas.shape
    often = 3000 * mdm.weights[:, None] * mdm.sizes.masses >= 1
    x = np.concatenate([to_x(mdm.weights, mdm.alphas), np.log(mdm.sizes.masses[often])])

    def total(*steps):
        """The log-likelihood of the whole table, and the prior of sizes, in log α, log τ and log π."""
        logs, masses = (x + sum(steps))[: k * (c + 1)].reshape(k, c + 1), mdm.sizes.masses.copy()
        masses[often] = np.exp((x + sum(steps))[k * (c + 1) :])
        masses /= masses.sum(axis=1, keepdims=True)
        weights = np.exp(logs[:, c]) / np.exp(logs[:, c]).sum()
        sizes = pu.Sizes(mdm.sizes.bins, masses)
        moved = pu.MDM(weights, np.exp(logs[:, :c]), sizes, as_given=True)
        prior = (mdm.weights @ mdm.sizes.masses * np.log(masses)).sum()
        return moved.logpmf(counts).sum() + prior

    e = 2e-3 * np.eye(len(x))
    pairs = [[total(a, b) - total(a, -b) - total(-a, b) + total(-a, -b) for b in e] for a in e]
    normals, of_sizes = np.zeros((1 + k, len(x))), k * (c + 1)
    normals[0, c : of_sizes : c + 1] = 1
    normals[1:, of_sizes:] = mdm.sizes.masses[often] * (np.nonzero(often)[0] == [[0], [1]])
    within = null_space(normals)
    inverse = within @ np.linalg.inv(within.T @ -np.array(pairs) @ within / 1.6e-5) @ within.T
    expected = np.sqrt(np.diag(inverse))[:of_sizes]
    found = np.sqrt(np.diag(symmetric(mdm.covariance)))
    np.testing.assert_allclose(found, expected, rtol=0.15)  # it is expected information, in part
    within = null_space(normals[:1, :of_sizes])
    given = within @ np.linalg.inv(within.T @ information(mdm, counts) @ within) @ within.T
    assert found[c] > 1.2 * np.sqrt(given[c, c])


def test_a_search_that_stopped_far_from_its_optimum_gives_no_errors():
    counts = truth("medium/2").sample(20_000, rng=5)
    early = pu.fit(counts, n_components=2, rng=0)
    assert early.converged
    assert early.mdm.standard_errors is None
    assert "before the optimum" in early.no_errors
    closer = pu.fit(counts, n_components=2, tol=1e-5, rng=0)
    assert closer.mdm.standard_errors is not None
    ends = (to_x(fit.mdm.weights, fit.mdm.alphas) for fit in (early, closer))
    errors = np.sqrt(np.diag(symmetric(closer.mdm.covariance)))
    assert np.abs(np.subtract(*ends) / errors).max() > 0.5


def test_errors_follow_from_the_covariance_by_the_delta_method():
    mdm = pu.fit(TWO.sample(1500, rng=0), n_components=2, rng=0).mdm
    draws = replace(mdm, covariance=mdm.covariance / 1e4).draws(4000, rng=1)  # nearly linear
    spread = {
        "weights": np.std([one.weights for one in draws], axis=0),
        "shares": np.std([one.shares for one in draws], axis=0),
        "concentrations": np.std([one.alphas.sum(axis=1) for one in draws], axis=0),
    }
    for name, values in spread.items():  # the error of a standard deviation is 1.1 %
        np.testing.assert_allclose(100 * values, getattr(mdm.standard_errors, name), rtol=0.05)


def test_intervals_cover_what_they_say():
    # 24 parameters in 40 draws; false alarms below 1 in 1,000 (experiments/standard_errors.py: 95 %).
    known, inside = truth("medium/2"), []
    known = pu.MDM(known.weights, known.alphas, known.sizes)
    for seed in range(40):
        mdm = pu.fit(known.sample(2000, rng=seed), start=known).mdm
        errors = mdm.standard_errors
        off = [mdm.weights - known.weights, mdm.shares - known.shares]
        off.append(mdm.alphas.sum(axis=1) - known.alphas.sum(axis=1))
        scale = [errors.weights, errors.shares, errors.concentrations]
        parts = zip(off, scale, strict=True)
        inside.append(np.concatenate([(np.abs(d) < 1.96 * s).ravel() for d, s in parts]))
    assert 0.92 < np.mean(inside) < 0.98


def test_equal_components_have_no_errors():
    hessian = -np.kron([[1.0, 1.0], [1.0, 1.0]], np.diag([3.0, 2.0, 1.0])) / 10
    hessian[2::3, 2::3] = [[-0.05, 0.05], [0.05, -0.05]]
    assert covariance(hessian, at(np.full((2, 2), 2.0)), 1000.0, size_prior=None) is None


def test_what_clients_say_nothing_about_is_held_and_has_no_error():
    alphas = np.array([[3.0, 1.0, 1e-7]])
    hessian = -np.diag([0.5, 0.4, 1e-6, 0.0])
    found, _ = covariance(hessian, at(alphas), 1e3, size_prior=None)
    lower = found[np.tri(4, dtype=bool)]
    mdm = pu.MDM([1.0], alphas, pu.Sizes.constant(9), covariance=lower)
    errors = mdm.standard_errors
    assert np.isfinite(errors.shares[0, :2]).all()
    assert np.isnan(errors.shares[0, 2])
    assert np.isfinite(errors.concentrations).all()
    assert mdm.draws(1, rng=0)[0].alphas[0, 2] == 1e-7


def test_a_concentration_at_its_cap_has_no_error_but_shares_have():
    shares = np.array([0.5, 0.3, 0.2])
    counts = np.random.default_rng(0).multinomial(40, shares, size=500)
    mdm = pu.fit(counts, n_components=1, rng=0).mdm
    assert mdm.multinomial == (0,)
    assert np.isnan(mdm.standard_errors.concentrations).all()
    expected = np.sqrt(shares * (1 - shares) / (500 * 40))
    np.testing.assert_allclose(mdm.standard_errors.shares[0], expected, rtol=0.05)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"max_rounds": 4}, "converged"),
        ({"cohort_size": 500}, "samples"),
        ({"max_upload": 250}, "max_upload=250"),
        ({"n_components": (1, 2), "shape": "tree"}, "splits"),
    ],
)
def test_without_errors_the_fit_says_why(settings, why):
    given = {"n_components": 2, "rng": 0, **settings}
    fit = pu.fit(truth("medium/2").sample(1000, rng=0), **given)
    assert fit.mdm.standard_errors is None
    assert why in fit.no_errors
    assert why in str(fit)
    with pytest.raises(ParameterError, match="standard errors"):
        fit.mdm.draws(3)


def test_a_chosen_mixture_has_errors_with_all_clients_and_with_some_held_out():
    counts = truth("medium/2").sample(1500, rng=0)
    both = [
        pu.fit(counts, n_components=[2, 3], shape="dirichlet", held_out=share, rng=0)
        for share in (None, 0.4)
    ]
    all_clients, fewer = (fit.mdm.standard_errors.weights for fit in both)
    assert (all_clients < fewer).all()  # 900 of 1,500 are fitted


def test_a_file_keeps_the_errors_and_the_wire_does_not(tmp_path):
    fit = pu.fit(TWO.sample(800, rng=0), n_components=2, rng=0)
    pu.save(fit.mdm, tmp_path / "mdm.json", provenance=Provenance.of(fit))
    assert load_saved(tmp_path / "mdm.json").model == fit.mdm
    assert load_saved(tmp_path / "mdm.json").provenance.fit.no_errors == ""
    from polyurn.wire import Score
    from polyurn.wire.codec import decode_query, encode_query

    received = decode_query(encode_query(Score((fit.mdm,)))).mdms[0]
    assert received.covariance is None
    assert np.array_equal(received.alphas, fit.mdm.alphas)


def test_errors_follow_components_into_the_order_of_weight():
    mdm = pu.fit(TWO.sample(800, rng=0), n_components=2, rng=0).mdm
    square, swap = symmetric(mdm.covariance), [4, 5, 6, 7, 0, 1, 2, 3]
    lower = square[np.ix_(swap, swap)][np.tri(8, dtype=bool)]
    sizes = pu.Sizes(mdm.sizes.bins, mdm.sizes.masses[::-1])
    turned = pu.MDM(mdm.weights[::-1], mdm.alphas[::-1], sizes, covariance=lower)
    assert turned == mdm


def test_a_covariance_of_another_shape_or_that_is_none_is_refused():
    with pytest.raises(ParameterError, match="covariance of 36 numbers"):
        replace(TWO, covariance=np.ones(35))
    square = np.eye(8)
    for square[0, 0] in (np.nan, np.inf, -1.0):
        with pytest.raises(ParameterError, match="finite, with no negative variance"):
            replace(TWO, covariance=square[np.tri(8, dtype=bool)])


def test_draws_of_any_variance_are_mixtures_by_their_seed():
    for size in (0.0, 1.0, 1e8):
        wild = replace(TWO, covariance=size * np.eye(8)[np.tri(8, dtype=bool)])
        drawn = wild.draws(50, rng=3)
        assert drawn == wild.draws(50, rng=3)
        for one in drawn:  # the constructor checks weights and alphas
            assert np.isfinite(one.logpmf([6, 4, 2]))


def test_a_start_whose_component_died_is_a_start_again():
    apart = pu.MDM([0.6, 0.4], [[40.0, 1.0, 2.0], [0.5, 15.0, 7.0]], TWO.sizes)
    first = pu.MDM([1.0], apart.alphas[:1], pu.Sizes.constant(12))
    old = pu.fit(apart.sample(1000, rng=0), n_components=2, rng=0).mdm
    left = pu.fit(first.sample(1000, rng=1), start=old).mdm
    assert left.weights[1] < 0.01
    assert np.isnan(left.standard_errors.weights).all()
    again = pu.fit(apart.sample(1000, rng=2), start=left).mdm
    assert np.abs(again.shares - old.shares).max() < 0.05

"""Mixtures with splits: probabilities, draws, shares, files and messages."""

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse
from scipy import stats

import polyurn
from polyurn.errors import FileError, ParameterError
from polyurn.model import splits
from polyurn.model.mdm import MDM, Relabelled
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.model.splits import Laws, Splits, law_knots
from polyurn.model.trees import Tree
from polyurn.wire import Score, decode_query, encode_query
from polyurn.wire.bounds import log_bound

TREE = Tree.declared([["a", "c"], ["b", "d"]], list("abcd"))
KNOTS = law_knots(8, dense=3, ratio=1.5)
SIZES = Sizes(SizeBins([1, 2, 4, 10]), [[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]])


def histograms(n, c):
    """All histograms of n points in c categories."""
    bars = np.array(list(itertools.combinations(range(n + c - 1), c - 1)))
    return np.diff(bars, axis=1, prepend=-1, append=n + c - 1) - 1


def everyone(mdm):
    return np.concatenate([histograms(n, mdm.n_categories) for n in range(1, mdm.max_size + 1)])


def mixture(kind, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    concentrations = rng.gamma(1.0, 2.0, (2, 3, 2))
    laws = Laws(KNOTS, scale * rng.normal(size=(2, 3, 2, len(KNOTS)))) if kind == "laws" else None
    return MDM([0.3, 0.7], None, SIZES, splits=Splits(TREE, concentrations, laws))


KINDS = pytest.mark.parametrize("kind", ["splits", "laws"])


@KINDS
def test_probabilities_of_all_clients_add_up_to_one(kind):
    mdm = mixture(kind)
    assert np.exp(mdm.logpmf(everyone(mdm))).sum() == pytest.approx(1, abs=1e-12)
    given_size = mdm.logpmf_given_size(histograms(5, 4))
    assert np.exp(given_size).sum() == pytest.approx(1, abs=1e-12)


@KINDS
def test_mean_and_shares_are_those_of_all_clients(kind):
    mdm = mixture(kind)
    clients = everyone(mdm)
    p = np.exp(mdm.logpmf(clients))
    assert np.allclose(p @ clients, mdm.mean(), rtol=1e-11)
    joint = np.exp(mdm.log_shares(clients) + mdm.sizes.logpmf(clients.sum(axis=1)))
    points = joint.T @ clients
    assert np.allclose(points / points.sum(axis=1, keepdims=True), mdm.shares, rtol=1e-11)


def test_a_mixture_with_the_splits_of_its_alphas_is_the_mixture_without():
    plain = MDM([0.6, 0.4], [[1.0, 0.0, 3.0, 0.2], [9.0, 2.0, 2.0, 5.0]], SIZES)
    split = MDM(plain.weights, plain.alphas, SIZES, splits=Splits.of_alphas(TREE, plain.alphas))
    clients = everyone(plain)
    assert np.allclose(np.exp(split.logpmf(clients)), np.exp(plain.logpmf(clients)), rtol=1e-11)
    assert np.allclose(split.responsibilities(clients[-9:]), plain.responsibilities(clients[-9:]))
    assert np.allclose(split.mean(), plain.mean())


@KINDS
def test_sparse_and_narrow_tables_have_the_same_probabilities(kind):
    mdm, rng = mixture(kind), np.random.default_rng(1)
    table = rng.integers(0, 3, (50, 4))
    table[:, 0] += 1
    wanted = mdm.logpmf(table)
    assert np.array_equal(mdm.logpmf(scipy.sparse.csr_array(table)), wanted)
    assert np.array_equal(mdm.logpmf(table.astype(np.uint8)), wanted)
    large = MDM([1.0], None, Sizes.constant(600), splits=mdm.splits.some([0]))
    row = np.array([[200, 100, 200, 100]])
    assert large.logpmf(row.astype(np.uint8)) == large.logpmf(row)  # sums beyond 255


def test_a_client_that_a_component_cannot_have_has_probability_zero():
    splits = Splits(TREE, [[[1.0, 0.0], [2.0, 0.0], [0.0, 0.0]], [[1.0, 1.0]] * 3])
    mdm = MDM([0.5, 0.5], None, SIZES, splits=splits)
    found = mdm.responsibilities([[3, 0, 0, 0], [3, 0, 1, 0], [0, 1, 0, 0]])
    assert (found[1:, 0] == 0).all()
    assert (found[0] > 0).all()


@KINDS
def test_drawn_clients_have_the_probabilities_of_the_mixture(kind):
    """Chi-square over all clients; false alarm one in ten thousand."""
    mdm, n_clients = mixture(kind), 60_000
    clients = everyone(mdm)
    code = 10 ** np.arange(4)
    seen = dict(
        zip(*np.unique(mdm.sample(n_clients, rng=2) @ code, return_counts=True), strict=True)
    )
    expected = n_clients * np.exp(mdm.logpmf(clients))
    observed = np.array([seen.get(client, 0) for client in clients @ code])
    assert observed.sum() == n_clients
    rare = expected < 8
    pairs = [np.append(of[~rare], of[rare].sum()) for of in (observed, expected)]
    assert stats.chisquare(*pairs).pvalue > 1e-4


def test_splits_move_with_their_components():
    mdm = mixture("laws")
    assert mdm.weights.tolist() == [0.7, 0.3]
    again = MDM(mdm.weights[::-1], mdm.alphas[::-1], Sizes(SIZES.bins, mdm.sizes.masses[::-1]),
                splits=mdm.splits.some([1, 0]))  # fmt: skip
    assert again == mdm
    assert pickle.loads(pickle.dumps(mdm)) == mdm


@pytest.mark.parametrize(
    ("alphas", "splits", "message"),
    [
        ([[1.0] * 4] * 2, Splits(TREE, np.ones((2, 3, 2))), "those of the splits"),
        (None, Splits(TREE, np.ones((1, 3, 2))), "shape"),
        ([[1.0] * 3] * 2, Splits(TREE, np.ones((2, 3, 2))), "3 categories, got 2 and 4"),
        (None, None, "alphas"),
    ],
)
def test_splits_that_do_not_fit_are_refused(alphas, splits, message):
    with pytest.raises(ParameterError, match=message):
        MDM([0.3, 0.7], alphas, SIZES, splits=splits)


@KINDS
def test_a_file_keeps_splits_to_the_last_bit(kind, tmp_path):
    mdm = mixture(kind)
    polyurn.save(mdm, tmp_path / "mdm.json", categories=["a", "b", "c", "d"])
    found = polyurn.load(tmp_path / "mdm.json")
    assert found.splits == mdm.splits
    assert np.array_equal(found.alphas, mdm.alphas)


def test_a_file_with_splits_is_of_a_version_that_earlier_readers_refuse(tmp_path):
    path = tmp_path / "mdm.json"
    polyurn.save(mixture("splits"), path)
    text = path.read_text()
    assert '"version": 4' in text
    assert '"laws"' not in text
    path.write_text(text.replace('"version": 4', '"version": 5'))
    with pytest.raises(FileError, match="newer than 4: upgrade polyurn"):
        polyurn.load(path)
    polyurn.save(MDM([1.0], [[1.0, 2.0]], Sizes.constant(3)), path)
    assert '"version": 3' in path.read_text()
    assert "splits" not in path.read_text()


@KINDS
def test_a_question_about_splits_arrives_as_it_was_sent(kind):
    mdms = (mixture(kind), mixture("splits", seed=5), MDM([1.0], [[1.0] * 4], Sizes.constant(9)))
    assert decode_query(encode_query(Score(mdms))).mdms == mdms


@KINDS
@pytest.mark.parametrize("seed", range(5))
def test_no_client_is_less_likely_than_the_bound(kind, seed):
    mdm = mixture(kind, seed)
    logs = mdm.logpmf(everyone(mdm))
    assert -log_bound(mdm) <= logs.min()


@KINDS
def test_other_names_of_the_same_number_keep_probabilities(kind):
    mdm = mixture(kind)
    other = mdm.relabelled(["w", "x", "y", "z"])
    order = np.argsort(-mdm.mean())
    clients = everyone(mdm)
    assert np.allclose(other.logpmf(clients[:, order]), mdm.logpmf(clients), rtol=1e-12)
    assert other.categories == ("w", "x", "y", "z")
    assert isinstance(mdm.relabelled(3), Relabelled)


def test_expected_shares_of_large_clients_are_exact_to_1e_4(monkeypatch):
    """Totals above 128 are propagated on a grid."""
    knots, rng = law_knots(700), np.random.default_rng(0)
    values = np.cumsum(0.2 * rng.normal(size=(2, 3, 2, len(knots))), axis=3)
    bent = Splits(TREE, rng.gamma(2.0, 3.0, (2, 3, 2)), Laws(knots, values))
    sizes = Sizes(SizeBins([1, 100, 400, 701]), [[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]])
    found = bent.shares(sizes)
    monkeypatch.setattr(splits, "_EXACT_TOTALS", 10_000)
    assert np.abs(found - bent.shares(sizes)).max() < 1e-4

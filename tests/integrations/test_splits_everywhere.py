"""Mixtures with splits wherever a mixture goes: each use works, or is refused in one line."""

from dataclasses import replace

import numpy as np
import pytest

import polyurn as pu
from federations import EXACT, Federation
from polyurn.comparison.summaries import dispersion_index
from polyurn.errors import ParameterError
from polyurn.storage.drawn_clients import write_drawn
from polyurn.wire import Score, Update
from shard_cases import packed

NAMES = ("a", "b", "c", "d")
TREE = pu.Tree.declared([["a", "c"], ["b", "d"]], NAMES)
SIZES = pu.Sizes(pu.SizeBins([1, 2, 9, 31]), [[0.1, 0.3, 0.6], [0.2, 0.6, 0.2]])


def mixture(kind="laws", n_categories=4, sizes=SIZES):
    rng = np.random.default_rng(3)
    tree = TREE if n_categories == 4 else pu.Tree.by_share(np.arange(1, n_categories + 1))
    concentrations = rng.gamma(2.0, 2.0, (2, n_categories - 1, 2)) + 0.5
    knots = np.array([0, 1, 2, 4, 8, 16, 30])
    values = 0.3 * rng.normal(size=(*concentrations.shape, len(knots)))
    splits = pu.Splits(tree, concentrations, pu.Laws(knots, values) if kind == "laws" else None)
    return pu.MDM([0.6, 0.4], None, sizes, splits=splits)


KINDS = pytest.mark.parametrize("kind", ["splits", "laws"])


@KINDS
@pytest.mark.parametrize("shortfall", ["resample", "reuse"])
def test_proxy_data_are_cut_for_clients_with_splits(kind, shortfall):
    mdm = mixture(kind)
    labels = np.repeat(np.arange(4), [900, 900, 90, 900])  # too few of one category
    clients = mdm.sample(60, rng=0)
    again = mdm if shortfall == "resample" else None
    parts = pu.partition(
        labels, clients, replace=False, shortfall=shortfall, population=again, rng=1
    )
    held = np.array([np.bincount(labels[mine], minlength=4) for mine in parts])
    assert np.array_equal(held.sum(axis=1), clients.sum(axis=1))
    if shortfall == "reuse":
        assert np.array_equal(held, clients)
    else:
        assert held[:, 2].sum() <= 90


@KINDS
def test_proxy_data_are_used_up_by_clients_with_splits(kind):
    labels = np.repeat(np.arange(4), [200, 100, 300, 150])
    parts = pu.cover(labels, mixture(kind), rng=0)
    assert sorted(parts.indices.tolist()) == list(range(750))


@KINDS
def test_compare_knows_the_likelihood_and_the_dispersion_of_splits(kind):
    mdm = mixture(kind)
    true = mdm.sample(300, rng=1)
    found = pu.compare({"mdm": mdm}, true, n_folds=2, n_splits=100, n_bootstrap=100, rng=2)
    (row,) = found.rows
    assert row.log_likelihood.value == pytest.approx(mdm.logpmf(true).mean())
    large = np.array([[3, 1, 2, 5]] * 4)
    assert np.isfinite(dispersion_index(large, mdm)).all()


def test_the_score_of_a_model_with_splits_is_asked_of_packed_clients_and_live_nodes(tmp_path):
    bins = pu.SizeBins([1, 21])
    mdm = mixture("laws", 10, pu.Sizes(bins, [[1.0], [1.0]]))
    plain = pu.MDM([1.0], [[1.0] * 10], pu.Sizes(bins, [[1.0]]))
    counts = mdm.sample(200, rng=4)
    question = Score((mdm, plain))
    here = pu.LocalAggregator(counts).aggregate(question, None).log_likelihoods
    assert here[0] == pytest.approx(mdm.logpmf(counts).sum())
    shards = pu.ShardAggregator(packed(tmp_path, counts).path, rng=0).aggregate(question, None)
    np.testing.assert_allclose(shards.log_likelihoods, here)
    federation = Federation(tmp_path, 4)
    nodes = federation.aggregator(secure=True).aggregate(question, None)
    np.testing.assert_allclose(
        nodes.log_likelihoods[0], mdm.logpmf(federation.counts).sum(), rtol=1e-9
    )


def test_a_policy_counts_and_bounds_the_numbers_of_splits():
    sizes, asked = pu.Sizes(pu.SizeBins([1, 10]), [[1.0]]), {"max_size": 9, "clients_per_node": 1}

    def objection(concentration):
        splits = pu.Splits(TREE, [[[1.0, 1.0], [concentration] * 2, [1.0, 1.0]]])
        question = Score((pu.MDM([1.0], None, sizes, splits=splits),))
        return EXACT.objection(question, secure=True, **asked)

    assert objection(1e8) is not None
    assert objection(1.0) is None


def test_the_papers_question_is_refused():
    with pytest.raises(ParameterError, match="got one with splits"):
        Update(mixture())


def test_a_comparison_of_parameters_is_refused_in_one_line():
    mdm = mixture()
    with pytest.raises(ParameterError, match="compare clients instead"):
        pu.compare_parameters(mdm, mdm)


def test_the_estimator_draws_and_scores_rows_with_splits():
    mixtures = pytest.importorskip("polyurn.integrations.sklearn")
    estimator = mixtures.DirichletMultinomialMixture(2, random_state=0)
    estimator.fit(mixture().sample(200, rng=0))
    mdm = estimator.mdm_ = mixture()
    estimator.weights_, estimator.alphas_ = mdm.weights, mdm.alphas
    rows, which = estimator.sample(50)
    assert rows.shape == (50, 4)
    joint = np.log(mdm.weights) + mdm.log_shares(rows)
    assert np.allclose(estimator.score_samples(rows), np.logaddexp.reduce(joint, axis=1))
    assert set(which) == {0, 1}


def test_a_folder_of_drawn_clients_is_not_continued_with_other_laws(tmp_path):
    mdm = mixture()
    settings = {"rng": 4, "clients_per_file": 100}
    assert write_drawn(mdm, 150, tmp_path / "drawn", **settings) == 2
    laws = pu.Laws(mdm.splits.laws.knots, mdm.splits.laws.values * 2)
    other = pu.MDM(
        mdm.weights, None, mdm.sizes, splits=pu.Splits(TREE, mdm.splits.concentrations, laws)
    )
    with pytest.raises(pu.errors.FileError, match="holds something else"):
        write_drawn(other, 150, tmp_path / "drawn", **settings)


@KINDS
def test_the_commands_take_a_model_with_splits(kind, run, tmp_path):
    mdm = mixture(kind)
    pu.save(mdm, "mdm.json", categories=NAMES)
    assert "than chance" in run("show", "mdm.json").err
    shown = run("show", "mdm.json", "--json").json()
    assert shown["splits"]["tree"] == [["a", "c"], ["b", "d"]]
    assert shown["n_parameters"] == mdm.n_parameters
    assert run("sample", "mdm.json", "--clients", "30", "-o", "drawn.csv", "--seed", "1").code == 0
    scored = run("score", "drawn.csv", "mdm.json", "--json").json()
    counts = pu.table_histograms(pu.read_table("drawn.csv"), categories=NAMES).counts
    assert scored["log_likelihood"] == pytest.approx(mdm.logpmf(counts).mean())


def test_a_dask_cluster_gets_the_bits_that_one_machine_gets(tmp_path):
    distributed = pytest.importorskip("distributed")
    mdm = mixture("laws", 10, pu.Sizes.constant(20, n_components=2))
    folder = packed(tmp_path, mdm.sample(200, rng=4))
    options = {"n_workers": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**options) as workers, distributed.Client(workers) as client:
        there = pu.DaskAggregator(client, folder, rng=0).aggregate(Score((mdm,)), None)
    here = pu.ShardAggregator(folder, rng=0).aggregate(Score((mdm,)), None)
    assert here.to_vector().tobytes() == there.to_vector().tobytes()


def test_flowers_partitioner_and_subsets_have_the_histograms_of_splits(proxy):
    flower = pytest.importorskip("polyurn.integrations.flwr_datasets")
    sizes = pu.Sizes(pu.SizeBins([1, 4]), [[1.0], [1.0]])
    mdm = replace(mixture("laws", 3, sizes), categories=proxy.features["label"].names)
    partitioner = flower.MDMPartitioner(mdm, num_partitions=4, seed=3)
    partitioner.dataset = proxy
    asked = mdm.sample(4, rng=np.random.default_rng(3))
    for i in range(4):
        mine = np.bincount(partitioner.load_partition(i)["label"], minlength=3)
        assert np.array_equal(mine, asked[i])

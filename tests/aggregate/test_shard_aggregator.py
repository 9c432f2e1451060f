import os
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

import polyurn as pu
from polyurn import LocalAggregator, ShardAggregator, SizeBins
from polyurn.aggregate.shard_aggregator import FAN_IN, add_group, tree_sum
from polyurn.errors import FileError, ParameterError
from polyurn.wire import (
    Batch,
    BoundedSurvey,
    Expect,
    Initialise,
    Noised,
    Parameters,
    Part,
    Score,
    Survey,
    Update,
)
from shard_cases import COUNTS, MDM, packed, unpacked

PARAMETERS = Parameters(MDM.weights, MDM.alphas, MDM.sizes)
QUERIES = {
    "update": Update(MDM),
    "curvature": Expect(PARAMETERS, curvature=(0, 1, 2)),
    "survey": Survey(10, SizeBins.exact(20), pairs=True),
    "score": Score((MDM, MDM)),
    "parts": Batch((Part(Update(MDM), 0.0, 0.1), Update(MDM), Part(Update(MDM), 0.1, 0.8))),
    "nested": Part(Batch((Part(Update(MDM), 0.0, 0.01), Update(MDM))), 0.0, 0.8),
    "random": Initialise(3, 10, SizeBins.exact(20)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return packed(tmp_path_factory.mktemp("shards"))


@pytest.mark.parametrize("name", QUERIES)
def test_the_sum_has_the_same_bits_on_any_number_of_threads(folder, name):
    one, two, five = (
        ShardAggregator(folder, rng=3, n_threads=n).aggregate(QUERIES[name], None).to_vector()
        for n in (1, 2, 5)
    )
    assert one.tobytes() == two.tobytes() == five.tobytes()


@pytest.mark.parametrize("name", ["update", "curvature", "survey", "score"])
def test_the_sum_is_that_of_the_table(folder, name):
    whole = LocalAggregator(COUNTS).aggregate(QUERIES[name], None).to_vector()
    sum_of_shards = ShardAggregator(folder).aggregate(QUERIES[name], None).to_vector()
    np.testing.assert_allclose(sum_of_shards, whole, rtol=1e-9, atol=1e-8)


def test_parts_of_the_clients_add_up_to_all_of_them(folder):
    bounds = [0.0, 0.01, 0.124, 0.125, 0.4, 1.0]  # some are at hand, some are not, one is half
    parts = Batch(tuple(Part(Update(MDM), *ends) for ends in pairwise(bounds)))
    clients = ShardAggregator(folder, rng=1)
    answers = clients.aggregate(parts, None).answers
    total = sum(answers[1:], start=answers[0])
    whole = clients.aggregate(Update(MDM), None)
    np.testing.assert_allclose(total.to_vector(), whole.to_vector(), rtol=1e-9, atol=1e-9)
    n_part = answers[4].n_clients  # binomial; alarm below 1e-6
    assert stats.binom(2_000, 0.6).cdf(n_part) > 1e-6
    assert stats.binom(2_000, 0.6).sf(n_part) > 1e-6


def test_a_part_is_the_same_clients_in_every_round(folder):
    clients = ShardAggregator(folder, rng=1)
    once, again = (clients.aggregate(Part(Update(MDM), 0.2, 0.5), None) for _ in range(2))
    np.testing.assert_array_equal(once.to_vector(), again.to_vector())


@pytest.mark.parametrize("sampling", ["fixed", "poisson"])
def test_a_cohort_has_the_asked_number_of_clients(folder, sampling):
    clients = ShardAggregator(folder, rng=0, sampling=sampling)
    sizes = [clients.aggregate(Update(MDM), 500).n_clients for _ in range(60)]
    if sampling == "fixed":
        assert set(sizes) == {500}
    else:
        assert len(set(sizes)) > 10
        assert np.mean(sizes) == pytest.approx(500, abs=4.5 * np.sqrt(375 / 60))


def test_every_client_is_as_likely_to_be_in_a_cohort(tmp_path):
    # Sizes tell the clients apart: client i holds i + 1 points.
    counts = np.stack([np.arange(1, 51), np.zeros(50, int)], axis=1)
    clients = ShardAggregator(packed(tmp_path, counts, clients_per_shard=7), rng=0)
    query = Initialise(1, 2, SizeBins.exact(50))
    cohorts = [clients.aggregate(query, 20).size_counts[0] for _ in range(200)]
    assert all(c.sum() == 20 and c.max() == 1 for c in cohorts)
    # 4.5 standard errors over 50 clients: alarm < 1e-3.
    assert (np.abs(np.mean(cohorts, axis=0) - 0.4) < 4.5 * np.sqrt(0.24 / 200)).all()


def test_rounds_that_are_left_out_change_no_later_one(folder):
    all_rounds, later = ShardAggregator(folder, rng=5), ShardAggregator(folder, rng=5)
    all_rounds.aggregate(Update(MDM), 100)
    later.skip()
    second, same = (clients.aggregate(Update(MDM), 100) for clients in (all_rounds, later))
    np.testing.assert_array_equal(second.to_vector(), same.to_vector())


def test_a_fit_on_shards_is_a_fit_on_the_table(folder):
    settings = {"n_components": 2, "n_categories": 10, "max_size": 20, "rng": 2}
    of_shards = pu.fit(ShardAggregator(folder, rng=0, n_threads=2), **settings)
    of_table = pu.fit(LocalAggregator(COUNTS, rng=0), **settings)
    value = of_table.rounds[-1].log_likelihood
    assert of_shards.rounds[-1].log_likelihood == pytest.approx(value, abs=2e-3)


def test_the_noise_of_clients_is_added_once_for_each(folder):
    query = BoundedSurvey(10, MDM.sizes.bins)
    plain = ShardAggregator(folder).aggregate(query, None).to_vector()
    noised = ShardAggregator(folder).aggregate(Noised(query, 0.01), None).to_vector()
    assert 0.2 < (noised - plain).std() / (0.01 * np.sqrt(len(COUNTS))) < 3


def test_a_shard_that_changes_between_two_rounds_is_one_clear_line(tmp_path):
    clients = ShardAggregator(packed(tmp_path))
    clients.aggregate(Update(MDM), None)
    shard = tmp_path / "packed" / "shard-000003.rows"
    shard.write_bytes(shard.read_bytes()[::-1])
    os.utime(shard, ns=(1, 1))
    with pytest.raises(FileError, match=r"shard-000003.rows changed while it was used"):
        clients.aggregate(Update(MDM), None)


@pytest.mark.parametrize("cohort_size", [0, 2_001])
def test_a_cohort_that_cannot_be_drawn_is_refused(folder, cohort_size):
    with pytest.raises(ParameterError, match=r"cohort of 1 to 2,000 clients, got"):
        ShardAggregator(folder).aggregate(Update(MDM), cohort_size)


def test_cohorts_of_clients_on_their_own_are_counted_as_they_are_drawn(tmp_path):
    folder = packed(tmp_path, np.ones((705, 2), int), clients_per_shard=300)
    clients, query = (
        ShardAggregator(folder, rng=0, sampling="poisson"),
        Survey(2, SizeBins.exact(2), pairs=False),
    )
    counts = [clients.aggregate(query, 70).n_clients for _ in range(400)]
    assert np.mean(counts) == pytest.approx(70, abs=2)
    assert np.var(counts) == pytest.approx(70 * (1 - 70 / 705), rel=0.3)


def test_a_round_that_nobody_joins_is_a_sum_of_nothing(tmp_path):
    folder = packed(tmp_path, np.ones((40, 3), int), clients_per_shard=10)
    clients = ShardAggregator(folder, rng=0, sampling="poisson")
    sums = [clients.aggregate(Survey(3, SizeBins.exact(9), pairs=False), 1) for _ in range(30)]
    assert {0.0, 1.0} <= {float(one.n_clients) for one in sums}


def levels(vectors):
    """The same tree, level after level."""
    while len(vectors) > 1:
        groups = [vectors[i : i + FAN_IN] for i in range(0, len(vectors), FAN_IN)]
        vectors = [add_group(group) for group in groups]
    return vectors[0]


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 32, 255, 256, 257, 300])
def test_a_sum_of_vectors_that_come_has_the_bits_of_the_whole_tree(n):
    vectors = list(np.random.default_rng(n).lognormal(sigma=9, size=(n, 5)))
    np.testing.assert_array_equal(tree_sum(iter(vectors)), levels(vectors))


def test_no_summand_is_changed():
    vectors = [np.ones(2), np.ones(2)]
    assert tree_sum(vectors).tolist() == [2, 2]
    assert vectors[0].tolist() == [1, 1]


@pytest.mark.parametrize("share", [0.01, 0.2, 0.9])
def test_no_other_clients_are_called_held_out_than_those_who_score(tmp_path, share):
    folder = packed(tmp_path)
    players = [ShardAggregator(folder, rng=4), LocalAggregator(unpacked(folder), rng=4)]
    for clients in players:
        clients.aggregate(Survey(10, SizeBins.exact(20), pairs=False), None)  # rounds change nobody
        members = clients.held_out(share)
        assert members.shape == (2_000,)
        scores = clients.aggregate(Part(Score((MDM,)), 1.0 - share, 1.0), None)
        assert scores.n_clients == members.sum()
        likelihood = MDM.logpmf(unpacked(folder)[members]).sum()
        assert scores.log_likelihoods[0] == pytest.approx(likelihood, rel=1e-9)

"""Partitions: which proxy points each client is given."""

import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from polyurn import IID, MDM, Dirichlet, Oracle, Sizes, cover, histograms, partition
from polyurn.errors import CountsError, MemoryLimitError, ParameterError, PartitionError, SizeError
from polyurn.partitioning.assign import redraw
from strategies import counts as tables
from strategies import mdms

C = 4
LABELS = np.array([0] * 30 + [1] * 20 + [2] * 10 + [3] * 40)
SEEDS = st.integers(0, 2**32 - 1)


def stocks(min_each=1, max_each=12):
    """Labels of every category, in any order."""
    each = st.lists(st.integers(min_each, max_each), min_size=C, max_size=C)
    return each.flatmap(lambda n: st.permutations(np.repeat(np.arange(C), n).tolist()))


UNIFORM = Dirichlet([1.0] * C, sizes=[2, 5])


@dataclass
class Made:
    """A population that the user made: an object with these two."""

    histogram: list[int]
    asked: list[int] = field(default_factory=list)

    @property
    def n_categories(self):
        return len(self.histogram)

    def sample(self, n_clients, *, rng):
        self.asked.append(n_clients)
        return np.tile(self.histogram, (n_clients, 1))


def times_in_client(parts, labels):
    """How often each client holds each point, shape (n_clients, n_points)."""
    cells = np.bincount(
        parts.clients * len(labels) + parts.indices, minlength=len(parts) * len(labels)
    )
    return cells.reshape(len(parts), len(labels))


# ------------------------------------------------------------------------------ identities


@given(stocks(), tables(C), st.booleans(), SEEDS)
def test_partition_reproduces_each_histogram_exactly(labels, counts, replace, seed):
    parts = partition(labels, counts, replace=replace, rng=seed)
    assert np.array_equal(parts.histograms(labels, C), counts)
    assert parts.report.exact
    assert np.array_equal(parts.report.given, counts.sum(axis=0))
    assert np.array_equal(parts.report.asked, counts.sum(axis=0))
    assert np.array_equal(parts.report.available, np.bincount(labels, minlength=C))


@given(stocks(), tables(C), st.booleans(), SEEDS)
def test_no_client_holds_a_point_twice_unless_it_asks_for_more_than_there_are(
    labels, counts, replace, seed
):
    parts = partition(labels, counts, replace=replace, rng=seed)
    labels = np.array(labels)
    times = times_in_client(parts, labels)
    stock = np.bincount(labels, minlength=C)
    asked = counts[:, labels]  # by the client, of the point's category
    assert (times <= np.ceil(asked / stock[labels])).all()
    assert (times >= asked // stock[labels]).all()
    assert parts.report.n_repeats == np.maximum(times - 1, 0).sum()


@given(stocks(), tables(C), SEEDS)
def test_points_are_reused_as_evenly_as_possible(labels, counts, seed):
    parts = partition(labels, counts, replace=False, rng=seed)
    labels = np.array(labels)
    times = np.bincount(parts.indices, minlength=len(labels))
    for category, n_asked in enumerate(counts.sum(axis=0)):
        mine = times[labels == category]
        assert set(mine) <= {n_asked // len(mine), -(-n_asked // len(mine))}
    assert parts.report.n_used == (times > 0).sum()


@given(stocks(), tables(C), st.booleans(), SEEDS)
def test_sparse_and_dense_histograms_give_the_same_partition(labels, counts, replace, seed):
    dense = partition(labels, counts, replace=replace, rng=seed)
    assert dense == partition(labels, sparse.csr_array(counts), replace=replace, rng=seed)
    assert dense == partition(labels, counts.astype(np.uint8), replace=replace, rng=seed)
    assert dense == partition(np.float32(labels), counts * 1.0, replace=replace, rng=seed)
    swapped = counts.astype(">i4")  # as idx files have them
    assert dense == partition(np.array(labels, ">i2"), swapped, replace=replace, rng=seed)


@given(stocks(), mdms(max_categories=C, max_size=6), SEEDS)
@settings(deadline=None)
def test_cover_gives_every_point_once_and_leaves_no_client_empty(labels, mdm, seed):
    labels = np.array(labels) % mdm.n_categories
    parts = cover(labels, mdm, rng=seed)
    assert sorted(parts.indices) == list(range(len(labels)))
    assert parts.sizes.min() >= 1
    assert parts.report.n_used == parts.report.n_given == len(labels)
    assert parts.report.cut < mdm.max_size
    assert parts.report.asked.sum() == len(labels) + parts.report.cut
    assert parts == cover(labels, mdm, rng=seed)


@given(stocks(), st.integers(1, 8), SEEDS)
@settings(deadline=None)
def test_resampled_clients_keep_their_size_and_take_nothing_twice(labels, n_clients, seed):
    counts = UNIFORM.sample(n_clients, rng=seed)
    counts = counts[: max(1, int((counts.sum(axis=1).cumsum() <= len(labels)).sum()))]
    if counts.sum() > len(labels):
        return
    mdm = MDM([1.0], [[1.0] * C], Sizes.from_table([[0, 0, 0.5, 0, 0, 0.5]]))
    for population in (mdm, UNIFORM):
        parts = partition(
            labels, counts, replace=False, shortfall="resample", population=population, rng=seed
        )
        assert np.bincount(parts.indices).max() == 1
        assert np.array_equal(parts.sizes, counts.sum(axis=1))
        kept = np.setdiff1d(np.arange(len(counts)), parts.report.redrawn)
        assert np.array_equal(parts.histograms(labels, C)[kept], counts[kept])


# ----------------------------------------------------------------------------- distributions


def test_each_point_is_as_likely_as_the_others_and_clients_are_independent():
    n_clients, m, n = 20_000, 3, 8
    parts = partition([0, 1] * n, np.full((n_clients, 2), m), rng=0)
    held = times_in_client(parts, np.zeros(2 * n))[:, ::2]
    # The pairs of points that a client holds, against a hypergeometric draw; five standard errors.
    together = (held.T @ held) / n_clients
    expected = np.where(np.eye(n), m / n, m * (m - 1) / (n * (n - 1)))
    assert together == pytest.approx(expected, abs=5 * np.sqrt(0.25 / n_clients))
    # How many points two neighbours share is m²/n in the mean if they draw independently.
    shared = (held[1:] * held[:-1]).sum(axis=1)
    assert shared.mean() == pytest.approx(m * m / n, abs=5 * shared.std() / np.sqrt(n_clients / 2))


def test_without_replacement_the_reused_points_are_shuffled_between_passes():
    # Clients of 2 points from 6: neighbours in one pass are not tied together in the next.
    parts = partition([0] * 6 + [1], np.tile([2, 0], (9_000, 1)), replace=False, rng=0)
    held = times_in_client(parts, np.zeros(7))[:, :6]
    together = (held.T @ held) / 9_000
    expected = np.where(np.eye(6), 1 / 3, 1 / 15)
    assert together == pytest.approx(expected, abs=5 * np.sqrt(0.25 / 9_000))


def test_a_clients_points_are_in_random_order():
    labels = np.repeat([0, 1], 500)
    parts = partition(labels, np.full((1, 2), 500), rng=0)
    halves = labels[parts[0]].reshape(2, 500).mean(axis=1)
    assert halves == pytest.approx([0.5, 0.5], abs=5 * np.sqrt(0.25 / 500))


def test_a_client_drawn_again_has_the_distribution_of_the_mdm_on_what_is_left():
    # Given that category 0 is out, a client of 4 is from the second component 16 times out of 17.
    alphas = [[1e6, 1e6, 1e-6], [1e-6, 1e6, 1e6]]
    mdm = MDM([0.5, 0.5], alphas, Sizes.constant(4, n_components=2))
    rng = np.random.default_rng(0)
    stock = np.array([0, 100, 100])
    drawn = np.array([redraw(4, stock, mdm, rng) for _ in range(1_000)])
    assert not drawn[:, 0].any()
    expected = 1 / 17 * 1 + 16 / 17 * 1 / 16  # nothing of category 2
    assert (drawn[:, 2] == 0).mean() == pytest.approx(expected, abs=5 * np.sqrt(0.1 / 1_000))


# ----------------------------------------------------------------------------- populations


@pytest.mark.parametrize(
    "population", [MDM([1.0], [[1.0] * C], Sizes.constant(5)), UNIFORM, Made([1, 2, 0, 1])]
)
def test_a_population_is_drawn_and_then_given_points_from_one_random_stream(population):
    rng = np.random.default_rng(3)
    by_hand = partition(LABELS, population.sample(12, rng=rng), rng=rng)
    assert partition(LABELS, population, n_clients=12, rng=3) == by_hand


def test_clients_are_drawn_again_from_their_own_population():
    parts = partition(LABELS, UNIFORM, n_clients=22, replace=False, shortfall="resample", rng=0)
    assert np.bincount(parts.indices).max() == 1
    assert set(parts.sizes) == {2, 5}
    assert len(parts.report.redrawn)


# -------------------------------------------------------------------------------- policies


def test_refuse_names_the_categories_and_the_shortfall():
    counts = np.array([[20, 0, 6, 0], [15, 5, 7, 0]])
    message = "short of 8 points: 5 of category 0, 3 of category 2"
    with pytest.raises(PartitionError, match=message):
        partition(LABELS, counts, replace=False, shortfall="refuse", rng=0)
    assert partition(
        LABELS, counts, shortfall="refuse", rng=0
    ).report.exact  # each alone can be served
    with pytest.raises(PartitionError, match="short of 1 point: 1 of category 2"):
        partition(LABELS, [[0, 1, 11, 0]], shortfall="refuse", rng=0)


def test_resample_draws_a_client_too_large_for_a_category_again():
    counts = np.array([[1, 1, 11, 0], [1, 1, 1, 1]])
    parts = partition(
        LABELS, sparse.csr_array(counts), shortfall="resample", population=UNIFORM, rng=0
    )
    assert parts.report.redrawn.tolist() == [0]
    assert not parts.report.exact
    assert parts.sizes.tolist() == [13, 4]
    assert parts.report.n_repeats == 0


def test_resample_fills_from_a_category_that_the_clients_do_not_ask_for():
    counts = np.tile([10, 0, 0, 0], (9, 1))
    parts = partition(
        LABELS, counts, replace=False, shortfall="resample", population=UNIFORM, rng=0
    )
    assert parts.report.redrawn.tolist() == [3, 4, 5, 6, 7, 8]
    assert parts.report.given[0] == 30
    assert np.bincount(parts.indices).max() == 1


def test_resample_without_a_shortfall_changes_nothing():
    counts = np.array([[1, 2, 3, 4]])
    for replace in (True, False):
        parts = partition(
            LABELS, counts, replace=replace, shortfall="resample", population=UNIFORM, rng=5
        )
        assert parts == partition(LABELS, counts, replace=replace, rng=5)


def test_a_population_that_lacks_what_is_left_is_refused_not_asked_for_ever():
    only_first = MDM([1.0], [[1.0, 0.0, 0.0, 0.0]], Sizes.constant(5))
    with pytest.raises(PartitionError, match=r"of 5 points .* \(1, 2, 3\)"):
        cover(LABELS, only_first, rng=0)
    stubborn = Made([5, 0, 0, 0])
    with pytest.raises(PartitionError, match=r"among \d+ that holds only .* \(1, 2, 3\)"):
        cover(LABELS, stubborn, rng=0)
    assert sum(stubborn.asked) < 5_000


def test_cover_of_a_marginal_that_fits_redraws_only_the_last_clients():
    labels = np.repeat(np.arange(10), 500)
    parts = cover(labels, IID(np.ones(10), sizes=[20]), rng=0)
    assert len(parts) == 250
    assert len(parts.report.redrawn) < 50
    assert parts.report.redrawn.min() > 200


def test_cover_cuts_the_last_client_and_says_so():
    parts = cover(LABELS, MDM([1.0], [[3.0, 2.0, 1.0, 4.0]], Sizes.constant(7)), rng=0)
    assert parts.sizes.tolist() == [7] * 14 + [2]
    assert parts.report.cut == 5
    assert parts.report.redrawn[-1] == 14


def test_a_seed_gives_the_same_partition_everywhere():
    # What the first version gave: it must not change between platforms or versions.
    counts = np.array([[2, 1, 0, 0], [0, 1, 1, 1]])
    with_replacement = partition(LABELS, counts, rng=1)
    assert with_replacement.indices.tolist() == [28, 15, 32, 76, 48, 53]
    without = partition(LABELS, counts, replace=False, rng=1)
    assert without.indices.tolist() == [28, 15, 32, 76, 49, 53]


# -------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("labels", "counts", "error", "message"),
    [
        ([0, 1, 4], [[1, 1, 0, 0]], PartitionError, "from 0 to 3, got 4 at position 2"),
        ([0, -1], [[1, 1, 0, 0]], PartitionError, "got -1 at position 1"),
        ([0, 1.5], [[1, 1, 0, 0]], PartitionError, "got 1.5 at position 1"),
        ([0, np.nan], [[1, 1, 0, 0]], PartitionError, "got nan at position 1"),
        (["a", "b"], [[1, 1, 0, 0]], CountsError, "4 categories without names, .* a, b"),
        ([[0, 1]], [[1, 1, 0, 0]], PartitionError, "shape"),
        ([], [[1, 1, 0, 0]], PartitionError, "do not have: 0, 1;"),
        ([0, 0], [[1, 1, 0, 0]], PartitionError, "do not have: 1;"),
        ([0, 1], [[0.5, 1, 0, 0]], CountsError, "fractions"),
        ([0, 1], [[-1, 1, 0, 0]], CountsError, "at least 0"),
        ([0, 1], np.empty((0, 4), int), CountsError, "at least one client"),
        ([0, 1], [[1, 1, 0, 0], [0, 0, 0, 0]], CountsError, "hold no points"),
        ([0, 1], [[2**31 - 1, 1]] * 1_000_000, MemoryLimitError, "do not fit into memory"),
        ([[0], [1, 1]], [[1, 1, 0, 0]], PartitionError, "lists of different lengths"),
        (np.ma.array([0, 1], mask=[0, 1]), [[1, 1]], PartitionError, "masked.* position 1"),
        ([0, 1], np.ma.array([[1, 1]], mask=[[0, 1]]), CountsError, "masked"),
    ],
)
def test_what_cannot_be_partitioned_is_refused_in_one_clear_line(labels, counts, error, message):
    with pytest.raises(error, match=message) as raised:
        partition(labels, counts, rng=0)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shortfall": "hope"}, "'reuse', 'refuse' or 'resample', got 'hope'"),
        ({"shortfall": "resample"}, "a population with"),
        ({"population": UNIFORM}, "and only then"),
        ({"shortfall": "resample", "population": [[1] * C]}, "as a population, .* got list"),
        ({"n_clients": 3}, "n_clients has no effect with histograms"),
        ({"replace": "no"}, "replace as True or False, got 'no'"),
        (
            {"shortfall": "resample", "population": MDM([1.0], [[1.0] * 3], Sizes.constant(4))},
            "a population of 4 categories, like the clients, got one of 3",
        ),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(settings, message):
    with pytest.raises(ParameterError, match=message):
        partition(LABELS, [[1, 1, 1, 1]], **settings)


@pytest.mark.parametrize(
    ("counts", "replace", "message"),
    [
        ([[60, 60, 0, 0]], True, "a client asks for 120 points and the proxy data have 100"),
        ([[30, 30, 0, 0]] * 2, False, "the clients ask for 120 points"),
    ],
)
def test_resample_refuses_more_points_than_there_are(counts, replace, message):
    with pytest.raises(PartitionError, match=message):
        partition(LABELS, counts, replace=replace, shortfall="resample", population=UNIFORM)


def test_resample_refuses_a_size_that_the_mdm_does_not_know():
    mdm = MDM([1.0], [[1.0] * C], Sizes.constant(5))
    with pytest.raises(SizeError, match="max_size is 5"):
        partition(LABELS, [[0, 0, 12, 0]], shortfall="resample", population=mdm, rng=0)


def test_cover_refuses_what_it_cannot_use():
    with pytest.raises(ParameterError, match=r"as a population, .* got function"):
        cover(LABELS, lambda n, rng: UNIFORM.sample(n, rng=rng))
    with pytest.raises(PartitionError, match="at least one proxy point"):
        cover([], UNIFORM)
    with pytest.raises(PartitionError, match="labels from 0 to 2, got 3"):
        cover(LABELS, IID([1, 1, 1], sizes=[4]))
    with pytest.raises(CountsError, match="hold no points"):
        cover(LABELS, Made([0] * C))


@pytest.mark.parametrize("form", [list, np.array, pd.Series])
def test_texts_as_labels_go_by_the_names_of_the_clients_categories(form):
    clients = histograms(["a", "a", "b"], ["owl", "cat", "cat"], categories=["owl", "cat"])
    labels = ["cat", "owl", "cat"]
    parts = partition(form(labels), clients, rng=0)
    assert [sorted(np.take(labels, mine)) for mine in parts] == [["cat", "owl"], ["cat"]]


def test_texts_as_labels_of_nameless_clients_are_refused_unless_by_position():
    with pytest.raises(CountsError, match=r"without names, 0 to 1, .* x, y; .*match='position'"):
        partition(["x", "y"], [[1, 1]])
    with pytest.raises(CountsError, match="2 categories without names, 0 to 1, got the 2"):
        cover(["x", "y"], IID([1, 1], sizes=[1]))
    parts = partition(["y", "x", "y"], [[1, 0], [0, 2]], match="position", rng=0)
    assert [sorted(mine) for mine in parts] == [[1], [0, 2]]
    whole = cover(["y", "x", "y"], IID([1, 1], sizes=[1]), match={"x": "0", "y": "1"}, rng=0)
    assert sorted(whole.indices) == [0, 1, 2]


def test_labels_that_are_no_names_of_categories_are_refused_with_both_lists():
    clients = histograms(["a", "a"], ["owl", "cat"], categories=["owl", "cat"])
    with pytest.raises(CountsError, match="cat, dog, where dog do not match; say"):
        partition(["dog", "cat"], clients)
    mapped = partition(["dog", "cat"], clients, match={"dog": "owl"}, rng=0)
    assert sorted(mapped.indices) == [0, 1]
    with pytest.raises(CountsError, match=r"got the 3 categories cat, dog, owl; .*as many"):
        partition(["dog", "cat", "owl"], clients, match="position")


def test_numbers_as_labels_never_take_the_names_of_others_by_position():
    named = MDM([1.0], [[1.0, 5.0]], Sizes.constant(4), categories=["owl", "cat"])
    for clients in (named, histograms(["a", "a"], ["owl", "cat"], categories=["owl", "cat"])):
        many = {"n_clients": 2} if clients is named else {}
        with pytest.raises(CountsError, match=r"the 2 categories owl, cat, got .* 0, 1; say"):
            partition([0, 1, 1, 0], clients, **many)
        asked = partition([0, 1, 1, 0], clients, match="position", rng=0, **many)
        mapped = partition([0, 1, 1, 0], clients, match={"0": "owl", "1": "cat"}, rng=0, **many)
        assert asked == mapped
    with pytest.raises(CountsError, match="the 2 categories owl, cat, got"):
        cover([0, 1], named)


def test_numbers_as_names_are_the_labels_that_they_spell():
    named = MDM([1.0], [[1.0, 0.0, 0.0]], Sizes.constant(2), categories=["2", "0", "1"])
    assert sorted(partition([0, 1, 2, 2], named, n_clients=1, rng=0).indices) == [2, 3]
    held = histograms(["a", "a"], ["10115", "80331"], categories=["80331", "10115"])
    assert 1 in partition([10115, 80331, 10115], held, rng=0)[0]


def test_a_population_that_is_drawn_again_from_never_swaps_categories():
    clients = histograms(["a"] * 3, ["cat", "cat", "owl"], categories=["cat", "owl"])
    other = MDM([1.0], [[1.0, 9.0]], Sizes.constant(3), categories=["owl", "cat"])
    labels = ["owl", "cat", "cat", "owl"]
    parts = partition(labels, clients, shortfall="resample", population=other, rng=0)
    assert sorted(np.take(labels, parts[0])) == ["cat", "cat", "owl"]
    strange = MDM([1.0], [[1.0, 9.0]], Sizes.constant(3), categories=["owl", "dog"])
    with pytest.raises(CountsError, match=r"owl, dog, got .* cat, owl, where cat do not match"):
        partition(labels, clients, shortfall="resample", population=strange, rng=0)


def test_clients_of_an_oracle_are_drawn_though_it_has_counts():
    held = np.array([[2, 1, 0, 0], [0, 0, 1, 1]])
    parts = partition(LABELS, Oracle(held), n_clients=5, rng=0)
    assert len(parts) == 5
    assert set(parts.sizes) <= {2, 3}


def test_partition_refuses_a_population_without_a_number_of_clients():
    with pytest.raises(
        ParameterError, match="how many clients of the population to draw: n_clients"
    ):
        partition(LABELS, UNIFORM)
    with pytest.raises(ParameterError, match=r"expected a population, .* got function"):
        partition(LABELS, lambda n, rng: UNIFORM.sample(n, rng=rng), n_clients=3)


# ----------------------------------------------------------------------------- what a person is told


@given(stocks(), tables(C), st.booleans(), SEEDS)
def test_no_row_is_in_several_clients_without_being_counted(labels, counts, replace, seed):
    parts = partition(labels, counts, replace=replace, rng=seed)
    n_holders = Counter(row for mine in parts for row in set(mine.tolist()))
    n_shared = sum(n > 1 for n in n_holders.values())
    assert parts.report.n_shared == n_shared
    assert parts.report.n_used == len(n_holders)
    assert ("in more than one client" in str(parts)) == (n_shared > 0)
    sparse_report = partition(labels, sparse.csr_array(counts), replace=replace, rng=seed).report
    assert sparse_report.n_given == parts.report.n_given


def test_clients_that_share_no_row_are_not_said_to():
    few = UNIFORM.sample(8, rng=0)
    apart = partition(LABELS, few, replace=False, shortfall="refuse", rng=0)
    for parts in (apart, cover(LABELS, UNIFORM, rng=0)):
        assert parts.report.n_shared == 0
        assert len(np.unique(parts.indices)) == len(parts.indices)
        assert "share" not in str(parts)
        assert "more than one" not in str(parts)


def test_more_points_than_rows_are_never_given_without_a_caution():
    caution = (
        r"300 points given: 100 different rows of 100; caution: 3\.0 times as many points as rows"
    )
    assert re.search(caution, str(partition(LABELS, [[30, 20, 10, 40]] * 3, rng=0)))
    assert "caution" not in str(partition(LABELS, [[30, 20, 10, 40]], rng=0))


def test_a_category_whose_only_row_is_given_many_times_is_named():
    parts = partition(["owl"] * 9 + ["rare"], pd.DataFrame({"owl": [1], "rare": [5]}), rng=0)
    assert parts.report.n_repeats == 4
    assert "4 of them of category rare" in parts.report.sentences()[-1]


def test_no_client_is_tested_in_silence_on_rows_that_clients_train_on():
    with pytest.warns(UserWarning, match="rows that clients train on, too; .*--cover") as told:
        split = partition(LABELS, [[10, 10, 5, 10]] * 4, test=0.2, rng=0)
    tested = set(split.test.indices.tolist())
    leaked = tested & set(split.indices.tolist())
    assert str(told[0].message).startswith(f"{len(leaked)} of {len(tested)} different test rows")
    cover(LABELS, UNIFORM, rng=0).with_test(0.2, LABELS, rng=0)  # without a warning


def test_arguments_in_the_wrong_order_are_not_called_histograms():
    with pytest.raises(ParameterError, match="labels first, then clients"):
        partition(UNIFORM, LABELS, n_clients=3)
    with pytest.raises(ParameterError, match=r"got 'rodents'; .*zoo.like\('rodents', labels\)"):
        partition(LABELS, "rodents", n_clients=3)


def test_too_few_points_of_a_named_category_are_not_those_of_a_number():
    clients = pd.DataFrame({"owl": [1], "rare": [5]})
    with pytest.raises(PartitionError, match="4 of category rare"):
        partition(["owl"] * 9 + ["rare"], clients, shortfall="refuse")


def test_a_missing_label_is_not_refused_without_its_position():
    with pytest.raises(PartitionError, match="missing value, at position 0"):
        partition([None, "owl"], pd.DataFrame({"owl": [1], "rare": [5]}))

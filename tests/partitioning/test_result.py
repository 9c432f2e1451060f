"""A partition: who holds what, in two flat arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyurn import Partition, partition
from polyurn.errors import ParameterError

LABELS = np.array([0] * 30 + [1] * 20 + [2] * 10 + [3] * 40)
OWNERS = st.lists(st.integers(-3, 3), min_size=1, max_size=30)


# ---------------------------------------------------------------------- how one is made


@given(OWNERS)
def test_each_owner_holds_its_points_in_their_order(owners):
    parts = Partition.by_owner(owners)
    assert parts.ids.tolist() == sorted(set(owners))
    for owner, mine in zip(parts.ids, parts, strict=True):
        assert mine.tolist() == [i for i, other in enumerate(owners) if other == owner]


@given(OWNERS)
def test_owners_lists_and_flat_arrays_make_the_same_partition(owners):
    parts = Partition.by_owner(owners)
    assert Partition.from_lists(parts) == parts == Partition(parts.offsets, parts.indices)
    again = np.empty(len(owners), np.int64)
    again[parts.indices] = parts.ids[parts.clients]
    assert again.tolist() == owners


@pytest.mark.parametrize("kind", [str, object])
def test_owners_may_be_texts(kind):
    parts = Partition.by_owner(np.array(["bob", "ann", "bob"], dtype=kind))
    assert parts.ids.tolist() == ["ann", "bob"]
    assert [mine.tolist() for mine in parts] == [[1], [0, 2]]


def test_points_that_are_renumbered_are_held_by_the_same_clients():
    parts = Partition.by_owner(["b", "a", "b"])
    moved = parts.renumbered([30, 10, 20])
    assert [mine.tolist() for mine in moved] == [[10], [30, 20]]
    assert moved.ids.tolist() == ["a", "b"]
    drawn = partition(LABELS, [[1, 2, 0, 0]], rng=0)
    assert drawn.renumbered(np.arange(200)).report is drawn.report


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Partition.by_owner([]), "at least one client, got none"),
        (
            lambda: Partition.by_owner([[1, 2]]),
            r"owners as a list, one for each, got shape \(1, 2\)",
        ),
        (lambda: Partition.by_owner([1.0, np.nan]), "got NaN at position 1"),
        (lambda: Partition.by_owner(np.array(["a", None])), "numbers or as texts"),
        (lambda: Partition.from_lists([]), "at least one client, got none"),
        (lambda: Partition.from_lists([[1], []]), "client 1 holds no points"),
        (lambda: Partition.from_lists([[1], [0.5]]), "client 1 as a list of whole numbers"),
        (lambda: Partition.from_lists([[1], [[2]]]), "client 1 as a list of whole numbers"),
        (lambda: Partition.from_lists([[1], [-2]]), "indices of at least 0"),
        (lambda: Partition([0], []), "indices as a list of whole numbers"),
        (lambda: Partition([0, 1], [1, 2]), "offsets from 0 to 2"),
        (lambda: Partition([0, 0, 2], [1, 2]), "client 0 holds no points"),
        (lambda: Partition([0, 3, 2], [1, 2]), "client 1 holds no points"),
        (lambda: Partition([0, 2], [1, 2], ids=["a", "b"]), r"expected 1 id, got shape \(2,\)"),
        (lambda: Partition.from_lists([[0]]).renumbered([0.5]), "whole numbers"),
    ],
)
def test_what_is_no_partition_is_refused_in_one_line(call, message):
    with pytest.raises(ParameterError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


# ------------------------------------------------------------------------- a sequence


def test_a_partition_is_a_sequence_of_index_arrays():
    parts = partition(LABELS, [[1, 2, 0, 0], [0, 0, 0, 5]], rng=0)
    assert len(parts) == 2
    assert [len(mine) for mine in parts] == parts.sizes.tolist() == [3, 5]
    assert parts.clients.tolist() == [0] * 3 + [1] * 5
    assert np.array_equal(parts[-1], parts[np.int64(1)])
    with pytest.raises(IndexError, match="from 0 to 1, got 2"):
        _ = parts[2]
    assert repr(parts) == "Partition(n_clients=2, n_points=8)"


def test_a_slice_is_a_list_of_clients_and_a_fraction_is_none():
    parts = partition(LABELS, [[2, 1, 0, 0], [0, 1, 1, 1], [1, 0, 0, 0]], rng=1)
    assert [len(mine) for mine in parts[1:]] == [3, 1]
    assert np.array_equal(parts[np.int32(-1)], parts[2])
    with pytest.raises(TypeError, match=r"client's number or a slice, got 0\.5"):
        parts[0.5]
    with pytest.raises(IndexError, match="from 0 to 2, got 3"):
        parts[3]


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5, 0.9])
def test_test_points_are_shared_out_by_client_and_category(share):
    rng = np.random.default_rng(0)
    owners, labels = rng.integers(0, 40, 3000), rng.integers(0, 4, 3000)
    parts = Partition.by_owner(owners)
    split = parts.with_test(share, labels, rng=1)
    assert sorted([*split.indices, *split.test.indices]) == sorted(parts.indices)
    assert split.ids.tolist() == split.test.ids.tolist() == list(range(40))
    whole, tested = parts.histograms(labels, 4), split.test.histograms(labels, 4)
    assert np.abs(tested.sum(axis=1) - share * parts.sizes).max() <= 0.5
    assert np.abs(tested - whole * (tested.sum(axis=1) / parts.sizes)[:, None]).max() <= 1


def test_no_client_loses_its_last_point_to_the_test():
    parts = Partition.from_lists([[0], [1, 2], [3, 4, 5]])
    split = parts.with_test(0.9, np.zeros(6), rng=0)
    assert split.sizes.tolist() == [1, 1, 1]
    assert split.test.sizes.tolist() == [1, 2]
    assert split.test.ids.tolist() == [1, 2]
    assert (
        parts.with_test(0.5, np.zeros(6), rng=0).renumbered(range(10, 16)).test.indices.min() > 10
    )
    alone = Partition.from_lists([[0], [1]]).with_test(0.5, [0, 0], rng=0)
    assert alone.test is None

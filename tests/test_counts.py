import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal
from scipy import sparse

from polyurn import LocalAggregator, Partition, partition
from polyurn.counts import (
    check_counts,
    client_sizes,
    digest,
    distinct,
    drop_empty,
)
from polyurn.errors import CountsError, ParameterError
from polyurn.model.paper_truths import truth
from strategies import counts

TABLES = counts(n_categories=4)
FORMATS = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]
few = settings(max_examples=30)  # examples that differ little


def dense(table):
    return table.toarray() if sparse.issparse(table) else table


# ------------------------------------------------------------------------- what is accepted


@few
@given(TABLES)
def test_a_valid_table_is_returned_as_it_is_without_a_copy(table):
    assert check_counts(table) is table


@few
@given(TABLES)
def test_a_valid_csr_array_shares_its_memory_with_the_result(table):
    given_ = sparse.csr_array(table)
    checked = check_counts(given_)
    assert np.shares_memory(checked.data, given_.data)
    assert_array_equal(checked.toarray(), table)


@few
@given(TABLES, st.sampled_from([float, np.float32, np.uint8, np.int16, np.uint64]))
def test_the_type_that_whole_numbers_come_in_does_not_matter(table, dtype):
    checked = check_counts(table.astype(dtype))
    assert checked.dtype.kind in "iu"
    assert_array_equal(checked, table)


@pytest.mark.parametrize("matrix_format", FORMATS)
def test_every_sparse_format_gives_the_same_histograms(matrix_format):
    table = np.array([[0, 3, 1], [2, 0, 0]])
    checked = check_counts(sparse.coo_array(table).asformat(matrix_format))
    assert isinstance(checked, sparse.csr_array)
    assert_array_equal(checked.toarray(), table)


@few
@given(TABLES)
def test_a_list_of_lists_is_a_table(table):
    assert_array_equal(check_counts(table.tolist()), table)


def test_a_flat_list_is_one_client():
    assert_array_equal(check_counts([1, 0, 2]), [[1, 0, 2]])


def test_a_flat_sparse_array_is_one_client():
    assert_array_equal(dense(check_counts(sparse.coo_array(np.array([1, 0, 2])))), [[1, 0, 2]])


def test_booleans_are_counts_of_zero_and_one():
    assert check_counts([[True, False]]).tolist() == [[1, 0]]


def test_repeated_cells_and_stored_zeros_are_tidied_and_the_callers_matrix_is_left_alone():
    indptr, indices, data = [0, 3, 5], [1, 0, 1, 0, 1], [1, 0, 2, 0, 5]
    messy = sparse.csr_array((data, indices, indptr), shape=(2, 2))
    checked = check_counts(messy)
    assert checked.has_canonical_format
    assert checked.nnz == 2
    assert_array_equal(checked.toarray(), [[0, 3], [0, 5]])
    assert messy.data.tolist() == data
    assert messy.indices.tolist() == indices


# -------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[1, -2]], "at least 0, got -2"),
        ([[1, 0.5]], "got fractions; pass counts, not proportions"),
        ([[1, np.nan]], "got NaN or infinity"),
        ([[1, np.inf]], "got NaN or infinity"),
        ([[1, 2**31]], "2147483648 is beyond the largest supported"),
        ([[1.0, 1e300]], "beyond the largest supported"),
        ([[1, 2**64 - 1]], "beyond the largest supported"),
    ],
)
@pytest.mark.parametrize("storage", [np.array, sparse.csr_array], ids=["dense", "sparse"])
def test_a_count_that_is_not_a_count_is_refused(table, message, storage):
    with pytest.raises(CountsError, match=message):
        check_counts(storage(np.array(table)))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([], "at least one client"),
        (np.empty((0, 5), int), "at least one client"),
        (sparse.csr_array((0, 5), dtype=int), "at least one client"),
        ([[4], [2]], "at least two categories, got 1"),
        (sparse.csr_array((3, 0), dtype=int), "at least two categories, got 0"),
        (np.ones((2, 2, 2), int), r"got shape \(2, 2, 2\)"),
        (7, r"got shape \(\)"),
        (None, "expected"),
        ([["1", "2"]], "counts as numbers, got texts"),
        ([[1, None]], "counts as numbers, got something else, or missing values"),
        ([[1j, 2]], "counts as numbers, got something else"),
        ([[1, 2], [3]], "got lists of different lengths"),
    ],
    ids=str,
)
def test_a_table_of_the_wrong_shape_or_kind_is_refused(table, message):
    with pytest.raises(CountsError, match=message):
        check_counts(table)


@few
@given(TABLES, st.integers(0, 9).filter(lambda n: n != 4))
def test_another_number_of_categories_than_declared_is_refused(table, declared):
    with pytest.raises(CountsError, match=f"{declared} categories, got histograms of 4"):
        check_counts(table, n_categories=declared)


@pytest.mark.parametrize("storage", [np.array, sparse.csr_array], ids=["dense", "sparse"])
def test_clients_without_points_are_refused_and_the_message_says_how_many_and_what_to_do(storage):
    table = storage(np.array([[1, 2], [0, 0], [3, 0], [0, 0]]))
    with pytest.raises(CountsError, match=r"2 of 4 clients hold no points.*drop_empty"):
        check_counts(table)


# ---------------------------------------------------------------------------------- the rest


@few
@given(TABLES)
def test_sizes_are_row_sums_dense_or_sparse(table):
    expected = [sum(row) for row in table.tolist()]
    assert client_sizes(table).tolist() == expected
    assert client_sizes(sparse.csr_array(table)).tolist() == expected


def test_sizes_of_small_integer_types_do_not_wrap_around():
    table = np.full((1, 3), 200, dtype=np.uint8)
    assert client_sizes(table).tolist() == [600]
    assert client_sizes(sparse.csr_array(table)).tolist() == [600]


@given(
    hnp.arrays(
        st.sampled_from([np.int64, np.uint16]),
        st.integers(0, 20),
        elements=st.integers(0, 5) | st.integers(0, 60_000),
    )
)
def test_distinct_is_unique_with_its_inverse(keys):
    values, which = np.unique(keys, return_inverse=True)
    found_values, found_which = distinct(keys)
    assert_array_equal(found_values, values)
    assert_array_equal(found_which, which)


@few
@given(TABLES, st.lists(st.integers(0, 8), max_size=4))
def test_dropping_empty_clients_undoes_their_insertion(table, places):
    places = [min(place, len(table)) for place in places]
    holey = np.insert(table, places, 0, axis=0)
    for storage in (np.array, sparse.csr_array):
        kept_counts, kept = drop_empty(storage(holey))
        assert_array_equal(dense(kept_counts), table)
        assert_array_equal(holey[kept], table)


def test_a_client_whose_counts_cancel_is_not_dropped_but_refused():
    with pytest.raises(CountsError, match="at least 0, got -1"):
        drop_empty([[1, -1], [2, 0], [0, 0]])


@pytest.mark.parametrize("storage", [list, *(f"{f}_array" for f in FORMATS)], ids=str)
def test_empty_clients_can_be_dropped_from_whatever_check_counts_takes(storage):
    table = [[1, 2], [0, 0]]
    given_ = table if storage is list else getattr(sparse, storage)(np.array(table))
    assert_array_equal(dense(drop_empty(given_)[0]), [[1, 2]])


def test_unsigned_counts_of_any_width_are_taken_as_they_are():
    hidden = truth("medium/2")
    counts = hidden.sample(30, rng=0)
    for kind in (np.uint8, np.uint32, np.uint64):
        np.testing.assert_array_equal(hidden.logpmf(counts.astype(kind)), hidden.logpmf(counts))


def test_other_histograms_have_another_digest():
    counts = np.array([[1, 2], [3, 0]])
    others = [counts[::-1], counts + np.eye(2, dtype=int), np.array([[1, 2, 0], [3, 0, 0]])]
    assert len({digest(np.asarray(c)) for c in [counts, *others]}) == 4
    assert digest(counts.astype(np.uint8)) == digest(counts)


def damaged(matrix_format, **changes):
    """A sound sparse table whose arrays were changed after it was made."""
    table = sparse.coo_array(([1, 2, 3], ([0, 0, 1], [0, 2, 1])), shape=(2, 3)).asformat(
        matrix_format
    )
    for name, values in changes.items():
        setattr(table, name, values)
    return table


DAMAGED = {
    "a CSR index out of range": ("csr", {"indices": np.array([0, 7, 1], np.int32)}),
    "a huge CSR index": ("csr", {"indices": np.array([0, 2**31 - 1, 1], np.int32)}),
    "a negative CSR index": ("csr", {"indices": np.array([0, -5, 1], np.int32)}),
    "CSR rows that go back": ("csr", {"indptr": np.array([0, 5, 3], np.int32)}),
    "CSR rows beyond the data": ("csr", {"indptr": np.array([0, 2, 90], np.int32)}),
    "CSR rows that begin late": ("csr", {"indptr": np.array([1, 2, 3], np.int32)}),
    "too few CSR rows": ("csr", {"indptr": np.array([0, 3], np.int32)}),
    "too few CSR indices": ("csr", {"indices": np.array([0], np.int32)}),
    "a CSC index out of range": ("csc", {"indices": np.array([0, 9, 0], np.int32)}),
    "a COO row out of range": ("coo", {"row": np.array([0, 0, 10**6])}),
    "a COO column out of range": ("coo", {"col": np.array([0, 2, -9])}),
    "fewer COO values than places": ("coo", {"data": np.array([1])}),
    "a BSR index out of range": ("bsr", {"indices": np.array([0, 900, 1], np.int32)}),
    "other DIA diagonals than data": ("dia", {"offsets": np.array([0, 1, 2, 5])}),
    "NaN": ("csr", {"data": np.array([1.0, np.nan, 2.0])}),
    "fractions": ("csc", {"data": np.array([1.0, 0.5, 2.0])}),
    "complex numbers": ("csr", {"data": np.array([1j, 2, 3])}),
}


@pytest.mark.parametrize(("matrix_format", "changes"), DAMAGED.values(), ids=DAMAGED)
def test_a_csr_matrix_with_an_index_out_of_range_is_refused(matrix_format, changes):
    """Of the report: a segmentation fault, or nonsense. The other formats and arrays too."""
    table = damaged(matrix_format, **changes)
    for gate in (check_counts, drop_empty):
        with pytest.raises(CountsError) as error:
            gate(table)
        assert "\n" not in str(error.value)


def test_unsorted_and_duplicate_cells_are_added_without_overflow():
    table = sparse.csr_array(
        (np.array([200, 100, 7], np.uint8), np.array([1, 1, 0]), np.array([0, 3])), shape=(1, 2)
    )
    assert_array_equal(dense(check_counts(table)), [[7, 300]])
    assert table.nnz == 3  # the caller's own is as it was


def test_a_flag_that_calls_unsorted_indices_sorted_is_not_believed():
    table = sparse.csr_array((np.array([1, 2]), np.array([1, 0]), np.array([0, 2])), shape=(1, 2))
    table.has_sorted_indices = table.has_canonical_format = True
    checked = check_counts(table)
    assert checked.indices.tolist() == [0, 1]
    assert_array_equal(dense(checked), [[2, 1]])


def test_one_sparse_row_is_one_client():
    assert_array_equal(dense(check_counts(sparse.coo_array(np.array([1, 0, 2])))), [[1, 0, 2]])


FRAMES = {
    "big-endian": np.array([[1, 0], [2, 3]], dtype=">i4"),
    "pandas": pd.DataFrame({"a": [1, 2], "b": [0, 3]}),
    "pandas Int64": pd.DataFrame({"a": [1, 2], "b": [0, 3]}, dtype="Int64"),
    "polars": pl.DataFrame({"a": [1, 2], "b": [0, 3]}),
    "rows of Int64": [pd.array([1, 0], dtype="Int64"), pd.array([2, 3], dtype="Int64")],
    "a memoryview": memoryview(np.array([[1, 0], [2, 3]])),
}


@pytest.mark.parametrize("table", FRAMES.values(), ids=FRAMES)
def test_big_endian_and_pandas_int64_tables_are_taken(table):
    """They are also fitted and partitioned: numba knows no other byte order."""
    assert_array_equal(dense(check_counts(table)), [[1, 0], [2, 3]])
    assert LocalAggregator(table).n_clients == 2
    assert partition([0, 1], table, match="position", rng=0).sizes.tolist() == [1, 5]


def test_a_partition_in_place_of_its_histograms_is_told_what_to_pass():
    with pytest.raises(ParameterError, match=r"its histograms are partition\.histograms\("):
        check_counts(Partition.from_lists([[0, 1], [2, 3]]))


# --------------------------------------------------------------------------------- other names

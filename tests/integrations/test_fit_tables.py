"""`fit` of whatever a user has: arrays, sparse matrices, data frames, histograms and aggregators."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

import polyurn as pu
from polyurn.errors import CountsError, ParameterError
from polyurn.model.paper_truths import truth

COUNTS = truth("appendix-a").sample(200, rng=0)
NAMES = ("asthma", "burn", "flu", "gout", "other")
FEW = {"n_components": [1, 2], "max_rounds": 8, "rng": 1}


def frame(**columns):
    return pa.table({**columns, **dict(zip(NAMES, COUNTS.T.tolist(), strict=True))})


def test_a_table_of_any_kind_is_fitted_and_none_differs():
    ids = np.arange(len(COUNTS))
    named = pu.Histograms(sparse.csr_array(COUNTS), ids, NAMES)
    fits = [pu.fit(one, **FEW) for one in (COUNTS, sparse.csr_array(COUNTS), frame(), named)]
    fits.append(pu.fit(frame(client=ids), **FEW))
    fits.append(pu.fit(pu.table_histograms(frame(client=ids), categories=NAMES), **FEW))
    for one in fits[1:]:
        np.testing.assert_array_equal(one.mdm.alphas, fits[0].mdm.alphas)
    assert [one.mdm.categories for one in fits] == [None, None, NAMES, NAMES, NAMES, NAMES]


def test_names_of_categories_are_not_lost_in_candidates_and_rounds():
    done = pu.fit(frame(), n_components=1, rng=0)
    assert done.rounds[-1].mdm.categories == NAMES
    assert all(one.mdm.categories == NAMES for one in pu.fit(frame(), **FEW).candidates)


def test_bounds_are_not_taken_from_a_table_in_silence():
    largest = COUNTS.sum(axis=1).max()
    assert pu.fit(COUNTS, **FEW).taken == f"5 categories and max_size {largest} from the table"
    assert pu.fit(COUNTS, n_categories=5, max_size=200, **FEW).taken == ""
    assert pu.fit(COUNTS, max_size=200, **FEW).mdm.max_size == 200
    with pytest.raises(CountsError, match="expected 4 categories"):
        pu.fit(COUNTS, n_categories=4, **FEW)


def test_which_columns_were_taken_for_categories_is_not_left_to_guess():
    assert "age" in pu.fit(frame(age=[40] * len(COUNTS)), **FEW).taken
    with pytest.raises(CountsError, match="'patient_id' seems to hold ids"):
        pu.fit(frame(patient_id=np.arange(1, len(COUNTS) + 1)), **FEW)


def test_numbers_of_rows_are_not_taken_for_counts_of_a_category():
    with pytest.raises(CountsError, match="'sample' seems to hold ids"):
        pu.fit(frame(sample=np.arange(1, len(COUNTS) + 1)), **FEW)
    assert "sample" in pu.fit(frame(sample=np.arange(len(COUNTS)) // 2), **FEW).taken


def test_an_index_of_a_data_frame_is_not_a_category():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(COUNTS, columns=NAMES, index=[f"h{i}" for i in range(len(COUNTS))])
    assert pu.fit(table.rename_axis("hospital"), **FEW).mdm.categories == NAMES


def test_a_long_table_is_not_taken_for_a_wide_one():
    clients, columns = np.nonzero(COUNTS)
    long = pa.table({
        "client": clients, "category": [NAMES[j] for j in columns], "count": COUNTS[clients, columns],
    })  # fmt: skip
    done = pu.fit(long, **FEW)
    assert done.mdm.categories == NAMES
    np.testing.assert_allclose(done.mdm.alphas, pu.fit(COUNTS, **FEW).mdm.alphas)


def test_bounds_are_never_measured_from_clients_elsewhere():
    clients = pu.LocalAggregator(COUNTS, rng=0)
    for given in ({}, {"n_categories": 5}, {"max_size": 100}):
        with pytest.raises(ParameterError, match="n_categories and max_size, declared"):
            pu.fit(clients, **given)


def test_one_number_has_no_candidates_and_several_have_them():
    one = pu.fit(COUNTS, n_components=2, rng=0)
    assert one.candidates == ()
    assert one.chosen is None
    assert one.n_components == 2
    several = pu.fit(COUNTS, n_components=range(1, 3), rng=0)
    assert [c.n_components for c in several.candidates] == [1, 2]
    assert several.chosen.mdm is not None


def test_a_table_of_one_client_is_one_clear_line():
    with pytest.raises(ParameterError, match=r"held_out=0\.2 needs 25 clients or more"):
        pu.fit(COUNTS[:1], rng=0)
    assert "1 client is few" in pu.fit(COUNTS[:1], n_components=1, rng=0).caution

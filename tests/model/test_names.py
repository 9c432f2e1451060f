"""Where names of categories meet: by name, or by number where there are none; never by chance."""

import numpy as np
import pytest
from scipy import sparse

from polyurn import Histograms
from polyurn.errors import CountsError, ParameterError
from polyurn.model.names import check_own, laid, names_of, positions, side_of

OURS = ["cat", "dog", "owl"]


def test_names_are_found_by_name_by_map_or_by_position():
    assert positions(["owl", "cat"], OURS).tolist() == [2, 0]
    assert positions(["tom", "owl", "cat"], OURS, {"tom": "cat"}).tolist() == [0, 2, 0]
    assert positions(["dog", "owl"], OURS, {"dog": "owl", "owl": "dog"}).tolist() == [2, 1]
    assert positions(["c", "b", "a"], OURS, "position").tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("theirs", "match", "got"),
    [
        (["tom", "owl"], None, "the 2 categories tom, owl, where tom do not match"),
        (["tom", "owl"], {"tom": "fish"}, "the 2 categories tom, owl, where fish do not match"),
        (["cat", "dog"], "position", "the 2 categories cat, dog"),
        (3, None, "3 categories without names, 0 to 2"),
        (["1", "2"], "position", "the 2 categories 1, 2"),  # which two of three is not known
    ],
)
def test_a_name_without_a_category_is_refused_with_both_lists(theirs, match, got):
    with pytest.raises(
        CountsError, match=f"3 categories cat, dog, owl, got {got}; say .*--map.*'position'"
    ):
        positions(theirs, OURS, match)


def test_names_against_none_are_not_taken_by_position_in_silence():
    with pytest.raises(CountsError, match="expected 2 categories without names, 0 to 1, got the 2"):
        positions(["cat", "dog"], 2)
    with pytest.raises(CountsError, match="got 2 categories without names, 0 to 1"):
        positions(2, ["cat", "dog"])


def test_numbers_are_names_too_and_are_not_taken_in_their_order():
    assert positions(3, ["2", "0", "1"]).tolist() == [1, 2, 0]
    assert positions(["2", "0", "1"], 3).tolist() == [2, 0, 1]
    assert positions(["0", "2"], ["0", "1", "2"]).tolist() == [0, 2]
    assert positions(["0", "2"], OURS, "position").tolist() == [0, 2]
    assert positions(["1", "2", "3"], OURS, "position").tolist() == [0, 1, 2]


def test_parts_of_crossed_names_can_be_called_otherwise():
    ours = ["EWR × Atlanta", "JFK × Boston"]
    theirs = ["JFK × BOS", "EWR × ATL"]
    assert positions(theirs, ours, {"ATL": "Atlanta", "BOS": "Boston"}).tolist() == [1, 0]


def test_columns_of_other_order_are_never_swapped():
    table = Histograms(sparse.csr_array([[1, 2], [0, 4]]), np.arange(2), ("owl", "cat"))
    assert laid(table, OURS).toarray().tolist() == [[2, 0, 1], [4, 0, 0]]
    merged = laid(table, OURS, {"owl": "cat"})
    assert np.asarray(merged.sum(axis=0)).tolist() == [7, 0, 0]


def test_a_data_frame_has_the_names_of_its_columns_and_a_long_one_none_of_its_own():
    pd = pytest.importorskip("pandas")
    wide = pd.DataFrame({"dog": [1], "cat": [2], "owl": [0]})
    assert names_of(wide) == ("dog", "cat", "owl")
    assert laid(wide, OURS).tolist() == [[2, 1, 0]]
    assert names_of(pd.DataFrame([[1, 2]])) is None
    assert names_of(np.ones((2, 2))) is None


def test_numbers_in_order_are_no_names():
    table = Histograms(sparse.csr_array([[1, 2]]), np.arange(1), ("0", "1"))
    assert side_of(table, 2) == 2
    assert side_of(Histograms(sparse.csr_array([[1, 2]]), np.arange(1), ("1", "0")), 2) == (
        "1",
        "0",
    )


def test_a_caller_cannot_rename_what_has_names():
    table = Histograms(sparse.csr_array([[1, 2]]), np.arange(1), ("a", "b"))
    assert check_own(None, table, 2) == check_own(["a", "b"], table, 2) == ("a", "b")
    with pytest.raises(ParameterError, match="own names of categories, a, b, got b, a"):
        check_own(["b", "a"], table, 2)

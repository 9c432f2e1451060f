"""Which questions a client answers, and what it refuses."""

import pytest

from polyurn import MDM, Sizes, answer
from polyurn.errors import CountsError, ParameterError, SizeError
from polyurn.wire import Query, Update


def test_a_client_larger_than_max_size_is_told_so():
    mdm = MDM([1.0], [[1.0, 1.0]], Sizes.constant(3))
    with pytest.raises(SizeError, match="max_size is 3"):
        answer(Update(mdm), [[2, 2]])


def test_histograms_of_another_length_are_refused():
    mdm = MDM([1.0], [[1.0, 1.0]], Sizes.constant(3))
    with pytest.raises(CountsError, match="expected 2 categories, got histograms of 3"):
        answer(Update(mdm), [[1, 1, 1]])


def test_a_query_that_no_client_knows_is_refused():
    class Other(Query):
        n_categories, lengths = 2, {}

    with pytest.raises(ParameterError, match="Other"):
        answer(Other(), [[1, 1]])

"""Questions that nobody could answer, and answers that are none."""

import numpy as np
import pytest

from polyurn import SizeBins, answer
from polyurn.errors import InputError, ParameterError
from polyurn.wire import Batch, Contrast, Initialise, Part, Survey

SURVEY = Survey(4, SizeBins.exact(4), pairs=False)
BATCH = Batch((SURVEY, Part(Contrast(2, 2), 0.0, 0.5)))
QUERIES = [SURVEY, Part(SURVEY, 0.0, 0.5), BATCH]


@pytest.mark.parametrize(("k", "c"), [(0, 3), (-1, 3), (1.5, 3), (1, 1)])
def test_impossible_dimensions_are_refused(k, c):
    with pytest.raises(ParameterError):
        Initialise(k, c, SizeBins.exact(3))


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_an_answer_that_is_not_finite_is_refused(query, number):
    values = np.zeros(query.n_numbers)
    values[-1] = number
    with pytest.raises(InputError, match="finite numbers, got infinite ones or NaN"):
        query.read(values)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("number", [1e300, -1e300, np.nextafter(1e150, 2e150)])
def test_an_answer_that_no_message_could_hold_is_refused(query, number):
    values = np.zeros(query.n_numbers)
    values[0] = number
    with pytest.raises(InputError, match=r"from -1e\+150 to 1e\+150, got a larger one"):
        query.read(values)
    values[0] = np.sign(number) * 1e150
    assert query.read(values).to_vector()[0] == values[0]


@pytest.mark.parametrize("query", QUERIES)
def test_an_answer_that_is_no_list_of_real_numbers_is_refused(query):
    n = query.n_numbers
    ones = np.ones(n)
    whole = (
        ones + 0j, ones > 0, ones.astype(str), ones.astype("M8[s]"), ["x"] * n, [None] * n, "text",
        7.0, None, {"a": 1}, [[1.0], [1.0, 2.0]], [10**400] * n, np.ma.masked_array(ones, ones > 0),
    )  # fmt: skip
    for values in whole:
        with pytest.raises(InputError, match="expected an answer of") as refused:
            query.read(values)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("query", QUERIES)
def test_an_answer_of_another_shape_is_refused(query):
    n = query.n_numbers
    for shape in ((n - 1,), (n + 1,), (0,), (1, n), (n, 1)):
        with pytest.raises(InputError, match="got shape"):
            query.read(np.zeros(shape))


@pytest.mark.parametrize("query", QUERIES)
def test_an_answer_may_be_a_list_or_of_whole_numbers(query):
    for values in (list(range(query.n_numbers)), np.arange(query.n_numbers, dtype=np.uint16)):
        np.testing.assert_array_equal(query.read(values).to_vector(), np.arange(query.n_numbers))


def test_a_refused_answer_is_not_shown():
    for secret in ("4711", 4711 + 1j, [4711 + 1j] * 17):
        with pytest.raises(InputError) as refused:
            SURVEY.read(secret)
        assert "4711" not in str(refused.value)


def test_what_a_cohort_said_is_read_as_it_was():
    said = answer(SURVEY, [[1, 0, 2, 0], [0, 3, 1, 0]])
    again = SURVEY.read(said.to_vector())
    assert again.to_vector().tobytes() == said.to_vector().tobytes()

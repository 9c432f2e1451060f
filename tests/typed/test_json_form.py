"""Frozen dataclasses as JSON documents and back."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyurn.errors import FileError, ParameterError
from polyurn.typed.json_form import Count, Finite, from_json, is_finite, shown, to_json

LARGEST = 1e150


@dataclass(frozen=True)
class Part:
    name: str
    n: Count

    def __post_init__(self):
        if self.n == 13:
            raise ParameterError("expected any number but 13")


@dataclass(frozen=True)
class Whole:
    measured: float
    finite: Finite
    yes: bool
    index: int
    pair: tuple[float, float]
    parts: tuple[Part, ...]
    perhaps: Part | None
    curve: Sequence[Finite | None]
    named: Mapping[str, int]
    later: str = "as before"


FINITE = st.floats(-LARGEST, LARGEST)
NUMBERS = FINITE | st.sampled_from([math.inf, -math.inf])
INTEGERS = st.integers(-(10**20), 10**20)
PARTS = st.builds(Part, st.text(), st.integers(14, 10**20))
WHOLES = st.builds(
    Whole,
    NUMBERS,
    FINITE,
    st.booleans(),
    INTEGERS,
    st.tuples(NUMBERS, NUMBERS),
    st.lists(PARTS).map(tuple),
    st.none() | PARTS,
    st.lists(st.none() | FINITE),
    st.dictionaries(st.text(), INTEGERS),
    st.text(),
)
DOCUMENT = {
    "measured": 1, "finite": 0.5, "yes": True, "index": -3, "pair": [None, "Infinity"],
    "parts": [{"name": "a", "n": 1}], "perhaps": None, "curve": [1, None], "named": {"a": 1},
}  # fmt: skip


@given(WHOLES)
def test_a_value_comes_back_from_the_json_that_it_was_written_to(value):
    text = json.dumps(to_json(value), allow_nan=False)
    assert from_json(Whole, json.loads(text)) == value


def test_nan_is_null_and_comes_back():
    assert to_json(from_json(Whole, DOCUMENT))["pair"] == [None, "Infinity"]


def test_an_integer_is_a_number_and_a_field_with_a_default_may_be_missing():
    read = from_json(Whole, DOCUMENT)
    assert (read.measured, read.later) == (1.0, "as before")
    assert isinstance(read.measured, float)


def test_fields_that_a_later_version_adds_are_passed_over():
    assert from_json(Part, {"name": "a", "n": 1, "new": []}) == Part("a", 1)


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("measured", "half", "fit.measured: expected a number, got 'half'"),
        ("measured", math.nan, "fit.measured: expected a number, got nan"),
        ("measured", True, "fit.measured: expected a number, got True"),
        ("finite", None, "fit.finite: expected a finite number, got None"),
        ("finite", "Infinity", "fit.finite: expected a finite number, got 'Infinity'"),
        ("finite", 1e200, "fit.finite: expected a finite number, got 1e+200"),
        ("yes", 1, "fit.yes: expected true or false, got 1"),
        ("index", 2.0, "fit.index: expected an integer, got 2.0"),
        ("index", False, "fit.index: expected an integer, got False"),
        ("pair", [1], "fit.pair: expected a list of 2, got [1]"),
        ("pair", [1, "x"], "fit.pair[1]: expected a number, got 'x'"),
        ("parts", {}, "fit.parts: expected a list, got {}"),
        ("parts", [3], "fit.parts[0]: expected an object, got 3"),
        ("parts", [{"name": "a"}], "fit.parts[0].n: expected an integer of at least 0, got nothing"),
        ("parts", [{"name": "a", "n": 13}], "fit.parts[0]: expected any number but 13"),
        ("perhaps", {"name": 1, "n": 1}, "fit.perhaps.name: expected a text, got 1"),
        ("curve", "x", "fit.curve: expected a list, got 'x'"),
        ("curve", ["x"], "fit.curve[0]: expected a finite number, got 'x'"),
        ("named", [], "fit.named: expected an object, got []"),
        ("named", {"a\nb": None}, "fit.named['a\\nb']: expected an integer, got None"),
    ],
    ids=str,
)  # fmt: skip
def test_a_damaged_field_is_one_line_with_its_name_what_was_expected_and_what_arrived(
    name, value, line
):
    with pytest.raises(FileError) as error:
        from_json(Whole, {**DOCUMENT, name: value}, where="fit")
    assert str(error.value) == line


@pytest.mark.parametrize("name", DOCUMENT)
def test_a_field_that_is_missing_is_named(name):
    document = {key: value for key, value in DOCUMENT.items() if key != name}
    with pytest.raises(FileError, match=f"^{name}: expected .*, got nothing$"):
        from_json(Whole, document)


@pytest.mark.parametrize("document", [None, 3, [], "x"], ids=str)
def test_what_is_no_object_is_refused(document):
    with pytest.raises(FileError, match=r"^the document: expected an object, got"):
        from_json(Whole, document)


def test_what_is_shown_is_short_and_on_one_line():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    for value in ("a\nb" * 1000, {"k": list(range(1000))}, deep, 10**400, 1 << 50_000):
        assert len(shown(value)) < 200
        assert "\n" not in shown(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e200, 10**400, True, None, "1"], ids=str)
def test_what_cannot_be_squared_is_not_finite(value):
    assert not is_finite(value)

"""Arguments that are checked against their annotations."""

import os
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
import pytest

from polyurn import MDM, LocalAggregator, fit, fit_private
from polyurn.errors import ParameterError
from polyurn.typed.arguments import Json, check_options, checked, expected_as, got
from polyurn.typed.json_form import Count


@expected_as("a bell, an object with ring(times)", advice="make one: Bell()")
class Rings(Protocol):
    def ring(self, times: int) -> None: ...


class Bell:
    def ring(self, times):
        pass


@checked
def call(
    number: float = 1.0,
    *,
    n: int = 1,
    count: Count = 0,
    flag: bool = False,
    text: str | None = None,
    mode: Literal["fast", "slow", "auto"] = "fast",
    path: str | os.PathLike[str] = "here",
    provenance: Json | None = None,
    rng: int | np.random.Generator | None = None,
    bell: Rings | None = None,
    on_round: Callable[[int], None] | None = None,
    names: Sequence[str] = (),
    grid: Mapping[str, Sequence[Any]] | None = None,
    numbers: Iterable[int] | Literal["auto"] = "auto",
    pair: tuple[int, int] = (0, 1),
    later: "Later | None" = None,
    anything: object = None,
) -> dict[str, Any]:
    """What it was given."""
    return dict(locals())


class Later:
    """A class that stands further down than the function that takes one."""


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("number", "1", "expected number as a number, got '1'"),
        ("number", True, "expected number as a number, got True"),
        ("number", 10**400, "expected number as a number, got 1000"),
        ("n", 2.0, "expected n as an integer, got 2.0"),
        ("n", True, "expected n as an integer, got True"),
        ("n", np.array(3), r"expected n as an integer, got ndarray of shape \(\)"),
        ("count", -1, "expected count as an integer of at least 0, got -1"),
        ("flag", 1, "expected flag as True or False, got 1"),
        ("text", b"x", "expected text as a text or None, got b'x'"),
        ("mode", "swift", "expected mode as 'fast', 'slow' or 'auto', got 'swift'"),
        ("mode", ["fast"], "expected mode as 'fast', 'slow' or 'auto', got list"),
        ("path", None, "expected path as a path, got None"),
        ("path", "", "expected path as a path, got ''"),
        ("path", "a\0b", r"expected path as a path, got 'a\\x00b'"),
        (
            "provenance",
            {"x": object()},
            "a mapping that JSON can hold or None, got something else in it",
        ),
        (
            "provenance",
            {"x": float("nan")},
            "a mapping that JSON can hold or None, got something else",
        ),
        ("rng", -1, "expected rng as a seed of at least 0, a Generator or None, got -1"),
        ("rng", "0", "expected rng as a seed of at least 0, a Generator or None, got '0'"),
        ("bell", [1], r"an object with ring\(times\) or None, got list; make one: Bell\(\)"),
        ("bell", Bell, "got the class Bell; make one"),
        ("on_round", 3, "expected on_round as a function or None, got 3"),
        ("names", "abc", "expected names as a list, got 'abc'"),
        ("names", ["a", 2], "got 2 at position 1, in place of a text"),
        ("names", {"a": 1}, "expected names as a list, got dict"),
        ("grid", 3, "expected grid as a mapping or None, got 3"),
        ("grid", {"rate": 0.1}, "got 0.1 under 'rate', in place of a list"),
        ("grid", {3: [1]}, "got 3 as a name, in place of a text"),
        ("numbers", "some", "expected numbers as a list or 'auto', got 'some'"),
        ("numbers", (x for x in "ab"), "got 'a' at position 0, in place of an integer"),
        ("pair", (1,), "expected pair as 2 values, got tuple"),
        ("pair", (1, "2"), "got '2' at position 1, in place of an integer"),
        ("later", Bell(), "expected later as a Later or None, got Bell"),
    ],
)
def test_an_argument_of_the_wrong_type_is_one_line_of_what_was_expected_and_what_arrived(
    argument, value, message
):
    with pytest.raises(ParameterError, match=message) as error:
        call(**{argument: value})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("number", 3), ("n", np.uint8(200)), ("flag", np.True_), ("path", Path("here")),
        ("rng", np.random.default_rng(0)), ("rng", [3, 4]), ("bell", Bell()), ("provenance", {"x": [1]}),
        ("names", np.array(["a", "b"])), ("names", pd.Series(["a", "b"])), ("grid", {"x": (1, 2)}),
        ("numbers", {1, 2}), ("numbers", range(3)), ("later", Later()), ("anything", object()),
    ],
)  # fmt: skip
def test_what_is_meant_is_taken(argument, value):
    taken = call(**{argument: value})[argument]
    assert taken is value or np.all(taken == value) or tuple(taken) == tuple(value)


def test_numbers_of_numpy_are_handed_on_as_those_of_python_and_iterators_as_tuples():
    assert type(call(n=np.int8(100))["n"]) is int
    assert type(call(np.float32(0.5))["number"]) is float
    assert call(numbers=iter([1, 2]))["numbers"] == (1, 2)


def test_missing_and_unknown_arguments_are_left_to_python():
    with pytest.raises(TypeError, match="unexpected keyword argument 'nn'"):
        call(nn=1)
    with pytest.raises(TypeError, match="positional"):
        call(1.0, 2)


def test_a_checked_function_keeps_its_name_signature_and_docstring_and_can_be_pickled():
    assert call.__doc__ == "What it was given."
    assert list(signature(call).parameters)[:2] == ["number", "n"]
    assert pickle.loads(pickle.dumps(fit)) is fit


@checked
@dataclass(frozen=True)
class Value:
    n: int
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, n: int) -> "Value":
        return cls(n)

    def plus(self, n: int) -> int:
        return self.n + n

    def _trusted(self, n: int) -> int:
        return self.n + n


def test_a_checked_class_checks_its_constructor_and_public_methods():
    assert Value(3, ["a"]).names == ("a",)
    assert replace(Value(3), n=4).plus(1) == Value.of(5).n
    for wrong in (lambda: Value("3"), lambda: Value.of("3"), lambda: Value(3).plus("3")):
        with pytest.raises(ParameterError, match="expected n as an integer, got '3'"):
            wrong()
    assert Value(3)._trusted(0.5) == 3.5


def test_what_may_hold_numbers_of_clients_is_shown_by_its_kind_only():
    secret = 31_415
    for value in ([[secret]], np.array([[secret, 1]]), pd.DataFrame({"a": [secret]}), {1: secret}):
        assert str(secret) not in got(value)
    with pytest.raises(ParameterError) as error:
        fit_private([[secret, 1]], n_components=1, n_categories=2, max_size=9)
    assert str(secret) not in str(error.value)


def test_counts_in_place_of_an_aggregator_are_told_to_be_wrapped():
    asked = {"n_components": 1, "n_categories": 2, "max_size": 9}
    for counts in ([[1, 2]], np.array([[1, 2]]), pd.DataFrame({"a": [1], "b": [2]}), None):
        with pytest.raises(ParameterError, match=r"wrap the counts: LocalAggregator\(counts\)"):
            fit_private(counts, **asked)
    assert isinstance(LocalAggregator([[1, 2]]), LocalAggregator)


def test_a_fit_in_place_of_its_mdm_is_told_what_to_pass():
    from polyurn import compare_parameters

    with pytest.raises(ParameterError, match=r"as an MDM, got tuple; .* its \.mdm"):
        compare_parameters((1,), MDM([1.0], [[1.0, 1.0]], [[0.0, 1.0]]))


class Slow:
    def __init__(self, speed, *, colour="red"):
        pass


class Plain:
    def __init__(self):
        pass


def test_an_option_that_a_class_does_not_have_is_named_with_those_that_it_has():
    check_options("Slow", Slow, ["speed", "colour"])
    with pytest.raises(ParameterError, match=r"no option 'speed'; expected one of colour$"):
        check_options("Slow", Slow, ["speed"], ours=["speed"])
    with pytest.raises(ParameterError, match=r"Plain has no option 'speed'; expected none$"):
        check_options("Plain", Plain, ["speed"])

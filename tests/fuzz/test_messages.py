import pytest

from fuzz.messages import fault


@pytest.mark.parametrize(
    "text",
    [
        "expected --components as 1:6, 2,4,8 or auto, got 'x'",
        "clients.csv holds something else; take an empty folder",
        "cannot read nothing.csv: No such file or directory",
        "sweep.toml: [data] shape is a list of whole numbers above 0, got [0]",
    ],
)
def test_an_error_that_helps_has_no_fault(text):
    assert fault(text) is None


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "says nothing"),
        ("mdm.json is damaged", "does not say what to do"),
        ("expected a table, got \x1b[31m", "has control characters"),
        ("expected a table: list index out of range", "speaks of the inside"),
        ("expected a table, got " + "x" * 900, "longer than"),
    ],
)
def test_an_error_that_does_not_help_has_a_fault(text, what):
    assert fault(text).startswith(what)


def test_a_programmer_may_be_told_of_arrays_over_several_lines():
    text = "expected counts, got array([[1],\n [2]], dtype=object)"
    assert fault(text) is not None
    assert fault(text, to_programmer=True) is None

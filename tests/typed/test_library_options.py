"""Options of other libraries' classes."""

import pytest

from polyurn.errors import ParameterError
from polyurn.typed.library_options import check_options


class Slow:
    def __init__(self, speed, *, colour="red"):
        pass


class Plain:
    def __init__(self):
        pass


def test_an_option_that_a_class_does_not_have_is_named_with_those_that_it_has():
    check_options("Slow", Slow, ["speed", "colour"])
    with pytest.raises(
        ParameterError, match=r"Slow has no option 'speed'; expected one of colour$"
    ):
        check_options("Slow", Slow, ["speed"], ours=["speed"])
    with pytest.raises(ParameterError, match=r"Plain has no option 'speed'; expected none$"):
        check_options("Plain", Plain, ["speed"])

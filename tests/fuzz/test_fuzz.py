"""A few hundred bad inputs; `make fuzz` runs 20,000."""

import pytest

from fuzz.cases import KINDS, case_of
from fuzz.judge import judge

_N_CASES = 30


@pytest.mark.parametrize("kind", KINDS)
def test_bad_input_is_refused_in_one_line_or_read_as_it_was_meant(kind):
    found = {
        name: [f"{defect.what}: {defect.detail}" for defect in outcome.defects]
        for name in (f"{kind}/{number}" for number in range(_N_CASES))
        if (outcome := judge(name)).defects
    }
    assert found == {}


@pytest.mark.parametrize("kind", KINDS)
def test_a_case_is_a_function_of_its_name_alone(kind):
    first, again, other = (case_of(f"{kind}/{number}") for number in (3, 3, 4))
    assert (first.command, first.files, first.title) == (again.command, again.files, again.title)
    assert (first.command, first.files, first.title) != (other.command, other.files, other.title)

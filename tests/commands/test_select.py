"""`polyurn select`: which numbers of components."""

import pytest

from cli_walk import assert_refused


@pytest.mark.parametrize(
    ("components", "words"), [("6:1", "from few to many, got '6:1'"), ("a", "1:6, 2,4,8 or auto")]
)
def test_components_that_are_none_are_said(run, components, words):
    assert_refused(run("select", "clients.csv", "--components", components), words)

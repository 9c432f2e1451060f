"""`polyurn datasets`: what the datasets of installed packages hold."""

import pytest

from cli_walk import assert_refused


def test_a_dataset_needs_no_folder(run):
    told = run("datasets", "digits", "--json").json()
    assert told["train"] == {"n_records": 1797, "n_clients": 0, "features": [64]}
    assert told["test"] is None
    assert len(told["categories"]) == 10


def test_a_dataset_is_a_row_for_each_split(run):
    ran = run("datasets", "digits")
    assert "digits: 10 categories" in ran.out
    assert "1,797" in ran.out
    assert "64" in ran.out


@pytest.mark.parametrize("name", ["nothing", "cifar10"])
def test_what_is_not_there_is_said_in_one_line(run, name):
    assert_refused(run("datasets", name), name)

"""`polyurn federation describe` and `score`: what is refused before anybody is asked."""

import pytest

from cli_walk import assert_refused
from polyurn.federation.folder import FederationFolder
from polyurn.model.mdm import MDM
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.storage.models import save

PRIVATE = ("--epsilon", 1, "--delta", 1e-6)


def mixture(n_categories=3, max_size=12):
    return MDM([1.0], [[1.0] * n_categories], Sizes(SizeBins([1, max_size + 1]), [[1.0]]))


@pytest.mark.parametrize("command", [("describe", "fed"), ("score", "fed", "mdm.json")])
def test_whether_there_is_a_guarantee_has_to_be_said(run, fed, command):
    save(mixture(), "mdm.json")
    assert_refused(run("federation", *command), "expected --epsilon and --delta")
    assert_refused(run("federation", *command, *PRIVATE), "the server is down")


def test_a_mixture_that_the_nodes_could_not_be_asked_about_is_refused(run, fed):
    save(mixture(max_size=20), "large.json")
    save(mixture(n_categories=4), "wide.json")
    score = ("federation", "score", "fed")
    assert_refused(run(*score, "large.json", *PRIVATE), "federation's 12, got large.json up to 20")
    assert_refused(run(*score, "wide.json", *PRIVATE), "the federation's categories, got wide.json")
    assert not list(FederationFolder(fed).runs.iterdir())


def test_names_that_are_the_numbers_of_the_categories_are_the_same(run, fed):
    save(mixture(), "named.json", categories=["0", "1", "2"])
    refused = run("federation", "score", "fed", "named.json", *PRIVATE)
    assert_refused(refused, "the server is down")

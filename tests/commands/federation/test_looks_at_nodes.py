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


def test_columns_that_the_nodes_could_not_be_asked_about_are_refused(run, fed):
    ask = ("federation", "describe", "fed", *PRIVATE, "--column")
    assert_refused(run(*ask, "age"), "federation has declared, none (`polyurn federation init")
    init = (
        "federation", "init", "other", "--nodes", 3, "--categories", 3, "--max-size", 12,
        "--address", "localhost:1",
    )  # fmt: skip
    assert_refused(run(*init, "--values", "origin=EWR,JFK"), "--values has no effect without")
    declared = (*init, "--features", "origin,age")
    assert_refused(run(*declared, "--values", "origin"), "--values as COLUMN=VALUES")
    assert_refused(run(*declared, "--values", "hour=1,2"), "a declared column")
    assert_refused(run(*declared, "--values", "origin=EWR"), "two different ones or more")
    assert run(*declared, "--values", "origin=EWR,JFK").code == 0
    ask = ("federation", "describe", "other", *PRIVATE, "--column")
    assert_refused(run(*ask, "origin"), "a column of numbers, got 'origin', which has values")
    assert_refused(run(*ask, "hour"), "declared, origin, age; got 'hour'")
    assert_refused(run(*ask, "age"), "the server is down")
    features = ("federation", "features", "other", *PRIVATE, "--features")
    assert_refused(run(*features, "origin,age"), "--range age=LOW:HIGH, or its edges")
    assert_refused(run(*features, "origin,hour", "--range", "hour=0:24"), "declared, origin, age")
    assert_refused(run(*features, "origin,age", "--range", "age=0,18,65"), "the server is down")


def test_names_that_are_the_numbers_of_the_categories_are_the_same(run, fed):
    save(mixture(), "named.json", categories=["0", "1", "2"])
    refused = run("federation", "score", "fed", "named.json", *PRIVATE)
    assert_refused(refused, "the server is down")

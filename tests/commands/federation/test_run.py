"""`polyurn federation run`: what is refused before anybody is asked."""

import pytest

from cli_walk import assert_refused
from polyurn.storage.federation_folder import FederationFolder

RUN = ("federation", "run", "fed")


def test_a_server_that_is_down_is_said_with_what_to_do(run, fed):
    assert_refused(run(*RUN), f"the server is down: polyurn federation up {fed}")
    assert list(FederationFolder(fed).runs.iterdir()) == []


def test_a_folder_that_is_no_federation_is_said(run):
    ran = run("federation", "run", "nowhere")
    assert_refused(ran, "there is no federation.json in", "polyurn federation init")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--max-size", 13), ["expected --max-size from 1 to 12, which nodes have agreed to"]),
        (("--max-size", 0), ["expected --max-size from 1 to 12"]),
        (("--components", "2", "--held-out", 0.3), ["--held-out", "one number of components"]),
        (("--components", "0"), ["component"]),
        (("--components", "x"), ["component"]),
        (("--rounds", 0), ["of rounds"]),
        (("--min-nodes", 0), ["min_nodes of at least 1"]),
        (("--min-nodes", 1), ["a sum over one node is its answer"]),
        (("--min-fraction", 1.1), ["min_fraction from 0 to 1"]),
        (("--timeout", 0), ["a timeout above 0"]),
        (("--settling", -1), ["a settling time of at least 0"]),
        (("-o", "."), ["Is a directory"]),
        (("-o", "no/folder/mdm.json"), ["cannot write"]),
        (("--sizes", "other"), ["--sizes"]),
    ],
)
def test_settings_that_cannot_be_meant_are_one_line(run, fed, options, words):
    assert_refused(run(*RUN, *options), *words)
    assert list(FederationFolder(fed).runs.iterdir()) == []


def test_a_damaged_federation_is_named(run, fed):
    (fed / "federation.json").write_text("{")
    assert_refused(run(*RUN), "federation.json is not a federation file, or was cut off")

"""`polyurn federation init` and `keys`: folders of a federation and of its nodes."""

import os
import shutil

import pytest

from cli_walk import assert_refused
from polyurn.federation.folder import FederationFolder, read_node

INIT = ("federation", "init", "fed", "--categories", 3, "--max-size", 12)


def test_a_federation_is_made_and_what_to_do_next_is_said(run):
    ran = run(*INIT, "--nodes", 2)
    assert ran.code == 0
    assert ran.out == ""
    assert "made fed for 2 nodes at localhost:8000" in ran.err
    assert "3 categories, at most 12 points a client, at most 1,000 clients a node" in ran.err
    assert "whoever has this folder can speak for them" in " ".join(ran.err.split())
    assert "next: polyurn federation up fed" in ran.err
    federation = FederationFolder("fed").read()
    assert federation.clients_per_node == 1000
    assert federation.declared == 3


def test_too_few_nodes_for_a_secure_sum_are_said(run):
    few, enough = (
        run(*INIT, "--nodes", 2),
        run("federation", "init", "more", *INIT[3:], "--nodes", 3),
    )
    assert "no question will be answered" in few.err
    assert "secure sums over 3 nodes" in few.err
    assert "no question" not in enough.err


def test_names_of_categories_are_declared_for_all(run):
    run("federation", "init", "fed", "--categories", "a, b", "--max-size", 5, "--nodes", 1)
    assert FederationFolder("fed").read().declared == ("a", "b")


def test_owners_make_their_keys_and_the_federation_is_made_of_the_public_ones(run, tmp_path):
    from polyurn.client.tables import table_histograms
    from polyurn.federation.owned_node import open_node
    from polyurn.storage.table_files import read_table

    for name in ("hospital-a", "hospital-b"):
        ran = run("federation", "keys", f"at-{name}", "--name", name)
        assert ran.code == 0
        assert f"wrote at-{name}/{name}.pub: send it to the operator of the federation" in ran.err
    public = [f"--node=at-{name}/{name}.pub" for name in ("hospital-a", "hospital-b")]
    ran = run(*INIT, *public)
    assert ran.code == 0
    assert "private keys" not in ran.err
    for name in ("hospital-a", "hospital-b"):
        home = tmp_path / f"at-{name}"
        for file in ("federation.json", "policy.toml", "ca.crt", "node.crt"):
            shutil.copy(tmp_path / "fed" / "nodes" / name / file, home / file)
        node = read_node(home)
        assert node.name == name
        clients = table_histograms(read_table("clients.csv"), categories=node.federation.declared)
        assert open_node(node, clients) is not None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*INIT,), ["expected nodes: --nodes 8, or --node NAME.pub"]),
        ((*INIT, "--nodes", -1), ["expected nodes"]),
        ((*INIT, "--nodes", 100_001), ["expected 1 to 100,000 nodes"]),
        ((*INIT, "--nodes", 1, "--address", "localhost"), ["expected an address such as"]),
        ((*INIT, "--nodes", 1, "--host", "a..b"), ["expected a host name or an IP address"]),
        ((*INIT, "--nodes", 1, "--clients-per-node", 0), ["clients_per_node"]),
        ((*INIT, "--node", "clients.csv"), ["clients.csv has no public keys of a node"]),
        ((*INIT, "--node", "none.pub"), ["cannot read none.pub"]),
        (("federation", "init", "fed", "--max-size", 5, "--nodes", 1), ["--categories"]),
        (("federation", "keys", "mine", "--name", "a/b"), ["expected a name of letters"]),
        (("federation", "keys", "mine"), ["--name"]),
    ],
)
def test_what_cannot_be_set_up_is_one_line_and_leaves_nothing(run, tmp_path, arguments, words):
    before = sorted(os.listdir(tmp_path))
    assert_refused(run(*arguments), *words)
    assert sorted(os.listdir(tmp_path)) == before


def test_a_folder_that_is_in_use_is_refused(run, tmp_path):
    (tmp_path / "fed").mkdir()
    (tmp_path / "fed" / "mine.txt").write_text("mine")
    assert_refused(run(*INIT, "--nodes", 1), "fed exists already: take another folder")
    assert_refused(run("federation", "keys", "fed", "--name", "a"), "exists already")
    assert os.listdir(tmp_path / "fed") == ["mine.txt"]


def test_keys_of_one_owner_twice_are_refused(run):
    run("federation", "keys", "mine", "--name", "a")
    ran = run(*INIT, "--node", "mine/a.pub", "--node", "mine/a.pub")
    assert_refused(ran, "nodes with names of their own")

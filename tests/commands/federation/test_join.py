"""`polyurn federation join`: what keeps a node from joining, in one clear line each."""

import json
import os
import shutil
from datetime import UTC, datetime, timedelta

import pytest

from cli_walk import CLIENTS, HEAD, assert_refused
from polyurn.federation.folder import FederationFolder
from polyurn.federation.keys import Certified, make_authority, make_server
from polyurn.federation.processes import keep_pid
from tls_doors import Door

JOIN = ("federation", "join", "fed/nodes/node-1")


def port(fed):
    return int(FederationFolder(fed).read().address.rpartition(":")[2])


def authority(fed):
    return Certified(*((fed / "authority" / name).read_bytes() for name in ("ca.key", "ca.crt")))


def test_a_server_that_is_down_is_said(run, fed):
    ran = run(*JOIN, "clients.csv")
    assert_refused(ran, f"no server at localhost:{port(fed)}", "run `polyurn federation up`")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (HEAD + "a,0,1\na,3,1\n", ["3"]),
        (HEAD + "a,cat,1\n", ["cat"]),
        (HEAD + "a,0,13\n", ["at most 12 points a client, one has 13", "--cap 12"]),
        (HEAD + "".join(f"c{i},0,1\n" for i in range(7)), ["at most 6 clients a node", "has 7"]),
        (HEAD + "a,0,0\n", ["--drop-empty"]),
        ("", ["clients.csv"]),
    ],
    ids=["another number", "a name", "too large", "too many", "empty client", "empty file"],
)
def test_a_table_that_was_not_declared_is_refused_before_anybody_is_asked(
    run, fed, tmp_path, table, words
):
    (tmp_path / "clients.csv").write_text(table)
    assert_refused(run(*JOIN, "clients.csv"), *words)
    assert not (fed / "nodes" / "node-1" / "questions.log").exists()


def test_a_missing_table_is_said(run, fed):
    assert_refused(run(*JOIN, "none.csv"), "none.csv")


def test_the_categories_of_a_table_are_those_of_the_federation(run, tmp_path):
    run("federation", "init", "fed", "--nodes", 1, "--categories", "a,b", "--max-size", 9)
    assert_refused(run(*JOIN, "clients.csv"), "clients.csv")


def test_a_folder_that_is_no_nodes_is_said(run, fed):
    assert_refused(run("federation", "join", "fed", "clients.csv"), "is not the folder of a node")
    ran = run("federation", "join", "nowhere", "clients.csv")
    assert_refused(ran, "there is no federation.json in")


def test_a_node_that_runs_already_is_said(run, fed):
    keep_pid(fed / "nodes" / "node-1" / "node.pid", os.getpid())
    ran = run(*JOIN, "clients.csv")
    assert_refused(ran, f"node-1 is running already (process {os.getpid()})")


@pytest.mark.parametrize("name", ["signing.key", "transport.key"])
def test_keys_are_the_owners_alone(run, fed, name):
    place = fed / "nodes" / "node-1" / name
    place.chmod(0o644)
    assert_refused(run(*JOIN, "clients.csv"), "users other than its owner may read", "chmod 600")
    place.unlink()
    assert_refused(run(*JOIN, "clients.csv"), name)


@pytest.mark.parametrize("name", ["signing.key", "transport.key"])
def test_a_folder_with_a_key_of_another_node_is_refused_before_the_server_is_asked(run, fed, name):
    shutil.copy(fed / "nodes/node-2" / name, fed / "nodes/node-1" / name)
    assert_refused(run(*JOIN, "clients.csv"), f"{name} is not the key of node-1 in the roster")


def test_a_policy_with_a_misspelt_limit_is_refused(run, fed):
    (fed / "nodes" / "node-1" / "policy.toml").write_text("fewst = 5\n")
    assert_refused(run(*JOIN, "clients.csv"), "policy.toml", "fewst")


def test_a_damaged_node_file_is_said(run, fed):
    path = fed / "nodes" / "node-1" / "federation.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "node": 3}))
    assert_refused(run(*JOIN, "clients.csv"), "federation.json is damaged: there is no node 3")


# ----------------------------------------------------------------------- servers that are not ours


def test_an_expired_certificate_is_said(run, fed, tmp_path):
    past = datetime.now(UTC) - timedelta(days=900)
    with Door(tmp_path, make_server(authority(fed), ["localhost"], now=past), port(fed)):
        ran = run(*JOIN, "clients.csv")
    assert_refused(ran, f"the certificate of localhost:{port(fed)} has expired: make a new one")


def test_a_server_of_another_authority_is_said(run, fed, tmp_path):
    other = make_server(make_authority("another"), ["localhost"])
    with Door(tmp_path, other, port(fed)):
        ran = run(*JOIN, "clients.csv")
    assert_refused(ran, "is not of", "ca.crt: take this federation's")


def test_a_server_without_tls_is_said(run, fed, tmp_path):
    with Door(tmp_path, None, port(fed)):
        ran = run(*JOIN, "clients.csv")
    assert_refused(ran, "answers, but not with TLS")


def test_an_authority_that_is_damaged_is_said(run, fed):
    (fed / "nodes" / "node-1" / "ca.crt").write_text("")
    assert_refused(run(*JOIN, "clients.csv"), "ca.crt is not a certificate")


def test_the_table_is_read_under_the_names_of_its_columns(run, fed, tmp_path):
    named = CLIENTS.replace("client,category,count", "who,what,times")
    (tmp_path / "named.csv").write_text(named)
    ran = run(*JOIN, "named.csv", "--client", "who", "--category", "what", "--count", "times")
    assert_refused(ran, "no server at")  # the table was read


def test_other_names_are_mapped_and_rows_without_values_left_out_before_joining(run, fed, tmp_path):
    (tmp_path / "named.csv").write_text(HEAD + "a,owl,1\na,cat,2\n,cat,1\nb,dog,1\n")
    assert_refused(run(*JOIN, "named.csv"), "1 value is missing from column 'client'", "line 4")
    mapped = run(*JOIN, "named.csv", "--drop-missing", "--map", "owl=0,cat=1,dog=2")
    assert_refused(mapped, "no server at")  # the table was read
    assert "left out 1 of 4 rows" in mapped.err


def test_features_are_columns_of_a_table_of_records(run, fed, tmp_path):
    (tmp_path / "records.csv").write_text("client,category,width\na,0,1.5\na,1,2.5\n")
    join = (*JOIN, "records.csv", "--features")
    assert_refused(run(*join, "height"), "records.csv", "'height'")
    assert_refused(run(*join, "width"), f"no server at localhost:{port(fed)}")
    assert_refused(run(*join, "width", "--count", "1"), "--count has no effect with --features")


def test_features_that_were_declared_have_to_be_named_in_their_order(run, tmp_path):
    init = ("federation", "init", "fed", "--nodes", 1, "--categories", 2, "--max-size", 9)
    run(*init, "--features", "width,height", "--address", "localhost:1")
    (tmp_path / "records.csv").write_text("client,category,width,height\na,0,1.5,1\na,1,2.5,2\n")
    join = (*JOIN, "records.csv", "--features")
    for columns in ("height,width", "width", "width,height,depth"):
        assert_refused(
            run(*join, columns), "declared, width,height, in this order", f"got {columns}"
        )
    assert_refused(run(*join, "width, height"), "no server at localhost:1")

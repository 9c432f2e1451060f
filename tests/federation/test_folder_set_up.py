"""The files of a federation: who may read them, and that all of them fit together."""

import os
import stat
from datetime import UTC, datetime, timedelta

import pytest

from polyurn.errors import FederationError, FileError, InputError, ParameterError
from polyurn.federation.folder import load_public_keys, make_keys, read_node, set_up
from polyurn.federation.keys import Certified, SigningKey, expiry, make_server, public_key_of
from polyurn.federation.policy import NodePolicy, read_policy

SETTINGS = {
    "address": "localhost:8000",
    "categories": 3,
    "max_size": 12,
    "clients_per_node": 9,
}


def private_files(folder):
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and b"PRIVATE KEY" in path.read_bytes()
    )


def test_private_keys_may_be_read_by_their_owner_only(federation):
    assert private_files(federation.path) == [
        "authority/ca.key",
        *(f"nodes/node-{i}/{kind}.key" for i in range(1, 5) for kind in ("signing", "transport")),
        "server/operator.key",
        "server/server.key",
    ]
    for name in private_files(federation.path):
        assert stat.S_IMODE(os.stat(federation.path / name).st_mode) == 0o600
    for i in range(1, 5):
        assert stat.S_IMODE(os.stat(federation.node(f"node-{i}")).st_mode) == 0o700


def test_a_node_takes_home_its_own_keys_and_what_everybody_knows(federation):
    for number in range(1, 5):
        node = read_node(federation.node(f"node-{number}"))
        assert node.number == number
        assert node.federation == federation.read()
        signer = SigningKey(node.secret("signing.key"))
        assert signer.public == node.federation.nodes[number - 1].signing.encode()
        assert node.ca_certificate.read_bytes() == federation.ca_certificate.read_bytes()


def test_the_policy_that_a_node_begins_with_is_the_strict_one(federation):
    policy = read_policy(federation.node("node-1") / "policy.toml")
    assert policy == NodePolicy(narrowest_part=0.02)
    assert policy.secure_only
    assert not policy.allow_exact


def test_a_policy_that_is_given_is_the_one_that_nodes_begin_with(tmp_path):
    given = NodePolicy(secure_only=False, allow_exact=True, questions=("fit",), most_epsilon=0.5)
    made = set_up(
        tmp_path / "fed", address="localhost:8000", categories=3, max_size=9, clients_per_node=20,
        n_nodes=1, policy=given,
    )  # fmt: skip
    assert read_policy(made.node("node-1") / "policy.toml") == given


def test_the_certificates_of_nodes_are_for_the_keys_of_the_roster(federation):
    for node in federation.read().nodes:
        certificate = (federation.node(node.name) / "node.crt").read_bytes()
        assert public_key_of(certificate) == node.transport
    operator = public_key_of(federation.operators_certificate.read_bytes())
    assert operator not in [node.transport for node in federation.read().nodes]


def test_owners_who_made_their_keys_are_nodes_and_their_private_keys_stay_with_them(tmp_path):
    places = [make_keys(tmp_path / name, name) for name in ("hospital-a", "hospital-b")]
    public = [load_public_keys(place, number=i) for i, place in enumerate(places, start=2)]
    made = set_up(tmp_path / "fed", n_nodes=1, public=public, **SETTINGS)
    names = [(node.number, node.name) for node in made.read().nodes]
    assert names == [(1, "node-1"), (2, "hospital-a"), (3, "hospital-b")]
    assert private_files(made.node("hospital-a")) == []
    for i, name in enumerate(("hospital-a", "hospital-b"), start=1):
        assert private_files(tmp_path / name) == ["signing.key", "transport.key"]
        signer = SigningKey((tmp_path / name / "signing.key").read_bytes())
        assert made.read().nodes[i].signing.encode() == signer.public
        assert b"PRIVATE" not in places[i - 1].read_bytes()


def test_two_nodes_with_the_same_name_are_refused(tmp_path):
    entry = load_public_keys(make_keys(tmp_path / "mine", "node-1"), number=2)
    with pytest.raises(ParameterError, match="nodes with names of their own"):
        set_up(tmp_path / "fed", n_nodes=1, public=[entry], **SETTINGS)
    assert not (tmp_path / "fed").exists()


def test_a_public_key_that_is_none_is_refused_before_anything_is_written(tmp_path):
    from dataclasses import replace

    entry = load_public_keys(make_keys(tmp_path / "mine", "hospital"), number=1)
    with pytest.raises(InputError):
        set_up(tmp_path / "fed", public=[replace(entry, signing="ssh-ed25519 no")], **SETTINGS)
    assert not (tmp_path / "fed").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"address": "localhost"},
        {"address": ":8000"},
        {"address": "localhost:0"},
        {"address": "localhost:65536"},
        {"address": "localhost:http"},
        {"categories": 0},
        {"categories": ("a", "a")},
        {"max_size": 0},
        {"clients_per_node": 0},
        {"n_nodes": 0},
    ],
)
def test_settings_that_no_federation_can_have_are_refused(tmp_path, wrong):
    with pytest.raises(InputError):
        set_up(tmp_path / "fed", **{**SETTINGS, "n_nodes": 2, **wrong})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", ["a file in it", "a file in its place", "a link to nowhere"])
def test_a_folder_that_is_in_use_is_left_as_it_is(tmp_path, what):
    place = tmp_path / "fed"
    if what == "a file in it":
        place.mkdir()
        (place / "mine.txt").write_text("mine")
    elif what == "a file in its place":
        place.write_text("mine")
    else:
        place.symlink_to(tmp_path / "nowhere")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(FileError, match="exists already: take another folder"):
        set_up(place, n_nodes=1, **SETTINGS)
    with pytest.raises(FileError, match="exists already: take another folder"):
        make_keys(place, "a-node")
    assert sorted(tmp_path.rglob("*")) == before


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "fed").mkdir()
    made = set_up(tmp_path / "fed", n_nodes=1, **SETTINGS)
    assert made.read().nodes[0].name == "node-1"
    assert [path.name for path in tmp_path.iterdir()] == ["fed"]


def test_a_certificate_that_has_expired_is_said_with_what_to_do_and_can_be_renewed(tmp_path):
    made = set_up(tmp_path / "fed", n_nodes=1, **SETTINGS)
    made.check_certificate()
    key, certificate = ((made.authority / name).read_bytes() for name in ("ca.key", "ca.crt"))
    past = datetime.now(UTC) - timedelta(days=900)
    old = make_server(Certified(key, certificate), ["localhost"], now=past)
    made.take_certificate(old)
    with pytest.raises(FederationError, match=r"has expired \(.*\): .*--renew"):
        made.check_certificate()
    made.renew_certificate()
    made.check_certificate()
    assert expiry(made.certificate.read_bytes()) > datetime.now(UTC) + timedelta(days=800)
    assert stat.S_IMODE(os.stat(made.key).st_mode) == 0o600
    assert (made.authority / "ca.crt").read_bytes() == certificate  # nodes go on trusting it


def test_the_roster_has_every_node_under_its_number(federation):
    roster = federation.read().roster
    assert all(number in roster for number in (1, 2, 3, 4))
    assert 5 not in roster

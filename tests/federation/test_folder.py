"""A federation on disk: written whole or not at all, and read again only if it is whole."""

import json
from dataclasses import replace

import pytest

from polyurn.errors import FileError, ParameterError
from polyurn.federation.folder import (
    Federation,
    FederationFolder,
    NodeEntry,
    load_public_keys,
    make_keys,
    read_node,
    set_up,
)
from polyurn.storage.files import write_secret

NODES = tuple(
    NodeEntry(number=i, name=name, transport=f"transport {i}", signing=f"signing {i}")
    for i, name in enumerate(("first", "second"), start=1)
)
FEDERATION = Federation(
    address="example.org:8000",
    n_categories=2,
    categories=("a", "b"),
    max_size=9,
    clients_per_node=5,
    nodes=NODES,
)


def make(path, **declared):
    return set_up(
        path, address="example.org:8000", categories=("a", "b"), max_size=9, clients_per_node=5,
        n_nodes=2, **declared,
    )  # fmt: skip


@pytest.fixture
def made(tmp_path):
    return make(tmp_path / "fed")


def test_what_was_written_is_read_again(made):
    federation = made.read()
    assert replace(federation, nodes=NODES) == FEDERATION
    node = read_node(made.node("node-2"))
    assert (node.number, node.name, node.federation) == (2, "node-2", federation)
    assert b"PRIVATE KEY" in read_node(made.node("node-1")).secret("signing.key")


def test_tables_are_read_with_the_names_or_the_number_of_the_categories():
    assert FEDERATION.declared == ("a", "b")
    assert replace(FEDERATION, categories=None).declared == 2


def test_a_folder_is_whole_or_not_there(tmp_path, monkeypatch):
    import polyurn.federation.folder as module

    def fail(path, data, **_):
        raise FileError("no space left")

    monkeypatch.setattr(module, "write_secret", fail)
    with pytest.raises(FileError, match="no space left"):
        make(tmp_path / "fed")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot"):
        make(tmp_path / "file" / "fed")


@pytest.mark.parametrize("name", ["", ".hidden", "../up", "a/b", "a b", "-x", "x" * 65, "a\n"])
def test_a_name_that_could_be_another_place_is_refused(tmp_path, name):
    with pytest.raises(ParameterError, match="a name of letters, digits, dots and dashes"):
        replace(FEDERATION, nodes=(replace(NODES[0], name=name),))
    with pytest.raises(ParameterError):
        make_keys(tmp_path / "n", name)
    assert not (tmp_path / "n").exists()


def test_nodes_have_the_numbers_one_two_three(tmp_path):
    with pytest.raises(ParameterError, match="numbers 1, 2, 3"):
        replace(FEDERATION, nodes=NODES[::-1])
    with pytest.raises(ParameterError, match="names of their own"):
        replace(FEDERATION, nodes=(NODES[0], replace(NODES[1], name="first")))
    with pytest.raises(ParameterError, match="1 to 100,000 nodes"):
        replace(FEDERATION, nodes=())


@pytest.mark.parametrize("address", ["example.org", ":1", "a:0", "a:65536", "a:-1", "a:x", ""])
def test_an_address_without_a_host_or_a_port_is_refused(address):
    with pytest.raises(ParameterError, match="expected an address such as"):
        replace(FEDERATION, address=address)


def test_a_folder_of_something_else_is_said(tmp_path):
    with pytest.raises(FileError, match=r"no federation\.json in .*federation init"):
        FederationFolder(tmp_path).read()
    with pytest.raises(FileError, match=r"no federation\.json in .*federation init"):
        read_node(tmp_path)
    with pytest.raises(FileError, match=r"cannot read .*keys\.pub"):
        load_public_keys(tmp_path / "keys.pub", number=1)


@pytest.mark.parametrize(
    "text", ["", "one line", "a b name\n", "a b name\nc d other\n", "a b n\nc n\n", "\udcff\n\n"]
)
def test_public_keys_that_are_not_two_lines_of_one_node_are_refused(tmp_path, text):
    (tmp_path / "keys.pub").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(FileError, match=r"keys\.pub has no public keys"):
        load_public_keys(tmp_path / "keys.pub", number=1)


def change(path, **fields):
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, **fields}))


@pytest.mark.parametrize(
    "fields",
    [
        {"n_categories": -2},
        {"n_categories": "two"},
        {"n_categories": 3},
        {"categories": ["a", "a"]},
        {"address": 8000},
        {"max_size": 1.5},
        {"nodes": []},
        {"nodes": [{"number": 1}]},
        {"format": "polyurn.mdm"},
        {"version": 99},
    ],
)
def test_a_damaged_file_is_named(made, fields):
    place = made.path / "federation.json"
    change(place, **fields)
    with pytest.raises(FileError, match=r"federation\.json"):
        made.read()


@pytest.mark.parametrize("text", ["", "{", "[]", "\udcff", '{"format": "polyurn.federation"}'])
def test_a_nodes_file_that_was_cut_off_is_named(made, text):
    path = made.node("node-1") / "federation.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(FileError, match=r"federation\.json"):
        read_node(made.node("node-1"))


@pytest.mark.parametrize("number", [0, 3, "1", 1.0])
def test_a_node_that_the_federation_does_not_have_is_refused(made, number):
    change(made.node("node-1") / "federation.json", node=number)
    with pytest.raises(FileError, match=f"federation.json is damaged: there is no node {number!r}"):
        read_node(made.node("node-1"))


def test_the_folder_of_the_server_is_not_that_of_a_node(made):
    with pytest.raises(FileError, match="is not the folder of a node"):
        read_node(made.path)


def test_a_secret_that_others_may_read_is_not_used(made):
    node = read_node(made.node("node-1"))
    (node.path / "signing.key").chmod(0o604)
    with pytest.raises(FileError, match=r"users other than its owner may read .*chmod 600"):
        node.secret("signing.key")


def test_a_private_file_takes_the_place_of_one_that_others_could_read(tmp_path):
    place = tmp_path / "key"
    place.write_text("old")
    place.chmod(0o644)
    write_secret(place, b"new")
    assert place.read_bytes() == b"new"
    assert place.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileError, match="cannot write"):
        write_secret(tmp_path / "no folder" / "key", b"new")


def test_public_keys_get_the_number_that_they_have_in_the_federation(tmp_path):
    entry = load_public_keys(make_keys(tmp_path / "mine", "third"), number=7)
    assert (entry.number, entry.name) == (7, "third")
    assert (tmp_path / "mine" / "signing.key").stat().st_mode & 0o777 == 0o600


def test_features_are_declared_once_for_all_or_not_at_all(tmp_path):
    declared = replace(FEDERATION, features=("width", "height"))
    made = make(tmp_path / "fed", features=("width", "height"))
    assert made.read().features == declared.features
    declared.check_features(["width", "height"])
    FEDERATION.check_features(["anything"])
    with pytest.raises(ParameterError, match="width,height, in this order, got height"):
        declared.check_features(["height", "width"])
    for names in ((), ("width", "width")):
        with pytest.raises(ParameterError, match="features with different names"):
            replace(FEDERATION, features=names)

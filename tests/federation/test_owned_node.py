"""A node from its owner's folder: files that are not the owner's, and tables that were not declared."""

import shutil
import stat
import sys

import numpy as np
import pytest
from scipy import sparse

from polyurn.client.counting import Histograms
from polyurn.client.records import Records
from polyurn.errors import (
    CountsError,
    FileError,
    InputError,
    MissingDependencyError,
    ParameterError,
)
from polyurn.federation.folder import read_node, set_up
from polyurn.federation.messages import Ask, Reply
from polyurn.federation.owned_node import open_node
from polyurn.wire import Survey, encode_query


def clients(counts):
    counts = np.asarray(counts)
    names = tuple("abc"[: counts.shape[1]])
    return Histograms(
        sparse.csr_array(counts), np.array([f"client {i}" for i in range(len(counts))]), names
    )


GOOD = clients([[1, 2, 3], [4, 0, 1], [0, 0, 7]])


def ask(number):
    from polyurn import SizeBins

    query = encode_query(Survey(3, SizeBins.exact(20), pairs=False))
    return Ask(50, query).encode(tag=bytes(16), node=number)


def test_a_node_answers_for_its_clients_under_its_policy(node_folder):
    node = open_node(read_node(node_folder), GOOD)
    assert Reply.decode(node.answer("plain", ask(2)), tag=None, node=2).refusal.text == (
        "it answers in secure sums only"
    )
    (node_folder / "policy.toml").write_text("secure_only = false\nfewest_clients = 3\n")
    node = open_node(read_node(node_folder), GOOD, allow_exact=True)
    assert Reply.decode(node.answer("plain", ask(2)), tag=None, node=2).refusal is None
    lines = (node_folder / "questions.log").read_text().splitlines()
    assert len(lines) == 2
    assert "refused" in lines[0]
    assert '"exact"' in (node_folder / "privacy.ledger").read_text()


def test_records_are_held_to_what_was_declared_as_histograms_are(node_folder):
    owner = np.repeat(np.arange(2), [5, 21])
    records = Records(np.zeros((26, 1)), owner, owner, n_labels=3)
    with pytest.raises(CountsError, match="at most 20 points a client, one has 21"):
        open_node(read_node(node_folder), records)
    few = Records(np.zeros((5, 1)), [0, 1, 2, 0, 0], [0, 0, 0, 1, 1])
    assert repr(open_node(read_node(node_folder), few)) == "Node(2, 2 clients)"


def test_the_key_of_the_buckets_is_drawn_once_and_nobody_else_may_read_it(node_folder):
    open_node(read_node(node_folder), GOOD)
    key = (node_folder / "bucket.key").read_bytes()
    open_node(read_node(node_folder), GOOD)
    assert (node_folder / "bucket.key").read_bytes() == key
    for name in ("bucket.key", "questions.log"):
        assert stat.S_IMODE((node_folder / name).stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["signing.key", "bucket.key"])
def test_a_key_that_others_may_read_is_not_used(node_folder, name):
    open_node(read_node(node_folder), GOOD)
    (node_folder / name).chmod(0o640)
    with pytest.raises(FileError, match=f"users other than its owner may read .*{name}"):
        open_node(read_node(node_folder), GOOD)


@pytest.mark.parametrize("name", ["signing.key", "policy.toml"])
def test_a_file_that_is_missing_is_named(node_folder, name):
    (node_folder / name).unlink()
    with pytest.raises(FileError, match=name):
        open_node(read_node(node_folder), GOOD)


def test_a_key_of_another_federation_is_refused(node_folder, tmp_path):
    other = set_up(
        tmp_path / "other", address="localhost:1", categories=3, max_size=20, clients_per_node=50,
        n_nodes=2,
    )  # fmt: skip
    shutil.copy(other.node("node-2") / "signing.key", node_folder / "signing.key")
    with pytest.raises(InputError, match="is not the key of node-2 in the roster"):
        open_node(read_node(node_folder), GOOD)


def test_a_key_that_is_none_is_refused(node_folder):
    (node_folder / "signing.key").write_bytes(b"no key")
    with pytest.raises(InputError) as error:
        open_node(read_node(node_folder), GOOD)
    assert "no key" not in str(error.value)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("secure_onyl = true", "secure_onyl"),
        ("fewest = 0", "fewest"),
        ("fewest = 'three'", "fewest"),
        ("fewest = = 3", "is not a policy"),
    ],
)
def test_a_policy_that_would_not_limit_anything_is_refused(node_folder, policy, said):
    (node_folder / "policy.toml").write_text(policy)
    with pytest.raises(FileError, match=said):
        open_node(read_node(node_folder), GOOD)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([[1, 2]], "the federation has 3 categories, the table 2"),
        ([[1, 0, 0]] * 51, "at most 50 clients a node, the table has 51"),
        ([[10, 11, 0]], "at most 20 points a client, one has 21: cap them"),
    ],
)
def test_clients_that_were_not_declared_are_refused_with_what_to_do(node_folder, counts, said):
    folder = read_node(node_folder)
    with pytest.raises(CountsError, match=said):
        open_node(folder, clients(counts))
    assert not (node_folder / "questions.log").exists()


def test_clients_on_the_limits_are_taken(node_folder):
    open_node(read_node(node_folder), clients([[10, 10, 0]] * 50))


def test_a_policy_that_demands_noise_needs_what_draws_it(node_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp", None)
    with pytest.raises(MissingDependencyError, match=r"policy.toml demands, needs opendp: pip"):
        open_node(read_node(node_folder), GOOD)
    assert not (node_folder / "privacy.ledger").exists()
    few = (
        (node_folder / "policy.toml")
        .read_text()
        .replace("fewest_clients = 20", "fewest_clients = 3")
    )
    (node_folder / "policy.toml").write_text(few)
    open_node(read_node(node_folder), GOOD, allow_exact=True)


def test_an_owner_raises_the_budget_in_the_policy_and_does_not_lower_it(node_folder):
    for epsilon in (1.0, 3.0):
        (node_folder / "policy.toml").write_text(f"most_epsilon = {epsilon}\n")
        open_node(read_node(node_folder), GOOD)
    assert stat.S_IMODE((node_folder / "privacy.ledger").stat().st_mode) == 0o600
    (node_folder / "policy.toml").write_text("most_epsilon = 2.0\n")
    with pytest.raises(ParameterError, match="never lowered"):
        open_node(read_node(node_folder), GOOD)

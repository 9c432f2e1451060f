"""A server that cuts a round into small sums, and a ledger that somebody has emptied or put back."""

import numpy as np
import pytest

from polyurn.errors import FileError, RefusedError
from polyurn.federation.keys import Roster, SigningKey
from polyurn.federation.masking import keys_digest
from polyurn.federation.messages import Advertisement, Neighbourhood
from polyurn.federation.owned_node import LEDGER, QUESTIONS, open_node
from polyurn.federation.participant import Participant
from polyurn.federation.round import SecureSum
from polyurn.storage.ledger_file import LedgerFile, open_ledger, raised_ledger


def advertised(n_nodes, **limits):
    """Nodes that have advertised, and the tag of their round."""
    keys = {i: SigningKey.generate() for i in range(1, n_nodes + 1)}
    roster = Roster({i: key.public for i, key in keys.items()})
    nodes = {i: Participant(i, signer=key, roster=roster, **limits) for i, key in keys.items()}
    server = SecureSum(keys, roster=roster, bounds=np.array([100.0]), dropout=0.1)
    invited = server.invite()
    tag = invited[1][6:22]
    ads = {
        i: Advertisement.decode(nodes[i].advertise(m), tag=tag, node=i) for i, m in invited.items()
    }
    return nodes, tag, ads


def shares(nodes, tag, ads, near):
    """A node's reply to a neighbourhood that the server chose."""
    cohort = {i: keys_digest(i, ad.keys) for i, ad in ads.items()}
    n, quorum = len(near), len(ads) // 2 + 1
    message = Neighbourhood(n // 2 + 1, quorum, cohort, {i: ads[i] for i in near})
    return nodes[1].share(message.encode(tag=tag, node=1))


def test_no_round_of_twelve_nodes_is_cut_into_sums_of_three():
    nodes, tag, ads = advertised(12)
    with pytest.raises(RefusedError, match="3 in the neighbourhood, 12 are needed"):
        shares(nodes, tag, ads, [1, 2, 3])
    nodes, tag, ads = advertised(12)
    assert shares(nodes, tag, ads, list(range(1, 13)))


@pytest.mark.parametrize(("n_near", "refused"), [(40, True), (41, False)])
def test_no_round_of_many_nodes_has_fewer_neighbours_than_the_owner_wants(n_near, refused):
    nodes, tag, ads = advertised(101, neighbours=40)
    near = list(range(1, n_near + 1))
    if refused:
        with pytest.raises(RefusedError, match="40 in the neighbourhood, 41 are needed"):
            shares(nodes, tag, ads, near)
    else:
        assert shares(nodes, tag, ads, near)


# --------------------------------------------------------------------------------------- x8: ledgers


def spent(path, n, *, sigma=20.0, **options):
    ledger = raised_ledger(path, epsilon=1.0, delta=1e-6, first=1.0, **options)
    for _ in range(n):
        ledger.charge("survey", sigma, 31)
    return ledger


@pytest.mark.parametrize("damage", ["emptied", "deleted", "put back", "another"])
def test_no_ledger_that_lost_its_charges_is_a_fresh_budget(tmp_path, damage):
    path = tmp_path / "privacy.ledger"
    spent(path, 2)
    older = path.read_bytes()
    mark = spent(path, 3).entries.mark
    if damage in ("deleted", "another"):
        path.unlink()
    else:
        path.write_bytes(b"" if damage == "emptied" else older)
    if damage == "another":  # as long as the one that is lost
        spent(path, 5, sigma=21.0)
    with pytest.raises(FileError, match="take its budget as used up"):
        spent(path, 0, mark=mark)
    assert damage != "deleted" or not path.exists()


def test_no_ledger_is_emptied_while_its_node_runs(tmp_path):
    path = tmp_path / "privacy.ledger"
    ledger = spent(path, 2)
    path.write_bytes(b"")
    with pytest.raises(FileError, match="used up"):
        ledger.charge("survey", 20.0, 31)


def test_nobody_without_the_key_writes_a_ledger_that_its_node_believes(tmp_path):
    forged, path = tmp_path / "forged", tmp_path / "privacy.ledger"
    spent(path, 3, key=b"secret")
    LedgerFile(path, key=b"secret")
    spent(forged, 1)
    path.write_bytes(forged.read_bytes())
    with pytest.raises(FileError, match="damaged"):
        LedgerFile(path, key=b"secret")
    assert open_ledger(forged, epsilon=1.0, delta=1e-6).charges


def test_a_node_remembers_in_its_log_what_its_ledger_had(node_folder, clients, noised_answer):
    """The log and the ledger are two files: restoring one of them to an older state is seen."""
    noised_answer(open_node(node_folder, clients))
    older = (node_folder.path / LEDGER).read_bytes()
    noised_answer(open_node(node_folder, clients))
    (node_folder.path / LEDGER).write_bytes(older)
    assert " | ledger " in (node_folder.path / QUESTIONS).read_text()
    with pytest.raises(FileError, match="does not have the 3 entries that it had"):
        open_node(node_folder, clients)
    (node_folder.path / LEDGER).unlink()
    with pytest.raises(FileError, match="used up"):
        open_node(node_folder, clients)

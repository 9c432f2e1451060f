"""A job in a folder becomes a model or a reason, over nodes that are played."""

import json

import numpy as np
import pytest

import polyurn as pu
from played_federations import OnDisk, histograms_of, records_of
from polyurn.errors import FileError, NodesError
from polyurn.federation.processes import alive
from polyurn.federation.server_process import perform
from polyurn.model.style import Style
from polyurn.storage.models import load_saved
from style_cases import whole_space


@pytest.fixture
def here(tmp_path, clock):
    return OnDisk(tmp_path, clock)


def events(folder):
    _, *lines = (folder.path / "job.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_fit_ends_in_a_model_that_says_how_it_came_about(here):
    folder = here.job(command="polyurn federation run fed")
    perform(here.exchange, folder)
    saved = load_saved(folder.result)
    assert saved.provenance.command == "polyurn federation run fed"
    assert saved.provenance.fit.n_clients == 60
    crossed = saved.provenance.traffic
    assert crossed.secure
    assert [(node.node, node.name) for node in crossed.nodes] == [
        (1, "node-1"), (2, "node-2"), (3, "node-3"),
    ]  # fmt: skip
    assert all(node.n_summed == crossed.n_rounds for node in crossed.nodes)
    assert [event["number"] for event in events(folder)] == list(range(1, 1 + len(events(folder))))


def test_a_node_that_hangs_in_mid_run_is_told_as_it_happens_and_kept(tmp_path, clock):
    here = OnDisk(tmp_path, clock, n_nodes=4, n_clients=15)
    node, n_stages = here.nodes[3], 0
    answer = node.answer

    def later():
        nonlocal n_stages
        n_stages += 1
        node.answer = None if n_stages > 5 * 2 else answer  # of a secure sum, for two rounds

    here.exchange.before = later
    folder = here.job(max_rounds=5)
    perform(here.exchange, folder)
    why = "it did not reply in time"
    told = [event for event in events(folder) if "left" in event]
    assert told == [{"round": 3, "left": {"node-3": why}, "joined": []}]
    traffic = load_saved(folder.result).provenance.traffic
    last = traffic.rounds[-1].number
    assert traffic.absences == [f"without node-3 in rounds 3 to {last}: {why}"]
    assert traffic.line.startswith("secure sums over 3 to 4 of 4 nodes")


def test_a_selection_ends_in_a_model_and_its_table(here):
    folder = here.job(selects=True, components=(1, 2), max_rounds=5)
    perform(here.exchange, folder)
    assert load_saved(folder.result).provenance.fit.n_held_out > 0
    assert all("running" in event for event in events(folder))


def test_a_run_that_was_cut_off_goes_on_from_its_checkpoint_to_the_same_model(here, tmp_path):
    whole = here.job()
    perform(here.exchange, whole)
    checkpoint = str(tmp_path / "rounds")
    cut = here.job(checkpoint=checkpoint)
    n_stages = 0

    def fail_later():
        nonlocal n_stages
        n_stages += 1
        if n_stages > 5 * 2:  # of a secure sum, for two rounds
            raise ConnectionError("no server")

    here.exchange.before = fail_later
    with pytest.raises(ConnectionError):
        perform(here.exchange, cut)
    here.exchange.before = lambda: None
    resumed = here.job(checkpoint=checkpoint)
    perform(here.exchange, resumed)
    assert events(resumed)[0] == {"kept": 2}
    one, other = (load_saved(folder.result).model for folder in (whole, resumed))
    np.testing.assert_allclose(one.alphas, other.alphas, rtol=1e-9)
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-9)


# ------------------------------------------------------------------------- questions about style


@pytest.fixture
def with_records(tmp_path, clock):
    """A federation of three nodes that allow plain questions, and all their records."""
    whole, parts = records_of(3)
    return OnDisk(tmp_path, clock, policy="secure_only = false\n", held=parts), whole


def assert_near(style, expected, rtol):
    assert style.n_clients == expected.n_clients
    for name in ("mean", "shared", "by_label", "within"):
        got, wanted = getattr(style, name), getattr(expected, name)
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol * np.abs(wanted).max())


# Both add up each node's clients first: in a plain sum nothing but the order of additions is another.
# A secure one rounds each node's numbers to fixed point.
@pytest.mark.parametrize(("secure", "rtol"), [(False, 1e-12), (True, 1e-9)])
@pytest.mark.parametrize("label_effect", [False, True])
def test_a_style_over_nodes_is_that_of_all_their_records(with_records, secure, rtol, label_effect):
    here, whole = with_records
    folder = here.style_job(
        secure=secure, label_effect=label_effect, features=("x", "y"), command="polyurn ..."
    )
    perform(here.exchange, folder)
    saved = load_saved(folder.result, Style)
    expected = pu.fit_style(pu.LocalAggregator(whole), whole_space(2), label_effect=label_effect)
    assert_near(saved.model, expected, rtol)
    assert (saved.model.label_effect is None) == (not label_effect)
    assert saved.features == ("x", "y")
    assert saved.provenance.command == "polyurn ..."
    assert saved.provenance.privacy_in_words.startswith("no guarantee")
    crossed = saved.provenance.traffic
    assert (crossed.secure, crossed.n_rounds, crossed.n_asks) == (secure, 1, 5 if secure else 1)
    assert [node.n_summed for node in crossed.nodes] == [1, 1, 1]


def test_a_style_over_one_plain_node_is_that_of_its_records_to_the_last_bit(tmp_path, clock):
    whole, parts = records_of(1)
    here = OnDisk(tmp_path, clock, policy="secure_only = false\n", held=parts)
    folder = here.style_job(secure=False, min_nodes=1)
    perform(here.exchange, folder)
    style = load_saved(folder.result, Style).model
    assert style == pu.fit_style(pu.LocalAggregator(whole), whole_space(2))


def test_a_node_with_histograms_only_is_named_and_harms_nobody(tmp_path, clock):
    whole, parts = records_of(3)
    here = OnDisk(tmp_path, clock, held=[*parts, histograms_of(20, 4)])
    folder = here.style_job()
    perform(here.exchange, folder)
    saved = load_saved(folder.result, Style)
    assert_near(saved.model, pu.fit_style(pu.LocalAggregator(whole), whole_space(2)), 1e-9)
    last = saved.provenance.traffic.nodes[3]
    reason = "it has histograms only, and the question needs records"
    assert (last.name, last.n_summed, last.refused) == ("node-4", 0, ((reason, 1),))
    assert saved.provenance.traffic.n_attempts == 1
    assert saved.provenance.traffic.absences == [f"without node-4: {reason}"]


def test_too_few_nodes_with_records_are_one_line_that_says_who_lacks_what(tmp_path, clock):
    _, parts = records_of(2)
    held = parts[1].of(np.arange(20))
    wide = pu.Records(np.c_[held.features, held.labels], held.labels, held.owner, n_labels=10)
    here = OnDisk(tmp_path, clock, held=[histograms_of(20, 1), parts[0], wide])
    folder = here.style_job(retries=0)
    with pytest.raises(NodesError):
        perform(here.exchange, folder)
    assert folder.state.endswith(
        "refused: node-1 (it has histograms only, and the question needs records), node-3 (its "
        "records have another number of features than the question); they refuse it again until that "
        "changes and they join again"
    )
    assert not folder.result.exists()


def test_what_goes_wrong_is_written_down_before_it_is_raised(here):
    for node in list(here.nodes.values())[:2]:
        node.is_there = False
    folder = here.job()
    with pytest.raises(NodesError):
        perform(here.exchange, folder)
    missing = "missing: node-1, node-2, excluded: none, refused: none"
    reason = f"1 of 3 nodes are connected after 60 s, 3 are needed; {missing}"
    assert folder.state == f"failed: {reason}"
    assert folder.events()[0] == {"missing": ["node-1", "node-2"]}  # before it waits
    assert alive(folder.pid) is None
    assert not folder.result.exists()


def test_an_error_that_is_not_ours_is_written_down_too(here):
    here.exchange.before = lambda: 1 / 0
    folder = here.job()
    with pytest.raises(ZeroDivisionError):
        perform(here.exchange, folder)
    assert folder.state.startswith("failed: the server's side failed: ZeroDivisionError")


def test_a_job_that_is_damaged_is_said(here):
    folder = here.job()
    (folder.path / "job.jsonl").write_text("{}\n")
    with pytest.raises(FileError):
        perform(here.exchange, folder)
    assert "job.jsonl" in folder.state


def test_a_job_with_a_start_begins_there_and_keeps_its_numbers(here, tmp_path):
    first, start = here.job(), tmp_path / "start.json"
    perform(here.exchange, first)
    old = load_saved(first.result)
    turned = pu.MDM(old.model.weights[::-1], old.model.alphas[::-1], pu.Sizes(
        old.model.sizes.bins, old.model.sizes.masses[::-1]), as_given=True)  # fmt: skip
    pu.save(turned, start)
    again = here.job(start=str(start), components=())
    perform(here.exchange, again)
    found = load_saved(again.result)
    assert found.model.as_given
    np.testing.assert_allclose(found.model.weights, turned.weights, atol=0.05)

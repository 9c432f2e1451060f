"""The ServerApp: from a job in a folder to a model or a reason, over nodes that a grid plays."""

import doctest
import json
import os
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Context, RecordDict

import polyurn as pu
from played_federations import OnDisk
from polyurn.errors import FileError, NodesError
from polyurn.integrations.flower.server_app import main, perform
from polyurn.storage.mdm_json import load_saved


@pytest.fixture
def here(tmp_path, clock):
    return OnDisk(tmp_path, clock)


def events(folder):
    lines = (folder.path / "events.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_fit_ends_in_a_model_that_says_how_it_came_about(here):
    folder = here.job(command="polyurn federation run fed")
    perform(here.grid, folder)
    saved = load_saved(folder.result)
    assert saved.made.command == "polyurn federation run fed"
    assert saved.made.fit.n_clients == 60
    crossed = saved.made.crossed
    assert crossed.secure
    assert [(node.node, node.name) for node in crossed.nodes] == [
        (1, "node-1"), (2, "node-2"), (3, "node-3"),
    ]  # fmt: skip
    assert all(node.n_summed == crossed.n_rounds for node in crossed.nodes)
    assert [event["round"] for event in events(folder)] == list(range(1, 1 + len(events(folder))))


def test_a_selection_ends_in_a_model_and_its_table(here):
    folder = here.job(selects=True, components=(1, 2), rounds=5)
    perform(here.grid, folder)
    assert load_saved(folder.result).made.selection.n_held_out > 0
    assert all("running" in event for event in events(folder))


def test_a_run_that_was_cut_off_goes_on_from_its_checkpoint_to_the_same_model(here, tmp_path):
    whole = here.job()
    perform(here.grid, whole)
    checkpoint = str(tmp_path / "rounds")
    cut = here.job(checkpoint=checkpoint)
    n_pushes, push = 0, here.grid.push_messages

    def fail_later(messages):
        nonlocal n_pushes
        n_pushes += 1
        if n_pushes > 5 * 2:  # stages of a secure sum, for two rounds
            raise ConnectionError("no SuperLink")
        return push(messages)

    here.grid.push_messages = fail_later
    with pytest.raises(ConnectionError):
        perform(here.grid, cut)
    here.grid.push_messages = push
    resumed = here.job(checkpoint=checkpoint)
    perform(here.grid, resumed)
    assert events(resumed)[0] == {"kept": 2}
    one, other = (load_saved(folder.result).mdm for folder in (whole, resumed))
    np.testing.assert_allclose(one.alphas, other.alphas, rtol=1e-9)
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-9)


def context_of(folder):
    return context_with({"job": str(folder.path)})


def context_with(config):
    return Context(run_id=7, node_id=1, node_config={}, state=RecordDict(), run_config=config)


def test_what_goes_wrong_is_written_down_before_it_is_raised(here):
    for node in list(here.grid.nodes.values())[:2]:
        node.is_there = False
    folder = here.job()
    with pytest.raises(NodesError):
        main(here.grid, context_of(folder))
    assert folder.failure == "1 of 3 nodes are connected after 60 s, 3 are needed"
    assert folder.pid.read_text() == f"{os.getpid()}\n"
    assert not folder.result.exists()


def test_an_error_that_is_not_ours_is_written_down_too(here):
    here.grid.push_messages = lambda messages: 1 / 0
    folder = here.job()
    with pytest.raises(ZeroDivisionError):
        main(here.grid, context_of(folder))
    assert folder.failure.startswith("the server's side failed: ZeroDivisionError")


def test_a_job_that_is_damaged_is_said(here):
    folder = here.job()
    (folder.path / "job.json").write_text("{}")
    with pytest.raises(FileError):
        main(here.grid, context_of(folder))
    assert "job.json" in folder.failure


def test_the_serverapp_that_the_guide_shows_learns_a_model(here, tmp_path):
    guide = Path(__file__).parents[3] / "docs" / "guides" / "federation.md"
    section = guide.read_text(encoding="utf-8").split("### Your own ServerApp\n")[1]
    known = {"pu": pu}
    for example in doctest.DocTestParser().get_examples(section):
        exec(example.source, known)
    config = {"federation": str(here.made.path), "output": str(tmp_path / "mdm.json")}
    known["main"](here.grid, context_with(config))
    assert pu.load(tmp_path / "mdm.json").n_components == 2
    assert {message.metadata.dst_node_id for message in here.grid.sent} == set(here.grid.nodes)

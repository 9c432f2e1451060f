"""`polyurn federation run`: what is refused before anybody is asked, and what is shown in the end."""

import json
from dataclasses import asdict, replace

import pytest

from cli_walk import assert_refused
from polyurn import LocalAggregator, Tree, fit, fit_private, open_ledger
from polyurn.commands.federation import following as federated
from polyurn.errors import BudgetError, FileError, NodesError
from polyurn.federation.folder import FederationFolder
from polyurn.federation.jobs import MixtureJob
from polyurn.storage.models import save
from polyurn.storage.provenance import PrivacyProvenance, Provenance
from polyurn.typed.json_form import from_json, to_json
from polyurn.wire.traffic import Absence
from report_material import traffic_case

RUN = ("federation", "run", "fed", "--no-privacy")
PRIVATE = ("federation", "run", "fed", "--epsilon", 1, "--delta", 1e-6)
COUNTS = [[4, 1, 0], [0, 3, 3], [1, 0, 7], [2, 2, 2]]


def test_a_server_that_is_down_is_said_with_what_to_do(run, fed):
    assert_refused(run(*RUN), f"the server is down: polyurn federation up {fed}")
    assert list(FederationFolder(fed).runs.iterdir()) == []


def test_a_folder_that_is_no_federation_is_said(run):
    ran = run("federation", "run", "nowhere")
    assert_refused(ran, "there is no federation.json in", "polyurn federation init")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--components", "0"), ["component"]),
        (("--components", "x"), ["component"]),
        (("--rounds", 0), ["of rounds"]),
        (("--terms", "min_nodes=0"), ["min_nodes", "at least 1"]),
        (("--terms", "min_nodes=1"), ["a sum over one node is its answer"]),
        (("--terms", "min_fraction=1.1"), ["min_fraction", "from 0 to 1"]),
        (("--terms", "timeout=0"), ["timeout", "above 0"]),
        (("--terms", "settling=-1"), ["settling", "at least 0"]),
        (("--terms", "min_node=2"), ["--terms as NAME=VALUE", "got 'min_node=2'"]),
        (("-o", "."), ["Is a directory"]),
        (("-o", "no/folder/mdm.json"), ["cannot write"]),
        (("--sizes", "other"), ["--sizes"]),
    ],
)
def test_settings_that_cannot_be_meant_are_one_line(run, fed, options, words):
    assert_refused(run(*RUN, *options), *words)
    assert list(FederationFolder(fed).runs.iterdir()) == []


def test_nobody_is_held_out_where_a_single_k_is_only_fitted():
    job = {
        "federation": "fed",
        "command": None,
        "components": (2,),
        "max_size": 12,
        "held_out": 0.3,
    }
    assert MixtureJob(selects=False, **job).search["held_out"] is None
    assert MixtureJob(selects=True, **job).search["held_out"] == 0.3


def test_a_declared_tree_is_part_of_the_job_and_its_search():
    tree = Tree.by_share([0.2, 0.5, 0.3])
    job = {"federation": "fed", "command": None, "components": (1, 2), "max_size": 12}
    declared = MixtureJob(selects=True, tree=tree, **job)
    assert from_json(MixtureJob, to_json(declared)).search["tree"] == tree
    assert "tree" not in MixtureJob(selects=True, **job).settings


def test_a_damaged_federation_is_named(run, fed):
    (fed / "federation.json").write_text("{")
    assert_refused(run(*RUN), "federation.json is not a federation file, or was cut off")


def test_whether_there_is_a_guarantee_has_to_be_said(run, fed):
    assert_refused(
        run("federation", "run", "fed", "--epsilon", 1), "expected --epsilon and --delta"
    )
    for options in ((), ("--delta", 1e-6)):
        assert_refused(
            run("federation", "run", "fed", *options),
            "expected --epsilon and --delta (1 and 1e-6, say",
            "or --no-privacy, which releases exact sums",
        )
    assert list(FederationFolder(fed).runs.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--no-privacy",), ["--epsilon has no effect with --no-privacy"]),
        (("--epsilon", 0), ["epsilon above 0"]),
        (("--delta", 1), ["delta from"]),
        (("--ledger-epsilon", -1), ["epsilon above 0"]),
        (("--plain", "--trust", "distributed"), ["trust central, local in plain sums"]),
        (("--sizes", "exact"), ["sizes binned or shared with epsilon"]),
        (("--rounds", 9), ["--rounds has no effect with --epsilon"]),
        (("--cohort", 3), ["--cohort has no effect with --epsilon"]),
        (("--held-out", 0.3), ["--held-out has no effect with --epsilon"]),
    ],
)
def test_what_a_guarantee_does_not_go_with_is_one_line(run, fed, options, words):
    assert_refused(run(*PRIVATE, *options), *words)
    assert list(FederationFolder(fed).runs.iterdir()) == []


def test_a_run_with_a_guarantee_needs_a_server_like_any_other(run, fed):
    for options in ((), ("--plain",), ("--trust", "local"), ("--components", "1:3")):
        assert_refused(run(*PRIVATE, *options), "the server is down")


@pytest.fixture
def played(monkeypatch, fed):
    """The jobs of a server that chooses in private, among clients of this process."""
    jobs = []

    def perform(_, folder):
        jobs.append(folder.read())
        choice = fit_private(
            LocalAggregator(COUNTS), n_components=jobs[-1].components, epsilon=1.0, delta=1e-6,
            n_categories=3, max_size=12, rng=0,
        )  # fmt: skip
        for done in choice.rounds:
            folder.tell({**to_json(done), "n_clients": 4, "log_likelihood": None})
        made = {
            "fit": to_json(choice),
            "privacy": to_json(PrivacyProvenance.of(choice.guarantee)),
            "candidates": [asdict(candidate) for candidate in choice.raced],
        }
        save(choice.mdm, folder.result, provenance=made)

    monkeypatch.setattr(federated, "alive", lambda pid: 1)
    monkeypatch.setattr(federated.server_process, "perform", perform)
    return jobs


def test_a_private_run_ends_with_its_guarantee_in_words_and_the_candidates(run, played):
    ran = run(*PRIVATE, "--components", "1:2", "--ledger-epsilon", 2, "-o", "mdm.json")
    assert ran.code == 0, ran.err
    assert "with noise, about 4 clients" in ran.err
    assert "(1, 1e-06)-differentially private for one client" in " ".join(ran.err.split())
    assert "behind the best" in ran.out
    assert "chosen" in ran.out
    (job,) = played
    assert (job.epsilon, job.delta, job.ledger_epsilon) == (1.0, 1e-6, 2.0)
    assert (job.trust, job.secure) == ("distributed", True)
    shown = " ".join(run("show", "mdm.json").out.split())
    assert "privacy: (1, 1e-06)-differentially private" in shown


def test_a_private_run_as_json_has_its_guarantee_and_candidates(run, played):
    ran = run(*PRIVATE, "--components", "1:2", "--plain", "--json")
    record = json.loads(ran.out)
    assert [one["n_components"] for one in record["candidates"]] == [1, 2]
    assert record["privacy"].startswith("(1, 1e-06)-differentially private")
    assert played[0].trust == "central"


@pytest.fixture
def left(monkeypatch, fed):
    """A server that loses node-3 after the second round, and gets it back after the third."""

    def perform(_, folder):
        done = fit(LocalAggregator(COUNTS), n_components=1, n_categories=3, max_size=12, rng=0)
        news = {
            3: {"left": {"node-3": "it did not reply in time"}, "joined": []},
            4: {"left": {"node-1": "it was not there"}, "joined": ["node-3"]},
        }
        for one in done.rounds:
            if one.number in news:
                folder.tell({"round": one.number, **news[one.number]})
            folder.tell({**to_json(one), "n_clients": 4})
        gone = Absence(3, 3, "it did not reply in time")
        record = traffic_case(3, odd=0)
        nodes = (*record.nodes[:2], replace(record.nodes[2], name="node-3", absent=(gone,)))
        made = {
            **Provenance.of(done).to_json(), "traffic": to_json(replace(record, nodes=nodes)),
        }  # fmt: skip
        save(done.mdm, folder.result, provenance=made)

    monkeypatch.setattr(federated, "alive", lambda pid: 1)
    monkeypatch.setattr(federated.server_process, "perform", perform)


def test_a_node_that_leaves_is_one_line_as_it_happens_and_one_at_the_end(run, left):
    ran = run(*RUN, "--components", 1, "-o", "mdm.json")
    assert ran.code == 0, ran.err
    lines = ran.err.splitlines()
    gone = "from round 3 on without node-3 (it did not reply in time)"
    back = "from round 4 on without node-1 (it was not there), with node-3"
    assert lines.index(gone) < lines.index(back)
    last = "without node-3 in round 3: it did not reply in time"
    assert lines.index(back) < lines.index(last)
    assert last in run("show", "mdm.json").err.splitlines()


@pytest.mark.parametrize(
    ("error", "asks", "said"),
    [
        (FileError("other settings"), False, "error: other settings\n"),
        (BudgetError("no budget"), False, "error: no budget\n"),
        (BudgetError("no budget"), True, "error: no budget; what was asked is charged to {0}\n"),
        (NodesError("few"), False, "error: few; repeat the command to go on from {1}\n"),
        (NodesError("few"), True, "go on from {1}, and what was asked is charged to {0}\n"),
    ],
)
def test_nobody_is_told_to_repeat_a_command_that_fails_again_or_not_told_what_was_charged(
    run, fed, monkeypatch, error, asks, said
):
    ledger = FederationFolder(fed).ledger

    def perform(_, folder):
        folder.tell({"missing": ["node-2"]})
        if asks:
            open_ledger(ledger, epsilon=1.0, delta=1e-6).charge("survey", 9.0, 39)
        raise error

    monkeypatch.setattr(federated, "alive", lambda pid: 1)
    monkeypatch.setattr(federated.server_process, "perform", perform)
    ran = run(*PRIVATE, "--components", 1, "--checkpoint", "rounds")
    assert ran.err.endswith(said.format(ledger, fed.parent / "rounds"))
    assert "waiting up to 60 s for node-2" in ran.err
    if not asks:
        ran = run(*PRIVATE, "--components", 1)
        assert ran.err.endswith("few; nothing was asked\n" if "few" in said else said)

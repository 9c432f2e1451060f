"""`polyurn federation style`: what is refused before anybody is asked, and what nodes answer."""

import os
import signal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import polyurn as pu
from cli_walk import assert_refused
from polyurn.federation.folder import FederationFolder
from polyurn.federation.jobs import JobFolder
from polyurn.model.style import Style
from polyurn.privacy.ledger import ExactRelease
from polyurn.storage.ledger_file import LedgerFile
from polyurn.storage.models import load_saved, save
from polyurn.storage.provenance import PrivacyProvenance
from polyurn.typed.json_form import to_json
from style_cases import drawn_world

STYLE = ("federation", "style", "fed", "proxy.csv")
EXACT = (*STYLE, "--no-privacy")
PRIVATE = (*STYLE, "--epsilon", 1, "--delta", 1e-6)
MIXTURE = ("federation", "run", "fed", "--components", 1, "--epsilon", 1, "--delta", 1e-6)


def points_of(n_points, seed, names=("0", "1", "2")):
    """A table of points of three labels, and features of different scales."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n_points)
    features = rng.normal(size=(n_points, 2)) * [3.0, 1.0] + labels[:, None]
    return pa.table(
        {"label": np.array(names)[labels], "width": features[:, 0], "height": features[:, 1]}
    )


@pytest.fixture
def proxy(fed, tmp_path):
    """The server's own points, beside the federation."""
    table = points_of(300, 0)
    pyarrow.csv.write_csv(table, tmp_path / "proxy.csv")
    return table


def runs(fed):
    return list(FederationFolder(fed).runs.iterdir())


# -------------------------------------------------------------------------- before anybody is asked


def test_a_server_that_is_down_is_said_with_what_to_do(run, fed, proxy):
    for options in (EXACT, PRIVATE, (*PRIVATE, "--plain"), (*PRIVATE, "--trust", "local")):
        assert_refused(run(*options), f"the server is down: polyurn federation up {fed}")
    assert runs(fed) == []


def test_whether_there_is_a_guarantee_has_to_be_said(run, fed, proxy):
    for options in ((), ("--delta", 1e-6)):
        assert_refused(run(*STYLE, *options), "expected --epsilon and --delta", "or --no-privacy")
    assert_refused(run(*STYLE, "--epsilon", 1), "expected --epsilon and --delta")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--epsilon", 1), ["--epsilon has no effect with --no-privacy"]),
        (("--category", "word"), ["proxy.csv", "'word'"]),
        (("--features", "width,depth"), ["proxy.csv", "'depth'"]),
        (("--directions", 3), ["n_directions from 1 to 2"]),
        (("--radius", 0), ["radius as a number above 0"]),
        (("--terms", "min_nodes=1"), ["a sum over one node is its answer"]),
        (("--terms", "min_fraction=1.1"), ["min_fraction", "from 0 to 1"]),
        (("--terms", "timeout=0"), ["timeout", "above 0"]),
        (("-o", "proxy.csv"), ["expected a .json file to write, got 'proxy.csv'"]),
        (("-o", "no/folder/style.json"), ["cannot write"]),
    ],
    ids=str,
)
def test_settings_that_cannot_be_meant_are_one_line(run, fed, proxy, options, words):
    assert_refused(run(*EXACT, *options), *words)
    assert runs(fed) == []


def test_a_label_that_is_no_category_of_the_federation_is_named_with_its_line(run, fed, proxy):
    rows = (fed.parent / "proxy.csv").read_text().splitlines()
    rows[4] = '"7",0.5,0.5'
    (fed.parent / "proxy.csv").write_text("\n".join(rows) + "\n")
    assert_refused(
        run(*EXACT),
        "proxy.csv: column 'label': the federation has no category of the labels of 1 of 300 rows",
        "line 5",
    )


def test_a_category_without_proxy_points_is_named(run, fed, proxy):
    kept = proxy.filter(pa.compute.not_equal(proxy["label"], "1"))
    pyarrow.csv.write_csv(kept, fed.parent / "proxy.csv")
    assert_refused(
        run(*EXACT),
        "proxy.csv: expected points of every label",
        "none of 1",
    )


def test_archives_have_names_of_their_own(run, fed, proxy, tmp_path):
    features = np.column_stack([proxy["width"], proxy["height"]])
    labels = np.array(proxy["label"], int)
    np.savez(tmp_path / "proxy.npz", features=features, labels=labels)
    ask = ("federation", "style", "fed")
    assert_refused(run(*ask, "proxy.npz", "--no-privacy"), "the server is down")
    assert_refused(
        run(*ask, "proxy.npz", "--no-privacy", "--category", "x"), "--category has no effect with"
    )
    np.savez(tmp_path / "proxy.npz", features=features, labels=labels + 1)
    assert_refused(
        run(*ask, "proxy.npz", "--no-privacy"),
        "proxy.npz",
        "3 categories, in an archive as numbers from 0",
    )
    np.savez(tmp_path / "proxy.npz", features=np.empty((0, 2, 2)), labels=np.empty(0, int))
    assert_refused(
        run(*ask, "proxy.npz", "--no-privacy"),
        "proxy.npz: expected at least one row, got an empty table",
    )


def test_features_that_were_declared_are_taken_in_their_order(run, proxy, tmp_path):
    init = ("federation", "init", "other", "--nodes", 3, "--categories", 3, "--max-size", 9)
    assert run(*init, "--features", "height, width").code == 0
    ask = ("federation", "style", "other")
    ran = run(*ask, "proxy.csv", "--no-privacy")
    assert_refused(ran, "the server is down")
    assert "name them with --features" not in ran.err
    assert_refused(
        run(*ask, "proxy.csv", "--no-privacy", "--features", "width,height"),
        "expected the features that the federation has declared, height,width, in this order, got "
        "width,height",
    )
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "proxy.npz", features=rng.normal(size=(60, 4)), labels=np.arange(60) % 3)
    assert_refused(
        run(*ask, "proxy.npz", "--no-privacy"),
        "proxy.npz: expected 2 features, as the federation has declared, got 4",
    )


def test_codes_of_texts_are_not_taken_for_numbers(run, proxy, tmp_path):
    init = ("federation", "init", "texts", "--nodes", 3, "--categories", 3, "--max-size", 9)
    assert run(*init, "--features=height,width", "--values=width=thin,thick").code == 0
    refused = run("federation", "style", "texts", "proxy.csv", "--no-privacy")
    assert_refused(refused, "features that are numbers for a style, got values for width")


# --------------------------------------------------------------------- a server of this very process


@pytest.fixture
def played(monkeypatch, fed):
    """The jobs of a server that asks clients of this process; node 2 has histograms only."""
    from polyurn.commands.federation import following as federated

    jobs = []

    def perform(_, folder):
        place = FederationFolder(fed)
        jobs.append(job := folder.read())
        records = drawn_world(40, sizes=(8, 12), n_directions=2, n_labels=3, seed=2).records
        clients = pu.LocalAggregator(records)
        guarantee = None
        if job.epsilon is None:
            style = pu.fit_style(clients, job.space, label_effect=job.label_effect)
        else:
            ledger = pu.open_ledger(place.ledger, epsilon=job.epsilon, delta=job.delta)
            clients = pu.PrivateAggregator(clients, ledger=ledger)
            style = pu.fit_style(
                clients,
                job.space,
                label_effect=job.label_effect,
                epsilon=job.epsilon,
                delta=job.delta,
            )
            guarantee = clients.guarantee()
        made = {
            "privacy": to_json(PrivacyProvenance.of(guarantee)),
            "command": job.command,
            "traffic": crossed(),
        }
        save(style, folder.result, features=job.features, provenance=made)

    monkeypatch.setattr(federated, "alive", lambda pid: 1)
    monkeypatch.setattr(federated.server_process, "perform", perform)
    return jobs


def crossed():
    nodes = [
        {"node": 1, "name": "node-1", "n_summed": 1, "excluded": None, "refused": []},
        {
            "node": 2,
            "name": "node-2",
            "n_summed": 0,
            "excluded": None,
            "refused": [["not asked", 1]],
            "absent": [{"first": 1, "last": 1, "why": "not asked"}],
        },
        {
            "node": 3, "name": "node-3", "n_summed": 0, "excluded": None, "refused": [],
            "absent": [{"first": 1, "last": 1, "why": "it was not there"}],
        },
    ]  # fmt: skip
    return {
        "secure": True, "n_nodes": 3, "clients_per_node": 40, "n_rounds": 0, "n_attempts": 0,
        "n_asks": 0, "n_timeouts": 0, "bytes_down": 0, "bytes_up": 0, "seconds": 0.0, "rounds": [],
        "nodes": nodes,
    }  # fmt: skip


def test_a_style_is_written_and_says_what_it_is_without(run, proxy, played):
    ran = run(*EXACT, "--label-effect", "--directions", 1, "-o", "style.json")
    assert ran.code == 0, ran.err
    assert "2 features, from proxy.csv; name them with --features" in ran.err
    assert "asking the nodes once" in ran.err
    assert "privacy: no guarantee: clients' exact sums were released" in ran.err
    assert "without node-2: not asked\n" in ran.err
    assert "without node-3: it was not there\n" in ran.err
    assert "wrote style.json: 40 clients" in ran.err
    saved = load_saved("style.json", Style)
    assert saved.features == ("width", "height")
    assert (saved.model.n_directions, saved.model.label_effect is None) == (1, False)
    assert saved.provenance.command.startswith("polyurn federation style fed proxy.csv")
    (job,) = played
    assert (job.secure, job.label_effect, job.epsilon) == (True, True, None)
    shown = run("show", "style.json").err
    assert "crossed: secure sums over 3 nodes" in shown
    assert "without node-2: not asked\n" in shown


def test_without_a_file_the_directions_are_shown_and_as_json_with_the_guarantee(run, proxy, played):
    assert "styles of 40 clients" in run(*EXACT).out
    record = run(*STYLE, "--epsilon", 200, "--delta", 1e-6, "--plain", "--json").json()
    assert record["privacy"].startswith("(200, 1e-06)-differentially private")
    assert record["n_directions"] == 2
    assert (played[-1].secure, played[-1].trust) == (False, "central")


@pytest.mark.parametrize(
    ("asked", "how", "kept"),
    [
        (EXACT, "", "nothing was asked"),
        (EXACT, "entered in", "nothing was kept"),
        (PRIVATE, "charged to", "nothing was kept"),
        (MIXTURE, "charged to", "nothing was kept"),
    ],
    ids=["exact", "exact and asked", "private", "private mixture"],
)
@pytest.mark.usefixtures("ctrl_c")
def test_what_is_left_after_ctrl_c_is_said(run, fed, proxy, monkeypatch, asked, how, kept):
    from polyurn.commands.federation import following as federated

    place = FederationFolder(fed)

    def nodes(_):
        if how == "charged to":
            pu.open_ledger(place.ledger, epsilon=1.0, delta=1e-6).charge("style", 9.0, 39)
        if how == "entered in":
            release = ExactRelease("style_moments", 39, "a run", "2026-01-31T12:00:00+00:00")
            LedgerFile(place.ledger).append(release)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(federated, "alive", lambda pid: 1)
    monkeypatch.setattr(federated.HttpsExchange, "nodes", nodes)
    ran = run(*asked)
    assert ran.code == 130
    (folder,) = runs(fed)
    assert JobFolder(folder).state == "failed: interrupted"
    ledger = fed / "server" / "privacy.ledger"
    charged = f", and what was asked is {how} {ledger}" if how else ""
    assert ran.err.endswith(f"interrupted; {kept}{charged}\n")

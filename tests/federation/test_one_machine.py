"""Federations of real processes over TLS: the same fit, what is left, and whatever dies on the way."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import polyurn as pu
from federation_jobs import job_of
from federations import EXACT, OPEN
from live_federations import (
    HOSTILE,
    PATIENCE,
    Run,
    command,
    distance,
    histograms,
    kill_node,
    leave,
    local_fit,
    polyurn,
    processes_of,
    rejoin,
    stages_of,
    wait_until,
)
from polyurn.client.record_tables import table_records
from polyurn.commands.federation.following import perform
from polyurn.federation.folder import FederationFolder
from polyurn.federation.keys import certify, make_authority, make_node_keys
from polyurn.federation.one_machine import federation_here, free_port, running
from polyurn.federation.processes import alive
from polyurn.model.style import Style
from polyurn.storage.files import write_secret
from polyurn.storage.models import load_saved
from polyurn.storage.table_files import read_table
from style_cases import drawn_world

ROUNDS = 3
TIMEOUT = 10.0  # seconds that a node has for a reply, where some do not


# ------------------------------------------------------------------------ a small one, from its
# ------------------------------------------------------------------------ beginning to its end

NAMES = ("one", "two", "three")


@dataclass
class Lived:
    """What was seen of a federation of four nodes that is over; the fourth has histograms only."""

    made: object
    fits: dict = field(default_factory=dict)
    local: dict = field(default_factory=dict)
    styles: dict = field(default_factory=dict)
    records: list = field(default_factory=list)
    space: object = None
    ran: dict = field(default_factory=dict)
    status: str = ""
    left: list = field(default_factory=list)
    elsewhere: list = field(default_factory=list)


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    """A whole life: init, up, join; mixtures and styles over four nodes, then a fit over one; down."""
    place = tmp_path_factory.mktemp("live")
    elsewhere = [place / name for name in ("home", "temporary", "work")]
    seen = Lived(FederationFolder(place / "fed"))
    with pytest.MonkeyPatch.context() as patch:
        for variable, folder in zip(("HOME", "TMPDIR"), elsewhere, strict=False):
            folder.mkdir()
            patch.setenv(variable, str(folder))
        elsewhere[2].mkdir()
        patch.chdir(elsewhere[2])
        joins = set_up_files(place, seen)
        assert polyurn("up", seen.made.path).returncode == 0
        with running(seen.made, joins):
            live(place, seen)
            assert polyurn("down", seen.made.path).returncode == 0
    seen.left = processes_of(seen.made.path)
    seen.elsewhere = [path for folder in elsewhere for path in folder.rglob("*")]
    ours = {"fed", "stranger", "proxy.parquet", "exact.json", "private.json"}
    seen.elsewhere += [path for path in place.iterdir() if path.name not in ours]
    seen.elsewhere = [path for path in seen.elsewhere if path not in elsewhere]
    return seen


def set_up_files(place, seen):
    """The files of the federation, its nodes' tables and the server's own points; how nodes join."""
    ran = polyurn(
        "init", seen.made.path, "--nodes", 4, "--categories", ",".join(NAMES), "--max-size", 40,
        "--clients-per-node", 20, "--address", f"localhost:{free_port()}",
        "--features", "width,height",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    for number in (1, 2, 3, 4):
        folder = seen.made.node(f"node-{number}")
        policy = folder / "policy.toml"
        text = policy.read_text().replace("secure_only = true", "secure_only = false")
        text = text.replace("fewest_clients = 20", "fewest_clients = 1 ")
        text = text.replace("most_epsilon = 4.0", "most_epsilon = 900.0")
        policy.write_text(text.replace("least_noise = 0.5", "least_noise = 0.0"))
        pyarrow.csv.write_csv(node_table(number), folder / "clients.csv")
    features, labels = proxy_points()
    seen.space = pu.style_space(features, labels, n_directions=2)
    table = {"label": np.array(NAMES)[labels], "width": features[:, 0], "height": features[:, 1]}
    pyarrow.parquet.write_table(pa.table(table), place / "proxy.parquet")
    exact, features = ["--allow-exact"], ["--features", "width,height"]
    return [((1, 2), [*exact, *features]), ((3,), [*exact, *features]), ((4,), exact)]


def live(place, seen):
    """What commands do and say. Several run at once, as nodes answer the questions of several runs."""
    made, settings = seen.made, {"max_rounds": ROUNDS, "timeout": PATIENCE, "max_size": 40}
    style = ("style", made.path, place / "proxy.parquet")
    terms = ("--terms", f"timeout={PATIENCE},settling={PATIENCE}")
    joined = (made.node("node-1") / "clients.csv", "--features", "width,height")
    commands = {
        "exact": (*style, *terms, "-o", place / "exact.json", "--no-privacy"),
        "private": (
            *style,
            *terms,
            "-o",
            place / "private.json",
            "--epsilon",
            200,
            "--delta",
            1e-6,
        ),
        "joining twice": ("join", made.node("node-1"), *joined),
        "another certificate": ("join", stranger(made, place), *joined),
    }
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    asked = {name: subprocess.Popen(command(*words), **pipes) for name, words in commands.items()}
    for name in ("secure", "plain"):
        job = job_of(made.path, secure=name == "secure", settling=PATIENCE, **settings)
        seen.fits[name] = load_saved(perform(made, job).result)
        seen.local[name] = local_fit(made, (1, 2, 3, 4), ROUNDS)
    for name, process in asked.items():
        _, seen.ran[name] = process.communicate(timeout=PATIENCE)
    for name in ("exact", "private"):
        assert asked[name].returncode == 0, seen.ran[name]
        seen.styles[name] = load_saved(place / f"{name}.json", Style)
    assert [asked[name].returncode for name in commands][2:] == [2, 2]
    seen.records = [
        table_records(
            read_table(made.node(f"node-{number}") / "clients.csv"), label="category",
            categories=NAMES, features=["width", "height"],
        )
        for number in (1, 2, 3)
    ]  # fmt: skip
    seen.status = polyurn("status", made.path, "--json").stdout
    for number in (1, 2, 3):
        leave(made, number)
    job = job_of(made.path, secure=False, min_nodes=1, settling=0.0, **settings)
    seen.fits["one"] = load_saved(perform(made, job).result)
    seen.local["one"] = local_fit(made, (4,), ROUNDS)
    leave(made, 4)


def proxy_points():
    """600 points of three labels, with features of different scales, which the server has."""
    rng = np.random.default_rng(1)
    labels = rng.integers(3, size=600)
    return rng.normal(size=(600, 2)) * [3.0, 1.0] + labels[:, None], labels


def node_table(number):
    """The records of twenty clients, in the features of the proxy points."""
    held = drawn_world(20, sizes=(20, 40), n_directions=2, n_labels=3, seed=number).records
    some = held.of(np.arange(20))
    values = some.features * [3.0, 1.0] + some.labels[:, None]
    return pa.table({
        "client": some.owner, "category": np.array(NAMES)[some.labels], "width": values[:, 0],
        "height": values[:, 1],
    })  # fmt: skip


def stranger(made, place):
    """A folder of node 2 with a key, in its federation.json too, that another authority certified."""
    folder = shutil.copytree(made.node("node-2"), place / "stranger")
    (folder / "node.pid").unlink()
    keys = make_node_keys()
    write_secret(folder / "transport.key", keys.transport)
    other = certify(make_authority("another"), "node-2", keys.transport_public)
    (folder / "node.crt").write_bytes(other)
    document = json.loads((folder / "federation.json").read_text())
    document["nodes"][1]["transport"] = keys.transport_public.decode()
    (folder / "federation.json").write_text(json.dumps(document))
    return folder


@pytest.mark.parametrize("name", ["plain", "secure"])
def test_a_fit_over_four_processes_is_the_local_fit_to_a_billionth_of_a_nat(lived, name):
    mdm, counts = lived.local[name]
    assert distance(lived.fits[name].model, mdm, counts) <= 1e-9
    crossed = lived.fits[name].provenance.traffic
    assert crossed.secure == (name == "secure")
    assert crossed.n_attempts == crossed.n_rounds == ROUNDS
    assert crossed.n_asks == ROUNDS * (5 if crossed.secure else 1)
    assert [(node.name, node.n_summed) for node in crossed.nodes] == [
        (f"node-{i}", ROUNDS) for i in (1, 2, 3, 4)
    ]


def test_a_fit_over_one_plain_process_is_the_local_fit_to_the_last_bit(lived):
    mdm, _ = lived.local["one"]
    got = lived.fits["one"].model
    np.testing.assert_array_equal(got.weights, mdm.weights)
    np.testing.assert_array_equal(got.alphas, mdm.alphas)
    np.testing.assert_array_equal(got.sizes.masses, mdm.sizes.masses)


def test_every_question_stands_in_the_log_of_its_node(lived):
    secure = ["advertise", "share", "mask", "confirm", "reveal"]
    lines = (lived.made.node("node-2") / "questions.log").read_text().splitlines()
    stages = stages_of(lived.made, 2)
    about_style = ["style" in line.split(" | ")[2] for line in lines]
    styles = [stage for stage, is_style in zip(stages, about_style, strict=True) if is_style]
    assert sorted(styles) == sorted(secure * 2)  # two runs at once
    others = [stage for stage, is_style in zip(stages, about_style, strict=True) if not is_style]
    assert others == secure * ROUNDS + ["plain"] * ROUNDS
    traffic = lived.fits["plain"].provenance.traffic
    sent = [line.split(" | ")[3] for line in lines if " | plain | " in line]
    assert sent == [f"{one.n_numbers} numbers sent" for one in traffic.rounds]


def test_the_state_of_a_federation_is_shown(lived):
    state = json.loads(lived.status)
    assert [node["status"] for node in state["nodes"]] == ["online"] * 4
    assert [run["status"] for run in state["runs"]] == ["completed"] * 4


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ("joining twice", "node-1 is running already (process "),
        ("another certificate", "does not know this node's certificate: take the files that"),
    ],
)
def test_a_mistake_is_one_clear_line(lived, mistake, said):
    assert "Traceback" not in lived.ran[mistake]
    lines = lived.ran[mistake].splitlines()
    assert [line for line in lines if line.startswith("error: ")] == lines[-1:]
    assert said in lines[-1]
    assert all(line == "getting ready to answer" for line in lines[:-1])


def test_no_process_port_or_file_outside_the_folder_is_left(lived):
    assert lived.left == []
    assert lived.elsewhere == []
    assert not list(lived.made.path.rglob("server.pid"))
    assert not list(lived.made.path.rglob("node.pid"))
    port = int(lived.made.read().address.rpartition(":")[2])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5.0)


def union(parts):
    held = [part.of(np.arange(part.n_clients)) for part in parts]
    clients = np.concatenate([1000 * i + one.owner for i, one in enumerate(held)])
    features = np.concatenate([one.features for one in held])
    labels = np.concatenate([one.labels for one in held])
    return pu.Records(features, labels, clients, n_labels=3)


def test_a_style_over_processes_is_that_of_all_their_records(lived):
    saved = lived.styles["exact"]
    expected = pu.fit_style(pu.LocalAggregator(union(lived.records)), lived.space)
    assert saved.model.space == lived.space
    assert saved.model.n_clients == expected.n_clients == 60
    for name in ("mean", "shared", "by_label", "within"):
        # A secure sum rounds each node's numbers to fixed point.
        got, wanted = getattr(saved.model, name), getattr(expected, name)
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)
    assert (saved.categories, saved.features) == (NAMES, ("width", "height"))
    assert (saved.provenance.traffic.secure, saved.provenance.traffic.n_attempts) == (True, 1)


def test_a_node_with_histograms_only_is_said_and_the_others_are_lived(lived):
    refusal = "without node-4: it has histograms only, and the question needs records"
    assert refusal in lived.ran["exact"].splitlines()
    assert [node.n_summed for node in lived.styles["exact"].provenance.traffic.nodes] == [
        1,
        1,
        1,
        0,
    ]


def test_a_private_style_over_processes_is_charged_once_and_states_it(lived):
    saved = lived.styles["private"]
    guarantee = saved.provenance.privacy.guarantee
    assert (guarantee.trust, guarantee.n_rounds) == ("distributed", 1)
    assert "(200, 1e-06)-differentially private for one client" in lived.ran["private"]
    assert len(pu.open_ledger(lived.made.ledger, epsilon=200.0, delta=1e-6).charges) == 1
    exact = lived.styles["exact"].model
    assert abs(saved.model.n_clients - exact.n_clients) <= 2
    assert np.abs(saved.model.within - exact.within).max() < 0.2


# -------------------------------------------------------------------------- whatever dies on the way


JOINED = []  # processes of nodes that have joined again


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    """Four nodes, and what a fit finds if nothing dies; each test leaves it as it was."""
    place = tmp_path_factory.mktemp("four")
    with federation_here(place / "fed", histograms(4), max_size=20, policy=OPEN) as made:
        whole = Run(made, place / "whole.json", "--plain", rounds=6).result()
        yield made, whole
    for process in JOINED:
        process.wait()


def assert_same(saved, whole):
    for name in ("weights", "alphas"):
        got, expected = getattr(saved.model, name), getattr(whole.model, name)
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=0)
    np.testing.assert_allclose(
        saved.model.sizes.masses, whole.model.sizes.masses, rtol=1e-12, atol=1e-15
    )


def fit_of(made, tmp_path, *options):
    """A fit with a checkpoint; the same command again goes on with it."""
    kept = ("--plain", "--checkpoint", tmp_path / "rounds")
    return Run(made, tmp_path / "mdm.json", *kept, *options, rounds=6)


@pytest.mark.slow
def test_a_fit_goes_on_after_it_was_killed(four, tmp_path):
    made, whole = four
    run = fit_of(made, tmp_path)
    run.wait_for_round(2)
    run.process.kill()
    assert run.end()[0] == -signal.SIGKILL
    assert json.loads(polyurn("status", made.path, "--json").stdout)["runs"][-1]["status"] == "died"
    saved = fit_of(made, tmp_path).result()
    assert_same(saved, whole)
    assert saved.provenance.traffic.n_rounds < 6


@pytest.mark.slow
def test_a_fit_goes_on_after_the_server_was_killed(four, tmp_path):
    made, whole = four
    run = fit_of(made, tmp_path)
    run.wait_for_round(2)
    os.kill(alive(made.pid), signal.SIGKILL)
    code, said = run.end()
    assert code == 2
    assert "the server has died, or does not answer: polyurn federation up" in said
    ran = polyurn("up", made.path)
    assert ran.returncode == 0, ran.stderr
    saved = fit_of(made, tmp_path).result()  # the nodes have come back by themselves
    assert_same(saved, whole)


@pytest.mark.slow
def test_a_fit_goes_on_after_a_node_was_killed_and_has_joined_again(four, tmp_path):
    made, whole = four
    wanted = ("--terms", f"min_fraction=1,timeout={TIMEOUT}")  # nobody is to be missing
    run = fit_of(made, tmp_path, *wanted)
    run.wait_for_round(2)
    kill_node(made, 3)
    code, said = run.end()
    assert code == 2
    assert "3 of 4 nodes can be asked, 4 are needed" in said
    assert "refused: node-3 (the transport says that it failed)" in said
    JOINED.append(rejoin(made, 3))
    assert_same(fit_of(made, tmp_path, *wanted).result(), whole)


@pytest.mark.slow
def test_a_node_that_misbehaves_in_every_way_costs_one_timeout_and_is_named(four, tmp_path):
    made, _ = four
    leave(made, 4)
    folder = made.node("node-4")
    hostile = subprocess.Popen([sys.executable, str(HOSTILE), str(folder)], start_new_session=True)
    try:
        wait_until(lambda: alive(folder / "node.pid") == hostile.pid)
        options = ("--plain", "--terms", "timeout=5", "--search", "tol=1e-14,patience=20")
        saved = Run(made, tmp_path / "mdm.json", *options, rounds=10).result()
    finally:
        hostile.kill()
        hostile.wait()
        JOINED.append(rejoin(made, 4))
    crossed = saved.provenance.traffic
    assert crossed.n_timeouts == 1
    bad = crossed.nodes[3]
    assert bad.excluded == "it did not reply in time"
    assert dict(bad.refused) == {
        "numbers that are not finite, or beyond 1e150": 2,
        "an answer of another length": 1,
        "a reply that cannot be read": 1,
        "a reply to an earlier message": 1,
        "a reply in another's name": 1,
    }
    for node in crossed.nodes[:3]:
        assert (node.excluded, node.refused) == (None, ())
        assert node.n_summed == crossed.n_rounds


# ---------------------------------------------------------------- nodes that die in a secure sum


@pytest.fixture
def six(tmp_path):
    with federation_here(tmp_path / "fed", histograms(6), max_size=20, policy=EXACT) as made:
        yield made


def kill_after_sharing(run, made, *numbers):
    """kill -9 of nodes that have shared their secrets; the run waits until all of them have ended."""
    wait_until(lambda: "share" in stages_of(made, numbers[0]))
    os.kill(run.process.pid, signal.SIGSTOP)
    for number in numbers:
        wait_until(lambda number=number: "share" in stages_of(made, number))
        kill_node(made, number)
    os.kill(run.process.pid, signal.SIGCONT)


@pytest.mark.slow
def test_a_third_of_the_nodes_may_be_killed_in_a_secure_sum_which_is_right_in_one_attempt(
    six, tmp_path
):
    options = ("--terms", f"timeout={TIMEOUT},min_fraction=0.6")
    run = Run(six, tmp_path / "mdm.json", *options, rounds=3)
    kill_after_sharing(run, six, 2, 5)
    saved = run.result()
    crossed = saved.provenance.traffic
    assert crossed.n_attempts == crossed.n_rounds == 3
    assert [node.node for node in crossed.nodes if node.n_summed == 3] == [1, 3, 4, 6]
    assert [node.n_summed for node in crossed.nodes if node.node in (2, 5)] == [0, 0]
    assert crossed.absences == ["without node-2, node-5: the transport says that it failed"]
    mdm, counts = local_fit(six, (1, 3, 4, 6), 3)
    assert distance(saved.model, mdm, counts) <= 1e-9


@pytest.mark.slow
def test_below_the_threshold_of_a_secure_sum_there_is_a_named_error_in_time(six, tmp_path):
    run = Run(six, tmp_path / "mdm.json", "--terms", f"timeout={TIMEOUT}", rounds=3)
    kill_after_sharing(run, six, 1, 2, 3, 4)
    killed = time.time()
    code, said = run.end()
    assert code == 2
    # A node that has sent its masked numbers before it dies is not missed in this sum.
    left, named = re.search(
        r"(\d) of 6 nodes .* 5 are needed; .*refused: ([\w, -]+) \(", said
    ).groups()
    gone = {int(name.removeprefix("node-")) for name in named.split(", ")}
    assert len(gone) == 6 - int(left)
    assert gone <= {1, 2, 3, 4}
    assert not (tmp_path / "mdm.json").exists()
    assert (run.folder / "job.jsonl").stat().st_mtime - killed <= TIMEOUT + 5.0

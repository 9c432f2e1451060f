"""`polyurn pack`, and the commands that read what it writes."""

import json
import signal
import subprocess
import sys
import time

import pytest

import polyurn as pu
from cli_walk import EXAMPLE, HEAD, assert_refused
from polyurn.storage.models import save
from polyurn.storage.shards import open_shards
from shard_cases import COUNTS, MDM

RUN = [sys.executable, "-c", "from polyurn.cli import main; main()"]


@pytest.fixture
def packed(run):
    """A folder with packed clients, their table and a model."""
    pu.write_histograms(COUNTS, "true.parquet")
    save(MDM, "mdm.json")
    ran = run("pack", "true.parquet", "-o", "packed", "--shard-clients", 300)
    assert ran.code == 0
    assert "2,000 clients with 40,000 points, 20 to 20 each\nwrote 7 shards to packed" in ran.err
    return run


def test_pack_says_what_it_added_and_left_out(run, tmp_path):
    (tmp_path / "long.csv").write_text(HEAD + "a,0,3\na,0,2\nb,1,0\nc,1,9\n")
    ran = run("pack", "long.csv", "-o", "packed", "--drop-empty", "--json")
    assert "1 row has the client and category of an earlier one; their counts were added" in ran.err
    assert "left out 1 client without points" in ran.err
    assert ran.json()["n_clients"] == 2
    provenance = open_shards(tmp_path / "packed").provenance
    assert provenance["polyurn"] == pu.__version__
    assert provenance["command"].startswith("polyurn pack long.csv")


def test_rows_with_missing_values_are_not_packed_unasked_or_unsaid(run, tmp_path):
    rows = [f"{i // 3:02},{i % 3},{i % 5 + 1}" for i in range(60)]
    gaps = [
        row for i, row in enumerate(rows) for row in ([",1,2", f"{i // 3:02},,"] * (i % 2), [row])
    ]
    dirty = "\n".join(line for some in gaps for line in some)
    (tmp_path / "clean.csv").write_text(HEAD + "\n".join(rows))
    (tmp_path / "dirty.csv").write_text(HEAD + dirty)
    refused = run("pack", "dirty.csv", "-o", "packed")
    assert_refused(refused, "'client', 30", "'category', 30", "'count'", "--drop-missing")
    ran = run("pack", "dirty.csv", "-o", "packed", "--drop-missing", "--shard-clients", 1)
    assert "left out 60 of 120 rows, with missing values" in ran.err
    run("pack", "clean.csv", "-o", "clean", "--shard-clients", 1)
    assert open_shards(tmp_path / "packed").digest == open_shards(tmp_path / "clean").digest
    log = tmp_path / "packed" / "shards.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:9]))
    again = run("pack", "dirty.csv", "-o", "packed", "--drop-missing", "--shard-clients", 1)
    assert "going on after" in again.err
    assert open_shards(tmp_path / "packed").digest == open_shards(tmp_path / "clean").digest


def test_a_fit_of_packed_clients_is_written_as_that_of_a_table(packed, tmp_path):
    assert packed("fit", "packed", "--components", 2, "-o", "m.json", "--threads", 2).code == 0
    made = json.loads((tmp_path / "m.json").read_text())["provenance"]
    assert made["data"]["file"] == "packed"
    assert (made["data"]["n_clients"], made["data"]["n_points"]) == (2_000, 40_000)
    one = (tmp_path / "m.json").read_text().replace("--threads 2", "")
    packed("fit", "packed", "--components", 2, "-o", "m.json", "--threads", 1)
    two = (tmp_path / "m.json").read_text().replace("--threads 1", "")
    assert one == two


def test_a_checkpoint_goes_on_with_packed_clients_and_refuses_others(packed):
    packed("fit", "packed", "--components", 2, "--rounds", 4, "--checkpoint", "kept", "-q")
    ran = packed("fit", "packed", "--components", 2, "--rounds", 30, "--checkpoint", "kept")
    assert "going on after 4 rounds from kept" in ran.err
    packed("pack", "true.parquet", "-o", "other", "--shard-clients", 200, "-q")
    ran = packed("fit", "other", "--components", 2, "--checkpoint", "kept")
    assert_refused(ran, "that differs in settings")


def test_packed_clients_are_selected_and_scored_like_a_table(packed):
    ran = packed("fit", "packed", "--components", "1:2", "--json", "-q")
    assert ran.json()["n_held_out"] > 300
    of_table, of_folder = (
        packed("score", where, "mdm.json", "--json").json() for where in ("true.parquet", "packed")
    )
    drifts = [found.pop("drift")["means"] for found in (of_table, of_folder)]
    assert of_folder == pytest.approx(of_table)
    assert drifts[0] == pytest.approx(drifts[1])


def test_compare_draws_some_of_packed_clients_and_says_so(packed, monkeypatch):
    monkeypatch.setattr("polyurn.sources.clients._COMPARED", 400)
    ran = packed("compare", "packed", "mdm=mdm.json", "true=true.parquet", "--folds", 0)
    assert ran.code == 0
    assert "packed: 400 clients of 2,000, drawn at random, stand for all" in ran.err
    ran = packed("compare", "packed", "mdm=mdm.json", "--fitted", "packed", "--folds", 0)
    assert_refused(ran, "--fitted needs the ids of clients, which packed does not keep")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            ["fit", "packed", "--components", 2, "--client", "c"],
            "--client has no effect with packed",
        ),
        (["fit", "packed", "--components", 2, "--drop-empty"], "--drop-empty has no effect with"),
        (["fit", "packed", "--components", 2, "--categories", 4], "the 4 declared categories"),
        (["fit", "true.parquet", "--components", 2, "--scheduler", "tcp://x:1"], "pack it with"),
        (["fit", "packed", "--components", 2, "--scheduler", "nowhere"], "where none answers"),
        (["score", "packed", "other.json"], "the 2 declared categories"),
        (["report", "mdm.json", "true=packed", "-o", "r.html"], "packed holds packed clients"),
        (["pack", "nowhere.csv", "-o", "p"], "cannot read nowhere.csv"),
        (["pack", "true.parquet", "-o", "packed"], "holds packed clients already"),
        (["pack", "true.parquet", "-o", "p", "--seed", 3], "--seed has no effect without --cap"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_what_has_no_effect_or_does_not_fit_is_refused(packed, command, words):
    save(EXAMPLE, "other.json")
    assert_refused(packed(*command), words)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_in_pack_keeps_the_shards_and_the_command_goes_on(run, tmp_path):
    pu.write_histograms(MDM.sample(60_000, rng=0), "many.parquet")
    pack = ["pack", "many.parquet", "--categories", "10", "-o", "packed", "--shard-clients", "60"]
    process = subprocess.Popen([*RUN, *pack], stderr=subprocess.PIPE, text=True)
    log = tmp_path / "packed" / "shards.jsonl"
    while process.poll() is None and not (log.exists() and log.read_text().count("step") > 2):
        time.sleep(0.01)  # until there is something to keep
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    assert process.returncode == 130
    assert "interrupted; what was finished is in packed: repeat the command to go on" in said
    assert "Traceback" not in said
    ran = run(*pack)
    assert "going on after" in ran.err
    assert "60,000 clients" in ran.err


def test_ctrl_c_in_a_fit_of_packed_clients_keeps_the_rounds(packed, monkeypatch):
    from polyurn.storage import shards

    fit = ["fit", "packed", "--components", 2, "--rounds", 5, "--threads", 2, "--json"]
    whole = packed(*fit, "-q").json()
    mapped = []

    def interrupted(*arguments, **named):
        mapped.append(1)
        if len(mapped) == 25:  # seven shards: in the fourth round
            raise KeyboardInterrupt
        return map_shard(*arguments, **named)

    map_shard = shards.map_shard
    monkeypatch.setattr(shards, "map_shard", interrupted)
    ran = packed(*fit, "--checkpoint", "kept")
    assert ran.code == 130
    assert "interrupted after round 3; repeat the command to go on from kept" in ran.err
    again = packed(*fit, "--checkpoint", "kept")
    assert "going on after 3 rounds from kept" in again.err
    assert again.json() == whole

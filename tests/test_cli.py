import csv
import io
import json
import os
import signal
import subprocess
import sys

import pyarrow.csv
import pyarrow.parquet
import pytest

import polyurn
from cli_walk import CLIENTS, COUNTS, EXAMPLE, HEAD, fit
from polyurn import load
from polyurn.cli import app
from polyurn.storage.mdm_json import load_saved, save

COMMANDS = [
    "compare", "datasets", "demo", "fit", "histogram", "partition", "report", "sample", "score",
    "select", "show", "sweep",
]  # fmt: skip
# Python ignores SIGINT where its parent does (a job in the background); Ctrl-C must count here.
POLYURN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from polyurn.cli import main
main()
"""


# ------------------------------------------------------------------------------- the walk


def test_fit_show_sample_score_walk_from_a_table_to_a_score(run, tmp_path):
    assert run(*fit("-o", "mdm.json")).code == 0
    shown = run("show", "mdm.json")
    assert "2 components, 3 categories" in shown.out
    sampled = run("sample", "mdm.json", "--clients", 7, "-o", "simulated.csv")
    assert "7 clients" in sampled.err
    scored = run("score", "mdm.json", "simulated.csv")
    assert scored.out.splitlines()[0].split() == ["n_clients", "7"]
    assert [shown.code, sampled.code, scored.code] == [0, 0, 0]
    assert shown.err == scored.err == sampled.out == ""
    assert sorted(os.listdir(tmp_path)) == ["clients.csv", "mdm.json", "simulated.csv"]


def test_json_is_all_there_is_on_stdout(run):
    fitted = run(*fit("-o", "mdm.json", "--json")).json()
    assert run("show", "mdm.json", "--json").json()["weights"] == fitted["weights"]
    assert len(fitted["log_likelihoods"]) == 1
    sampled = run("sample", "mdm.json", "--clients", 4, "--json").json()
    assert [len(row) for row in sampled["counts"]] == [3] * 4
    scored = run("score", "mdm.json", "clients.csv", "--json").json()
    assert scored["n_clients"] == 6
    assert scored["log_likelihood"] == pytest.approx(load("mdm.json").logpmf(COUNTS).mean())


def test_what_a_single_client_leaves_open_is_null_in_json(run, tmp_path):
    save(EXAMPLE, "mdm.json")
    (tmp_path / "one.csv").write_text(HEAD + "a,0,9\n")
    scored = run("score", "mdm.json", "one.csv", "--json").json()
    assert scored["log_likelihood"] < 0
    assert scored["log_likelihood_standard_error"] is None


def test_the_score_of_an_impossible_client_is_null_in_json(run, tmp_path):
    save(EXAMPLE, "mdm.json")
    (tmp_path / "held-out.csv").write_text(HEAD + "a,0,3\nb,1,9\n")  # every client holds 9
    scored = run("score", "mdm.json", "held-out.csv", "--json").json()
    assert scored["n_clients"] == 2
    assert scored["log_likelihood"] is None


def test_tables_in_every_format_and_layout_give_the_same_fit(run, tmp_path):
    rows = list(csv.DictReader(io.StringIO(CLIENTS)))
    points = [f"{r['client']},{r['category']}" for r in rows for _ in range(int(r["count"]))]
    (tmp_path / "raw.csv").write_text("\n".join(["client,category", *points]))
    (tmp_path / "named.tsv").write_text(
        CLIENTS.replace(",", "\t").replace("client\tcategory\tcount", "who\twhat\ttimes")
    )
    table = pyarrow.csv.read_csv(tmp_path / "clients.csv")
    pyarrow.parquet.write_table(table, tmp_path / "clients.parquet")
    expected = run(*fit("--json")).out
    named = ("--client", "who", "--category", "what", "--count", "times")
    for arguments in [
        fit(table="raw.csv"),
        fit(table="clients.parquet"),
        fit(*named, table="named.tsv"),
        fit("--categories", 3),
        fit("--categories", "0,1, 2"),
        fit("--max-size", 10),
    ]:
        assert run(*arguments, "--json").out == expected


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_same_seed_gives_the_same_files_and_another_seed_others(run, tmp_path, suffix):
    simulated = tmp_path / f"simulated{suffix}"
    seen = []
    for seed in (1, 1, 2):
        run(*fit("--seed", seed, "-o", "mdm.json"))
        run("sample", "mdm.json", "--clients", 20, "--seed", seed, "-o", simulated)
        seen.append(((tmp_path / "mdm.json").read_bytes(), simulated.read_bytes()))
    assert seen[0] == seen[1]
    assert seen[0][0] != seen[2][0]
    assert seen[0][1] != seen[2][1]


def test_files_record_version_seed_and_command(run, tmp_path):
    run(*fit("--seed", 5, "-o", "my mdm.json"))
    command = "polyurn fit clients.csv --components 2 --rounds 3 --seed 5 -o 'my mdm.json'"
    expected = {"polyurn": polyurn.__version__, "seed": 5, "command": command}
    made = load_saved("my mdm.json").made
    assert {name: made[name] for name in expected} == expected
    assert made["data"] == {
        "file": "clients.csv", "n_clients": 6, "n_categories": 3, "n_points": sum(map(sum, COUNTS))
    }  # fmt: skip
    run("sample", "my mdm.json", "--clients", 3, "--seed", 6, "-o", "s.parquet")
    made = json.loads(pyarrow.parquet.read_schema("s.parquet").metadata[b"polyurn"])
    command = "polyurn sample 'my mdm.json' --clients 3 --seed 6 -o s.parquet"
    assert made == {"polyurn": polyurn.__version__, "seed": 6, "command": command}


def test_a_file_keeps_the_rounds_of_its_fit_and_the_table_of_its_selection(run):
    told = run(*fit("-o", "mdm.json", "--json")).json()
    kept = load_saved("mdm.json").made["fit"]
    assert {name: told[name] for name in kept} == kept
    assert all(len(path["values"]) >= 1 for path in kept["paths"])
    run(
        "select",
        "clients.csv",
        "--components",
        "1,2",
        "--rounds",
        4,
        "--held-out",
        0.5,
        "-o",
        "s.json",
    )
    kept = load_saved("s.json").made["selection"]
    assert [c["n_components"] for c in kept["candidates"]] == [1, 2]
    assert kept["n_numbers"] == max(kept["n_numbers_by_round"])
    last = kept["n_rounds"]
    assert all(p["first_round"] + len(p["values"]) - 1 <= last for p in kept["paths"])


def test_empty_clients_are_left_out_on_request_and_counted(run, tmp_path):
    (tmp_path / "holes.csv").write_text(CLIENTS + "g,0,0\nh,1,0\n")
    ran = run(*fit("--drop-empty", "--json", table="holes.csv"))
    assert "left out 2 clients without points" in ran.err
    assert ran.out == run(*fit("--json")).out


def test_category_names_with_commas_and_quotes_are_printed_as_csv(run, tmp_path):
    save(EXAMPLE, "mdm.json", categories=["[0, 5)", 'say "x"'])
    printed = run("sample", "mdm.json", "--clients", 20).out
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert {row["category"] for row in rows} == {"[0, 5)", 'say "x"'}
    assert sum(int(row["count"]) for row in rows) == 20 * 9
    run("sample", "mdm.json", "--clients", 20, "-o", "simulated.csv")
    assert (tmp_path / "simulated.csv").read_text() == printed


@pytest.mark.parametrize("name", ["[0, 5)", "[red]", "[/b]", ":cat:"])
def test_category_names_that_look_like_markup_are_shown_as_they_are(run, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "200")
    save(EXAMPLE, "mdm.json", categories=[name, "other"])
    assert f"{name} " in run("show", "mdm.json").out


def test_the_place_of_a_file_is_told_as_it_is(run):
    assert "wrote a[red]:cat:.json" in run(*fit("-o", "a[red]:cat:.json")).err


# ---------------------------------------------------------------------- help and processes


def test_the_commands_are_the_documented_ones():
    assert sorted(command.name for command in app.registered_commands) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_an_example(run, command):
    ran = run(command, "--help")
    assert ran.code == 0
    assert "Example" in ran.out
    assert f"polyurn {command}" in ran.out


def test_the_version_is_the_packages(run):
    assert run("--version").out == f"polyurn {polyurn.__version__}\n"


def test_ctrl_c_keeps_every_round_that_was_shown(run, tmp_path):
    arguments = map(str, fit("--method", "paper", "--rounds", 20_000, "-o", "mdm.json"))
    process = subprocess.Popen(
        [sys.executable, "-c", POLYURN, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    for line in process.stderr:  # by then the kernels are compiled; 19,000 rounds are to come
        if line.startswith("round 1000,"):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert out == ""
    saved = load_saved(tmp_path / "mdm.json")
    assert saved.mdm.n_components == 2
    last = saved.made["interrupted_after_round"]
    assert last >= 1000
    assert f"interrupted; the parameters after round {last} are in mdm.json" in err

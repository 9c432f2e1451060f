"""The command line as a whole: the walk, help, mistakes."""

import json
import os
import re

import pyarrow.csv
import pyarrow.parquet
import pytest
import typer

import polyurn
from cli_walk import COUNTS, assert_refused, fit
from polyurn import load
from polyurn.commands.app import app
from polyurn.storage.models import load_saved

COMMANDS = [
    "compare", "compare-to-zoo", "demo", "describe", "features", "fit", "histogram", "pack",
    "partition",
    "report", "sample", "score",
    "show", "split", "style", "sweep",
]  # fmt: skip


# ------------------------------------------------------------------------------- the walk


def test_fit_show_sample_score_walk_from_a_table_to_a_score(run, tmp_path):
    assert run(*fit("-o", "mdm.json")).code == 0
    shown = run("show", "mdm.json")
    assert "2 components, 3 categories" in shown.out
    sampled = run("sample", "mdm.json", "--clients", 7, "-o", "simulated.csv")
    assert "7 clients" in sampled.err
    scored = run("score", "simulated.csv", "mdm.json")
    assert scored.out.splitlines()[0].split() == ["n_clients", "7"]
    assert [shown.code, sampled.code, scored.code] == [0, 0, 0]
    assert shown.err == scored.err == sampled.out == ""
    assert sorted(os.listdir(tmp_path)) == ["clients.csv", "mdm.json", "simulated.csv"]


def test_json_is_all_there_is_on_stdout(run):
    fitted = run(*fit("-o", "mdm.json", "--json")).json()
    assert run("show", "mdm.json", "--json").json()["weights"] == fitted["weights"]
    assert fitted["rounds"][-1]["log_likelihood"] < 0
    sampled = run("sample", "mdm.json", "--clients", 4, "--json").json()
    assert [len(row) for row in sampled["counts"]] == [3] * 4
    scored = run("score", "clients.csv", "mdm.json", "--json").json()
    assert scored["n_clients"] == 6
    assert scored["log_likelihood"] == pytest.approx(load("mdm.json").logpmf(COUNTS).mean())


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
    made = load_saved("my mdm.json").provenance
    kept = made.to_json()
    assert {name: kept[name] for name in expected} == expected
    assert kept["data"] == {
        "file": "clients.csv", "n_clients": 6, "n_categories": 3, "n_points": sum(map(sum, COUNTS)),
        "client": "client", "category": "category", "count": "count", "held_out": None,
    }  # fmt: skip
    run("sample", "my mdm.json", "--clients", 3, "--seed", 6, "-o", "s.parquet")
    made = json.loads(pyarrow.parquet.read_schema("s.parquet").metadata[b"polyurn"])
    command = "polyurn sample 'my mdm.json' --clients 3 --seed 6 -o s.parquet"
    assert made == {"polyurn": polyurn.__version__, "seed": 6, "command": command}


# ---------------------------------------------------------------------- help and processes


def test_the_commands_are_the_documented_ones():
    assert sorted(c.name for c in app.registered_commands if not c.hidden) == COMMANDS


@pytest.mark.parametrize("command", [*COMMANDS, "privacy plan"])
def test_the_help_of_every_command_has_an_example(run, command):
    ran = run(*command.split(), "--help")
    assert ran.code == 0
    assert "Example" in ran.out
    assert f"polyurn {command}" in ran.out


def test_the_version_is_the_packages(run):
    assert run("--version").out == f"polyurn {polyurn.__version__}\n"


@pytest.mark.parametrize("arguments", [["fit"], ["sample", "mdm.json"], ["nonsense"]], ids=str)
def test_a_usage_mistake_is_exit_code_2_without_a_traceback(run, arguments):
    ran = run(*arguments)
    assert ran.code == 2
    assert "Traceback" not in ran.err


def test_quiet_leaves_the_result_and_the_errors(run):
    ran = run(*fit("--quiet", "--json"))
    assert ran.err == ""
    assert ran.json()["n_components"] == 2
    assert_refused(run("show", "missing.json", "-q"), "cannot read missing.json")
    assert run(*fit()).err != ""


@pytest.mark.parametrize(
    ("arguments", "hints"),
    [
        (["fitt"], ["'fit'", "try polyurn --help"]),
        (["fit", "clients.csv", "--component", 2], ["--components", "try polyurn fit --help"]),
        (["reprot", "x"], ["'report'"]),
        (["fit"], ["TABLE", "try polyurn fit --help"]),
        (["fit", "clients.csv", "--components", "two"], ["--components"]),
    ],
    ids=str,
)
def test_a_mistake_is_one_line_with_the_nearest_that_exists(run, arguments, hints):
    assert_refused(run(*arguments), *hints)


def test_the_help_is_a_table_of_contents_in_the_order_of_the_flow(run):
    names = [c.name for c in app.registered_commands if not c.hidden]
    assert names == [
        "demo", "describe", "features", "histogram", "split", "pack", "fit", "show", "score",
        "style", "sample",
        "partition", "compare", "compare-to-zoo", "sweep", "report",
    ]  # fmt: skip
    for arguments in (["--help"], []):
        ran = run(*arguments)
        assert ran.code == 0
        places = [re.search(rf"│ {name} ", ran.out).start() for name in names]
        assert places == sorted(places)
    assert "--install-completion" in ran.out


def test_there_are_at_most_343_options_and_arguments():
    """How they are counted: options and arguments of every command, once for each that has it.

    An option with a negative or a short form (--replace, --no-replace; -o) is one. --help and --quiet,
    which all commands have, and the options of `polyurn` itself do not count; values that one option
    takes as NAME=VALUE (--search, --priors, --terms) are part of that option.
    """

    def n_options(command):
        if hasattr(command, "commands"):
            return sum(map(n_options, command.commands.values()))
        return len({parameter.name for parameter in command.params} - {"help", "quiet"})

    assert n_options(typer.main.get_command(app)) <= 343


def test_a_suggestion_is_not_made_twice(run):
    ran = run("fitt")
    assert ran.code == 2
    assert ran.err.count("Did you mean 'fit'?") == 1

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass

import pyarrow.parquet
import pytest

import polyurn
from polyurn import MDM, Sizes, load
from polyurn.cli import app, main
from polyurn.files import load_saved, save, write_histograms

COMMANDS = ["demo", "fit", "sample", "score", "show"]
HEAD = "client,category,count\n"
CLIENTS = HEAD + (
    "a,0,5\na,1,2\nb,0,1\nb,2,4\nc,1,3\nc,2,1\nd,2,2\nd,0,1\ne,0,9\ne,1,1\nf,1,2\nf,2,2\n"
)
COUNTS = [[5, 2, 0], [1, 0, 4], [0, 3, 1], [1, 0, 2], [9, 1, 0], [0, 2, 2]]  # the same
# Python ignores SIGINT where its parent does (a job in the background); Ctrl-C must count here.
POLYURN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from polyurn.cli import main
main()
"""


EXAMPLE = MDM([0.5, 0.5], [[1.0, 2.0], [3.0, 1.0]], Sizes.constant(9, n_components=2))


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    def json(self):
        """What is on stdout, which must be strict JSON and nothing else."""
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """A function that runs the command in an empty folder, where clients.csv lies."""
    (tmp_path / "clients.csv").write_text(CLIENTS)
    monkeypatch.chdir(tmp_path)

    def in_process(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        return Ran(stopped.value.code or 0, *capsys.readouterr())

    return in_process


def fit(*arguments, table="clients.csv"):
    return ("fit", table, "--components", 2, "--rounds", 3, *arguments)


def start(*arguments, **options):
    """The command as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", POLYURN, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def assert_refused(ran, *words):
    """Exit code 2, one line that begins with "error: " and ends the talk, nothing on stdout."""
    lines = ran.err.splitlines()
    assert ran.code == 2
    assert ran.out == ""
    assert [line for line in lines if line.startswith("error: ")] == lines[-1:]
    assert "Traceback" not in ran.err
    for word in words:
        assert word in lines[-1]


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
    assert len(fitted["log_likelihoods"]) == 3
    sampled = run("sample", "mdm.json", "--clients", 4, "--json").json()
    assert [len(row) for row in sampled["counts"]] == [3] * 4
    scored = run("score", "mdm.json", "clients.csv", "--json").json()
    assert scored["n_clients"] == 6
    assert scored["log_likelihood"] == pytest.approx(load("mdm.json").logpmf(COUNTS).mean())
    assert run("demo", "--clients", 60, "--rounds", 1, "--json").json()["n_clients"] == 60


def test_json_of_a_single_client_is_json_too(run, tmp_path):
    run(*fit("-o", "mdm.json"))
    (tmp_path / "one.csv").write_text(HEAD + "a,0,3\n")
    assert run("score", "mdm.json", "one.csv", "--json").json()["n_clients"] == 1


def test_json_of_an_impossible_client_is_json_too(run, tmp_path):
    save(EXAMPLE, "mdm.json", categories=["0", "1"])
    (tmp_path / "held-out.csv").write_text(HEAD + "a,0,3\nb,1,9\n")  # every client holds 9
    ran = run("score", "mdm.json", "held-out.csv", "--json")
    assert ran.code == 2 or ran.json()["n_clients"] == 2


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
    assert load_saved("my mdm.json").made == expected
    run("sample", "my mdm.json", "--clients", 3, "--seed", 6, "-o", "s.parquet")
    made = json.loads(pyarrow.parquet.read_schema("s.parquet").metadata[b"polyurn"])
    command = "polyurn sample 'my mdm.json' --clients 3 --seed 6 -o s.parquet"
    assert made == {"polyurn": polyurn.__version__, "seed": 6, "command": command}


def test_empty_clients_are_left_out_on_request_and_counted(run, tmp_path):
    (tmp_path / "holes.csv").write_text(CLIENTS + "g,0,0\nh,1,0\n")
    ran = run(*fit("--drop-empty", "--json", table="holes.csv"))
    assert "left out 2 clients without points" in ran.err
    assert ran.out == run(*fit("--json")).out


def test_category_names_with_commas_and_quotes_are_printed_as_csv(run):
    save(EXAMPLE, "mdm.json", categories=["[0, 5)", 'say "x"'])
    rows = list(csv.DictReader(io.StringIO(run("sample", "mdm.json", "--clients", 20).out)))
    assert {row["category"] for row in rows} == {"[0, 5)", 'say "x"'}
    assert sum(int(row["count"]) for row in rows) == 20 * 9


@pytest.mark.parametrize("name", ["[0, 5)", "[red]", "[/b]", ":cat:"])
def test_category_names_that_look_like_markup_are_shown_as_they_are(run, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "200")
    save(EXAMPLE, "mdm.json", categories=[name, "other"])
    assert f"{name} " in run("show", "mdm.json").out


def test_the_place_of_a_file_is_told_as_it_is(run):
    assert "wrote a[red]b.json" in run(*fit("-o", "a[red]b.json")).err


# ---------------------------------------------------------------------------- what is refused


BAD_TABLES = {
    "negative": (HEAD + "a,0,5\nb,1,-2\n", ["at least 0", "-2", "row 1"]),
    "fractional": (HEAD + "a,0,5\nb,1,2.5\n", ["whole numbers", "2.5", "row 1"]),
    "nan": (HEAD + "a,0,5\nb,1,nan\n", ["'count'", "missing", "row 1", "drop or fill"]),
    "missing": (HEAD + "a,0,5\nb,1,\n", ["'count'", "missing", "row 1", "drop or fill"]),
    "infinite": (HEAD + "a,0,5\nb,1,inf\n", ["whole numbers", "row 1"]),
    "overflow": (HEAD + "a,0,5\nb,1,4294967296\n", ["4294967296", "largest supported"]),
    "huge": (HEAD + "a,0,5\nb,1,99999999999999999999999\n", ["largest supported"]),
    "sum overflow": (HEAD + "a,0,2147483647\na,0,1\nb,1,1\n", ["2147483648", "largest supported"]),
    "text": (HEAD + "a,0,many\nb,1,few\n", ["column of numbers", "string"]),
    "no category": (HEAD + "a,,5\nb,1,2\n", ["'category'", "missing", "row 0"]),
    "no rows": (HEAD, ["empty"]),
    "no bytes": ("", ["empty", "header"]),
    "no points": (HEAD + "a,0,5\nb,1,0\nc,1,1\n", ["1 of 3 clients", "--drop-empty"]),
    "one category": (HEAD + "a,0,5\nb,0,2\n", ["at least two categories, got 1"]),
    "one name": (HEAD + "a,x,5\nb,x,2\n", ["at least two categories, got 1"]),
    "no client column": ("who,category,count\na,0,1\n", ["'client'", "who, category, count"]),
    "twice": ("client,category,count,count\na,0,1,1\nb,1,2,2\n", ["count"]),
    "ragged": (HEAD + "a,0,5\nb,1,2,9\n", ["table.csv", "3 columns"]),
}  # fmt: skip


def assert_leaves_no_trace(folder, run, arguments, *words):
    """Refused, without an output file when there was none and with the earlier one otherwise."""
    before = sorted(os.listdir(folder))
    assert_refused(run(*arguments, "-o", "out.json"), *words)
    assert sorted(os.listdir(folder)) == before
    (folder / "out.json").write_text("earlier")
    assert_refused(run(*arguments, "-o", "out.json"), *words)
    assert (folder / "out.json").read_text() == "earlier"
    assert sorted(os.listdir(folder)) == sorted([*before, "out.json"])


@pytest.mark.parametrize(("content", "words"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_a_bad_table_is_one_line_and_no_file(run, tmp_path, content, words):
    (tmp_path / "table.csv").write_text(content)
    assert_leaves_no_trace(tmp_path, run, fit(table="table.csv"), *words)


@pytest.mark.parametrize("categories", [[], ["--categories", 2], ["--categories", "x,y"]], ids=str)
def test_a_table_without_rows_is_empty_whatever_is_declared(run, tmp_path, categories):
    (tmp_path / "table.csv").write_text(HEAD)
    assert_refused(run(*fit(*categories, table="table.csv")), "empty table")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--components", 0], ["n_components of at least 1, got 0"]),
        (["--components", -1], ["n_components of at least 1, got -1"]),
        (["--components", 7], ["7 components", "cohort of 6"]),
        (["--components", 6], ["components received no client", "use fewer components"]),
        (["--components", 10**14], ["components", "cohort of 6"]),
        (["--cohort", 7], ["cohort of 1 to 6 clients, got 7"]),
        (["--cohort", 0], ["cohort of 1 to 6 clients, got 0"]),
        (["--rounds", -1], ["n_rounds", "at least 0"]),
        (["--max-size", 9], ["holds 10 points but max_size is 9", "raise max_size"]),
        (["--max-size", 0], ["at least 1, got 0"]),
        (["--max-size", 10**20], ["max_size"]),
        (["--size-prior", -1], ["prior"]),
        (["--size-prior", "nan"], ["prior"]),
        (["--category-prior", "inf"], ["prior"]),
        (["--threads", 0], ["n_threads of at least 1, got 0"]),
        (["--seed", -1], ["seed", "-1"]),
        (["--categories", 2], ["not in the declared categories", "position"]),
        (["--categories", "0,0"], ["names that differ"]),
        (["--client", "who"], ["expected a column 'who', got client, category, count"]),
        (["--category", "what"], ["expected a column 'what', got client, category, count"]),
        (["--count", "times"], ["expected a column 'times', got client, category, count"]),
    ],
    ids=lambda value: " ".join(map(str, value)) if "--" in str(value[0]) else "",
)
def test_a_bad_setting_of_a_fit_is_one_line_and_no_file(run, tmp_path, options, words):
    assert_leaves_no_trace(tmp_path, run, fit(*options), *words)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.csv", ["cannot read missing.csv", "No such file"]),
        ("folder.csv", ["cannot read folder.csv", "is a directory"]),
        ("clients.txt", [".parquet, .csv or .tsv", "clients.txt"]),
        ("parquet.csv", ["parquet.csv is not a readable csv"]),
        ("csv.parquet", ["csv.parquet is not a readable parquet"]),
        ("cut.parquet", ["cut.parquet is not a readable parquet"]),
    ],
)
def test_a_table_that_cannot_be_read_is_one_line_and_no_file(run, tmp_path, name, words):
    (tmp_path / "folder.csv").mkdir()
    shutil.copy("clients.csv", "csv.parquet")
    write_histograms(EXAMPLE.sample(50, rng=0), "whole.parquet")
    shutil.copy("whole.parquet", "parquet.csv")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "whole.parquet").read_bytes()[:-9])
    assert_leaves_no_trace(tmp_path, run, fit(table=name), *words)


@pytest.mark.parametrize(
    "command",
    [("show",), ("score",), ("sample", "--clients", 3, "-o", "out.csv")],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.json", ["cannot read missing.json", "No such file"]),
        ("folder", ["cannot read folder", "directory"]),
        ("cut.json", ["cut.json is not an MDM file, or was cut off"]),
        ("future.json", ["version 99", "upgrade polyurn"]),
        ("clients.csv", ["clients.csv is not an MDM file"]),
        ("damaged.json", ["damaged.json is damaged"]),
    ],
)
def test_an_mdm_that_cannot_be_read_is_one_line_and_no_file(run, tmp_path, command, name, words):
    (tmp_path / "folder").mkdir()
    save(EXAMPLE, "whole.json")
    whole = (tmp_path / "whole.json").read_text()
    (tmp_path / "cut.json").write_text(whole[: len(whole) // 2])
    (tmp_path / "future.json").write_text(whole.replace('"version": 1', '"version": 99'))
    (tmp_path / "damaged.json").write_text(whole.replace('"weight": 0.5', '"weight": 0.6'))
    first, *rest = command
    table = ["clients.csv"] if first == "score" else []
    assert_refused(run(first, name, *table, *rest), *words)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--clients", 0, "-o", "out.csv"], ["at least one client, got 0"]),
        (["--clients", 3, "-o", "out.txt"], [".parquet, .csv or .tsv", "out.txt"]),
        (["--clients", 3, "-o", "nowhere/out.csv"], ["cannot write nowhere/out.csv", "No such"]),
        (["--clients", 3, "-o", "out.csv", "--seed", -1], ["seed", "-1"]),
    ],
    ids=str,
)
def test_a_bad_setting_of_sample_is_one_line_and_no_file(run, tmp_path, options, words):
    save(EXAMPLE, "mdm.json")
    before = sorted(os.listdir(tmp_path))
    assert_refused(run("sample", "mdm.json", *options), *words)
    assert sorted(os.listdir(tmp_path)) == before


def test_a_client_larger_than_the_mdm_knows_is_one_line(run, tmp_path):
    save(EXAMPLE, "mdm.json", categories=["0", "1"])
    (tmp_path / "large.csv").write_text(HEAD + "a,0,10\n")
    assert_refused(run("score", "mdm.json", "large.csv"), "holds 10 points", "max_size is 9")


def test_a_fit_that_cannot_be_written_is_refused_before_it_is_run(run):
    ran = run(*fit("-o", "nowhere/mdm.json"))
    assert_refused(ran, "cannot write nowhere/mdm.json", "No such file or directory")
    assert "round" not in ran.err


@pytest.mark.parametrize("arguments", [["fit"], ["sample", "mdm.json"], ["nonsense"]], ids=str)
def test_a_usage_mistake_is_exit_code_2_without_a_traceback(run, arguments):
    ran = run(*arguments)
    assert ran.code == 2
    assert "Traceback" not in ran.err


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


def test_the_installed_command_reports_errors_as_the_library_call_does(run, tmp_path):
    process = start(*fit("--components", 0), cwd=tmp_path)
    out, err = process.communicate(timeout=60)
    assert_refused(Ran(process.returncode, out, err), "n_components of at least 1, got 0")
    assert err == run(*fit("--components", 0)).err


def test_ctrl_c_keeps_every_round_that_was_shown(run, tmp_path):
    process = start(*fit("--rounds", 20_000, "-o", "mdm.json"), cwd=tmp_path)
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

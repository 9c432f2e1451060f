"""`polyurn fit`: from a table to an MDM file, with one number of components or several."""

import csv
import io
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

from cli_walk import CLIENTS, EXAMPLE, HEAD, assert_leaves_no_trace, assert_refused, fit
from polyurn import MDM, Sizes
from polyurn.aggregate.local import LocalAggregator
from polyurn.model.paper_truths import truth
from polyurn.storage.ledger_file import LedgerFile
from polyurn.storage.models import load_saved
from polyurn.storage.table_files import write_histograms
from polyurn.typed.json_form import to_json


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


def test_a_file_keeps_the_rounds_of_its_fit(run):
    told = run(*fit("-o", "mdm.json", "--json")).json()
    kept = load_saved("mdm.json").provenance.fit
    assert told["rounds"] == to_json(kept)["rounds"]
    assert kept.rounds[-1].starts


def test_empty_clients_are_left_out_on_request_and_counted(run, tmp_path):
    (tmp_path / "holes.csv").write_text(CLIENTS + "g,0,0\nh,1,0\n")
    ran = run(*fit("--drop-empty", "--json", table="holes.csv"))
    assert "left out 2 clients without points" in ran.err
    assert ran.out == run(*fit("--json")).out


def test_the_place_of_a_file_is_told_as_it_is(run):
    assert "wrote a[red]:cat:.json" in run(*fit("-o", "a[red]:cat:.json")).err


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_keeps_every_round_that_was_shown(run, tmp_path):
    arguments = map(str, fit("--method", "paper", "--rounds", 20_000, "-o", "mdm.json"))
    process = subprocess.Popen(
        [sys.executable, "-m", "polyurn.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    for line in process.stderr:  # by then the kernels are compiled; 19,000 rounds are to come
        if " log-likelihood " in line:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert out == ""
    saved = load_saved(tmp_path / "mdm.json")
    assert saved.model.n_components == 2
    last = saved.provenance.interrupted_after_round
    assert last >= int(line.split()[1].strip(","))
    assert f"interrupted; the parameters after round {last} are in mdm.json" in err


def test_ctrl_c_in_a_private_fit_keeps_its_last_round(run, monkeypatch):
    asked = ("fit", "clients.csv", "--components", 2, "--categories", 3, "--max-size", 12)
    _interrupt_after(monkeypatch, 4)
    ran = run(*asked, "--epsilon", 50, "--delta", 1e-3, "-o", "mdm.json")
    assert ran.code == 130
    provenance = load_saved("mdm.json").provenance
    last = provenance.interrupted_after_round
    assert f"interrupted; the parameters after round {last} are in mdm.json" in ran.err
    spent = provenance.privacy.guarantee  # four answers, and the one that was asked for
    assert spent.n_rounds == 5
    assert 0 < spent.epsilon < 50


def test_an_exact_fit_opens_no_ledger_unless_one_is_given(run, tmp_path):
    exact = ("fit", "clients.csv", "--components", 1)
    assert run(*exact, "-o", "mdm.json").code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"clients.csv", "mdm.json"}
    assert run(*exact, "--ledger", "ledger").code == 0
    assert (tmp_path / "ledger").exists()


def test_a_private_fit_after_an_exact_one_on_the_same_ledger_says_so_everywhere(run):
    exact = ("fit", "clients.csv", "--components", 1, "--ledger", "ledger")
    assert run(*exact, "-o", "exact.json").code == 0
    n_exact = load_saved("exact.json").provenance.fit.n_rounds
    declared = ("--categories", 3, "--max-size", 12, "--epsilon", 5, "--delta", 1e-3)
    ran = run(*exact, *declared, "-o", "mdm.json")
    words = f"beside {n_exact} exact releases, which no ε covers"
    assert words in " ".join(ran.err.split())
    assert words in " ".join(run("show", "mdm.json").out.split())
    shown = run("show", "mdm.json", "--json").json()["privacy"]
    assert words in shown["statement"]
    assert shown["guarantee"]["n_exact"] == n_exact
    assert run("report", "mdm.json", "-o", "report.html").code == 0
    assert words in Path("report.html").read_text(encoding="utf-8")
    assert load_saved("exact.json").provenance.privacy_in_words.startswith("no guarantee")


def test_a_checkpointed_exact_fit_enters_each_round_once(run):
    exact = ("fit", "clients.csv", "--components", 1, "--ledger", "ledger", "--checkpoint", "kept")
    for n_rounds in (3, 5):
        assert run(*exact, "--rounds", n_rounds, "-o", "mdm.json").code == 0
    assert len(LedgerFile("ledger").read()) == load_saved("mdm.json").provenance.fit.n_rounds


def test_a_budget_of_a_ledger_needs_a_guarantee(run):
    refused = run("fit", "clients.csv", "--ledger", "ledger", "--ledger-epsilon", 2)
    assert_refused(refused, "--ledger-epsilon has no effect without --epsilon")


def test_ctrl_c_in_a_selection_says_nothing_about_parameters(run, monkeypatch):
    _interrupt_after(monkeypatch, 3)
    ran = run("fit", "clients.csv", "--components", "1,2", "--held-out", 0.5, "-o", "mdm.json")
    assert ran.code == 130
    assert "interrupted; nothing was kept" in ran.err
    assert "parameters" not in ran.err


def _interrupt_after(monkeypatch, n_questions):
    """As if Ctrl-C were pressed during the next question."""
    aggregate, asked = LocalAggregator.aggregate, []

    def interrupted(self, *arguments, **named):
        asked.append(1)
        if len(asked) > n_questions:
            raise KeyboardInterrupt
        return aggregate(self, *arguments, **named)

    monkeypatch.setattr(LocalAggregator, "aggregate", interrupted)


# --------------------------------------------------------------------------- what is refused


BAD_TABLES = {
    "negative": (HEAD + "a,0,5\nb,1,-2\n", ["at least 0", "-2", "line 3"]),
    "fractional": (HEAD + "a,0,5\nb,1,2.5\n", ["whole numbers", "2.5", "line 3"]),
    "nan": (HEAD + "a,0,5\nb,1,nan\n", ["'count'", "whole numbers", "nan in line 3"]),
    "missing": (HEAD + "a,0,5\nb,1,\n", ["'count'", "missing", "line 3", "--drop-missing"]),
    "infinite": (HEAD + "a,0,5\nb,1,inf\n", ["whole numbers", "line 3"]),
    "overflow": (HEAD + "a,0,5\nb,1,4294967296\n", ["4294967296", "largest supported"]),
    "huge": (HEAD + "a,0,5\nb,1,99999999999999999999999\n", ["largest supported"]),
    "sum overflow": (HEAD + "a,0,2147483647\na,0,1\nb,1,1\n", ["2147483648", "largest supported"]),
    "text": (HEAD + "a,0,many\nb,1,few\n", ["numbers in column 'count', got text in line 2"]),
    "no category": (HEAD + "a,,5\nb,1,2\n", ["'category'", "missing", "line 2"]),
    "no rows": (HEAD, ["empty"]),
    "no bytes": ("", ["empty", "header"]),
    "no points": (HEAD + "a,0,5\nb,1,0\nc,1,1\n", ["1 of 3 clients", "--drop-empty"]),
    "one category": (HEAD + "a,0,5\nb,0,2\n", ["at least two categories, got 1"]),
    "one name": (HEAD + "a,x,5\nb,x,2\n", ["at least two categories, got 1"]),
    "no client column": ("who,category,count\na,0,1\n", ["'client'", "who, category, count"]),
    "twice": ("client,category,count,count\na,0,1,1\nb,1,2,2\n", ["one column 'count', got 2"]),
    "ragged": (HEAD + "a,0,5\nb,1,2,9\n", ["table.csv", "expected 3 columns, got 4 in line 3"]),
}  # fmt: skip


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
        (["--components", 0], ["n_components from 1 to 65535, got 0"]),
        (["--components", -1], ["n_components from 1 to 65535, got -1"]),
        (["--components", 7], ["7 components", "clients, got 6"]),
        (["--components", 6, "--method", "paper"], ["received no client", "use fewer components"]),
        (["--components", 10**14], ["n_components from 1 to 65535"]),
        (["--cohort", 7], ["cohort of 1 to 6 clients, got 7"]),
        (["--cohort", 0], ["cohort of 1 to 6 clients, got 0"]),
        (["--rounds", -1], ["max_rounds from 3 to 1000000, got -1"]),
        (["--max-size", 9], ["holds 10 points but max_size is 9", "larger max_size"]),
        (["--max-size", 0], ["max_size from 1 to", "got 0"]),
        (["--max-size", 10**20], ["max_size from 1 to", "got 1000"]),
        (["--max-size", 10**9, "--sizes", "exact"], ["max_size of at most", "--sizes binned"]),
        (["--priors", "size=-1"], ["prior"]),
        (["--priors", "size=nan"], ["prior"]),
        (["--priors", "category=inf"], ["prior"]),
        (["--priors", "sizes=1"], ["--priors as NAME=VALUE", "of size, category, got 'sizes=1'"]),
        (
            ["--method", "paper", "--search", "tol=0.1"],
            ["--search has no effect with --method paper"],
        ),
        (
            ["--method", "paper:pooled", "--search", "tol=1"],
            ["--search has no effect with --method paper"],
        ),
        (["--search", "patience=1.5"], ["patience in --search as a whole number, got '1.5'"]),
        (["--search", "tol"], ["--search as NAME=VALUE", "got 'tol'"]),
        (["--method", "paper:first"], ["--method"]),
        (["--cohort", "poisson"], ["--cohort as 1000 or poisson:1000"]),
        (["--threads", 0], ["n_threads", "from 1 to 1024, got 0"]),
        (["--seed", -1], ["seed", "-1"]),
        (["--categories", 2], ["not in the declared categories", "line 5"]),
        (["--categories", "0,0"], ["names that differ"]),
        (["--categories", "²"], ["at least two categories, got 1"]),
        (["--categories", 10**30], ["at most 1000000 categories"]),
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
        ("folder.csv", ["cannot read folder.csv", "Is a directory"]),
        ("clients.txt", [".parquet, .csv or .tsv", "clients.txt"]),
        ("parquet.csv", ["parquet.csv is not a readable csv file: it is a Parquet file"]),
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


def test_a_fit_that_cannot_be_written_is_refused_before_it_is_run(run):
    ran = run(*fit("-o", "nowhere/mdm.json"))
    assert_refused(ran, "cannot write nowhere/mdm.json", "No such file or directory")
    assert "round" not in ran.err


def test_a_checkpoint_of_other_clients_is_refused(run, tmp_path):
    asked = fit("--checkpoint", "kept")
    assert run(*asked).code == 0
    table = tmp_path / "clients.csv"
    table.write_text(table.read_text().replace("a,0,5", "a,0,4"))
    assert_refused(run(*asked), "that differs in settings")


def test_a_checkpoint_goes_on_with_more_rounds(run, tmp_path):
    short = run("fit", "clients.csv", "--components", 2, "--rounds", 4, "--checkpoint", "kept")
    assert "stopped at max_rounds=4" in short.err
    more = run("fit", "clients.csv", "--components", 2, "--rounds", 40, "--checkpoint", "kept")
    assert "going on after 4 rounds" in more.err
    assert "converged" in more.err


def test_a_damaged_round_of_a_checkpoint_is_named(run, tmp_path):
    asked = fit("--checkpoint", "kept")
    run(*asked)
    kept = tmp_path / "kept" / "rounds.jsonl"
    kept.write_text(kept.read_text().replace('"numbers": "A', '"numbers": "B', 1))
    assert_refused(run(*asked), "line 2, is damaged: it is not the line that was written")


def test_three_clients_are_told_at_once_what_they_cannot_give(run):
    (head, *rows) = CLIENTS.splitlines(keepends=True)
    three = sorted({row.split(",")[0] for row in rows})[:3]
    with open("clients.csv", "w") as file:
        file.write(head + "".join(row for row in rows if row.split(",")[0] in three))
    ran = run("fit", "clients.csv", "--components", 2, "-o", "mdm.json")
    first, then = "3 clients are few for K = 2 (fewer than 10 for each component)", "rounds, "
    assert ran.code == 0
    assert -1 < ran.err.find(first) < ran.err.find("round 1, looking") < ran.err.find(then)
    assert "allow more rounds" not in ran.err
    refused = run("fit", "clients.csv", "--components", 4)
    assert_refused(refused, "4 components need at least as many clients, got 3")


# ------------------------------------------------------------------- one K, or several to choose from


def test_several_numbers_of_components_are_chosen_from(run):
    asked = ("clients.csv", "--components", "1,2", "--rounds", 4, "--held-out", 0.5, "--json")
    chosen = run("fit", *asked).json()
    assert [c["n_components"] for c in chosen["candidates"]] == [1, 2]


def test_the_tree_of_the_splits_is_taken_from_a_file(run, tmp_path):
    (tmp_path / "tree.json").write_text('[["0", "2"], "1"]')
    asked = ("fit", "clients.csv", "--components", "1,2", "--rounds", 4, "--held-out", 0.5)
    found = run(*asked, "--shape", "tree", "--search", "tree=tree.json", "--json").json()
    assert found["splits"]["tree"] == [["0", "2"], "1"]
    assert found["stages"][0]["tree"] == "declared"


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ('["0", "1"]', (), "tree.json holds no tree of the categories: "),
        ('["0", "1"]', (), "each category once, got '2' 0 times"),
        ("[", (), "expected JSON, got something else from line 1"),
        (
            '["0", "1", "2"]',
            ("--shape", "dirichlet"),
            "no tree with shape='dirichlet'",
        ),
        ('["0", "1", "2"]', ("--components", 2), "expected held_out, or several n_components"),
    ],
)
def test_a_file_that_is_no_tree_is_one_line_and_no_file(run, tmp_path, text, options, words):
    (tmp_path / "tree.json").write_text(text)
    asked = ("fit", "clients.csv", "--components", "1,2", "--search", "tree=tree.json", *options)
    assert_leaves_no_trace(tmp_path, run, asked, words)


def test_one_number_of_components_is_scored_by_held_out_clients_if_that_is_asked(run):
    asked = ("fit", "clients.csv", "--components", 2, "--rounds", 8)
    ran = run(*asked, "--held-out", 0.5, "-o", "scored.json")
    assert ran.code == 0, ran.err
    assert "held-out clients" in ran.err
    choice = load_saved("scored.json").provenance.fit
    assert [one.n_components for one in choice.candidates] == [2]
    assert choice.n_held_out + choice.n_clients == 6
    assert run(*asked, "-o", "fitted.json").code == 0
    assert load_saved("fitted.json").provenance.fit.candidates == ()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--components", 2, "--held-out", 0.3, "--method", "paper"], "no effect with --held-out"),
        (["--components", "1:2", "--method", "paper"], "--method has no effect with several"),
        (["--components", 2, "--delta", 1e-6], "--delta has no effect without --epsilon"),
        (["--components", 2, "--epsilon", 1, "--search", "tol=1"], "--search has no effect with"),
    ],
)
def test_options_that_one_or_several_do_not_hear_are_refused(run, options, words):
    assert_refused(run("fit", "clients.csv", *options), words)


@pytest.mark.parametrize(
    ("components", "words"),
    [("6:1", "in increasing order, got '6:1'"), ("a", "1:6, 2,4,8 or auto")],
)
def test_components_that_are_none_are_said(run, components, words):
    assert_refused(run("fit", "clients.csv", "--components", components), words)


@pytest.mark.parametrize("cohort", ["poisson", "poisson:", "fixed:3", "-1", "x"])
def test_a_cohort_that_is_none_is_said(run, cohort):
    refused = run("fit", "clients.csv", "--cohort", cohort)
    assert_refused(refused, f"expected --cohort as 1000 or poisson:1000, got '{cohort}'")


def test_a_file_keeps_the_rounds_and_the_table_of_its_selection(run):
    asked = ("--components", "1,2", "--rounds", 4, "--held-out", 0.5)
    run("fit", "clients.csv", *asked, "-o", "s.json")
    kept = load_saved("s.json").provenance.fit
    assert [c.n_components for c in kept.candidates] == [1, 2]


def test_plus_minus_is_a_95_percent_interval_as_in_compare_and_labelled(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    write_histograms(truth("medium/2").sample(80, rng=0), "clients.csv")
    arguments = ("fit", "clients.csv", "--components", "1,2", "--rounds", 8)
    candidates = run(*arguments, "--json").json()["candidates"]
    shown = run(*arguments).out
    assert "mean ± 95 %" in shown
    assert "behind (s.e.)" in shown
    for c in candidates:
        assert f"{c['log_likelihood']:.4f} ± {1.96 * c['standard_error']:.4f}" in shown
        assert f"{c['behind']:.4f} ({c['behind_error']:.4f})" in shown


@pytest.mark.parametrize("n_clients", [1, 2, 3, 5])
def test_one_held_out_client_is_one_line_before_any_round(run, n_clients):
    write_histograms(truth("medium/2").sample(n_clients, rng=0), "clients.csv")
    ran = run("fit", "clients.csv")
    assert ran.code == 2
    assert "round" not in ran.err
    assert "held_out=0.2 needs 25 clients or more" in ran.err


@pytest.mark.parametrize(
    ("category", "said"),
    [
        ("client", "expected another column for the category than the client's, got 'client'"),
        (
            "client,category",
            "expected another column for the category than the client's, got 'client'",
        ),
        ("category,category", "expected different columns to cross, got 'category' twice"),
    ],
)
def test_a_column_that_cannot_be_part_of_the_category_is_refused_in_one_line(run, category, said):
    assert_refused(run("fit", "clients.csv", "--category", category), said)


def test_a_private_file_does_not_say_how_many_clients_there_are(run):
    asked = ("fit", "clients.csv", "--components", "1,2", "--categories", 3, "--max-size", 12)
    assert run(*asked, "--epsilon", 50, "--delta", 1e-3, "-o", "mdm.json").code == 0
    assert load_saved("mdm.json").provenance.data == "clients.csv"


@pytest.mark.parametrize(
    ("options", "held_out"),
    [
        (("--components", "1,2", "--held-out", 0.5), 0.5),
        (("--components", 1, "--held-out", 0.4), 0.4),
        (("--components", 1), None),
    ],
)
def test_a_file_keeps_the_share_that_was_held_out_and_no_client(run, options, held_out):
    assert run("fit", "clients.csv", *options, "--seed", 6, "-o", "mdm.json").code == 0
    provenance = load_saved("mdm.json").provenance
    assert (provenance.seed, provenance.data.held_out) == (6, held_out)


@pytest.fixture
def two_kinds(run):
    """A table of 120 clients of two kinds that differ by far."""
    mdm = MDM([0.5, 0.5], [[9.0, 1.0], [1.0, 9.0]], Sizes.constant(20, n_components=2))
    write_histograms(mdm.sample(120, rng=0), "two.csv")
    return run


def test_where_there_is_no_terminal_each_stage_has_one_line(two_kinds):
    def stages(*arguments):
        err = two_kinds("fit", "two.csv", *arguments).err
        return [line.split(", ")[1] for line in err.splitlines() if line.startswith("round ")]

    looking, climbing = stages("--components", 2)
    assert looking == "looking where to start"
    assert climbing.startswith("log-likelihood -")
    several = stages("--components", "1,2,3")
    assert several[0] == "looking where to start"
    assert several[1].startswith("climbing: K = 1")


def test_where_the_largest_number_wins_what_to_offer_is_said_and_kept(two_kinds):
    ran = two_kinds("fit", "two.csv", "--components", "1,2", "-o", "two.json")
    says = "K = 2 is the largest that was offered, and more may be better: offer --components 2,3,4"
    assert says in ran.err
    assert says in load_saved("two.json").provenance.fit.caution
    assert two_kinds("report", "two.json", "-o", "two.html").code == 0
    assert says in Path("two.html").read_text()
    assert "is the largest" not in two_kinds("fit", "two.csv", "--components", "1,2,3").err


def test_a_refit_begins_at_a_file_and_its_components_keep_their_numbers(run):
    known = truth("medium/2").sample(900, rng=0)
    write_histograms(known[:500], "was.csv", categories=[*"abcdefghij"])
    write_histograms(known[500:], "now.csv", categories=[*"abcdefghij"])
    fresh = run("fit", "was.csv", "--components", 2, "-o", "was.json", "--json").json()
    again = run("fit", "now.csv", "--start", "was.json", "-o", "now.json", "--json").json()
    assert again["n_rounds"] <= fresh["n_rounds"] / 2
    assert load_saved("now.json").model.as_given
    shown = run("show", "now.json").out
    assert "numbered as in the mixture that the fit began at" in " ".join(shown.split())
    assert "± is half of a 95 % interval" in " ".join(shown.split())
    errors = run("show", "now.json", "--json").json()["standard_errors"]
    assert len(errors["weights"]) == len(errors["concentrations"]) == 2
    run("fit", "now.csv", "--start", "was.json", "--rounds", 3, "-o", "early.json")
    early = run("show", "early.json", "--json").json()
    assert early["standard_errors"] is None
    assert early["no_errors"] == "the search has not converged"
    for options, words in (
        (("--components", 2), "--components has no effect with --start"),
        (("--held-out", 0.3), "--held-out has no effect with --start"),
        (("--method", "paper"), "--start has no effect with --method paper"),
        (("--categories", "x,y"), "not in the declared categories"),
    ):
        assert_refused(run("fit", "now.csv", "--start", "was.json", *options), words)
    assert_refused(run("fit", "now.csv", "--start", "none.json"), "none.json")

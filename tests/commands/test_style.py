"""`polyurn style`: from proxy points and records to a file, a table and an alarm."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from cli_walk import assert_leaves_no_trace, assert_refused
from polyurn import load
from polyurn.model.style import Style
from polyurn.storage.models import load_saved
from style_cases import drawn_world

NAMES = ["one", "two", "three"]
COMMAND = ("style", "proxy.parquet", "records.csv", "--category", "word", "--client", "speaker")
FEW = ("--directions", 2)


@pytest.fixture
def files(tmp_path):
    """A pool of standard normal points, and clients of a known law around it."""
    world = drawn_world(120, sizes=(10, 40), n_directions=3, n_labels=3, seed=1)
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=3000)
    pool = rng.normal(size=(3000, 3)) * [3.0, 2.0, 1.0] + labels[:, None]
    table = {"word": np.array(NAMES)[labels], **{f"f{k}": pool[:, k] for k in range(3)}}
    pyarrow.parquet.write_table(pa.table(table), tmp_path / "proxy.parquet")
    held = world.records.of(np.arange(120))
    points = held.features * [3.0, 2.0, 1.0] + held.labels[:, None]
    rows = ["speaker,word,f0,f1,f2"]
    for who, label, f in zip(held.owner, held.labels, points, strict=True):
        rows.append(f"s{who},{NAMES[label]},{f[0]},{f[1]},{f[2]}")
    (tmp_path / "records.csv").write_text("\n".join(rows) + "\n")
    np.savez(tmp_path / "proxy.npz", features=pool, labels=labels)
    clients = {"features": points, "labels": held.labels, "clients": held.owner}
    np.savez(tmp_path / "records.npz", **clients)


def test_style_writes_a_file_that_is_read_back(run, files):
    ran = run(*COMMAND, *FEW, "-o", "style.json")
    assert ran.code == 0
    assert "3 features, from proxy.parquet" in ran.err
    assert "no guarantee" in ran.err
    assert "wrote style.json: 120 clients" in ran.err
    saved = load_saved("style.json", Style)
    assert saved.model.n_clients == 120
    assert saved.categories == ("one", "three", "two")
    assert saved.features == ("f0", "f1", "f2")
    assert saved.model == load("style.json")
    assert "polyurn style proxy.parquet" in saved.provenance.command


def test_style_shows_directions_with_what_they_carry_and_errors(run, files, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    ran = run(*COMMAND, *FEW)
    assert "styles of 120 clients" in ran.out
    assert "B: shared" in ran.out
    assert "±" in ran.out
    assert "alarm" not in ran.err
    run(*COMMAND, *FEW, "-o", "style.json")
    assert "styles of 120 clients" in run("show", "style.json").out


def test_archives_give_the_same_numbers_as_tables(run, files):
    tables = run(*COMMAND, *FEW, "--categories", "one,two,three", "--json").json()
    archives = run("style", "proxy.npz", "records.npz", *FEW, "--json").json()
    np.testing.assert_allclose(tables["within"], archives["within"], rtol=1e-9)
    np.testing.assert_allclose(tables["errors"]["shared"], archives["errors"]["shared"], rtol=1e-6)


def test_an_alarm_is_raised_where_the_pool_lacks_the_clients_style(run, files, tmp_path):
    text = (tmp_path / "records.csv").read_text().splitlines()
    moved = [text[0]]
    for row in text[1:]:
        who, word, f0, *rest = row.split(",")
        moved.append(",".join([who, word, str(float(f0) + 6), *rest]))
    (tmp_path / "records.csv").write_text("\n".join(moved) + "\n")
    ran = run(*COMMAND, *FEW, "--json")
    assert "alarm: the clients' mean style is not the proxy data's" in ran.err
    assert "mean style" in ran.json()["alarm"]


def test_a_private_style_states_its_guarantee_and_is_charged(run, files):
    private = ("--epsilon", 50, "--delta", 1e-6, "--ledger", "ledger")
    ran = run(*COMMAND, *FEW, *private, "-o", "style.json")
    assert "(50, 1e-06)-differentially private" in ran.err
    assert (
        "(50, 1e-06)-differentially private"
        in load_saved("style.json", Style).provenance.privacy_in_words
    )
    again = run(*COMMAND, *FEW, *private, "-o", "again.json")
    assert_refused(again, "error: bounded_style (sigma", "would bring epsilon")


def test_an_exact_style_with_a_ledger_is_beside_the_epsilon_of_a_later_one(run, files):
    assert run(*COMMAND, *FEW, "--ledger", "ledger", "-o", "exact.json").code == 0
    ran = run(*COMMAND, *FEW, "--epsilon", 50, "--delta", 1e-6, "--ledger", "ledger")
    assert "beside 1 exact release, which no ε covers" in " ".join(ran.err.split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--delta", "1e-6"], ["--delta has no effect without --epsilon"]),
        (["--epsilon", "1"], ["expected --delta with --epsilon"]),
        (["--epsilon", "1", "--delta", "1e-6", "--ledger-epsilon", "2"], ["--ledger-epsilon"]),
        (["--features", "f0,no"], ["proxy.parquet", "'no'"]),
        (["--features", "word"], ["expected numbers in column 'word'"]),
        (["--categories", "one,two"], ["proxy.parquet", "not in the declared categories"]),
        (["--categories", "one,two,three,four"], ["proxy.parquet", "got none of four; take"]),
        (["--directions", "9"], ["n_directions from 1 to 3"]),
    ],
    ids=str,
)
def test_what_cannot_be_is_one_line_and_no_file(run, files, tmp_path, options, words):
    assert_leaves_no_trace(tmp_path, run, (*COMMAND, *options), *words)


def test_a_style_is_written_to_json_only(run, files):
    assert_refused(run(*COMMAND, "-o", "style.csv"), "expected a .json file")


def test_records_of_another_number_of_features_are_named_with_their_file(run, files, tmp_path):
    with np.load("records.npz") as arrays:
        wider = {**arrays, "features": np.hstack([arrays["features"], arrays["features"]])}
    np.savez(tmp_path / "records.npz", **wider)
    refused = run("style", "proxy.npz", "records.npz", *FEW)
    assert_refused(refused, "records.npz: expected points of 3 features, as in proxy.npz, got 6")


def test_labels_of_an_archive_that_are_none_are_named_with_their_file(run, files, tmp_path):
    np.savez(tmp_path / "proxy.npz", features=np.zeros((2, 3)), labels=[0.5, 1.0])
    refused = run("style", "proxy.npz", "records.npz", *FEW)
    assert_refused(refused, "proxy.npz: expected labels as integers from 0")


def test_a_table_and_an_archive_do_not_go_together(run, files):
    assert_refused(run("style", "proxy.parquet", "records.npz"), "two tables or two .npz files")
    assert_refused(
        run("style", "proxy.npz", "records.npz", "--category", "x"), "--category has no effect"
    )
    assert_refused(run("style", "records.npz", "proxy.npz"), "expected an array 'clients'")


def test_the_file_says_that_nothing_is_guaranteed_as_the_command_did(run, files):
    run(*COMMAND, *FEW, "-o", "style.json")
    shown = " ".join(run("show", "style.json").out.split())
    assert "clients' exact sums were released without noise" in shown
    assert "does not say" not in shown


def test_without_a_number_there_are_no_more_directions_than_features(run, files):
    assert run(*COMMAND, "--json").json()["n_directions"] == 3


def test_a_column_of_the_proxy_that_is_no_feature_is_named(run, files, tmp_path):
    table = pyarrow.parquet.read_table("proxy.parquet")
    values = table["f1"].to_numpy().copy()
    values[7] = np.nan
    broken = table.set_column(2, "f1", pa.array(values)).append_column(
        "note", pa.array(["x"] * 3000)
    )
    pyarrow.parquet.write_table(broken, tmp_path / "proxy.parquet")
    ran = run(*COMMAND, *FEW, "--json")
    assert "2 features, from proxy.parquet" in ran.err
    assert "not taken as features, because not all values are finite numbers: f1, note" in ran.err


def test_a_label_with_a_single_proxy_point_is_named(run, files, tmp_path):
    table = pyarrow.parquet.read_table("proxy.parquet")
    where = np.flatnonzero(table["word"].to_numpy() != "two")
    one = np.flatnonzero(table["word"].to_numpy() == "two")[:1]
    pyarrow.parquet.write_table(table.take(np.append(where, one)), tmp_path / "proxy.parquet")
    ran = run(*COMMAND, *FEW, "-q", "-o", "style.json")
    assert ran.code == 0
    assert "one proxy point only: two" in ran.err


def test_a_column_of_lists_is_asked_for_by_name_and_remembered(run, files):
    for name in ("proxy", "records"):
        arrays = np.load(f"{name}.npz")
        columns = {"picture": list(arrays["features"]), "label": arrays["labels"]}
        if name == "records":
            columns["client"] = arrays["clients"]
        pyarrow.parquet.write_table(pa.table(columns), f"{name}-lists.parquet")
    command = ("style", "proxy-lists.parquet", "records-lists.parquet", *FEW)
    refused = run(*command)
    assert_refused(refused, "take the column of lists: --features picture")
    assert "finite" not in refused.err
    assert run(*command, "--features", "picture", "-o", "style.json").code == 0
    assert load_saved("style.json", Style).features == ("picture",)
    shown = run("report", "style.json", "--proxy", "proxy-lists.parquet", "-o", "page.html")
    assert shown.code == 0  # nobody has to name it again


def test_a_label_that_the_proxy_lacks_is_not_called_undeclared(run, files, tmp_path):
    with (tmp_path / "records.csv").open("a") as rows:
        rows.write("s1,four,0,0,0\n")
    refused = run(*COMMAND, *FEW)
    assert_refused(refused, "records.csv: column 'word': proxy.parquet has no point of the labels")
    assert "declared" not in refused.err


def test_one_client_has_nobody_to_differ_from(run, files, tmp_path):
    rows = (tmp_path / "records.csv").read_text().splitlines()
    one = [rows[0], *(row for row in rows if row.startswith("s3,"))]
    (tmp_path / "records.csv").write_text("\n".join(one) + "\n")
    assert_refused(run(*COMMAND, *FEW), "records.csv: expected at least two clients, got 1")


def test_a_style_is_not_taken_for_a_model_and_the_line_says_what_it_is(run, files):
    run(*COMMAND, *FEW, "-o", "style.json")
    refused = run("sample", "style.json", "--clients", "3")
    assert_refused(refused, "style.json is not an MDM file", "got 'polyurn.style'")

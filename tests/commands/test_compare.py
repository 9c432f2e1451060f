"""`polyurn compare`: files in, a verdict and its record out."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from cli_walk import assert_refused
from comparison_cases import HELD_OUT, TRUTH
from polyurn import MDM, Sizes, Style, save, write_histograms
from polyurn.storage.models import load_saved
from style_cases import drawn_world, whole_space


@pytest.fixture
def tables(run):
    save(TRUTH, "mdm.json")
    write_histograms(HELD_OUT[:40], "held-out.csv")
    write_histograms(TRUTH.sample(50, rng=5), "simulated.csv")
    write_histograms(HELD_OUT[20:], "fitted.csv", clients=list(range(20, 150)))
    write_histograms(HELD_OUT[20:], "fitted.parquet", clients=list(range(20, 150)))
    return run


def test_the_command_compares_files_and_keeps_the_record(tables):
    names = ("held-out.csv", "mdm=mdm.json", "drawn=simulated.csv")
    ran = tables("compare", *names, "--draws", "splits=100", "--folds", 2, "-o", "out.json")
    assert ran.code == 0
    assert "energy, ratio" in ran.out
    assert "polyurn cannot tell" in ran.err
    with open("out.json") as file:
        record = json.load(file)
    assert (record["format"], record["version"]) == ("polyurn.comparison", 3)
    assert record["provenance"]["command"].startswith("polyurn compare held-out.csv")
    assert [row["name"] for row in record["rows"]] == ["mdm", "drawn"]
    again = tables("compare", *names, "--draws", "splits=100", "--folds", 2, "--json").json()
    assert again["rows"] == record["rows"]


@pytest.mark.parametrize("fitted", ["fitted.csv", "fitted.parquet"])
def test_the_command_says_when_clients_were_fitted(tables, fitted):
    ran = tables("compare", "held-out.csv", "mdm=mdm.json", "--folds", 0, "--fitted", fitted)
    assert "compared with the clients that were fitted: 20 of 40" in ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mdm.json", "held-out.csv"], "mdm.json is a model where a table is expected: data first"),
        (["held-out.csv", "mdm="], "a population as a file or as NAME=FILE, got 'mdm='"),
        (["held-out.csv", "a=mdm.json", "a=simulated.csv"], "'a' twice"),
        (["held-out.csv", "a=none.json"], "cannot read none.json"),
        (["none.csv", "a=mdm.json"], "cannot read none.csv"),
        (["clients.csv", "a=mdm.json"], "at least 10 clients to compare with, got 6"),
        (["held-out.csv", "a=mdm.json", "b=other.json"], "population 'b': expected 3 categories"),
        (["held-out.csv", "a=mdm.json", "--draws", "splits=5"], "n_splits"),
        (["held-out.csv", "a=mdm.json", "-o", "c.txt"], "expected a .json file"),
        (["held-out.csv", "a=mdm.json", "--true", "a"], "--true has no effect with the table"),
        (["held-out.csv", "a=mdm.json", "--categories", "3"], "which has its own categories"),
        (["held-out.csv", "a=simulated.csv", "--draws", "clients=9"], "without an MDM file"),
        (["held-out.csv", "a=mdm.json", "--draws", "halves=9"], "clients, max_clients, splits"),
    ],
)
def test_the_command_refuses_in_one_line(tables, arguments, words):
    save(MDM([1.0], [[1.0, 1.0]], Sizes.constant(6)), "other.json")
    place = [] if "-o" in arguments else ["-o", "out.json"]
    assert_refused(tables("compare", *arguments, *place), words)


def test_true_clients_of_other_names_are_mapped_and_simulated_ones_are_not(tables, tmp_path):
    n = HELD_OUT.shape[1]
    names, old = [f"n{j}" for j in range(n)], [f"o{j}" for j in range(n)]
    save(TRUTH, "named.json", categories=names)
    given = {"held": HELD_OUT[:40], "fit": HELD_OUT[20:60]}
    for name, counts in given.items():
        ids = list(range(40)) if name == "held" else list(range(20, 60))
        write_histograms(counts, f"{name}-own.csv", clients=ids, categories=names)
        write_histograms(counts, f"{name}-old.csv", clients=ids, categories=old)
    write_histograms(TRUTH.sample(50, rng=5), "drawn.csv", categories=names)
    others = ("mdm=named.json", "drawn=drawn.csv", "--draws", "splits=100", "--folds", 0, "--json")
    own = tables("compare", "held-own.csv", *others, "--fitted", "fit-own.csv").json()
    mapped = ",".join(f"{a}={b}" for a, b in zip(old, names, strict=True))
    ran = tables("compare", "held-old.csv", *others, "--fitted", "fit-old.csv", "--map", mapped)
    assert ran.json()["rows"] == own["rows"]
    assert ran.json()["n_fitted"] == own["n_fitted"] == 20


def test_a_model_needs_no_name_beside_that_of_its_file(tables):
    quick = ("--folds", 0, "--draws", "splits=100", "--json")
    named = tables("compare", "held-out.csv", "mdm=mdm.json", *quick).json()
    assert tables("compare", "held-out.csv", "mdm.json", *quick).json() == named


def test_a_table_of_several_populations_is_not_wider_than_80_columns(tables):
    names = [f"{name}=simulated.csv" for name in ("one", "another", "a-third", "fourth")]
    ran = tables(
        "compare", "held-out.csv", "mdm.json", *names, "--folds", 0, "--draws", "splits=100"
    )
    lines = ran.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [sum(f" {name} " in line for line in lines) for name in ("mdm", "a-third")] == [1, 1]
    assert sum("effective categories" in line for line in lines) == 3


def test_a_map_needs_an_mdm_file_whose_names_it_maps_to(tables):
    ran = tables("compare", "held-out.csv", "a=simulated.csv", "--map", "by-position")
    assert_refused(ran, "--map has no effect without an MDM file")


@pytest.fixture
def styled(run, tmp_path):
    """Records of clients with a style, a pool, an MDM of their labels, and the style itself."""
    world = drawn_world(80, sizes=(30, 31), n_labels=2, n_directions=2, seed=1)
    held = world.records.of(np.arange(80))
    rng = np.random.default_rng(0)
    pool = {"label": rng.integers(2, size=6000), "points": rng.normal(size=(6000, 2)).tolist()}
    pyarrow.parquet.write_table(pa.table(pool), tmp_path / "proxy.parquet")
    rows = {"client": held.owner, "label": held.labels, "points": held.features.tolist()}
    pyarrow.parquet.write_table(pa.table(rows), tmp_path / "held.parquet")
    save(MDM([1.0], [[1.0, 1.0]], Sizes.constant(30)), "mdm.json")
    space = whole_space(2, 2, radius=20.0)
    style = Style(space, [0.0, 0.0], world.shared, world.by_label, world.within)
    save(style, "style.json")
    return run


QUICK = ("--folds", 0, "--draws", "splits=100", "--category", "label")
STYLED = ("--style", "style.json", "--proxy", "proxy.parquet", "--features", "points")


def test_compare_shows_how_much_clients_differ_in_style(styled):
    names = ("compare", "held.parquet", "mdm=mdm.json", *QUICK, *STYLED)
    ran = styled(*names, "--json", "-o", "comparison.json")
    assert ran.code == 0, ran.err
    assert "not read" not in ran.err  # the features are
    styles = ran.json()["styles"]
    assert json.loads(Path("comparison.json").read_text())["styles"] == styles
    assert styled("report", "comparison.json", "-o", "page.html").code == 0
    assert [*styles] == ["true", "mdm", "mdm, labels only"]
    true, simulated, plain = (one["directions"]["by_client"]["value"] for one in styles.values())
    assert simulated == pytest.approx(true, rel=0.4)  # 80 clients
    assert plain == pytest.approx(1, abs=0.4)
    assert true > 4
    told = styled(*names, "-o", "comparison.json")
    assert "how much clients differ in style" in " ".join(told.out.split())
    assert json.loads(Path("comparison.json").read_text())["styles"] == styles


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--style", "style.json"), "expected --proxy"),
        (("--proxy", "proxy.parquet"), "--proxy"),
        (("--style", "style.json", "--proxy", "proxy.parquet"), "expected --features"),
        ((*STYLED[:-1], "pixels"), "'pixels'"),
    ],
)
def test_compare_refuses_half_of_a_style(styled, options, said):
    assert_refused(styled("compare", "held.parquet", "mdm=mdm.json", *QUICK, *options), said)


def test_points_of_another_number_of_features_are_named_with_their_file(styled, tmp_path):
    held = pyarrow.parquet.read_table(tmp_path / "held.parquet").drop_columns("points")
    wider = held.append_column("points", pa.array([[1.0, 2.0, 3.0]] * len(held)))
    pyarrow.parquet.write_table(wider, tmp_path / "held.parquet")
    ran = styled("compare", "held.parquet", "mdm=mdm.json", *QUICK, *STYLED)
    assert_refused(ran, "held.parquet: expected points of 2 features, as in style.json, got 3")


def test_styles_need_records(styled, tables):
    options = ("--style", "style.json", "--proxy", "proxy.parquet", "--features", "points")
    ran = styled("compare", "held-out.csv", "mdm=mdm.json", "--folds", 0, *options)
    assert ran.code != 0


def test_styles_are_not_measured_of_rows_that_stand_for_several_points(styled, tmp_path):
    held = pyarrow.parquet.read_table(tmp_path / "held.parquet")
    counted = held.append_column("count", pa.array([1] * len(held)))
    pyarrow.parquet.write_table(counted, tmp_path / "counted.parquet")
    ran = styled("compare", "counted.parquet", "mdm=mdm.json", *QUICK, *STYLED)
    assert_refused(ran, "expected counted.parquet with one row per point")


# ------------------------------------------------------------------- who was held out


SCORED = ("--components", "1:2", "--held-out", 0.2, "--rounds", 8)
FAST = ("--folds", 0, "--draws", "splits=100")


@pytest.fixture
def fitted(run):
    """A table of 150 clients, a selection on it, and a fit to all of it."""
    write_histograms(HELD_OUT, "table.csv")
    for name, options in (("selected", (*SCORED, "--seed", 3)), ("whole", ("--components", 2))):
        assert run("fit", "table.csv", *options, "-o", f"{name}.json").code == 0
    return run


def record(run, table, *others):
    """What the comparison says and holds."""
    ran = run("compare", table, *others, *FAST, "--json")
    assert ran.code == 0, ran.err
    return ran, ran.json()


def test_clients_that_were_fitted_are_not_compared_where_others_were_held_out(fitted):
    choice = load_saved("selected.json").provenance.fit
    ran, found = record(fitted, "table.csv", "mdm=selected.json")
    assert f"the {choice.n_held_out} of 150 clients that were held out are taken" in ran.err
    assert (found["n_clients"], found["n_fitted"]) == (choice.n_held_out, 0)
    # These clients are just those that scored.
    stated = found["rows"][0]["log_likelihood"]["value"]
    assert stated == pytest.approx(choice.chosen.log_likelihood, rel=1e-9)


def test_clients_that_were_all_fitted_do_not_pass_for_others(fitted):
    ran, found = record(fitted, "table.csv", "mdm=whole.json")
    assert (found["n_clients"], found["n_fitted"]) == (150, 150)
    assert "compared with the clients that were fitted: 150 of 150" in ran.err


@pytest.mark.parametrize("model", ["selected", "whole"])
def test_another_table_of_the_same_name_and_sums_is_not_taken_for_the_fitted_one(fitted, model):
    others = HELD_OUT[np.random.default_rng(0).permutation(150)]
    for table, counts in (("other.csv", HELD_OUT[1:]), ("table.csv", others[:, ::-1])):
        write_histograms(counts, table)
        _, found = record(fitted, table, f"mdm={model}.json")
        assert (found["n_clients"], found["n_fitted"]) == (len(counts), None)


def test_clients_in_another_order_do_not_make_fitted_ones_held_out(fitted):
    write_histograms(HELD_OUT[::-1], "table.csv")
    _, found = record(fitted, "table.csv", "mdm=selected.json")
    assert (found["n_clients"], found["n_fitted"]) == (150, None)


def test_clients_that_one_of_two_models_was_fitted_to_are_not_held_out(fitted):
    scored = ("--components", 1, "--held-out", 0.5)
    for name, seed in (("a", 1), ("b", 2)):
        fitted("fit", "table.csv", *scored, "--seed", seed, "-o", f"{name}.json")
    alone = [record(fitted, "table.csv", f"m={name}.json")[1]["n_clients"] for name in "ab"]
    _, both = record(fitted, "table.csv", "a=a.json", "b=b.json")
    assert 10 <= both["n_clients"] < min(alone)
    assert both["n_fitted"] == 0
    _, mixed = record(fitted, "table.csv", "a=a.json", "b=whole.json")
    assert (mixed["n_clients"], mixed["n_fitted"]) == (150, 150)


def test_too_few_held_out_clients_are_not_compared_alone(run):
    write_histograms(HELD_OUT[:30], "table.csv")
    run("fit", "table.csv", "--components", 1, "--held-out", 0.2, "-o", "mdm.json")
    n_held_out = load_saved("mdm.json").provenance.fit.n_held_out
    assert n_held_out < 10
    ran, found = record(run, "table.csv", "mdm=mdm.json")
    assert f"table.csv: {30 - n_held_out} of 30 clients were fitted" in ran.err
    assert (found["n_clients"], found["n_fitted"]) == (30, 30 - n_held_out)


def test_a_table_of_those_who_were_fitted_is_not_overruled(fitted):
    write_histograms(HELD_OUT[:40], "fitted.csv")
    ran, found = record(fitted, "table.csv", "mdm=selected.json", "--fitted", "fitted.csv")
    assert (found["n_clients"], found["n_fitted"]) == (150, 40)
    assert "are taken" not in ran.err


def test_packed_clients_that_were_fitted_are_not_compared(fitted):
    pytest.importorskip("duckdb")
    fitted("pack", "table.csv", "-o", "packed", "--shard-clients", 40)
    fitted("fit", "packed", *SCORED, "-o", "packed.json")
    choice = load_saved("packed.json").provenance.fit
    _, found = record(fitted, "packed", "mdm=packed.json")
    assert (found["n_clients"], found["n_fitted"]) == (choice.n_held_out, 0)
    stated = found["rows"][0]["log_likelihood"]["value"]
    assert stated == pytest.approx(choice.chosen.log_likelihood, rel=1e-9)


def test_styles_of_clients_that_were_fitted_are_not_compared(styled):
    learned = ("--category", "label", "--components", 1, "--held-out", 0.4, "-o", "mdm.json")
    assert styled("fit", "held.parquet", *learned).code == 0
    n_held_out = load_saved("mdm.json").provenance.fit.n_held_out
    ran = styled("compare", "held.parquet", "mdm=mdm.json", *QUICK, *STYLED, "--json").json()
    assert ran["n_clients"] == n_held_out
    assert ran["styles"]["true"]["directions"]["n_clients"] == n_held_out

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from cli_walk import assert_refused
from polyurn import IID, MDM, Sizes, compare, save, split_clients, write_histograms
from polyurn.errors import CountsError, ParameterError

TRUTH = MDM(
    [0.6, 0.4],
    [[0.5, 1.0, 3.0], [9.0, 1.0, 2.0]],
    Sizes.from_table(np.array([[0, 0, 0, 0, 0, 0.5, 0.5], [0, 0.5, 0.5, 0, 0, 0, 0]])),
)
HELD_OUT = TRUTH.sample(150, rng=0)
OTHER = MDM([1.0], [[50.0, 1.0, 1.0]], Sizes.constant(6))
QUICK = {"n_splits": 100, "n_directions": 10, "n_bootstrap": 100, "n_folds": 0}


IID_CLIENTS = IID([0.3, 0.3, 0.4], sizes=[4])


# -------------------------------------------------------------------------- the verdict


def test_the_truth_is_indistinguishable_and_another_population_is_not():
    verdict = compare({"truth": TRUTH, "other": OTHER}, HELD_OUT, n_splits=500, rng=1)
    truth, other = verdict["truth"], verdict["other"]
    floors = verdict.floors
    assert floors.energy.low < truth.energy_ratio < floors.energy.high
    assert floors.sliced_wasserstein.low < truth.sliced_wasserstein_ratio
    assert truth.sliced_wasserstein_ratio < floors.sliced_wasserstein.high
    assert floors.sizes.low < truth.size_ratio < floors.sizes.high
    assert truth.auc.low < 0.5 < truth.auc.high
    assert other.energy_ratio > 5 * floors.energy.high
    assert other.sliced_wasserstein_ratio > 2 * floors.sliced_wasserstein.high
    assert other.size_ratio > 2 * floors.sizes.high
    assert other.auc.low > 0.7
    assert other.log_likelihood.value < truth.log_likelihood.value


def test_the_log_likelihood_is_that_of_all_held_out_clients():
    row = compare({"mdm": TRUTH}, HELD_OUT, max_clients=20, rng=0, **QUICK)["mdm"]
    assert row.n_clients == 20
    assert row.log_likelihood.value == pytest.approx(TRUTH.logpmf(HELD_OUT).mean())
    given_size = TRUTH.logpmf_given_size(HELD_OUT)
    assert row.log_likelihood_given_size.value == pytest.approx(given_size.mean())
    error = 1.96 * given_size.std(ddof=1) / np.sqrt(150)
    assert row.log_likelihood_given_size.low == pytest.approx(given_size.mean() - error)


def test_an_impossible_client_is_a_likelihood_of_minus_infinity_and_strict_json():
    never = MDM([1.0], [[1.0, 1.0, 0.0]], Sizes.constant(6))
    verdict = compare({"never": never}, HELD_OUT, rng=0, **QUICK)
    row = json.loads(json.dumps(verdict.to_dict(), allow_nan=False))["rows"][0]
    assert row["log_likelihood"]["value"] == "-Infinity"
    assert row["log_likelihood_given_size"]["value"] == "-Infinity"
    assert row["dispersion"] is None


def test_tables_sparse_tables_and_whatever_can_be_sampled_are_populations():
    counts = IID_CLIENTS.sample(80, rng=0)
    verdict = compare(
        {"dense": counts, "sparse": sparse.csr_array(counts), "iid": IID_CLIENTS, "mdm": TRUTH},
        HELD_OUT,
        n_clients=60,
        rng=0,
        **QUICK,
    )
    assert [row.n_clients for row in verdict.rows] == [80, 80, 60, 60]
    dense, other = verdict["dense"], verdict["sparse"]
    assert dense.energy_ratio == pytest.approx(other.energy_ratio)
    assert [row.log_likelihood is None for row in verdict.rows] == [True, True, True, False]
    assert [row.dispersion is None for row in verdict.rows] == [True, True, True, False]


def test_the_same_seed_gives_the_same_verdict():
    first, again, other = (
        compare({"mdm": TRUTH}, HELD_OUT, rng=seed, **QUICK).to_dict() for seed in (3, 3, 4)
    )
    assert first == again != other


def test_the_table_has_a_line_for_every_measure_and_a_column_for_every_population():
    verdict = compare({"mdm": TRUTH, "iid": IID_CLIENTS}, HELD_OUT, rng=0, **QUICK)
    head, mdm, simulated, true = verdict.table()
    assert (mdm[0], simulated[0], true[0]) == ("mdm", "iid", "true")
    assert len({len(row) for row in (head, mdm, simulated, true)}) == 1
    lines = str(verdict).splitlines()
    assert len(lines) == len(head) + len(verdict.sentences())
    with pytest.raises(KeyError):
        verdict["nobody"]


def test_the_table_shows_every_interval():
    verdict = compare({"mdm": TRUTH}, HELD_OUT, rng=0, **QUICK)
    head, mdm, true = verdict.table()
    for name in ("total variation", "Jensen-Shannon", "effective categories", "about Dirichlet"):
        column = next(i for i, title in enumerate(head) if title.startswith(name))
        assert " to " in mdm[column]
        assert " to " in true[column]
    low, high = verdict["mdm"].energy_null
    assert f"[{low:.2f} to {high:.2f}]" in mdm[head.index("energy distance, ratio [range of 1]")]


def test_a_population_that_holds_the_held_out_clients_is_found_out():
    mdm = MDM([1.0], [[0.6, 0.9, 0.3]], Sizes.constant(200))
    held_out = mdm.sample(80, rng=7)
    part = np.concatenate([held_out[:40], mdm.sample(40, rng=8)])
    verdict = compare({"part": part, "mdm": mdm}, held_out, rng=0, **QUICK)
    assert verdict["part"].n_shared >= 40
    said = [
        sentence for sentence in verdict.sentences() if "held-out clients themselves" in sentence
    ]
    assert len(said) == 1
    assert said[0].startswith("population 'part'")
    assert "AUC may be far below 0.5" in said[0]


def test_few_points_make_twins_by_chance_and_nothing_is_said():
    small = MDM([1.0], [[1.0, 1.0]], Sizes.constant(3))
    verdict = compare({"mdm": small}, small.sample(60, rng=1), rng=0, **QUICK)
    assert verdict["mdm"].n_shared == verdict.n_twins == 60
    assert not any("themselves" in sentence for sentence in verdict.sentences())


# ------------------------------------------------------------------------- held out


@given(st.integers(2, 40), st.floats(0.01, 0.99), st.integers(0, 5))
def test_a_split_gives_every_client_to_one_part(n_clients, held_out, seed):
    counts = np.arange(1, 2 * n_clients + 1).reshape(-1, 2)
    split = split_clients(counts, held_out=held_out, rng=seed)
    rows = np.concatenate([split.fitted_rows, split.held_out_rows])
    assert np.sort(rows).tolist() == list(range(n_clients))
    assert (counts[split.fitted_rows] == split.fitted).all()
    assert (counts[split.held_out_rows] == split.held_out).all()
    assert min(len(split.fitted), len(split.held_out)) >= 1


def test_a_split_is_held_out_by_construction():
    split = split_clients(HELD_OUT, rng=0)
    verdict = compare({"oracle": split.fitted}, split, rng=0, **QUICK)
    assert verdict.n_fitted == 0
    assert verdict.standing == "compared with 30 clients that were held out from fitting"


def test_a_comparison_with_clients_that_were_fitted_says_so():
    ids = list(range(150))
    verdict = compare({"mdm": TRUTH}, HELD_OUT, clients=ids, fitted=ids[50:], rng=0, **QUICK)
    assert verdict.n_fitted == 100
    said = "compared with the clients that were fitted: 100 of 150 are not held out"
    assert said in str(verdict)
    assert verdict.to_dict()["standing"] == said


def test_what_nobody_said_is_not_guessed():
    verdict = compare({"mdm": TRUTH}, HELD_OUT, rng=0, **QUICK)
    assert verdict.n_fitted is None
    assert "nobody said" in verdict.standing


# ------------------------------------------------------------------------ refusals


def test_a_function_is_no_population():
    with pytest.raises(ParameterError, match=r"population 'a': expected a population, .* function"):
        compare({"a": lambda n, rng: HELD_OUT}, HELD_OUT, rng=0, **QUICK)


@pytest.mark.parametrize(
    ("populations", "to", "words"),
    [
        ({"a": [[1, 2]] * 20}, HELD_OUT, "population 'a': expected 3 categories"),
        ({"a": np.zeros((0, 3), dtype=int)}, HELD_OUT, "population 'a': expected at least one"),
        ({"a": [[1, 2, 3], [0, 0, 0]] * 10}, HELD_OUT, "population 'a': 10 of 20 clients hold no"),
        ({"a": [[1, 2, 3]] * 9}, HELD_OUT, "at least 10 clients of population 'a', got 9"),
        ({"a": IID_CLIENTS}, HELD_OUT[:9], "at least 10 clients to compare with, got 9"),
        ({"a": IID_CLIENTS}, np.zeros((0, 3), dtype=int), "expected at least one client"),
        ({"a": IID_CLIENTS}, HELD_OUT / 2, "fractions"),
        ({"a": IID_CLIENTS}, np.ones((20, 4), dtype=int), "population 'a': expected 4 categories"),
    ],
)
def test_populations_that_cannot_be_compared_are_refused_in_a_line(populations, to, words):
    with pytest.raises(CountsError, match=words):
        compare(populations, to, rng=0, **QUICK)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_splits": 10}, "n_splits of at least 100, got 10"),
        ({"n_directions": 0}, "n_directions of at least 1"),
        ({"n_bootstrap": 3}, "n_bootstrap of at least 100"),
        ({"n_folds": 1}, "n_folds of 0, or 2 to 10, got 1"),
        ({"max_clients": 5}, "max_clients of at least 10"),
        ({"n_clients": 0}, "n_clients of at least 10"),
        ({"fitted": [1]}, "fitted= needs clients="),
        ({"clients": [1], "fitted": [1]}, "expected 150 client ids, got 1"),
    ],
)
def test_settings_out_of_range_are_refused_in_a_line(settings, words):
    with pytest.raises(ParameterError, match=words):
        compare({"mdm": TRUTH}, HELD_OUT, rng=0, **{**QUICK, **settings})


def test_a_comparison_needs_populations_and_a_split_brings_its_own_ids():
    with pytest.raises(ParameterError, match="at least one population"):
        compare({}, HELD_OUT)
    split = split_clients(HELD_OUT, rng=0)
    with pytest.raises(ParameterError, match="a ClientSplit says who was fitted"):
        compare({"mdm": TRUTH}, split, fitted=[1])
    with pytest.raises(ParameterError, match="between 0 and 1"):
        split_clients(HELD_OUT, held_out=1.0)
    with pytest.raises(CountsError, match="at least two clients"):
        split_clients([[1, 2]])


# ------------------------------------------------------------------------- the command


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
    ran = tables("compare", *names, "--splits", 100, "--folds", 2, "-o", "out.json")
    assert ran.code == 0
    assert "energy distance," in ran.out
    assert "nobody said" in ran.err
    with open("out.json") as file:
        record = json.load(file)
    assert (record["format"], record["version"]) == ("polyurn.comparison", 1)
    assert record["made"]["command"].startswith("polyurn compare held-out.csv")
    assert [row["name"] for row in record["rows"]] == ["mdm", "drawn"]
    again = tables("compare", *names, "--splits", 100, "--folds", 2, "--json").json()
    assert again["rows"] == record["rows"]


@pytest.mark.parametrize("fitted", ["fitted.csv", "fitted.parquet"])
def test_the_command_says_when_clients_were_fitted(tables, fitted):
    ran = tables("compare", "held-out.csv", "mdm=mdm.json", "--folds", 0, "--fitted", fitted)
    assert "compared with the clients that were fitted: 20 of 40" in ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["held-out.csv", "mdm.json"], "expected a population as NAME=FILE, got 'mdm.json'"),
        (["held-out.csv", "a=mdm.json", "a=simulated.csv"], "'a' twice"),
        (["held-out.csv", "a=none.json"], "cannot read none.json"),
        (["none.csv", "a=mdm.json"], "cannot read none.csv"),
        (["clients.csv", "a=mdm.json"], "at least 10 clients to compare with, got 6"),
        (["held-out.csv", "a=mdm.json", "b=other.json"], "MDM files with the same categories"),
        (["held-out.csv", "a=mdm.json", "--splits", "5"], "n_splits"),
        (["held-out.csv", "a=mdm.json", "-o", "c.txt"], "expected a .json file"),
    ],
)
def test_the_command_refuses_in_one_line(tables, arguments, words):
    save(MDM([1.0], [[1.0, 1.0]], Sizes.constant(6)), "other.json")
    place = [] if "-o" in arguments else ["-o", "out.json"]
    assert_refused(tables("compare", *arguments, *place), words)

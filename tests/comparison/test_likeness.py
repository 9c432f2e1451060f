"""Populations against clients that were held out, and the classifier that tells them apart."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from comparison_cases import HELD_OUT, QUICK, TRUTH
from polyurn import IID, MDM, Histograms, Sizes, compare, split_clients
from polyurn.comparison.likeness import two_sample_auc
from polyurn.errors import CountsError, MissingDependencyError, ParameterError

OTHER = MDM([1.0], [[50.0, 1.0, 1.0]], Sizes.constant(6))

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


def test_a_population_that_holds_the_held_out_clients_is_found_out():
    mdm = MDM([1.0], [[0.6, 0.9, 0.3]], Sizes.constant(200))
    held_out = mdm.sample(80, rng=7)
    part = np.concatenate([held_out[:40], mdm.sample(40, rng=8)])
    verdict = compare({"part": part, "mdm": mdm}, held_out, rng=0, **QUICK)
    assert verdict["part"].n_shared >= 40
    said = [sentence for sentence in verdict.sentences() if "true clients themselves" in sentence]
    assert len(said) == 1
    assert said[0].startswith("population 'part'")
    assert "AUC may be far below 0.5" in said[0]


def test_few_points_make_twins_by_chance_and_nothing_is_said():
    small = MDM([1.0], [[1.0, 1.0]], Sizes.constant(3))
    verdict = compare({"mdm": small}, small.sample(60, rng=1), rng=0, **QUICK)
    assert verdict["mdm"].n_shared == verdict.n_twins == 60
    assert not any("themselves" in sentence for sentence in verdict.sentences())


def test_an_honest_model_of_few_categories_and_small_clients_is_not_accused():
    truth = MDM([1.0], [[0.5, 0.5, 0.5]], Sizes.constant(12))
    model = MDM([1.0], [[0.3, 0.3, 0.3]], Sizes.constant(12))  # collides more often than the truth
    for seed in range(5):
        verdict = compare({"mdm": model}, truth.sample(60, rng=seed), rng=seed, **QUICK)
        row = verdict["mdm"]
        assert abs(row.n_shared - row.n_expected) < 5 * np.sqrt(row.n_expected)
        assert not any("themselves" in sentence for sentence in verdict.sentences())


def test_the_expected_number_of_collisions_is_that_of_draws_from_the_model():
    mdm = MDM([0.5, 0.5], [[1.0, 2.0], [3.0, 0.5]], Sizes.constant(30, n_components=2))
    held_out = mdm.sample(40, rng=0)
    row = compare({"mdm": mdm}, held_out, n_clients=25, rng=0, **QUICK)["mdm"]
    drawn = [mdm.sample(25, rng=seed) for seed in range(400)]
    naive = np.mean([sum((one == d).all(axis=1).any() for one in held_out) for d in drawn])
    assert row.n_expected == pytest.approx(naive, rel=0.03)  # 5 standard errors


# ------------------------------------------------------------------------- held out


def test_a_comparison_with_clients_that_were_fitted_says_so():
    ids = list(range(150))
    verdict = compare({"mdm": TRUTH}, HELD_OUT, clients=ids, fitted=ids[50:], rng=0, **QUICK)
    assert verdict.n_fitted == 100
    said = "compared with the clients that were fitted: 100 of 150"
    assert said in str(verdict)
    assert verdict.to_dict()["standing"] == said


def test_what_nobody_said_is_not_guessed():
    verdict = compare({"mdm": TRUTH}, HELD_OUT, rng=0, **QUICK)
    assert verdict.n_fitted is None
    assert "cannot tell whether the model was fitted" in verdict.standing


# ------------------------------------------------------------------------ refusals


def test_a_function_is_no_population():
    with pytest.raises(ParameterError, match=r"population 'a': .* function"):
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
        ({"n_splits": 10}, "n_splits as an integer of at least 100, got 10"),
        ({"n_directions": 0}, "n_directions as an integer of at least 1"),
        ({"n_bootstrap": 3}, "n_bootstrap as an integer of at least 100"),
        ({"n_folds": 1}, "n_folds of 0, or 2 to 10, got 1"),
        ({"max_clients": 5}, "max_clients as an integer of at least 10"),
        ({"n_clients": 0}, "n_clients as an integer of at least 10"),
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


def test_clients_of_the_same_kind_cannot_be_told_apart():
    # 12 trials at about 95 %: fewer than 9 by chance in 1 of 300.
    rng = np.random.default_rng(0)
    found = [two_sample_auc(*rng.random((2, 100, 3)), rng=seed) for seed in range(12)]
    assert sum(auc.low <= 0.5 <= auc.high for auc in found) >= 9
    assert 0.4 < np.mean([auc.value for auc in found]) < 0.6


def test_what_only_trees_can_see_is_seen():
    """Same marginals and the same correlation, zero; one kind keeps out of the corners."""
    rng = np.random.default_rng(1)
    square = rng.uniform(-1, 1, (300, 2))
    cross = square * np.where(rng.random((300, 1)) < 0.5, [1.0, 0.05], [0.05, 1.0])
    auc = two_sample_auc(cross, square, rng=0)
    assert auc.low > 0.7


def test_clients_that_share_nothing_are_always_told_apart():
    x = np.random.default_rng(0).random((40, 2))
    assert two_sample_auc(x, x + 2, rng=0).value == 1.0


def test_the_same_seed_gives_the_same_answer():
    x, y = np.random.default_rng(0).random((2, 50, 2))
    assert two_sample_auc(x, y, rng=3) == two_sample_auc(x, y, rng=3)


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(MissingDependencyError, match=r"polyurn\[sklearn\]"):
        two_sample_auc(np.ones((10, 2)), np.ones((10, 2)), rng=0)


def test_populations_in_another_order_of_names_are_not_told_apart():
    names = ("a", "b", "c")
    held_out = Histograms(sparse.csr_array(HELD_OUT), np.arange(len(HELD_OUT)), names)
    turned = Histograms(held_out.counts[:, ::-1], held_out.clients, names[::-1])
    named = replace(TRUTH, categories=names)
    reverse = replace(TRUTH, alphas=TRUTH.alphas[:, ::-1], categories=names[::-1])
    right = compare({"mdm": named}, held_out, rng=1, **QUICK)["mdm"]
    for model, table in ((named, turned), (reverse, held_out), (reverse, turned)):
        row = compare({"mdm": model, "same": turned}, table, rng=1, **QUICK)
        assert row["mdm"].log_likelihood.value == pytest.approx(right.log_likelihood.value)
        assert row["mdm"].energy_ratio < 4
        assert row["same"].n_shared == len(HELD_OUT)


def test_populations_of_other_names_are_never_compared_in_silence():
    held_out = Histograms(sparse.csr_array(HELD_OUT), np.arange(len(HELD_OUT)), ("a", "b", "c"))
    with pytest.raises(
        CountsError, match=r"'mdm': expected the 3 .* a, b, c, got 3 .* without names"
    ):
        compare({"mdm": TRUTH}, held_out, **QUICK)
    others = replace(TRUTH, categories=("a", "b", "d"))
    with pytest.raises(
        CountsError, match=r"categories a, b, d, got .* a, b, c, where c do not match"
    ):
        compare({"mdm": others}, held_out, **QUICK)
    with pytest.raises(CountsError, match=r"the 3 categories a, b, d, got 3 .* without names"):
        compare({"mdm": others}, HELD_OUT, **QUICK)
    rows = [
        compare({"mdm": others}, held_out, match=match, rng=1, **QUICK)["mdm"].energy_ratio
        for match in ("position", {"c": "d"})
    ]
    assert rows[0] == rows[1]


def test_a_split_keeps_the_names_of_its_table():
    held_out = Histograms(sparse.csr_array(HELD_OUT), np.arange(len(HELD_OUT)), ("a", "b", "c"))
    split = split_clients(held_out, rng=0)
    assert split.held_out.categories == split.fitted.categories == ("a", "b", "c")
    assert split.held_out.clients.tolist() == split.held_out_rows.tolist()

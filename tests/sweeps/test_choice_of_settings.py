"""The settings to use after a sweep, on runs whose answer can be written down."""

import json
import tomllib

import numpy as np
import pytest

from polyurn import best_settings
from polyurn.comparison.estimates import student_estimate
from polyurn.storage.run_log import FinishedRun
from polyurn.sweeps.choice_of_settings import keep_best


def run(population, lr, score, *, seed=0, loss=1.0, **changes):
    fields = {
        "engine": "trainer",
        "rounds": [9],
        "loss": [loss],
        "metrics": {"accuracy": [score]},
        "final": {"accuracy": score},
        "diverged_at": None,
        "seconds": 1.0,
    } | changes
    return FinishedRun(population, seed, {"lr": lr, "rounds": 9}, **fields)


def runs(population, table):
    """Runs of {lr: score of each seed}."""
    return [
        run(population, lr, score, seed=seed)
        for lr, scores in table.items()
        for seed, score in enumerate(scores)
    ]


MDM = {0.1: [0.70, 0.72, 0.71], 0.2: [0.71, 0.70, 0.71], 0.4: [0.50, 0.52, 0.51]}
TRUE = {0.1: [0.60, 0.62, 0.61], 0.2: [0.64, 0.63, 0.65], 0.4: [0.50, 0.52, 0.51]}


def test_what_cannot_be_told_from_the_best_is_said_seed_by_seed():
    found = best_settings(runs("mdm", MDM))
    assert found.varied == {"lr": 0.1}
    assert found.score == pytest.approx(0.71)
    (rival,) = found.rivals
    assert rival.settings == {"lr": 0.2}
    apart = student_estimate([a - b for a, b in zip(MDM[0.1], MDM[0.2], strict=True)])
    assert (rival.apart.value, rival.apart.low) == pytest.approx((apart.value, apart.low))
    assert found.sentences()[1] == "they cannot be told from lr 0.2"


def test_what_the_choice_loses_on_the_true_clients_is_read_off_where_they_were_trained():
    found = best_settings([*runs("mdm", MDM), *runs("true", TRUE), *runs("iid", MDM)])
    assert found.population == "mdm"
    (there,) = found.elsewhere
    assert (there.population, there.settings) == ("true", {"lr": 0.2})
    assert there.apart.value == pytest.approx(0.03)
    assert found.sentences()[-1].startswith("on true clients they lose 3.0 points (")
    assert found.sentences()[-1].endswith("against the best there, lr 0.2")


def test_without_true_clients_it_is_every_other_population():
    found = best_settings([*runs("mdm", MDM), *runs("iid", TRUE), *runs("dir", MDM)])
    assert [one.population for one in found.elsewhere] == ["iid", "dir"]
    assert found.sentences()[-1] == "on dir clients they are best, too"


def test_of_the_loss_the_smallest_is_best():
    asked = [run("mdm", lr, 0.5, seed=seed, loss=lr) for lr in (0.1, 0.2) for seed in (0, 1)]
    found = best_settings(asked, metric="loss")
    assert found.varied == {"lr": 0.1}
    assert found.rivals == ()
    assert "loss 0.1 on mdm clients" in found.sentences()[0]


def test_a_perfect_weighted_run_is_a_fraction_still():
    """Classes' weights are of single precision: a perfect run may score 1.00000004."""
    found = best_settings([*runs("mdm", {0.1: [1.00000004] * 2}), *runs("true", {0.1: [0.9] * 2})])
    assert "accuracy 100.0% on mdm clients" in found.sentences()[0]


def test_pruned_runs_and_the_noise_floor_choose_nothing():
    asked = [*runs("again", {0.4: [0.9]}), *runs("mdm", MDM), run("mdm", 0.8, 0.99, pruned=True)]
    assert best_settings(asked).varied == {"lr": 0.1}
    assert best_settings([run("mdm", 0.8, 0.99, pruned=True)]) is None


def test_the_files_have_the_same_choice_and_null_where_one_seed_has_no_interval(tmp_path):
    keep_best(best_settings([*runs("mdm", {0.1: [0.7]}), *runs("iid", {0.1: [0.6]})]), tmp_path)
    kept = json.loads((tmp_path / "best.json").read_text())
    assert kept["settings"] == {"lr": 0.1, "rounds": 9}
    assert kept["elsewhere"][0]["apart"] == {"value": 0.0, "low": None, "high": None}
    assert "wording" not in kept
    assert tomllib.loads((tmp_path / "best.toml").read_text()) == kept["settings"]


def test_numbers_do_not_depend_on_the_order_of_runs():
    asked = [*runs("mdm", MDM), *runs("true", TRUE)]
    shuffled = [asked[i] for i in np.random.default_rng(0).permutation(len(asked))]
    assert best_settings(shuffled) == best_settings(asked)

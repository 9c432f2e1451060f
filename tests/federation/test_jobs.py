"""What a federation can be asked for, and what it cannot."""

import json
from dataclasses import replace

import pytest

from federation_jobs import job_of, style_job_of
from polyurn.errors import FileError, ParameterError
from polyurn.federation.jobs import StyleJob
from polyurn.typed.json_form import from_json, to_json

JOB = job_of("fed")
STYLE = style_job_of("fed", features=("width", "height"))


def test_a_run_goes_on_only_with_the_settings_that_decide_about_its_rounds():
    assert replace(JOB, timeout=5.0, settling=1.0, retries=0, command="c").settings == JOB.settings
    assert replace(JOB, max_rounds=50).settings == JOB.settings
    for other in (
        {"seed": 1},
        {"secure": False},
        {"cohort_size": 2},
        {"tol": 0.1},
        {"components": (3,)},
    ):
        assert replace(JOB, **other).settings != JOB.settings
    selection = replace(JOB, selects=True)
    assert replace(selection, max_rounds=50).settings != selection.settings
    json.dumps(JOB.settings)


PRIVATE = replace(JOB, epsilon=1.0, delta=1e-6, trust="distributed")


def test_a_private_run_goes_on_with_the_same_guarantee_and_a_larger_budget():
    assert replace(PRIVATE, ledger_epsilon=2.0).settings == PRIVATE.settings
    for other in ({"epsilon": 2.0}, {"delta": 1e-7}, {"trust": "local"}):
        assert replace(PRIVATE, **other).settings != PRIVATE.settings
    assert PRIVATE.settings != JOB.settings


@pytest.mark.parametrize(
    ("job", "other", "why"),
    [
        (JOB, {"delta": 1e-6}, "with epsilon only"),
        (JOB, {"trust": "local"}, "with epsilon only"),
        (PRIVATE, {"delta": None}, "expected delta with epsilon"),
        (PRIVATE, {"epsilon": -1.0}, "epsilon above 0"),
        (PRIVATE, {"ledger_epsilon": 0.0}, "epsilon above 0"),
        (PRIVATE, {"trust": "nobody"}, "expected trust distributed, central, local in secure sums"),
        (PRIVATE, {"secure": False}, "expected trust central, local in plain sums"),
        (PRIVATE, {"cohort_size": 3}, "no cohort"),
        (PRIVATE, {"sizes": "exact"}, "binned or shared"),
    ],
)
def test_a_guarantee_that_cannot_be_given_is_refused(job, other, why):
    with pytest.raises(ParameterError, match=why):
        replace(job, **other)


@pytest.mark.parametrize("job", [JOB, STYLE], ids=["mixture", "style"])
@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"min_nodes": 1}, "a sum over one node is its answer"),
        ({"min_nodes": 0, "secure": False}, "min_nodes of at least 1"),
        ({"min_fraction": 1.1}, "min_fraction from 0 to 1"),
        ({"timeout": 0.0}, "timeout above 0"),
        ({"dropout": 0.5}, "dropout from 0 to less than 0.5, got 0.5"),
        ({"epsilon": 1.0}, "expected delta with epsilon"),
        ({"epsilon": 1.0, "delta": 1e-6, "trust": "nobody"}, "expected trust"),
    ],
    ids=str,
)
def test_the_terms_are_the_same_whatever_is_asked(job, other, why):
    with pytest.raises(ParameterError, match=why):
        replace(job, **other)


def test_a_style_job_is_read_back_with_its_space_to_the_last_bit():
    private = replace(STYLE, label_effect=True, epsilon=1.0, delta=1e-6, trust="local")
    for job in (STYLE, private, replace(STYLE, features=None)):
        assert from_json(StyleJob, json.loads(json.dumps(to_json(job)))) == job


def test_features_have_a_name_each_or_none():
    with pytest.raises(ParameterError, match="a name for each of 2 features, got 1"):
        replace(STYLE, features=("width",))


@pytest.mark.parametrize("space", [None, {}, {"n_labels": 2}, []], ids=str)
def test_a_space_that_is_damaged_is_named(space):
    with pytest.raises(FileError, match="space"):
        from_json(StyleJob, {**to_json(STYLE), "space": space})

"""What a comparison came to: its table, and its record and back."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comparison_cases import HELD_OUT, QUICK, TRUTH, iid
from polyurn import MDM, Sizes, compare
from polyurn.comparison.comparison_results import Comparison, Floors, Likeness
from polyurn.comparison.distances import Floor
from polyurn.comparison.estimates import Estimate
from polyurn.comparison.summaries import Dispersion, Heterogeneity
from polyurn.errors import FileError
from report_material import comparison

KEPT = Path(__file__).parents[2] / "experiments" / "results" / "populations.jsonl"

COUNTS = st.integers(0, 10**6)
NUMBERS = st.floats(-1e100, 1e100) | st.sampled_from([math.inf, -math.inf])
ESTIMATES = st.builds(Estimate, NUMBERS, NUMBERS, NUMBERS)
FLOORS = st.builds(Floor, NUMBERS, NUMBERS, NUMBERS, COUNTS)
HETEROGENEITY = st.builds(Heterogeneity, *[ESTIMATES] * 4)
ROWS = st.builds(
    Likeness,
    name=st.text(),
    n_clients=COUNTS,
    log_likelihood=st.none() | ESTIMATES,
    log_likelihood_given_size=st.none() | ESTIMATES,
    energy_distance=NUMBERS,
    energy_ratio=NUMBERS,
    energy_null=st.tuples(NUMBERS, NUMBERS),
    sliced_wasserstein=NUMBERS,
    sliced_wasserstein_ratio=NUMBERS,
    auc=st.none() | ESTIMATES,
    size_distance=NUMBERS,
    size_ratio=NUMBERS,
    n_shared=COUNTS,
    heterogeneity=HETEROGENEITY,
    dispersion=st.none() | st.builds(Dispersion, ESTIMATES, ESTIMATES),
)
COMPARISONS = st.builds(
    Comparison,
    rows=st.lists(ROWS, min_size=1, max_size=3).map(tuple),
    floors=st.builds(Floors, FLOORS, FLOORS, FLOORS),
    heterogeneity=HETEROGENEITY,
    n_clients=COUNTS,
    n_compared=st.integers(1, 10**6),
    n_fitted=st.none() | COUNTS,
    n_twins=COUNTS,
)


@given(COMPARISONS)
def test_a_comparison_comes_back_from_its_record(verdict):
    text = json.dumps(verdict.to_dict(), allow_nan=False)
    assert Comparison.from_dict(json.loads(text)) == verdict


def test_a_comparison_without_a_two_sample_test_comes_back_with_all_that_it_says():
    verdict = comparison()
    again = Comparison.from_dict(json.loads(json.dumps(verdict.to_dict())))
    assert again.to_dict() == verdict.to_dict()
    assert str(again) == str(verdict)


def test_the_comparisons_that_we_keep_are_read_as_they_stand():
    records = [json.loads(line)["comparison"] for line in KEPT.read_text().splitlines()]
    assert len(records) >= 40
    for record in records:
        read = Comparison.from_dict(record).to_dict()
        for row, kept in zip(read["rows"], record["rows"], strict=True):
            # Some that we keep are older: without the one, and with a measure that is gone.
            kept.setdefault("n_expected", None)
            kept.pop("size_ks")
            assert row["n_expected"] == kept["n_expected"]
        assert {**read, "standing": ""} == {**record, "standing": ""}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"rows": []}, "expected at least one population and one client to compare with"),
        ({"n_compared": 0}, "expected at least one population and one client to compare with"),
        ({"rows": 3}, "rows: expected a list, got 3"),
        ({"rows": [3]}, "rows[0]: expected an object, got 3"),
        ({"floors": None}, "floors: expected an object, got None"),
    ],
    ids=str,
)  # fmt: skip
def test_a_damaged_record_is_one_line(change, line):
    with pytest.raises(FileError) as error:
        Comparison.from_dict({**comparison().to_dict(), **change})
    assert str(error.value) == line


def test_an_impossible_client_is_a_likelihood_of_minus_infinity_and_strict_json():
    never = MDM([1.0], [[1.0, 1.0, 0.0]], Sizes.constant(6))
    verdict = compare({"never": never}, HELD_OUT, rng=0, **QUICK)
    row = json.loads(json.dumps(verdict.to_dict(), allow_nan=False))["rows"][0]
    assert row["log_likelihood"]["value"] == "-Infinity"
    assert row["log_likelihood_given_size"]["value"] == "-Infinity"
    assert row["dispersion"] is None


def test_the_table_has_a_line_for_every_measure_and_a_column_for_every_population():
    verdict = compare(
        {"mdm": TRUTH, "iid": iid(80, np.random.default_rng(0))}, HELD_OUT, rng=0, **QUICK
    )
    head, mdm, simulated, true = zip(*verdict.table(), strict=True)
    assert (mdm[0], simulated[0], true[0]) == ("mdm", "iid", "true")
    assert len({len(row) for row in (head, mdm, simulated, true)}) == 1
    lines = str(verdict).splitlines()
    assert len(lines) == len(head) + len(verdict.sentences())
    with pytest.raises(KeyError):
        verdict["nobody"]


def test_the_table_shows_every_interval():
    verdict = compare({"mdm": TRUTH}, HELD_OUT, rng=0, **QUICK)
    head, mdm, true = zip(*verdict.table(), strict=True)
    for name in ("total variation", "Jensen-Shannon", "effective categories", "about Dirichlet"):
        column = next(i for i, title in enumerate(head) if title.startswith(name))
        assert " to " in mdm[column]
        assert " to " in true[column]
    low, high = verdict["mdm"].energy_null
    assert f"[{low:.2f} to {high:.2f}]" in mdm[head.index("energy, ratio [range of 1]")]


def test_every_measure_with_plus_minus_says_what_it_is():
    head, *rows = zip(*few_true_clients(500).table(), strict=True)
    for row in rows:
        for heading, cell in zip(head, row, strict=True):
            assert ("±" in heading and "95 %" in heading) or "±" not in cell


def test_few_true_clients_are_said_under_the_table():
    assert any("12 true clients are few" in said for said in few_true_clients(12).sentences())
    assert not any("are few" in said for said in few_true_clients(500).sentences())


def few_true_clients(n):
    return replace(comparison(), n_clients=n, n_compared=n)

"""What a comparison came to: its table and its record."""

import json

import pytest

from comparison_cases import HELD_OUT, QUICK, TRUTH, iid
from polyurn import MDM, Sizes, compare


def test_an_impossible_client_is_a_likelihood_of_minus_infinity_and_strict_json():
    never = MDM([1.0], [[1.0, 1.0, 0.0]], Sizes.constant(6))
    verdict = compare({"never": never}, HELD_OUT, rng=0, **QUICK)
    row = json.loads(json.dumps(verdict.to_dict(), allow_nan=False))["rows"][0]
    assert row["log_likelihood"]["value"] == "-Infinity"
    assert row["log_likelihood_given_size"]["value"] == "-Infinity"
    assert row["dispersion"] is None


def test_the_table_has_a_line_for_every_measure_and_a_column_for_every_population():
    verdict = compare({"mdm": TRUTH, "iid": iid}, HELD_OUT, rng=0, **QUICK)
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

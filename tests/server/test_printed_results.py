"""Results print themselves: short tables with sensible digits."""

import pytest

import polyurn as pu
from polyurn.model.paper_truths import truth

COUNTS = truth("appendix-a").sample(200, rng=0)


def test_a_fit_does_not_print_as_a_record_of_fields():
    done = pu.fit(COUNTS, n_components=[1, 2, 3], max_rounds=10, rng=0)
    lines = str(done).splitlines()
    assert "Fit(" not in str(done)
    assert lines[0].startswith(f"{done.n_components} components, 5 categories, by ")
    assert done.cost in lines
    assert done.taken in lines
    assert len(lines) <= 16
    assert max(map(len, lines[4:])) < 110


def test_a_printed_fit_has_no_row_for_each_of_many_candidates():
    done = pu.fit(COUNTS, n_components=range(1, 31), max_rounds=4, rng=0)
    assert len(str(done).splitlines()) < 35
    shown = done.best_candidates(12)
    assert len(shown) == 12
    assert done.chosen in shown


def test_a_partition_prints_how_many_points_its_clients_hold():
    parts = pu.partition([0, 1] * 50, [[3, 1], [2, 2]], rng=0)
    lines = str(parts).splitlines()
    assert lines[:3] == [
        "clients             2", "points              8",
        "points of a client  4 to 4, half at most 4",
    ]  # fmt: skip
    assert lines[3] == "8 points given: 7 different rows of 100; 1 row is in more than one client"


def test_tables_of_results_are_data_frames():
    pytest.importorskip("pandas")
    done = pu.fit(COUNTS, n_components=[1, 2], max_rounds=8, rng=0)
    assert done.to_pandas()["n_components"].tolist() == [1, 2]
    one = pu.fit(COUNTS, n_components=1, rng=0)
    assert one.to_pandas()["number"].tolist() == [r.number for r in one.rounds]
    parts = pu.partition([0, 1] * 50, [[3, 1], [2, 2]], rng=0)
    assert parts.to_pandas()["client"].tolist() == [0] * 4 + [1] * 4
    found = pu.compare({"mdm": done.mdm}, COUNTS, n_splits=100, n_folds=0, n_bootstrap=100, rng=0)
    assert list(found.to_pandas().columns) == ["mdm", "true"]

import numpy as np
import pyarrow.parquet as pq
import pytest

import polyurn as pu
from polyurn.errors import FileError, ParameterError
from polyurn.storage.drawn_clients import write_drawn
from shard_cases import MDM


def histograms(folder):
    tables = [pq.read_table(path) for path in sorted(folder.glob("*.parquet"))]
    made = [pu.table_histograms(table, categories=10) for table in tables]
    ids = np.concatenate([one.clients for one in made])
    assert ids.tolist() == list(range(len(ids)))
    return np.concatenate([one.counts.toarray() for one in made])


def test_a_folder_has_as_many_clients_as_were_asked_for_each_called_by_its_number(tmp_path):
    assert write_drawn(MDM, 2_500, tmp_path / "drawn", rng=0, clients_per_file=1_000) == 3
    counts = histograms(tmp_path / "drawn")
    assert counts.shape == (2_500, 10)
    # The mean of 2,500 clients; 4.5 standard errors: alarm below 1e-3 over ten categories.
    error = counts.std(axis=0) / np.sqrt(2_500)
    assert (np.abs(counts.mean(axis=0) - MDM.mean()) < 4.5 * error).all()


def test_the_clients_do_not_depend_on_threads_and_a_stopped_run_goes_on(tmp_path, monkeypatch):
    settings = {"rng": 4, "clients_per_file": 100}
    write_drawn(MDM, 350, tmp_path / "one", n_threads=1, **settings)
    write_drawn(MDM, 350, tmp_path / "two", n_threads=3, **settings)
    known = histograms(tmp_path / "one")
    np.testing.assert_array_equal(known, histograms(tmp_path / "two"))
    (tmp_path / "two" / "clients-000002.parquet").unlink()
    kept = (tmp_path / "two" / "clients-000000.parquet").stat().st_mtime_ns
    write_drawn(MDM, 350, tmp_path / "two", **settings)
    np.testing.assert_array_equal(known, histograms(tmp_path / "two"))
    assert (tmp_path / "two" / "clients-000000.parquet").stat().st_mtime_ns == kept


NAMES = {"categories": tuple("abcdefghij")}


@pytest.mark.parametrize("change", [{"rng": 5}, {"clients_per_file": 200}, NAMES])
def test_what_was_drawn_otherwise_is_not_continued(tmp_path, change):
    settings = {"rng": 4, "clients_per_file": 100}
    write_drawn(MDM, 250, tmp_path / "drawn", **settings)
    with pytest.raises(FileError, match="holds something else, clients-00000"):
        write_drawn(MDM, 250, tmp_path / "drawn", **{**settings, **change})


def test_no_clients_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="expected at least one client, got 0"):
        write_drawn(MDM, 0, tmp_path / "drawn")

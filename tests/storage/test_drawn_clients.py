import numpy as np
import pyarrow.parquet as pq
import pytest

import polyurn as pu
from polyurn.errors import FileError
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


def test_the_clients_do_not_depend_on_the_number_of_threads(tmp_path):
    settings = {"rng": 4, "clients_per_file": 100}
    write_drawn(MDM, 350, tmp_path / "one", n_threads=1, **settings)
    write_drawn(MDM, 350, tmp_path / "two", n_threads=3, **settings)
    np.testing.assert_array_equal(histograms(tmp_path / "one"), histograms(tmp_path / "two"))


def test_clients_are_not_mixed_with_other_files(tmp_path):
    write_drawn(MDM, 250, tmp_path / "drawn")
    with pytest.raises(FileError, match="holds something else"):
        write_drawn(MDM, 250, tmp_path / "drawn")

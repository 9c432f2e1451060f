import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import polyurn as pu
from polyurn import memory
from polyurn.errors import MemoryLimitError
from polyurn.sources import proxy_clients as partition_memory
from polyurn.sources.proxy_clients import say_memory


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A thousand proxy points and three clients with six, which count as many."""
    monkeypatch.setattr(partition_memory, "_LARGE", 1)
    pq.write_table(pa.table({"label": [0, 1] * 500}), tmp_path / "labels.parquet")
    pu.write_histograms([[3, 0], [1, 1], [0, 1]], tmp_path / "clients.parquet")
    return tmp_path


def test_the_memory_of_a_large_partition_is_said_before_it_is_taken(tables):
    said = []
    say_memory(tables / "labels.parquet", tables / "clients.parquet", None, said.append)
    (text,) = said
    assert text.startswith(
        "1,000 proxy points and 6 points that clients ask for take about 0.0 GiB"
    )


def test_the_features_of_a_style_take_memory_too(tables):
    said = []
    places = (tables / "labels.parquet", tables / "clients.parquet", None)
    say_memory(*places, said.append, n_features=10**4)
    assert said[0].startswith("1,000 proxy points of 10,000 features and 6 points")
    assert "take about 0.4 GiB" in said[0]  # 41 bytes each


def test_less_memory_than_it_takes_is_one_line(tables, monkeypatch):
    monkeypatch.setattr(memory, "_SMALL", 1)
    monkeypatch.setattr(memory, "available_memory", lambda: 100)
    with pytest.raises(MemoryLimitError, match=r"do not fit into memory.*fewer clients"):
        say_memory(tables / "labels.parquet", tables / "clients.parquet", None, [].append)


def test_nothing_is_known_of_text_before_it_is_read(tables):
    said = []
    (tables / "clients.csv").write_text("client,category\na,0\n")
    say_memory(tables / "labels.parquet", tables / "clients.csv", None, said.append)
    assert said == []


def test_without_counts_every_row_is_a_point(tables):
    said = []
    pq.write_table(pa.table({"client": [1, 1], "category": [0, 1]}), tables / "records.parquet")
    say_memory(tables / "labels.parquet", tables / "records.parquet", None, said.append)
    assert "and 2 points that clients ask for" in said[0]

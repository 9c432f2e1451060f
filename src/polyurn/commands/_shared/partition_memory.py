"""What memory a partition of large tables takes, said before they are read.

Parquet files say how many rows they have; of text files nothing is known before they are read.
"""

from pathlib import Path

import numpy as np

from polyurn.client.columns import column_counts
from polyurn.commands._shared.client_tables import Say, naming
from polyurn.memory import check_memory
from polyurn.storage.tables import parquet_rows, table_batches
from polyurn.wording.numbers import counted

# Peak memory of `partition` grows by so many bytes with each proxy point, and with each point that a
# client asks for (measured with 2 and 8 million of either, 20 points and 6.4 rows a client).
_BYTES_PER_PROXY_POINT = 27
_BYTES_PER_ASKED_POINT = 43
# And with each feature of a proxy point, for a style (200,000 and 800,000 points of 16 features in a
# column of lists: 41; in columns of their own they take 29).
_BYTES_PER_FEATURE = 41
# Less is not worth a sentence.
_LARGE = 2**29


def say_memory(
    labels: Path, clients: Path, count: str | None, say: Say, *, n_features: int = 0
) -> None:
    """Say how much memory a partition takes if it is much, and refuse to begin if there is not as much.

    Parameters
    ----------
    labels, clients : Path
        The proxy data, and a table of clients or an MDM file, whose clients then ask for every proxy
        point once.
    count : str or None
        The column of counts that was asked for.
    say : function of a sentence
    n_features : int
        The features of a proxy point in which a style is measured.

    Raises
    ------
    MemoryLimitError
        There is less memory than it takes.
    """
    if labels.suffix != ".parquet" or clients.suffix not in (".parquet", ".json"):
        return
    n_proxy = parquet_rows(labels) or 0
    n_asked = n_proxy if clients.suffix == ".json" else _n_points(clients, count)
    per_point = _BYTES_PER_PROXY_POINT + _BYTES_PER_FEATURE * n_features
    n_bytes = per_point * n_proxy + _BYTES_PER_ASKED_POINT * n_asked
    if n_bytes < _LARGE:
        return
    points = counted(n_proxy, "proxy point")
    if n_features:
        points += f" of {counted(n_features, 'feature')}"
    what = f"{points} and {counted(n_asked, 'point')} that clients ask for"
    say(f"{what} take about {n_bytes / 2**30:.1f} GiB of memory")
    check_memory(n_bytes, what, "partition fewer clients at a time")


def _n_points(clients: Path, count: str | None) -> int:
    """How many points the clients of a Parquet file ask for."""
    name, total = count or "count", 0
    with naming(clients):
        try:
            for _, table in table_batches(clients, columns=[name]):
                if name not in table.column_names:
                    return parquet_rows(clients) or 0  # every row is one point
                total += int(np.sum(column_counts(table, name)))
        except ValueError:  # not a column of counts: whoever reads the table says what is wrong
            return parquet_rows(clients) or 0
    return total

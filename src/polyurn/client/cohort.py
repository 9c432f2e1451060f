"""The clients of one round: members of a population, with a random stream and their buckets.

A client's bucket is a number between 0 and 1, by which a `Part` selects. It is computed from its id and
a key of its node, which `federation/folder.py` keeps: it stays the same after a restart and in another
table, and is unpredictable without the key.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyurn.client.records import Records
from polyurn.client.rows import Rows
from polyurn.errors import CountsError, InputError, ParameterError
from polyurn.typed.declared import Floats, Ints

N_KEY_BYTES = 32


@dataclass(frozen=True, eq=False, repr=False)
class Cohort:
    """The members of a population, `rows`, that answer a query; `rng` is for random answers.

    `buckets` has the number between 0 and 1 that every client drew for itself, shape (n_clients,).
    """

    rows: Rows
    members: NDArray[np.uint32]
    rng: np.random.Generator
    buckets: Floats | None = None
    n_threads: int = 1

    def __len__(self) -> int:
        return len(self.members)

    @property
    def sizes(self) -> Ints:
        """How many points each member has."""
        return self.rows.size_values[self.rows.size_index[self.members]]

    @property
    def records(self) -> Records:
        """The records of all clients, which questions about style and about a column need."""
        if self.rows.records is None:
            raise ParameterError(
                "the question needs clients' records, got their histograms only; give Records "
                "(features, labels and clients) instead of counts"
            )
        return self.rows.records

    def counts(self) -> sparse.csr_array[Any]:
        """The members' histograms, shape (n_members, n_categories)."""
        return self.rows.counts_of(self.members)

    def blocks(self, n_together: int) -> Iterator["Cohort"]:
        """The members in blocks of at most `n_together`."""
        for start in range(0, len(self), n_together):
            yield replace(self, members=self.members[start : start + n_together])

    def part(self, low: float, high: float) -> "Cohort":
        """The members whose bucket is in [low, high)."""
        if self.buckets is None:
            raise CountsError("a query to a part of the clients needs each client's bucket")
        mine = self.buckets[self.members]
        return replace(self, members=self.members[(mine >= low) & (mine < high)])


def keyed_buckets(ids: Sequence[object], key: bytes) -> Floats:
    """The top 53 bits of BLAKE2b(key, id), divided by 2**53; an id is its text.

    All ids differ, the key has 32 bytes, and the result has shape (n_clients,).

    >>> keyed_buckets(["alice", "bob"], bytes(32)).round(4).tolist()
    [0.492, 0.9074]
    """
    if len(key) != N_KEY_BYTES:
        raise InputError(f"expected a key of {N_KEY_BYTES} bytes, got {len(key)}")
    texts = [str(one) for one in ids]
    if len(set(texts)) < len(texts):
        raise InputError("expected one id for each client, got one of them twice")
    hashes = (
        blake2b(text.encode("utf-8", "surrogatepass"), key=key, digest_size=8).digest()
        for text in texts
    )
    return np.array([(int.from_bytes(one, "big") >> 11) * 2.0**-53 for one in hashes])

"""Each client's bucket: a number between 0 and 1 computed from its id and a key of its node.

`Part` selects clients by it. It stays the same after a restart and in a table with other rows or another
order. It is unpredictable without the key, which `federation/folder.py` keeps.
"""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from polyurn.errors import InputError
from polyurn.typed.declared import Floats

N_KEY_BYTES = 32


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

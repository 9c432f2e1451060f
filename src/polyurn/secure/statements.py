"""What nodes sign and agree on in a round, as bytes: their keys, the cohort, the survivors, the bounds.

Both sides compute them from what they know themselves; that they are the same is what a signature shows.
"""

import struct
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from polyurn.secure.masks import CONTEXT, derived, digest


def keys_statement(tag: bytes, node: int, keys: bytes) -> bytes:
    """What a node signs when it advertises its keys of a round."""
    return CONTEXT + b"keys|" + tag + struct.pack("<Q", node) + keys


def keys_digest(node: int, keys: bytes) -> bytes:
    """What stands for a node's keys in the cohort of a round; 32 bytes."""
    return digest(b"keys", struct.pack("<Q", node), keys)


def cohort_digest(tag: bytes, cohort: Mapping[int, bytes]) -> bytes:
    """All nodes of a round with their keys of this round; 32 bytes.

    It is in every sealed share and under every confirmation, so that nodes to whom the server showed
    different cohorts hold nothing of each other, and nothing of an earlier round is of use.
    """
    rows = b"".join(struct.pack("<Q", node) + cohort[node] for node in sorted(cohort))
    return digest(b"cohort", tag, rows)


def survivors_statement(tag: bytes, cohort: bytes, survivors: Sequence[int]) -> bytes:
    """What a node signs when it confirms the survivors that it was shown."""
    rows = struct.pack(f"<{len(survivors)}Q", *survivors)
    return CONTEXT + b"survivors|" + tag + cohort + digest(b"survivors", rows)


def share_commitment(tag: bytes, owner: int, holder: int, share: bytes) -> bytes:
    """What a node says in public about a share that it seals for another; 32 bytes.

    A share is a number of 521 random bits, and its digest says nothing about it. Who reveals one that
    does not fit lies; if all fit and the secret is wrong, its owner dealt them so.
    """
    return digest(b"share", tag, struct.pack("<QQ", owner, holder), share)


def seed_commitment(tag: bytes, node: int, seed: bytes) -> bytes:
    """What a node advertises about its seed, so that a wrong one is noticed; 32 bytes."""
    return derived(seed, b"commitment", tag, node)


def seed_mask(tag: bytes, node: int, seed: bytes) -> bytes:
    """The key of the mask that a node adds on its own (Bonawitz et al.'s b); 32 bytes."""
    return derived(seed, b"own mask", tag, node)


def bounds_digest(bounds: NDArray[np.float64]) -> bytes:
    """What the server and its nodes have to agree on before numbers are scaled; 32 bytes."""
    return digest(b"bounds", bounds.astype("<f8", copy=False).tobytes())

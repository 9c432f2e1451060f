"""A history of looks at clients: a line for each, appended, about one mixture."""

import hashlib
import os
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from polyurn.errors import FileError
from polyurn.model.mdm import MDM
from polyurn.server.drift import Drift
from polyurn.storage.json_log import JsonLog

KIND = "looks"


@dataclass(frozen=True)
class LookEntry:
    """One look: when it was (UTC), the clients' name, and what was seen."""

    when: str
    clients: str
    drift: Drift

    @classmethod
    def now(cls, clients: str, drift: Drift) -> "LookEntry":
        return cls(datetime.now(UTC).isoformat(timespec="seconds"), clients, drift)


class LookHistory:
    """The looks in a file; it is made by the first."""

    def __init__(self, path: str | os.PathLike[str], mdm: MDM | None = None) -> None:
        head = None if mdm is None else {"mixture": _digest(mdm)}
        self._path = path
        self._log = JsonLog(
            path, LookEntry, kind=KIND, name="a history of looks", chained=False,
            advice="take the line out, or begin another file", head=head, begin=mdm is not None,
            instead="begin another file, or give that mixture", mode=0o644,
        )  # fmt: skip

    def read(self) -> list[LookEntry]:
        """All looks, the first one first."""
        return self._log.read()

    def first(self) -> Drift:
        """The first look."""
        entries = self.read()
        if not entries:
            raise FileError(f"{self._path} has no look yet: compare the first with the mixture")
        return entries[0].drift

    def append(self, entry: LookEntry) -> None:
        """One more look, on disk when this returns."""
        with self._log.turn():
            self._log.read()
            self._log.append(entry)


def _digest(mdm: MDM) -> str:
    parts = (mdm.weights, mdm.log_shares(np.eye(mdm.n_categories, dtype=np.int64)), mdm.alphas)
    data = b"".join(np.round(part, 12).tobytes() for part in parts)
    return hashlib.blake2b(data, digest_size=8).hexdigest()

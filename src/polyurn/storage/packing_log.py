"""How far packing has come: a chained log with a line for each shard, appended when the shard is whole.

The first line holds the settings, by which a run that goes on is known to be the same. What is packed is
`packing.py`.
"""

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyurn.errors import FileError
from polyurn.storage.record_log import RecordLog
from polyurn.storage.shards import UNFINISHED, Shard, Totals, is_unchanged, total_of
from polyurn.typed.records import Count


@dataclass(frozen=True, kw_only=True)
class Step:
    """One shard more, or none where no client of the rows was left, and where the next rows begin."""

    totals: Totals
    next_file: Count
    next_row: Count
    shard: Shard | None = None


@dataclass(frozen=True, kw_only=True)
class _Line:
    """A step; or that the rows were sorted: how many, and how many different (client, category)."""

    step: Step | None = None
    sorted: tuple[Count, Count] | None = None


class PackingLog:
    """The record of a folder that is being packed.

    `settings` are what the shards depend on, as JSON values. A record made with others is refused; steps
    whose shard is not there any more as it was written are forgotten, with all after them.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self._folder = folder
        head = {"settings": json.loads(json.dumps(settings))}
        self._log = RecordLog(
            folder / UNFINISHED, _Line, kind="packing", name="the record of a packing",
            head=head, advice="delete the folder to pack again",
        )  # fmt: skip
        if self._log.head != head:
            raise FileError(
                f"{folder} holds a packing of other tables, or with other settings; repeat its "
                "command, or take an empty folder"
            )
        self.is_sorted: tuple[int, int] | None = None
        self.steps: list[Step] = []
        for i, line in enumerate(self._log.read()):
            if line.step is None:
                self.is_sorted = line.sorted
            elif line.step.shard is None or is_unchanged(folder, line.step.shard):
                self.steps.append(line.step)
            else:
                self._log.keep(i)
                break

    @property
    def shards(self) -> tuple[Shard, ...]:
        return tuple(step.shard for step in self.steps if step.shard is not None)

    @property
    def totals(self) -> Totals:
        return total_of(step.totals for step in self.steps)

    @property
    def next_place(self) -> tuple[int, int]:
        """The file and the row where the rows that are in no shard begin."""
        return (self.steps[-1].next_file, self.steps[-1].next_row) if self.steps else (0, 0)

    def append(self, step: Step) -> None:
        """Note one shard more, which is whole."""
        self._log.append(_Line(step=step))
        self.steps.append(step)

    def note_sorted(self, n_rows: int, n_distinct: int) -> None:
        """Note that the rows are sorted."""
        self._log.append(_Line(sorted=(n_rows, n_distinct)))
        self.is_sorted = n_rows, n_distinct

    def restart(self) -> None:
        """Forget all shards, and delete them."""
        for shard in self.shards:
            (self._folder / shard.name).unlink(missing_ok=True)
        self.steps.clear()
        self._log.keep(0)

    def remove(self) -> None:
        """Delete the record of a folder that is whole."""
        with contextlib.suppress(OSError):
            self._log.path.unlink()

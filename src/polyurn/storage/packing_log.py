"""How far packing has come, in a text file: a line for each shard, appended when the shard is whole.

The first line holds the settings, by which a run that goes on is known to be the same. A last line that
was cut off is left out. What is packed is `packing.py`.
"""

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyurn.errors import FileError
from polyurn.storage.atomic import write_whole
from polyurn.storage.places import read_regular
from polyurn.storage.shard_file import Shard, is_unchanged
from polyurn.storage.shards import UNFINISHED, Totals, total_of
from polyurn.typed.records import Count, read_record, to_record

_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Step:
    """One shard more, or none where no client of the rows was left, and where the next rows begin."""

    totals: Totals
    next_file: Count
    next_row: Count
    shard: Shard | None = None


class PackingLog:
    """The record of a folder that is being packed.

    Parameters
    ----------
    folder : Path
    settings : dict
        What the shards depend on, as JSON values. A record made with others is refused.

    Attributes
    ----------
    shards : tuple of Shard
    totals : Totals
    next_file, next_row : int
        Where the rows that are in no shard begin.
    is_sorted : (int, int) or None
        How many rows were sorted, and how many different (client, category) they had.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self._folder, self._place = folder, folder / UNFINISHED
        self._head = json.dumps({"packing": _VERSION, "settings": settings}, sort_keys=True)
        self.is_sorted: tuple[int, int] | None = None
        self._steps: list[Step] = []
        self.totals = total_of([])
        if self._place.exists():
            self._read()
        self._write(self._head, *self._lines(), fresh=True)

    @property
    def shards(self) -> tuple[Shard, ...]:
        return tuple(step.shard for step in self._steps if step.shard is not None)

    @property
    def n_steps(self) -> int:
        return len(self._steps)

    @property
    def next_file(self) -> int:
        return self._steps[-1].next_file if self._steps else 0

    @property
    def next_row(self) -> int:
        return self._steps[-1].next_row if self._steps else 0

    def append(self, step: Step) -> None:
        """Note one shard more, which is whole."""
        self._add(step)
        self._write(json.dumps({"step": to_record(step)}))

    def note_sorted(self, n_rows: int, n_distinct: int) -> None:
        """Note that the rows are sorted."""
        self.is_sorted = n_rows, n_distinct
        self._write(json.dumps({"sorted": [n_rows, n_distinct]}))

    def restart(self) -> None:
        """Forget all shards, and delete them."""
        for shard in self.shards:
            (self._folder / shard.name).unlink(missing_ok=True)
        self._steps, self.totals = [], total_of([])
        self._write(self._head, fresh=True)

    def remove(self) -> None:
        """Delete the record of a folder that is whole."""
        with contextlib.suppress(OSError):
            self._place.unlink()

    def _lines(self) -> list[str]:
        lines = [json.dumps({"step": to_record(step)}) for step in self._steps]
        return lines if self.is_sorted is None else [json.dumps({"sorted": self.is_sorted}), *lines]

    def _read(self) -> None:
        head, *lines = read_regular(self._place).decode("utf-8", "replace").split("\n")
        if not lines:  # it was stopped before its first line was whole
            return
        if head != self._head:
            raise FileError(
                f"{self._folder} holds a packing of other tables, or with other settings; repeat its "
                "command, or take an empty folder"
            )
        for line in lines[:-1]:  # the last one is empty, or was cut off
            try:
                found = json.loads(line)
                if "sorted" in found:
                    self.is_sorted = tuple(found["sorted"])
                    continue
                step = read_record(Step, found["step"])
            except (ValueError, KeyError, TypeError, FileError):
                break
            if step.shard is not None and not is_unchanged(self._folder, step.shard):
                break
            self._add(step)

    def _add(self, step: Step) -> None:
        self._steps.append(step)
        self.totals = total_of([self.totals, step.totals])

    def _write(self, *lines: str, fresh: bool = False) -> None:
        text = "".join(f"{line}\n" for line in lines).encode()
        if fresh:  # whole or not at all: on a full disk the record of what is there would be lost
            write_whole(self._place, lambda file: file.write(text))
            return
        try:
            with open(self._place, "ab") as file:
                file.write(text)
        except OSError as error:
            raise FileError(f"cannot write {self._place}: {error.strerror}") from error

"""A folder for each client, for trainers that read folders: links to files, or a table of rows."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import FileError
from polyurn.partitioning.result import Partition, check_ids
from polyurn.storage.files import others_in
from polyurn.storage.table_files import arrow

if TYPE_CHECKING:
    import pyarrow as pa


def write_client_folders(
    partition: Partition,
    folder: Path,
    rows: "pa.Table",
    *,
    files: Sequence[str] | None = None,
    labels: NDArray[Any] | None = None,
) -> None:
    """Write what each client holds into FOLDER/CLIENT, or FOLDER/train/CLIENT and FOLDER/test/CLIENT.

    With `files`, the path of each row's file, a client's folder has a folder for each label, with links
    to the files, or copies where the disk cannot link: what torchvision's `ImageFolder` reads. Without,
    it has `rows.parquet`. A client's name is percent-encoded where a folder's name cannot be like it.
    """
    if folder.exists() and (not folder.is_dir() or others_in(folder)):
        raise FileError(f"{folder} holds something else; take an empty folder")
    if files is not None and (missing := [name for name in files if not os.path.isfile(name)]):
        raise FileError(
            f"there is no file {missing[0]!r}, and {len(missing) - 1:,} more are missing"
        )
    parts = {"": partition}
    if partition.test is not None:
        parts = {"train": partition, "test": partition.test}
    for part, clients in parts.items():
        for name, held in zip(check_ids(None, clients).tolist(), clients, strict=True):
            place = folder / part / _folder_name(str(name))
            place.mkdir(parents=True)
            if files is None:
                table = rows.take(arrow("writing tables").array(held))
                arrow("writing tables").parquet.write_table(table, place / "rows.parquet")
            else:
                assert labels is not None
                _link(place, [files[i] for i in held.tolist()], labels[held])


def _link(place: Path, files: Sequence[str], labels: NDArray[Any]) -> None:
    """Link each file in the folder of its label; a number before its name keeps repeats apart."""
    for label in np.unique(labels.astype(str)):
        (place / _folder_name(label)).mkdir()
    for i, (path, label) in enumerate(zip(files, labels.tolist(), strict=True)):
        target = place / _folder_name(str(label)) / f"{i:06d}-{os.path.basename(path)}"
        try:
            os.link(os.path.realpath(path), target)
        except OSError:  # another disk, or one without links
            shutil.copyfile(path, target)


def _folder_name(name: str) -> str:
    """A name that every disk takes, and that leads nowhere else.

    >>> _folder_name("ward 3"), _folder_name("../etc"), _folder_name(".")
    ('ward 3', '..%2Fetc', '%2E')
    """
    encoded = quote(name, safe=" ()+,;=@[]{}!'&~")
    return encoded.replace(".", "%2E") if encoded.strip(".") == "" else encoded

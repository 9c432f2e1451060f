"""The arrays of a NumPy archive (.npz). Tables are read by `table_files.py`."""

import errno
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import FileError, PolyurnError
from polyurn.memory import check_memory
from polyurn.storage.files import AGAIN, open_regular
from polyurn.typed.json_form import shown

# What reading an archive with other bytes than were written can raise; a RuntimeError is a password, a
# MemoryError an array that says to be longer than it is.
_DAMAGE = (
    ValueError, EOFError, KeyError, MemoryError, NotImplementedError, RuntimeError, zipfile.BadZipFile,
    zlib.error,
)  # fmt: skip


def read_arrays(
    path: str | os.PathLike[str], *, needed: tuple[str, ...] = ()
) -> dict[str, NDArray[Any]]:
    """The arrays of an archive by their names, those that are `needed` among them.

    Nothing in the file is executed.
    """
    path = Path(path)
    try:
        with open_regular(path) as file, np.lib.npyio.NpzFile(file, allow_pickle=False) as archive:
            _check_members(path, archive.zip.infolist() if archive.zip else [])
            arrays = {name: archive[name] for name in archive.files}
    except PolyurnError:
        raise
    except _DAMAGE as error:
        raise _unreadable(path, error) from error
    except OSError as error:
        if error.errno == errno.EINVAL:  # a position before the beginning of the file
            raise _unreadable(path, error.strerror or error) from error
        raise FileError(f"cannot read {path}: {error.strerror or AGAIN}") from error
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):  # numpy returns bytes for anything else
            raise _unreadable(path, f"{shown(name)} is not an array")
    if not arrays.keys() >= set(needed):
        raise FileError(
            f"{path}: expected arrays {' and '.join(map(repr, needed))}, got "
            f"{', '.join(sorted(arrays)) or 'none'}"
        )
    return arrays


def _check_members(path: Path, members: list[zipfile.ZipInfo]) -> None:
    """Refuse arrays that do not fit into memory; no more of them is unpacked than is said here."""
    # What else zipfile reads unpacks more at once than is asked for; NumPy does not write it.
    if {one.compress_type for one in members} - {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise _unreadable(path, "it is packed in another way than NumPy's")
    check_memory(
        sum(one.file_size for one in members), f"the arrays of {path}", "take fewer points"
    )


def _unreadable(path: Path, reason: object) -> FileError:
    return FileError(f"{path} is not a readable .npz file of plain arrays: {reason}; {AGAIN}")

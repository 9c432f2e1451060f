"""Records in a NumPy archive (.npz): arrays `features` and `labels`, and `clients` where there are some.

Records in tables are read by `tables.py`.
"""

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import FileError
from polyurn.storage.atomic import AGAIN
from polyurn.storage.places import check_regular


@dataclass(frozen=True, eq=False)
class RecordArrays:
    """What an archive holds; never shown in a repr.

    Attributes
    ----------
    features : array of shape (n_points, ...)
    labels : array of shape (n_points,)
    clients : array of shape (n_points,), or None
    """

    features: NDArray[Any]
    labels: NDArray[Any]
    clients: NDArray[Any] | None

    def __repr__(self) -> str:
        return f"RecordArrays(features{self.features.shape})"


def read_record_arrays(path: str | os.PathLike[str]) -> RecordArrays:
    """Read an archive; nothing in it is executed.

    Raises
    ------
    FileError
        It cannot be read, or has no features and labels.
    """
    path = Path(path)
    check_regular(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        raise FileError(
            f"{path} is not a readable .npz file of numbers and texts; {AGAIN}"
        ) from error
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or 'it is damaged'}") from error
    missing = {"features", "labels"} - arrays.keys()
    if missing:
        raise FileError(
            f"{path}: expected arrays 'features' and 'labels', got {', '.join(sorted(arrays)) or 'none'}"
        )
    return RecordArrays(arrays["features"], arrays["labels"], arrays.get("clients"))

"""The python version of CIFAR-10, read without trusting it: bytes, numbers, lists and byte arrays.

A pickle is a program. This unpickler knows three names, those that an array of bytes is made with,
and gives each of them to code of our own; any other name ends the reading. Nothing is written.
"""

import pickle
import pickletools
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import FileError

# What a damaged pickle may raise, besides what the unpickler means to.
_DAMAGE = (
    pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError,
    OverflowError, MemoryError, ImportError,
)  # fmt: skip


def read_pickle(content: bytes, name: str) -> dict[bytes, Any]:
    """The dictionary that a batch file holds, its texts as bytes and its arrays of uint8.

    Parameters
    ----------
    content : bytes
    name : str
        Of the file, for messages.

    Raises
    ------
    FileError
        The file is cut off or damaged, or asks for anything but arrays of bytes.

    Examples
    --------
    >>> read_pickle(pickle.dumps({b"labels": [6, 9]}, protocol=2), "data_batch_1")
    {b'labels': [6, 9]}
    """
    try:
        _check_memo(content)
        batch = _Unpickler(BytesIO(content), encoding="bytes").load()
    except _DAMAGE as error:
        raise FileError(
            f"{name} is not a batch of CIFAR-10, or was cut off: {error or type(error).__name__}"
        ) from error
    if not isinstance(batch, dict):
        raise FileError(f"{name} is not a batch of CIFAR-10: expected a dictionary")
    return {key: v.values if isinstance(v, _Array) else v for key, v in batch.items()}


def _check_memo(content: bytes) -> None:
    """Refuse a pickle that numbers more objects than it has bytes: the list of them would be made."""
    for code, argument, _ in pickletools.genops(content):
        if code.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument or 0) > len(content):
            raise pickle.UnpicklingError(f"it speaks of {argument} objects")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        match (module, name):
            case ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct"):
                return _MakeArray()
            case ("numpy", "ndarray"):
                return "ndarray"
            case ("numpy", "dtype"):
                return _MakeType()
            case ("_codecs", "encode"):  # how Python 3 writes bytes in an old pickle
                return _MakeBytes()
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no batch needs")


# Instances without a dictionary, so that a pickle cannot change what they do.


class _MakeBytes:
    __slots__ = ()

    def __call__(self, text: str, encoding: object) -> bytes:
        return text.encode("latin1")


class _MakeType:
    __slots__ = ()

    def __call__(self, code: object, *_: object) -> "_ByteType":
        if code not in ("u1", b"u1"):
            raise pickle.UnpicklingError(f"it holds an array of {code!r}, not of bytes")
        return _ByteType()


class _ByteType:
    __slots__ = ()

    def __setstate__(self, state: object) -> None:
        """Byte order and alignment, of which bytes have none."""


class _MakeArray:
    __slots__ = ()

    def __call__(self, *_: object) -> "_Array":
        return _Array()


class _Array:
    __slots__ = ("values",)
    values: NDArray[np.uint8]

    def __setstate__(self, state: tuple[int, tuple[int, ...], object, bool, bytes]) -> None:
        _, shape, dtype, in_fortran_order, content = state
        if not isinstance(dtype, _ByteType):
            raise pickle.UnpicklingError("it holds an array that is not of bytes")
        flat = np.frombuffer(content, np.uint8)
        self.values = flat.reshape(shape, order="F" if in_fortran_order else "C")

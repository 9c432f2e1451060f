"""Small files of datasets, written byte by byte, and a server for one of them."""

import hashlib
import struct
from dataclasses import dataclass, field

from sources.download import RemoteFile

CONTENT = bytes(range(256)) * 20_000  # five pieces
BATCHES = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
CODES = {
    "uint8": 0x08,
    "int8": 0x09,
    "int16": 0x0B,
    "int32": 0x0C,
    "float32": 0x0D,
    "float64": 0x0E,
}


def idx(array):
    """An array as an idx file."""
    head = struct.pack(">HBB", 0, CODES[array.dtype.name], array.ndim)
    shape = b"".join(struct.pack(">I", n) for n in array.shape)
    return head + shape + array.astype(array.dtype.newbyteorder(">")).tobytes()


def text(value):
    """A short text as a pickle of protocol 2 has it."""
    return b"U" + bytes([len(value)]) + value


def array_of_bytes(pixels, code=b"u1"):
    """An array as Python 2 and the numpy of 2009 pickled it."""
    n, width = pixels.shape
    return (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01"
        + (b"K" + bytes([n]) + b"M" + struct.pack("<H", width) + b"\x86")
        + (b"cnumpy\ndtype\n" + text(code) + b"K\x00K\x01\x87R")
        + b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        + (b"\x89T" + struct.pack("<i", pixels.size) + pixels.tobytes() + b"tb")
    )


def python_batch(pixels, labels):
    """A batch of CIFAR-10 as its Python version has it."""
    return (
        b"\x80\x02}("
        + (text(b"batch_label") + text(b"training batch 1 of 5"))
        + (text(b"labels") + b"](" + b"".join(b"K" + bytes([y]) for y in labels) + b"e")
        + (text(b"data") + array_of_bytes(pixels))
        + (text(b"filenames") + b"](" + b"".join(text(b"a.png") for _ in labels) + b"e")
        + b"u."
    )


@dataclass
class Server:
    """What it serves, how it behaves, and which ranges it was asked for."""

    url: str = ""
    content: bytes = CONTENT
    with_ranges: bool = True
    with_length: bool = True
    cut_after: int | None = None
    status: int = 200
    asked: list = field(default_factory=list)

    def remote(self, checksum=None):
        return RemoteFile(self.url, checksum or f"sha256:{hashlib.sha256(CONTENT).hexdigest()}")

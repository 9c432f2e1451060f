"""Archives that were made to harm: no name in them is a place on disk, and no bomb is unpacked.

Bombs are opened in a process of their own that may use 200 MiB more than it has when it begins, and each
would need 400 MiB or more. Archives that are merely damaged: tests/storage/test_npz_files.py.
"""

import gzip
import io
import os
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from polyurn.errors import FileError
from polyurn.storage.npz_files import read_arrays

NEEDED = ("features", "labels")
MIB = 2**20
OPENS = """
import resource, sys
from polyurn.errors import PolyurnError
from polyurn.storage.npz_files import read_arrays
from polyurn.storage.table_files import arrow, read_table
arrow("this")  # loaded before memory is counted
path = sys.argv[1]
with open("/proc/self/statm") as file:
    has = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (has + 200 * 2**20,) * 2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    (read_arrays if path.endswith(".npz") else read_table)(path)
    print("it was read")
except PolyurnError as error:
    print(f"{type(error).__name__}: {error}")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def npy(shape, data=b"", kind="|u1"):
    """An array as NumPy writes it, whatever its head says of its data."""
    head = {"descr": kind, "fortran_order": False, "shape": shape}
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, head)
    return file.getvalue() + data


def archive(path, members, *, packing=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", packing, compresslevel=1) as file:
        for name, data in members.items():
            file.writestr(name, data)


def zeros(n_mib):
    return npy((n_mib * MIB,), bytes(n_mib * MIB))


def large(folder):
    archive(folder / "bomb.npz", {"features.npy": zeros(400), "labels.npy": zeros(1)})
    return folder / "bomb.npz"


def many(folder):
    archive(folder / "bomb.npz", {f"features{i}.npy": zeros(40) for i in range(10)})
    return folder / "bomb.npz"


def understated(folder):
    """It says that it is short, in a packing that unpacks more than it is asked for."""
    path = folder / "bomb.npz"
    whole = zeros(400)
    archive(path, {"features.npy": whole}, packing=zipfile.ZIP_BZIP2)
    path.write_bytes(
        path.read_bytes().replace(struct.pack("<I", len(whole)), struct.pack("<I", 200))
    )
    return path


def overstated(folder):
    """An array of 8 TB, of which nothing is there."""
    archive(folder / "bomb.npz", {"features.npy": npy((10**12,), kind="<f8")})
    return folder / "bomb.npz"


def text(folder):
    with gzip.open(folder / "bomb.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"client,category\n")
        for _ in range(400):
            file.write(b"a,b\n" * (MIB // 4))
    return folder / "bomb.csv.gz"


def columns(folder):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    column = pa.array(np.zeros(10**6, dtype=np.int64))
    table = pa.table({"client": column, "category": column})
    with parquet.ParquetWriter(folder / "bomb.parquet", table.schema) as file:
        for _ in range(60):
            file.write_table(table)
    return folder / "bomb.parquet"


TOO_LARGE = "do not fit into memory"
BOMBS = {
    large: TOO_LARGE, many: TOO_LARGE, understated: "packed in another way", text: TOO_LARGE,
    overstated: "is not a readable .npz file", columns: TOO_LARGE,
}  # fmt: skip


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is counted on Linux")
@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
def test_a_bomb_is_not_unpacked_and_is_one_clear_line(tmp_path, bomb):
    path = bomb(tmp_path)
    assert path.stat().st_size < 10 * MIB
    done = subprocess.run(
        [sys.executable, "-c", OPENS, str(path)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-500:]
    said, grown = done.stdout.splitlines()
    assert str(path) in said
    assert BOMBS[bomb] in said
    assert int(grown) < 64


@pytest.mark.parametrize(
    "name",
    ["../features", "/features", "a/../../features", "..\\features", "C:\\features"],
)
def test_no_name_in_an_archive_is_a_place_on_disk(tmp_path, name):
    (tmp_path / "deep").mkdir()
    path = tmp_path / "deep" / "records.npz"
    data = npy((2,), b"ab")
    archive(path, {f"{name}.npy": data, "labels.npy": data})
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(FileError, match="expected arrays 'features' and 'labels', got ") as error:
        read_arrays(path, needed=NEEDED)
    assert "\n" not in str(error.value)
    assert sorted(tmp_path.rglob("*")) == before
    assert len(read_arrays(path)) == 2


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damage_in_a_packing_that_numpy_does_not_write_is_no_other_error(tmp_path, packing):
    path = tmp_path / "records.npz"
    archive(path, {"features.npy": zeros(1), "labels.npy": zeros(1)}, packing=packing)
    whole = bytearray(path.read_bytes())
    for place in range(60, 90, 10):
        whole[place] ^= 0xFF
    path.write_bytes(whole)
    with pytest.raises(FileError, match="packed in another way"):
        read_arrays(path, needed=NEEDED)


def test_nothing_in_an_archive_is_executed(tmp_path):
    class Touches:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "executed"),)

    np.savez(tmp_path / "records.npz", features=np.array([Touches()], dtype=object), labels=[0])
    with pytest.raises(FileError, match="is not a readable"):
        read_arrays(tmp_path / "records.npz")
    assert not (tmp_path / "executed").exists()

"""idx and gzip files, whole, cut off and wrong."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from sources.packed import read_idx

from dataset_files import CODES, idx
from polyurn.errors import FileError


@given(
    st_numpy.arrays(
        st.sampled_from(sorted(CODES)).map(np.dtype),
        st_numpy.array_shapes(max_dims=4, max_side=4),
    )
)
def test_what_is_written_as_idx_is_read_back(tmp_path_factory, array):
    path = tmp_path_factory.mktemp("idx") / "it"
    path.write_bytes(idx(array))
    assert np.array_equal(read_idx(path), array, equal_nan=array.dtype.kind == "f")


@given(st.data())
def test_an_idx_file_that_was_cut_off_or_goes_on_is_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("idx") / "it"
    whole = idx(np.arange(12, dtype=np.int32).reshape(3, 4))
    end = data.draw(st.integers(0, len(whole) - 1))
    for content in (whole[:end], whole + b"\0"):
        path.write_bytes(content)
        with pytest.raises(FileError, match="it is"):
            read_idx(path)


def test_a_header_that_claims_more_than_memory_is_refused(tmp_path):
    (tmp_path / "it").write_bytes(struct.pack(">HBB4I", 0, 8, 4, *[2**32 - 1] * 4))
    with pytest.raises(FileError, match="expected 3402823"):
        read_idx(tmp_path / "it")

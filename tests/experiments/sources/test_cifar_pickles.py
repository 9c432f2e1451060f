"""CIFAR-10's pickles, whole, cut off, and made to harm."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources.cifar_pickles import read_pickle

from dataset_files import array_of_bytes, python_batch, text
from polyurn.errors import FileError


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_batches_that_a_later_python_wrote_are_read(batches, protocol):
    pixels, labels = batches["test_batch"]
    content = pickle.dumps({b"data": pixels, b"labels": labels}, protocol=protocol)
    batch = read_pickle(content, "it")
    assert batch[b"labels"] == labels
    assert (batch[b"data"] == pixels).all()


@given(st.data())
def test_a_pickle_that_was_cut_off_is_refused(data):
    whole = python_batch(np.zeros((2, 3072), np.uint8), [3, 4])
    with pytest.raises(FileError, match="it is not a batch"):
        read_pickle(whole[: data.draw(st.integers(0, len(whole) - 1))], "it")


@given(st.binary(max_size=60), st.integers(0, 300))
def test_damage_anywhere_ends_in_a_file_error_or_in_nothing_but_data(junk, at):
    whole = python_batch(np.zeros((2, 3072), np.uint8), [3, 4])
    try:
        batch = read_pickle(whole[:at] + junk + whole[at + len(junk) :], "it")
    except FileError:
        return
    assert all(
        isinstance(v, bytes | list | np.ndarray | int | type(None) | str) for v in batch.values()
    )


def test_a_pickle_that_would_fill_the_memory_is_refused():
    with pytest.raises(FileError, match="it speaks of 4294967295 objects"):
        read_pickle(b"\x80\x02}r\xff\xff\xff\xff.", "it")


@pytest.mark.parametrize("code", [b"O8", b"f8", b"V9"])
def test_an_array_of_anything_but_bytes_is_refused(code):
    content = (
        b"\x80\x02}" + text(b"data") + array_of_bytes(np.zeros((1, 8), np.uint8), code) + b"s."
    )
    with pytest.raises(FileError, match="not of bytes"):
        read_pickle(content, "it")


def test_a_pickle_cannot_change_what_the_reader_does(batches):
    for name in (
        b"cnumpy.core.multiarray\n_reconstruct\n",
        b"cnumpy\ndtype\n",
        b"cnumpy\nndarray\n",
    ):
        with pytest.raises(FileError):
            read_pickle(b"\x80\x02" + name + b"N}U\x08__call__K\x01s\x86b.", "it")
    pixels, labels = batches["test_batch"]
    assert (read_pickle(python_batch(pixels, labels), "it")[b"data"] == pixels).all()

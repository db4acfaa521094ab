"""Safetensors files: read as the format's own library reads them, and refused where it refuses."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError
from safetensors.numpy import load, save, save_file

from labelsense import _storage, _tensors
from labelsense._tensors import KINDS, TensorFile, write_tensors

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.array([1.5, -2.5]),
    "c": np.array([], np.int32),
    "d": np.array([True, False, True]),
    "e": np.array(7, np.int64),
    "f": np.frombuffer(b"text", np.uint8),
}


def taken(path, mmap=False):
    with open(path, "rb") as file:
        tensors = TensorFile(file, mmap=mmap)
        return {name: tensors.take(name) for name in tensors.tensors}


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
def test_arrays_of_every_kind_come_back(mmap, tmp_path):
    write_tensors(tmp_path / "t", ARRAYS, {"word": "1"})
    found = taken(tmp_path / "t", mmap)
    theirs = load((tmp_path / "t").read_bytes())
    assert found.keys() == ARRAYS.keys() == theirs.keys()
    for name, array in ARRAYS.items():
        for other in (found[name], theirs[name]):
            assert (other.dtype, other.shape) == (array.dtype, array.shape)
            np.testing.assert_array_equal(other, array)
    with open(tmp_path / "t", "rb") as file:
        assert TensorFile(file).about == {"word": "1"}


def test_arrays_are_aligned_and_in_one_order(tmp_path):
    for name, arrays in (("a", ARRAYS), ("b", dict(reversed(ARRAYS.items())))):
        write_tensors(tmp_path / name, arrays, {"word": "1"})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with open(tmp_path / "a", "rb") as file:
        for name, tensor in TensorFile(file).tensors.items():
            assert tensor.start % ARRAYS[name].itemsize == 0


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
def test_large_arrays_go_in_pieces(mmap, tmp_path, monkeypatch):
    monkeypatch.setattr(_tensors, "PIECE", 7)
    monkeypatch.setattr(_storage, "FINITE_NUMBERS", 3)
    test_arrays_of_every_kind_come_back(mmap, tmp_path)
    write_tensors(tmp_path / "nan", {"a": np.array([1.0] * 8 + [np.nan])}, {})
    with pytest.raises(ValueError, match="'a' holds NaN or infinity"):
        taken(tmp_path / "nan")


def test_an_array_is_taken_once(tmp_path):
    save_file(ARRAYS, tmp_path / "t")
    with open(tmp_path / "t", "rb") as file:
        tensors = TensorFile(file)
        tensors.take("a")
        with pytest.raises(ValueError, match="no array 'a', or it is used twice"):
            tensors.take("a")


def test_numbers_that_are_none_are_refused(tmp_path):
    save_file({"a": np.array([1.0, np.nan])}, tmp_path / "t")
    with pytest.raises(ValueError, match="'a' holds NaN or infinity"):
        taken(tmp_path / "t")


def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path):
    save_file({"a": np.ones(100_000)}, tmp_path / "t")
    with open(tmp_path / "t", "rb") as file:
        tensors = TensorFile(file)
        with open(tmp_path / "t", "r+b") as other:
            other.truncate(100_000)
        with pytest.raises(ValueError, match="cut off while it was read"):
            tensors.take("a")


def entry(kind="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": kind, "shape": list(shape), "data_offsets": list(offsets)}


MADE_UP = {
    "no array at all": ([1, 2], 0),
    "overlap": ({"a": entry(), "b": entry(offsets=(4, 12))}, 12),
    "the same place twice": ({"a": entry(), "b": entry()}, 8),
    "a gap": ({"a": entry(), "b": entry(offsets=(12, 20))}, 20),
    "beyond the end": ({"a": entry(shape=(4,), offsets=(0, 16))}, 8),
    "more than there is": ({"a": entry()}, 12),
    "another size": ({"a": entry(shape=(3,))}, 8),
    "a negative size": ({"a": entry(shape=(-1, -2))}, 8),
    "half a number": ({"a": entry(shape=(2.0,))}, 8),
    "backwards": ({"a": entry(shape=(0,), offsets=(8, 0))}, 8),
    "another kind": ({"a": entry("F8_E4M3", (8,))}, 8),
    "a million rows of nothing": ({"a": entry(shape=(10**6, 0), offsets=(0, 0))}, 0),
    "no offsets": ({"a": {"dtype": "F32", "shape": [2]}}, 8),
}


@pytest.mark.parametrize(("header", "size"), MADE_UP.values(), ids=MADE_UP.keys())
def test_a_made_up_layout_is_refused(header, size, tmp_path):
    text = json.dumps(header).encode()
    (tmp_path / "t").write_bytes(struct.pack("<Q", len(text)) + text + bytes(size))
    with pytest.raises((ValueError, TypeError, AttributeError, KeyError)):
        taken(tmp_path / "t")


CONTENT = save({"a": np.arange(4, dtype=np.float32), "b": np.zeros((2, 3))}, {"word": "1"})


@given(st.integers(0, len(CONTENT) - 1), st.integers(0, 255), st.booleans())
def test_what_the_library_refuses_is_refused(tmp_path_factory, place, byte, cut):
    content = CONTENT[:place] if cut else CONTENT[:place] + bytes([byte]) + CONTENT[place + 1 :]
    path = tmp_path_factory.mktemp("changed") / "t"
    path.write_bytes(content)
    try:
        theirs = load(content)
    except (SafetensorError, KeyError):  # KeyError: a kind that NumPy does not have
        theirs = None
    try:
        found = taken(path)
    except (ValueError, TypeError, AttributeError, KeyError):
        return  # we refuse more: kinds that models do not use, NaN
    assert theirs is not None
    assert {name: array.tobytes() for name, array in found.items()} == {
        name: array.tobytes() for name, array in theirs.items()
    }


def test_every_kind_is_little_endian_and_of_the_size_that_it_says():
    assert {kind: np.dtype(name).itemsize * 8 for kind, name in KINDS.items() if kind != "BOOL"} == {
        kind: int(kind[1:]) for kind in KINDS if kind != "BOOL"
    }

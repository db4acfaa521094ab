"""Safetensors files: named arrays and a few words about them, checked before anything is allocated."""

from __future__ import annotations

import json
import math
import os
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labelsense._blocks import row_blocks
from labelsense._storage import all_finite

KINDS = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"}
PIECE = 2**25  # bytes that are read or written between two looks at Ctrl-C
MAX_HEADER = 100_000_000  # bytes, the format's own limit


class Tensor(NamedTuple):
    """Where an array is in its file, and what it is."""

    kind: str
    shape: tuple[int, ...]
    start: int
    stop: int


def write_tensors(path: str | os.PathLike[str], arrays: dict[str, NDArray[Any]], about: dict[str, str]) -> None:
    """Write arrays to a file, in pieces that reach the disk one by one, so that Ctrl-C need not wait for all.

    Numbers of many bytes come first, then arrays are in the order of their names: the file is the same for the same
    arrays, and every array starts at a multiple of the size of its numbers.
    """
    kinds = {np.dtype(kind): name for name, kind in KINDS.items()}
    header: dict[str, Any] = {"__metadata__": about}
    names, end = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name)), 0
    for name in names:
        array = arrays[name]
        places = [end, end + array.nbytes]
        header[name] = {"dtype": kinds[array.dtype], "shape": list(array.shape), "data_offsets": places}
        end += array.nbytes
    words = json.dumps(header).encode()
    words += b" " * (-len(words) % 8)
    with open(path, "wb") as file:
        file.write(len(words).to_bytes(8, "little") + words)
        for name in names:
            content = arrays[name].reshape(-1).view(np.uint8)
            for piece in row_blocks(len(content), PIECE):
                file.write(content[piece].data)
                if piece.stop - piece.start == PIECE:
                    file.flush()
                    os.fsync(file.fileno())


class TensorFile:
    """An open safetensors file. It raises ValueError where the file does not follow the format.

    Parameters
    ----------
    file : binary file
        Opened for reading.
    mmap : bool
        Whether arrays are mapped into memory instead of read. A mapped file must not be cut off or written over
        while an array is in use: the system ends the process that looks at a page that is gone.

    Attributes
    ----------
    about : dict
        The words stored with the arrays.
    tensors : dict of str to Tensor
    """

    def __init__(self, file: IO[bytes], *, mmap: bool = False) -> None:
        self._file, self._mmap = file, mmap
        self._left: dict[str, Tensor] = {}
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(MAX_HEADER, size - 8):
            raise ValueError("the file has no header, or only part of one")
        header = json.loads(file.read(length))
        self.about: dict[str, str] = header.pop("__metadata__", {})
        self.tensors = {name: _read_entry(entry, 8 + length) for name, entry in header.items()}
        end = 8 + length
        for tensor in sorted(self.tensors.values(), key=lambda tensor: tensor[2:]):
            if tensor.start != end:
                raise ValueError("the arrays of the file overlap or leave gaps")
            end = tensor.stop
        if end != size:
            raise ValueError(f"the file should have {end} bytes and has {size}")
        self._left = dict(self.tensors)

    def take(self, name: str) -> NDArray[Any]:
        """Return an array, once: the file has room for one of each."""
        if name not in self._left:
            raise ValueError(f"there is no array {name!r}, or it is used twice")
        kind, shape, start, stop = self._left.pop(name)
        if self._mmap and stop > start:
            array: NDArray[Any] = np.memmap(self._file, KINDS[kind], "r", offset=start, shape=shape).view(np.ndarray)
            return array if array.flags.aligned else array.copy()
        array = np.empty(shape, KINDS[kind])
        content = array.reshape(-1).view(np.uint8)
        self._file.seek(start)
        for piece in row_blocks(len(content), PIECE):
            if self._file.readinto(content[piece]) != piece.stop - piece.start:  # type: ignore[attr-defined]
                raise ValueError("the file was cut off while it was read")
        if array.dtype.kind == "f" and not all_finite(array):
            raise ValueError(f"the array {name!r} holds NaN or infinity")
        return array


def _read_entry(entry: dict[str, Any], begin: int) -> Tensor:
    kind, shape, (start, stop) = entry["dtype"], entry["shape"], entry["data_offsets"]
    if kind not in KINDS:
        raise ValueError(f"arrays of kind {kind!r} are not supported")
    if not all(type(number) is int and number >= 0 for number in [*shape, start, stop]):
        raise ValueError("sizes must be whole numbers")
    if stop - start != np.dtype(KINDS[kind]).itemsize * math.prod(shape) or (len(shape) > 1 and stop == start):
        raise ValueError(f"an array of shape {shape} does not take {stop - start} bytes")
    return Tensor(kind, tuple(shape), begin + start, begin + stop)

"""Sparse matrices in a folder, as scipy saves them."""

from __future__ import annotations

import contextlib
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy

from labelsense._typing import CSR
from labelsense._validation import check_binary
from labelsense.data.formats.base import COLUMN_LIMIT, Examples, Format, with_features
from labelsense.data.formats.source import FormatError, Source, writing

ENTRIES = 2**21  # numbers of X in a batch
NAMES = ("features", "labels")


class NPZ(Format):
    """A folder with X.npz and Y.npz, as ``scipy.sparse.save_npz`` writes them.

    Without Y.npz there are no labels. ``features.txt`` and ``labels.txt`` hold the names of the columns, one per line,
    where there are any. CSR matrices are streamed, others are loaded. Nothing pickled is ever loaded. What is written
    is not compressed. A folder is written file by file: each of them is complete or not there.
    """

    name = "npz"
    suffixes = ()

    def sniff(self, head: bytes) -> bool:
        return False  # a folder has no bytes

    def stream(self, source: Source, rows: int) -> Iterator[Examples]:
        folder = source.path
        if folder is None or not source.is_folder:
            raise FormatError(f"{source.name}: expected a folder with X.npz and Y.npz, got a file.")
        if not (folder / "X.npz").exists():
            if (folder / "X_train.npz").exists():
                raise FormatError(
                    f"{folder}: the folder has a training and a test part. Read it with labelsense.data.load_dataset."
                )
            raise FormatError(f"{folder}: expected a folder with X.npz, which is not there.")
        names = {name: _read_names(folder / f"{name}.txt") for name in NAMES}
        with contextlib.ExitStack() as stack:
            X = stack.enter_context(_Matrix(folder / "X.npz"))
            Y = stack.enter_context(_Matrix(folder / "Y.npz")) if (folder / "Y.npz").exists() else None
            _check_widths(folder, X, Y, names)
            done, n = 0, X.shape[0]
            while done < n or not n:
                values = _float32(X.path, X.take(rows, ENTRIES))
                done += values.shape[0]
                labels = None if Y is None else _binary(Y.path, Y.take(values.shape[0], 2**62))
                yield Examples(values, labels, **names)
                if not n:
                    return

    def write(self, path: Path, batches: Iterator[Examples]) -> None:
        new = not path.exists()
        path.mkdir(exist_ok=True)
        try:
            with contextlib.ExitStack() as stack:
                X = stack.enter_context(_growing(path / "X.npz"))
                Y = None
                for features, labels, batch in with_features(batches, self.name):
                    X.append(features)
                    if labels is not None:
                        Y = Y or stack.enter_context(_growing(path / "Y.npz"))
                        Y.append(labels)
                    names = {name: getattr(batch, name) for name in NAMES}
                if Y is not None and Y.n != X.n:
                    raise ValueError(f"Y has labels for {Y.n} of {X.n} rows. Write all rows with labels, or none.")
                for name, values in names.items():
                    if values is not None:
                        file = stack.enter_context(writing(path / f"{name}.txt"))
                        file.write("".join(f"{_one_line(value)}\n" for value in values).encode())
        except BaseException:
            if new:
                with contextlib.suppress(OSError):  # what failed is what to tell
                    path.rmdir()
            raise
        stale = [f"{name}.txt" for name, values in names.items() if values is None] + ["Y.npz"] * (Y is None)
        for name in stale:  # of what was here before
            (path / name).unlink(missing_ok=True)


def _read_names(path: Path) -> list[str] | None:
    if not path.exists():
        return None
    try:
        names = path.read_text("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: expected UTF-8 ({error}).") from None
    return names[:-1] if names[-1] == "" else names


def _one_line(name: str) -> str:
    if "\n" in name or "\r" in name:
        raise ValueError(f"A name in a folder of npz files is one line. Got {name!r}.")
    return name


def _check_widths(folder: Path, X: _Matrix, Y: _Matrix | None, names: dict[str, list[str] | None]) -> None:
    if Y is not None and Y.shape[0] != X.shape[0]:
        raise FormatError(f"{folder}: X.npz has {X.shape[0]} rows and Y.npz has {Y.shape[0]}; expected as many.")
    for matrix, name in ((X, "features"), (Y, "labels")):
        given = names[name]
        if matrix is not None and given is not None and len(given) != matrix.shape[1]:
            raise FormatError(
                f"{folder}: {name}.txt has {len(given)} names, and {matrix.path.name} has {matrix.shape[1]} columns."
            )


def _float32(path: Path, X: CSR) -> CSR:
    X = X.astype(np.float32)
    if not np.isfinite(X.data).all():
        raise FormatError(f"{path}: expected finite values, got NaN, infinity or what is infinite in float32.")
    X.sum_duplicates()
    return X


def _binary(path: Path, Y: CSR) -> CSR:
    try:
        return check_binary(Y, "Y")
    except (TypeError, ValueError) as error:
        raise FormatError(f"{path}: {error}") from None


class _Matrix:
    """The rows of a saved matrix, taken one batch after the other. In memory are the places where the rows begin."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stack = contextlib.ExitStack()
        self._whole: CSR | None = None
        self._at = 0
        try:
            self._open()
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
            self._stack.close()
            raise FormatError(f"{path}: expected a matrix saved by scipy.sparse.save_npz ({error}).") from None

    def _open(self) -> None:
        with np.load(self.path, allow_pickle=False) as file:
            kind, shape = file["format"].item(), file["shape"]
            indptr = file["indptr"] if kind in (b"csr", "csr") else None
        self.shape = tuple(int(size) for size in shape)
        if indptr is None:
            self._whole = sp.csr_array(sp.load_npz(self.path))
            indptr = self._whole.indptr
        self._indptr = indptr.astype(np.int64)
        if self._whole is not None:
            return
        archive = self._stack.enter_context(zipfile.ZipFile(self.path))
        self._members = {}
        for name in ("indices", "data"):
            member = self._stack.enter_context(archive.open(f"{name}.npy"))
            npy.read_magic(member)
            _, _, dtype = npy.read_array_header_1_0(member)
            if dtype.kind not in "biuf":
                raise ValueError(f"{name} has dtype {dtype}")
            self._members[name] = (member, dtype)
        if len(self._indptr) != self.shape[0] + 1 or self._indptr[0] != 0 or (np.diff(self._indptr) < 0).any():
            raise ValueError("indptr does not fit")

    def __enter__(self) -> _Matrix:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def take(self, rows: int, entries: int) -> CSR:
        """Return the next rows: at most ``rows``, with about ``entries`` numbers at most, but at least one row."""
        start = self._at
        full = int(np.searchsorted(self._indptr, self._indptr[start] + entries, side="right")) - 1
        stop = self._at = min(start + rows, self.shape[0], max(full, start + 1))
        if self._whole is not None:
            return self._whole[start:stop]
        indptr = self._indptr[start : stop + 1]
        count = int(indptr[-1] - indptr[0])
        data, indices = self._numbers("data", count), self._numbers("indices", count)
        try:
            matrix = sp.csr_array((data, indices, indptr - indptr[0]), shape=(stop - start, self.shape[1]))
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise FormatError(f"{self.path}: expected a CSR matrix ({error}).") from None
        if max(count, self.shape[1]) > COLUMN_LIMIT:
            return matrix
        return sp.csr_array((data, *(a.astype(np.int32) for a in (matrix.indices, matrix.indptr))), shape=matrix.shape)

    def _numbers(self, name: str, count: int) -> Any:
        member, dtype = self._members[name]
        try:
            block = member.read(count * dtype.itemsize)
        except (EOFError, zlib.error, zipfile.BadZipFile) as error:
            raise FormatError(f"{self.path}: the file is damaged ({error}).") from None
        if len(block) != count * dtype.itemsize:
            raise FormatError(f"{self.path}: {name} ends too early. The file is truncated.")
        return np.frombuffer(block, dtype)


class _Growing:
    """A matrix that is written row by row. The three arrays grow in files of their own."""

    DTYPES: ClassVar[dict[str, np.dtype[Any]]] = {
        "indices": np.dtype("<i4"),
        "indptr": np.dtype("<i8"),
        "data": np.dtype("<f4"),
    }

    def __init__(self, files: dict[str, IO[bytes]]) -> None:
        self._files = files
        self.n = self._nnz = self._width = 0
        files["indptr"].write(bytes(8))

    def append(self, matrix: CSR) -> None:
        indptr = matrix.indptr[1:].astype(np.int64) + self._nnz
        for name, numbers in (("indices", matrix.indices), ("indptr", indptr), ("data", matrix.data)):
            self._files[name].write(np.ascontiguousarray(numbers, self.DTYPES[name]).data)
        self.n, self._nnz = self.n + matrix.shape[0], self._nnz + matrix.nnz
        self._width = max(self._width, matrix.shape[1])

    def save(self, file: IO[bytes]) -> None:
        """Write what ``scipy.sparse.save_npz(compressed=False)`` would write."""
        lengths = {"indices": self._nnz, "indptr": self.n + 1, "data": self._nnz}
        small = {"format": np.array(b"csr"), "shape": np.array([self.n, self._width]), "_is_array": np.array(True)}
        with zipfile.ZipFile(file, "w") as archive:
            for name, array in small.items():
                with archive.open(f"{name}.npy", "w") as member:
                    npy.write_array(member, array)
            for name, length in lengths.items():
                # Places take 64 bits only if they must: scipy gives the indices the same type.
                dtype = np.dtype("<i4") if name == "indptr" and self._nnz <= COLUMN_LIMIT else self.DTYPES[name]
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    npy.write_array_header_1_0(member, {"descr": dtype.str, "fortran_order": False, "shape": (length,)})
                    self._files[name].seek(0)
                    while block := self._files[name].read(2**20):
                        member.write(np.frombuffer(block, self.DTYPES[name]).astype(dtype, copy=False).data)


@contextlib.contextmanager
def _growing(path: Path) -> Iterator[_Growing]:
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(writing(path))
        matrix = _Growing({name: stack.enter_context(TemporaryFile(dir=path.parent)) for name in _Growing.DTYPES})
        yield matrix
        matrix.save(file)

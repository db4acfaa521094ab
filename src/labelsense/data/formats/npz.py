"""Sparse matrices in a folder, as scipy saves them."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy

from labelsense._typing import CSR
from labelsense._validation import check_binary, check_places
from labelsense.data.formats.base import COLUMN_LIMIT, Examples, Format, with_features
from labelsense.data.formats.source import Source, damaged, writing
from labelsense.errors import FormatError

ENTRIES = 2**21  # numbers of X in a batch
NAMES = ("features", "labels")
MOST_EMPTY = 10**7  # rows without numbers, in a matrix that is not CSR: those that it only claims take memory
SMALL = 2**12  # bytes of an array that says what the others are
SAVED = "a matrix saved by scipy.sparse.save_npz"


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
                yield Examples(values, labels, names["features"], names["labels"])
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


def read_matrix(path: Path) -> CSR:
    """Return a matrix that scipy has saved, as CSR in float32."""
    with _Matrix(path) as matrix:
        return _float32(path, matrix.take(max(1, matrix.shape[0]), 2**62))


def _float32(path: Path, X: CSR) -> CSR:
    with np.errstate(over="ignore", invalid="ignore"):
        X = X.astype(np.float32)
        X.sum_duplicates()
    if not np.isfinite(X.data).all():
        raise FormatError(f"{path}: expected finite values, got NaN, infinity or what is infinite in float32.")
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
            with damaged(path, SAVED):
                self._open()
        except BaseException:
            self._stack.close()
            raise

    def _open(self) -> None:
        file = self._stack.enter_context(self.path.open("rb"))
        archive = self._stack.enter_context(zipfile.ZipFile(file))
        kind, (n, p) = _small_array(archive, "format").item(), _small_array(archive, "shape")
        self.shape = int(n), int(p)
        if kind not in (b"csr", "csr"):
            file.seek(0)
            matrix = check_places(sp.load_npz(file), "it")
            if n > MOST_EMPTY + 1000 * matrix.nnz:
                raise ValueError(f"{n} rows and {matrix.nnz} numbers: save it as CSR")
            self._whole = sp.csr_array(matrix)
            self._indptr = self._whole.indptr.astype(np.int64)
            return
        self._members = {name: self._member(archive, name) for name in ("indptr", "indices", "data")}
        counts = {name: count for name, (_, _, count) in self._members.items()}
        self._indptr = self._numbers("indptr", counts["indptr"]).astype(np.int64)
        ends = self._indptr[1:]
        if len(ends) != self.shape[0] or self._indptr[0] != 0 or (ends < self._indptr[:-1]).any():
            raise ValueError("indptr does not fit")
        if not counts["indices"] == counts["data"] == self._indptr[-1]:
            raise ValueError(f"{counts['indices']} indices, {counts['data']} values and indptr do not fit")

    def _member(self, archive: zipfile.ZipFile, name: str) -> tuple[IO[bytes], np.dtype[Any], int]:
        """Return an array's bytes, the type of its numbers, and how many there are, if the archive has so many."""
        info = archive.getinfo(f"{name}.npy")
        member = self._stack.enter_context(archive.open(info))
        major, _ = npy.read_magic(member)
        shape, _, dtype = (npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0)(member)
        if dtype.kind not in ("biuf" if name == "data" else "iu") or len(shape) != 1:
            raise ValueError(f"{name} has dtype {dtype} and shape {shape}")
        if member.tell() + shape[0] * dtype.itemsize != info.file_size:
            raise ValueError(f"{name} does not have the length that it says")
        return member, dtype, shape[0]

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
        with damaged(self.path, "a CSR matrix"):
            matrix = sp.csr_array((data, indices, indptr - indptr[0]), shape=(stop - start, self.shape[1]))
            check_places(matrix, "it")
        if max(count, self.shape[1]) > COLUMN_LIMIT:
            return matrix
        return sp.csr_array((data, *(a.astype(np.int32) for a in (matrix.indices, matrix.indptr))), shape=matrix.shape)

    def _numbers(self, name: str, count: int) -> Any:
        member, dtype, _ = self._members[name]
        with damaged(self.path, SAVED):
            block = member.read(count * dtype.itemsize)
        if len(block) != count * dtype.itemsize:
            raise FormatError(f"{self.path}: {name} ends too early. The file is truncated.")
        return np.frombuffer(block, dtype)


def _small_array(archive: zipfile.ZipFile, name: str) -> Any:
    info = archive.getinfo(f"{name}.npy")
    if info.file_size > SMALL:
        raise ValueError(f"{name} has {info.file_size} bytes")
    with archive.open(info) as member:
        return npy.read_array(member, allow_pickle=False)


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

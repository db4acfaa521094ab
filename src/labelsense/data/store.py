"""Chunks of rows in files of a folder: written once, in bounded memory, and read as often as needed."""

from __future__ import annotations

import contextlib
import json
import shutil
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._blocks import map_stream
from labelsense._checkpoint import State, next_folder, next_step, read_checked, read_json, write_checked, write_json
from labelsense._chunks import Chunks, TreeSum
from labelsense._progress import report_progress
from labelsense._typing import CSR, IntArray
from labelsense.data.formats.base import Examples, concatenate
from labelsense.errors import FormatError

CHUNK_ENTRIES, CHUNK_ROWS = 2**22, 2**16  # features, or words, and rows: a chunk is complete when it has as many
WORD = 6  # letters
END = "complete.json"


class StoredChunks(Chunks):
    """Chunks that are read when they are needed, while the one before is worked on: no other is in memory.

    ``map`` writes to the next folder of the checkpoints.
    """

    @abstractmethod
    def load(self, number: int) -> Any:
        """Return a chunk."""

    def results(self, function: Callable[..., Any], items: Sequence[Any] | None = None) -> Iterator[Any]:
        chunks = self._from(0)
        return map(function, chunks) if items is None else map(function, chunks, items)

    def map(
        self,
        function: Callable[..., Any],
        items: Sequence[Any] | None = None,
        lengths: IntArray | None = None,
        step: str = "features",
    ) -> ChunkStore:
        folder = next_folder("chunks")
        if (done := begin_chunks(folder)) is not None:
            wanted = self.lengths if lengths is None else lengths
            chunks = self._from(done) if items is None else zip(self._from(done), items[done:], strict=True)
            for number, chunk in enumerate(chunks, done):
                report_progress(step, number / len(self.lengths))
                made = function(chunk) if items is None else function(*chunk)
                write_checked(_file(folder, number), *_to_arrays(made, int(wanted[number])))
            write_json(folder / END, wanted.tolist())
        return ChunkStore(folder)

    def long_total(self, function: Callable[..., Any], items: Sequence[Any], kind: str) -> Any:
        step, tree, done = next_step(kind), TreeSum(), 0

        def state() -> State:
            return {**tree.state(), "done": np.array([done])}

        if (kept := step.load()) is not None:
            done = int(kept["done"][0])
            tree = TreeSum.from_state(kept)
        for chunk, item in zip(self._from(done), items[done:], strict=True):
            report_progress(kind, done / len(self.lengths))
            tree.add(function(chunk, item))
            done += 1
            step.save(state)
        return tree.total()

    def paired(self, *others: Any) -> StoredTuples:
        return StoredTuples((self, *others))

    def _from(self, number: int) -> Iterator[Any]:
        return map_stream(self.load, range(number, len(self.lengths)), 1)


class ChunkStore(StoredChunks):
    """Chunks in a folder: rows, each with X and Y as CSR, or named arrays.

    Parameters
    ----------
    folder : Path
        Where :func:`write_chunks` has written, or ``map``.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lengths = np.array(read_json(folder / END), np.int64)
        self._checked: set[int] = set()

    @property
    def room(self) -> float:
        return float(shutil.disk_usage(self.folder).free)

    def load(self, number: int) -> Examples | State:
        """Return a chunk; the first time, its checksum is compared."""
        arrays, about = read_checked(_file(self.folder, number), number not in self._checked)
        self._checked.add(number)
        return _from_arrays(arrays, about) if "name" in about else arrays


class StoredTuples(StoredChunks):
    """Tuples of chunks of several folders."""

    def __init__(self, stores: tuple[StoredChunks, ...]) -> None:
        self.stores, self.lengths = stores, stores[0].lengths

    def load(self, number: int) -> tuple[Any, ...]:
        return tuple(store.load(number) for store in self.stores)


def write_chunks(folder: Path, examples: Iterable[Examples], function: Callable[[Any], Any]) -> ChunkStore:
    """Write what a function makes of each of the examples to a file of its own; return the chunks.

    What is in the folder already, from a process that was killed, is kept, and as many of the examples are left out:
    they must be those that it had.
    """
    if (done := begin_chunks(folder)) is not None:
        lengths = [_length(folder, number) for number in range(done)]
        for batch in islice(examples, done, None):
            chunk = function(batch)
            write_checked(_file(folder, len(lengths)), *_to_arrays(chunk, len(chunk)))
            lengths.append(len(chunk))
        write_json(folder / END, lengths)
    return ChunkStore(folder)


def begin_chunks(folder: Path) -> int | None:
    """Make a folder; return how many chunks are there, up to the first that is missing or damaged; None if all are."""
    folder.mkdir(parents=True, exist_ok=True)
    if read_json(folder / END) is not None:
        return None
    number = 0
    with contextlib.suppress(FileNotFoundError, FormatError):
        while True:
            read_checked(_file(folder, number))
            number += 1
    return number


def gather(batches: Iterable[Examples]) -> Iterator[Examples]:
    """Yield batches of a stream put together until they have entries or rows enough for a chunk."""
    waiting: list[Examples] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(_entries, waiting)) >= CHUNK_ENTRIES or sum(map(len, waiting)) >= CHUNK_ROWS:
            yield concatenate(waiting)
            waiting = []
    if waiting:
        yield concatenate(waiting)


def _entries(batch: Examples) -> int:
    """Return about how many features a batch has."""
    return sum(map(len, batch.X)) // WORD if isinstance(batch.X, list) else int(batch.X.nnz)


def _file(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.safetensors"


def _length(folder: Path, number: int) -> int:
    return int(read_checked(_file(folder, number), check=False)[1]["rows"])


def _to_arrays(chunk: Examples | State, n_rows: int) -> tuple[State, dict[str, str]]:
    if isinstance(chunk, dict):
        return chunk, {"rows": str(n_rows)}
    arrays: State = {}
    for letter, M in (("X", chunk.X), ("Y", chunk.Y)):
        M = sp.csr_array(M)
        arrays |= {
            f"{letter}.data": M.data.astype(np.float32, copy=False),
            f"{letter}.indices": M.indices.astype(np.int32, copy=False),
            f"{letter}.indptr": M.indptr.astype(np.int64, copy=False),
            f"{letter}.shape": np.array(M.shape, np.int64),
        }
    names = {"features": chunk.features, "labels": chunk.labels}
    arrays |= {key: _as_bytes(words) for key, words in names.items() if words is not None}
    return arrays, {"rows": str(n_rows), "name": chunk.name}


def _from_arrays(arrays: State, about: dict[str, str]) -> Examples:
    words = {key: json.loads(arrays[key].tobytes()) for key in ("features", "labels") if key in arrays}
    return Examples(_csr(arrays, "X"), _csr(arrays, "Y"), name=about["name"], **words)


def _csr(arrays: State, letter: str) -> CSR:
    parts = tuple(arrays[f"{letter}.{name}"] for name in ("data", "indices", "indptr"))
    return sp.csr_array(parts, shape=tuple(arrays[f"{letter}.shape"].tolist()))


def _as_bytes(words: list[str]) -> Any:
    return np.frombuffer(json.dumps(words, ensure_ascii=False).encode("utf-8", "surrogatepass"), np.uint8)

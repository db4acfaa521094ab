"""Chunks of rows in files of a folder: written once, in bounded memory, and read as often as needed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._blocks import map_stream
from labelsense._checkpoint import State, next_folder, read_checked, read_json, write_checked, write_json
from labelsense._chunks import Chunks
from labelsense._progress import report_progress
from labelsense._typing import CSR
from labelsense.data.formats.base import Examples, concatenate
from labelsense.errors import FormatError

CHUNK_ENTRIES, CHUNK_ROWS = 2**22, 2**16  # features, or words, and rows: a chunk is complete when it has as many
WORD = 6  # letters
END = "complete.json"


class ChunkStore(Chunks):
    """Chunks of rows, each with X and Y as CSR, in a folder.

    A chunk is read when it is needed, while the one before is worked on, and no other is in memory.

    Parameters
    ----------
    folder : Path
        Where :func:`write_chunks` has written. ``map`` writes to the next folder of the checkpoints.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lengths = np.array(read_json(folder / END), np.int64)
        self._checked: set[int] = set()

    def results(self, function: Callable[..., Any], items: Sequence[Any] | None = None) -> Iterator[Any]:
        chunks = map_stream(self.load, range(len(self.lengths)), 1)
        return map(function, chunks) if items is None else map(function, chunks, items)

    def map(self, function: Callable[[Any], Any]) -> ChunkStore:
        return write_chunks(next_folder("chunks"), self._shown(), function)

    def load(self, number: int) -> Examples:
        """Return a chunk; the first time, its checksum is compared."""
        arrays, about = read_checked(_file(self.folder, number), number not in self._checked)
        self._checked.add(number)
        return _from_arrays(arrays, about)

    def _shown(self) -> Iterator[Examples]:
        for i, chunk in enumerate(self.results(_same)):
            report_progress("features", i / len(self.lengths))
            yield chunk


def write_chunks(folder: Path, examples: Iterable[Examples], function: Callable[[Any], Any]) -> ChunkStore:
    """Write what a function makes of each of the examples to a file of its own; return the chunks.

    What is in the folder already, from a process that was killed, is kept, and as many of the examples are left out:
    they must be those that it had.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if read_json(folder / END) is not None:
        return ChunkStore(folder)
    lengths: list[int] = []
    with contextlib.suppress(FileNotFoundError, FormatError):  # up to the first that is missing or damaged
        while True:
            lengths.append(int(read_checked(_file(folder, len(lengths)))[1]["rows"]))
    for batch in islice(examples, len(lengths), None):
        chunk = function(batch)
        write_checked(_file(folder, len(lengths)), *_to_arrays(chunk))
        lengths.append(len(chunk))
    write_json(folder / END, lengths)
    return ChunkStore(folder)


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


def _same(chunk: Examples) -> Examples:
    return chunk


def _file(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.safetensors"


def _to_arrays(chunk: Examples) -> tuple[State, dict[str, str]]:
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
    return arrays, {"rows": str(len(chunk)), "name": chunk.name}


def _from_arrays(arrays: State, about: dict[str, str]) -> Examples:
    words = {key: json.loads(arrays[key].tobytes()) for key in ("features", "labels") if key in arrays}
    return Examples(_csr(arrays, "X"), _csr(arrays, "Y"), name=about["name"], **words)


def _csr(arrays: State, letter: str) -> CSR:
    parts = tuple(arrays[f"{letter}.{name}"] for name in ("data", "indices", "indptr"))
    return sp.csr_array(parts, shape=tuple(arrays[f"{letter}.shape"].tolist()))


def _as_bytes(words: list[str]) -> Any:
    return np.frombuffer(json.dumps(words, ensure_ascii=False).encode("utf-8", "surrogatepass"), np.uint8)

"""Sparse rows as text: the Extreme Classification repository's files, and those of libsvm."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense import _kernels
from labelsense._blocks import map_stream, row_blocks
from labelsense._typing import CSR
from labelsense.data.formats.base import COLUMN_LIMIT, Examples, Format, concatenate, widened, with_features
from labelsense.data.formats.source import Source, write_in_pieces, writing
from labelsense.errors import FormatError

CHUNK = 2**23  # bytes parsed at once: small beside a model, large beside the cost of handing them to a thread
PARSERS = 2  # beside the thread that reads and decompresses
NO_ROWS = Examples(sp.csr_array((0, 0), dtype=np.float32), None)

PROBLEMS = [
    "",
    "expected label numbers separated by commas, got {token!r}",
    "expected feature:value, got {token!r}",
    "expected a finite value, got {token!r}",
    "expected labels below {d}, got {token!r}",
    "expected features below {p}, got {token!r}",
    "feature {token} appears twice",
]


def parse(source: Source, chunks: Iterable[bytes], line: int, d: int, p: int, plain: bool) -> Iterator[Any]:
    """Yield what the kernel makes of chunks of lines, the first of which is number ``line``."""

    def parse_chunk(chunk: bytes) -> Any:
        return _kernels.parse_rows(chunk, d, p, plain)

    for parsed in map_stream(parse_chunk, chunks, PARSERS):
        if parsed.problem:
            token = parsed.token.decode(errors="replace")
            raise source.error(line + parsed.lines, PROBLEMS[parsed.problem].format(token=token, d=d, p=p))
        yield parsed
        line += parsed.lines


def matrices(parsed: Any, n_labels: int, n_features: int, first: int = 0) -> tuple[CSR, CSR]:
    """Return X and Y of parsed rows, whose features are numbered from ``first``."""
    labels, label_starts = parsed.take_labels()
    values, features, feature_starts = parsed.take_features()
    features -= first
    n = len(label_starts) - 1
    X = sp.csr_array((values, features, feature_starts), shape=(n, n_features))
    Y = sp.csr_array((np.ones(len(labels), np.float32), labels, label_starts), shape=(n, n_labels))
    return X, Y


def text(X: CSR, Y: CSR | None, first: int) -> Any:
    """Return rows as the bytes of lines, features numbered from ``first``."""
    if Y is None:
        Y = sp.csr_array((X.shape[0], 0), dtype=np.float32)
    places = [M.indptr.astype(np.int64, copy=False) for M in (Y, X)]
    columns = [M.indices.astype(np.int32, copy=False) for M in (Y, X)]
    return _kernels.format_rows(places[0], columns[0], places[1], columns[1], X.data, first)


def in_rows(X: CSR, Y: CSR | None, rows: int) -> Iterator[Examples]:
    """Yield parts of at most ``rows`` rows."""
    if X.shape[0] <= rows:
        yield Examples(X, Y)
        return
    for part in row_blocks(X.shape[0], rows):
        yield Examples(X[part], None if Y is None else Y[part])


class XC(Format):
    """The text format of the Extreme Classification repository.

    The first line is ``n p d``: the numbers of rows, features and labels. Then one line per row, ``3,17 5:0.2 9:1``:
    its labels, and its features with their values, numbered from 0. A row without labels starts with a blank. A file
    with d = 0 has no labels at all. Names of columns are not kept.
    """

    name = "xc"
    suffixes = (".xc", ".xc.txt", ".txt")

    def sniff(self, head: bytes) -> bool:
        return re.match(rb"\d+[ \t]+\d+[ \t]+\d+[ \t]*\r?(\n|$)", head) is not None

    def stream(self, source: Source, rows: int) -> Iterator[Examples]:
        chunks = source.chunks(CHUNK)
        header, _, rest = next(chunks, b"").partition(b"\n")
        n, p, d = self._sizes(source, header)
        done = 0
        for parsed in parse(source, _chain(rest, chunks), 2, d, p, plain=True):
            X, Y = matrices(parsed, d, p)
            if done + X.shape[0] > n:
                self._refuse_more(source, X, Y, n, done)
                X, Y = X[: n - done], Y[: n - done]
            done += X.shape[0]
            yield from in_rows(X, Y if d else None, rows)
        if done < n:
            raise FormatError(f"{source.name}: the header promises {n} rows, and the file has {done}. Is it truncated?")
        if not n:
            yield Examples(
                sp.csr_array((0, p), dtype=np.float32), sp.csr_array((0, d), dtype=np.float32) if d else None
            )

    def stream_parts(self, paths: Sequence[Path], rows: int) -> Iterator[Examples]:
        p = d = 0
        for path in paths:
            with Source(path) as source:
                sizes = self._sizes(source, source.head.partition(b"\n")[0])
            p, d = max(p, sizes[1]), max(d, sizes[2])
        for batch in super().stream_parts(paths, rows):
            Y = sp.csr_array((len(batch), 0), dtype=np.float32) if batch.Y is None else batch.Y
            yield Examples(widened(batch.X, p), widened(Y, d) if d else None)

    @staticmethod
    def _sizes(source: Source, header: bytes) -> tuple[int, int, int]:
        words = header.split()
        if len(words) != 3 or not all(word.isdigit() and len(word) < 19 for word in words):
            got = header[:80].decode(errors="replace").rstrip()
            raise source.error(1, f"expected the numbers of rows, features and labels, got {got!r}")
        n, p, d = (int(word) for word in words)
        if max(p, d) > COLUMN_LIMIT:
            raise source.error(1, f"expected at most {COLUMN_LIMIT} features and labels, got {max(p, d)}")
        return n, p, d

    @staticmethod
    def _refuse_more(source: Source, X: CSR, Y: CSR, n: int, done: int) -> None:
        """Allow empty lines after the last row, and nothing else."""
        entries = np.diff(X.indptr) + np.diff(Y.indptr)
        more = np.flatnonzero(entries[n - done :])
        if len(more):
            raise source.error(2 + n + int(more[0]), f"expected no more rows, since the header promises {n}")

    def write(self, path: Path, batches: Iterator[Examples]) -> None:
        n = p = d = 0
        # The header comes first and is known last.
        with writing(path) as file, tempfile.TemporaryFile(dir=path.parent) as body:
            for X, Y, _ in with_features(batches, self.name):
                body.write(text(X, Y, 0))
                n, p = n + X.shape[0], max(p, X.shape[1])
                d = d if Y is None else max(d, Y.shape[1])
            file.write(f"{n} {p} {d}\n".encode())
            body.seek(0)
            shutil.copyfileobj(body, file, 2**20)


class LibSVM(Format):
    """The text format of libsvm and svmlight, with any number of labels per row.

    One line per row, ``3,17 6:0.2 10:1  # remark``. Labels are numbers and become column numbers as they are. Features
    are numbered from 1, or from 0 if any row has a feature 0: the rule of
    ``sklearn.datasets.load_svmlight_file(zero_based="auto")``. ``qid:`` is ignored. Lines without labels and features
    are no rows; such a row is written as ``1:0``. Files are written numbered from 1; the widths are those of the
    columns that occur. Streaming reads the file twice, since only its end tells the widths and the numbering; standard
    input is kept in a temporary file meanwhile.
    """

    name = "libsvm"
    suffixes = (".libsvm", ".svm", ".svmlight", ".txt")

    def sniff(self, head: bytes) -> bool:
        for line in head.splitlines():
            words = line.partition(b"#")[0].split()
            if words and re.fullmatch(rb"\d+(,\d+)*", words[0]):
                words = words[1:]
            if words:  # a line of prose may begin with a time of day
                return all(re.match(rb"(\d+|qid):[-+.\dnN]", word) for word in words[:3])
        return False

    def stream(self, source: Source, rows: int) -> Iterator[Examples]:
        source.make_rewindable()
        sizes = self._sizes(source)
        source.rewind()
        yield from _one_at_least(self._rows(source, rows, *sizes))

    def stream_parts(self, paths: Sequence[Path], rows: int) -> Iterator[Examples]:
        first, p, d = 1, 0, 0
        for path in paths:
            with Source(path) as source:
                sizes = self._sizes(source)
            first, p, d = min(first, sizes[0]), max(p, sizes[1]), max(d, sizes[2])
        yield from _one_at_least(batch for path in paths for batch in self._rows_of(path, rows, first, p, d))

    def _rows_of(self, path: Path, rows: int, first: int, p: int, d: int) -> Iterator[Examples]:
        with Source(path) as source:
            yield from self._rows(source, rows, first, p, d)

    def _sizes(self, source: Source) -> tuple[int, int, int]:
        """Return the number of the first feature, 0 or 1, and how many features and labels there are, by number."""
        first, p, d = 1, 0, 0
        for parsed in self._parse(source):
            first, p, d = min(first, parsed.first_feature), max(p, parsed.n_features), max(d, parsed.n_labels)
        return first, p, d

    def _rows(self, source: Source, rows: int, first: int, p: int, d: int) -> Iterator[Examples]:
        for parsed in self._parse(source):
            X, Y = matrices(parsed, d, max(p - first, 0), first)
            if X.shape[0]:
                yield from in_rows(X, Y if d else None, rows)

    def read(self, source: Source) -> Examples:
        blocks = list(self._parse(source))
        if not blocks:
            return NO_ROWS
        first = min(1, *(block.first_feature for block in blocks))
        p = max(0, max(block.n_features for block in blocks) - first)
        d = max(block.n_labels for block in blocks)
        pairs = (matrices(block, d, p, first) for block in blocks)
        return concatenate([Examples(X, Y if d else None) for X, Y in pairs])

    @staticmethod
    def _parse(source: Source) -> Iterator[Any]:
        return parse(source, source.chunks(CHUNK), 1, COLUMN_LIMIT, COLUMN_LIMIT, plain=False)

    def write(self, path: Path, batches: Iterator[Examples]) -> None:
        with writing(path) as file:
            for X, Y, _ in with_features(batches, self.name):
                write_in_pieces(file, text(_fill_empty_rows(X, Y), Y, 1))


def _chain(first: bytes, others: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from others


def _fill_empty_rows(X: CSR, Y: CSR | None) -> CSR:
    """Give rows that have nothing a zero in the first column."""
    empty = np.diff(X.indptr) == 0
    if Y is not None:
        empty &= np.diff(Y.indptr) == 0
    places = X.indptr[:-1][empty]
    data, indices = np.insert(X.data, places, 0), np.insert(X.indices, places, 0)
    indptr = X.indptr + np.concatenate([[0], np.cumsum(empty)])
    return sp.csr_array((data, indices, indptr), shape=(X.shape[0], max(X.shape[1], 1)))


def _one_at_least(batches: Iterator[Examples]) -> Iterator[Examples]:
    """Yield batches, or one without rows if there are none."""
    yield next(batches, NO_ROWS)
    yield from batches

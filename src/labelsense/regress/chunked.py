"""A design matrix in chunks of rows, and the targets that go with it: products are sums over the chunks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from labelsense._blocks import row_blocks
from labelsense._chunks import Chunks, LazyChunks, split, split_rows
from labelsense._typing import CSR, DoubleArray, FloatArray, IntArray, Precision, Rows
from labelsense.regress.design import Design, MemoryDesign, Size
from labelsense.regress.in_memory import as_design
from labelsense.regress.targets import LazyTargets

BLOCK_NUMBERS = 2**24  # of the products X P that are in memory at once


@dataclass(frozen=True)
class Targets:
    """How the targets of a chunk are made of its labels.

    Attributes
    ----------
    compress : callable
        Returns A y for each row of labels, (n, m).
    columns : array, optional
        Which of the measurements; by default all.
    """

    compress: Callable[[CSR], FloatArray]
    columns: IntArray | None = None

    def of(self, chunk: Any, rows: IntArray | None, weights: DoubleArray | None = None) -> FloatArray:
        """Return the targets of some rows of a chunk, each times its weight if there are weights."""
        Z = self.compress(chunk.Y if rows is None else chunk.Y[rows])
        Z = Z if self.columns is None else np.ascontiguousarray(Z[:, self.columns])
        return Z if weights is None else (Z * weights[:, None]).astype(np.float32)


@dataclass(frozen=True)
class Part:
    """Which rows of a chunk count, by what they are multiplied, and the other factor of a product, if it has rows.

    If that is made of the labels, it is by what it is multiplied.
    """

    rows: IntArray | None = None
    weights: DoubleArray | None = None
    other: Any = None


@dataclass(frozen=True)
class Product:
    """A product with the rows of a chunk: a method of its design in memory, and what it takes.

    Attributes
    ----------
    method : str
    arguments : tuple
        What it takes, but for the factor that has rows.
    shift : array (p,), optional
        What dense rows lose first.
    targets : Targets, optional
        The factor that has rows, if it is made of the labels.
    """

    method: str
    arguments: tuple[Any, ...] = ()
    shift: DoubleArray | None = None
    targets: Targets | None = None

    def __call__(self, chunk: Any, part: Part) -> Any:
        design = as_design(chunk.X if part.rows is None else chunk.X[part.rows])
        if self.shift is not None:
            design, _ = design.centred(self.shift)
        if part.weights is not None:
            design = design.scaled(part.weights)
        other = part.other if self.targets is None else self.targets.of(chunk, part.rows, part.other)
        arguments = self.arguments if other is None else (other, *self.arguments)
        if self.method == "normal_times":
            return _normal_times(design, *arguments)
        result = getattr(design, self.method)(*arguments)
        return result.astype(np.float64, copy=False) if self.targets is not None else result


def _normal_times(design: MemoryDesign, *arguments: Any) -> FloatArray:
    """Return X'H and below it s'H, (p + 1, m): one array, so that those of chunks can be added."""
    s, P, shift = arguments if len(arguments) == 3 else (None, *arguments)
    total = np.zeros((len(P) + 1, P.shape[1]), np.float32)
    for rows in row_blocks(design.shape[0], max(1, BLOCK_NUMBERS // P.shape[1])):
        Q, sums = design.rows(rows).normal_times(P, shift, None if s is None else s[rows])
        total[:-1] += Q
        total[-1] += sums
    return total


@dataclass(frozen=True)
class _TargetSum:
    targets: Targets

    def __call__(self, chunk: Any, part: Part) -> DoubleArray:
        Z = self.targets.of(chunk, part.rows, part.other)
        return Z.sum(axis=0, dtype=np.float64) if part.weights is None else part.weights @ Z


@dataclass(frozen=True)
class _TargetRows:
    targets: Targets

    def __call__(self, chunk: Any, part: Part) -> FloatArray:
        return self.targets.of(chunk, part.rows, part.other)


@dataclass(frozen=True)
class SomeRows:
    """X and Y of some rows."""

    X: Any
    Y: CSR


def _rows_of(chunk: Any, part: Part) -> SomeRows:
    return SomeRows(*(M if part.rows is None else M[part.rows] for M in (chunk.X, chunk.Y)))


def _counts(chunk: Any, part: Part) -> DoubleArray:
    """Return the sum of squares of the numbers of entries of rows, and the number of entries of each column."""
    X = chunk.X if part.rows is None else chunk.X[part.rows]
    rows, columns = np.diff(X.indptr).astype(np.float64), np.bincount(X.indices, minlength=X.shape[1])
    return np.concatenate([[(rows**2).sum()], columns])


@dataclass(frozen=True)
class _ChunkedRows:
    """Rows of chunks: all, or some of each."""

    chunks: Chunks
    chosen: list[IntArray] | None = None

    @property
    def lengths(self) -> IntArray:
        return self.chunks.lengths if self.chosen is None else np.array([len(rows) for rows in self.chosen])

    def choose(self, rows: Rows) -> _ChunkedRows:
        """Return some of these rows."""
        inner = split_rows(rows, self.lengths)
        if self.chosen is not None:
            inner = [mine[some] for mine, some in zip(self.chosen, inner, strict=True)]
        return replace(self, chosen=inner)

    def parts(self, weights: DoubleArray | None = None, other: Any = None) -> list[Part]:
        """Return what to give to a product for each chunk."""
        lengths = self.lengths
        nothing: list[Any] = [None] * len(lengths)
        return [
            Part(*values)
            for values in zip(
                nothing if self.chosen is None else self.chosen,
                nothing if weights is None else split(weights, lengths),
                nothing if other is None else split(other, lengths),
                strict=True,
            )
        ]


class ChunkedDesign(Design):
    """X (n, p) in chunks, whose rows are never all in one place.

    Parameters
    ----------
    chunks : Chunks
        Each has X, CSR or array, and Y, CSR.
    n_features : int
    sparse : bool
        Whether X is CSR.
    memory : float
        How many bytes a solver may take for itself.
    """

    def __init__(self, chunks: Chunks, n_features: int, *, sparse: bool = True, memory: float = math.inf) -> None:
        self._rows, self._sparse, self.memory = _ChunkedRows(chunks), sparse, memory
        self._weights: DoubleArray | None = None
        self._shift: DoubleArray | None = None
        self.shape = (chunks.n_rows, n_features)

    def chunks(self) -> LazyChunks:
        """Return the rows as chunks, each with X and Y."""
        rows = self._rows
        return rows.chunks.then(_rows_of, rows.parts(), rows.lengths)

    def map(self, function: Callable[[Any, Part], Any], step: str, numbers: Any = None) -> Chunks:
        """Keep what a function makes of each chunk and which of its rows count, with a number of each if given."""
        return self._rows.chunks.map(function, self._rows.parts(None, numbers), self._rows.lengths, step)

    def targets(self, compress: Callable[[CSR], FloatArray], n_measurements: int) -> ChunkedTargets:
        """Return the targets that a function makes of the labels of the same chunks."""
        return ChunkedTargets(self._rows, Targets(compress), n_measurements)

    def size(self) -> Size:
        n, p = self.shape
        if not self._sparse:
            return Size.dense(n, p)
        rows, *columns = self._rows.chunks.total(_counts, self._rows.parts())
        counts = np.array(columns)
        return Size(n, p, int(counts.sum()), float(rows) / 2, float((counts**2).sum()) / 2, True)

    def weighted_sum(self, weights: DoubleArray | None) -> DoubleArray:
        if weights is None:
            return self._total(Product("weighted_sum", (None,)))
        return self._total(Product("weighted_sum"), weights)

    def total_square(self) -> float:
        return float(self._total(Product("total_square")))

    def column_squares(self) -> DoubleArray:
        return self._total(Product("column_squares"))

    def row_squares(self) -> DoubleArray:
        return self._stacked(Product("row_squares"))

    def times(self, B: Any) -> FloatArray:
        return self._stacked(Product("times", (B,)))

    def times_vector(self, v: DoubleArray) -> DoubleArray:
        return self._stacked(Product("times_vector", (v,)))

    def transposed_times(self, B: Any) -> Any:
        if isinstance(B, ChunkedTargets):
            return self._total(Product("transposed_times", targets=B.targets), B.weights)
        return self._total(Product("transposed_times"), B)

    def moment_times(self, B: Any) -> DoubleArray:
        if isinstance(B, ChunkedTargets):
            return self._total(Product("moment_times", targets=B.targets), B.weights)
        return self._total(Product("moment_times"), B)

    def normal_times(self, P: FloatArray, shift: FloatArray, s: DoubleArray | None) -> tuple[FloatArray, FloatArray]:
        total = self._total(Product("normal_times", (P, shift)), s)
        return total[:-1], total[-1]

    def gram(self, kind: Precision = np.float32) -> Any:
        product = Product("gram", (np.float64,), self._shift)  # in double, as if it were one sum
        return self._rows.chunks.long_total(product, self._rows.parts(self._weights), "gram").astype(kind, copy=False)

    def quadratic_forms(self, S: FloatArray) -> DoubleArray:
        return self._stacked(Product("quadratic_forms", (S,)))

    def centred(self, mean: DoubleArray) -> tuple[ChunkedDesign, DoubleArray]:
        if self._sparse:
            return self, mean
        other = self._copy()
        other._shift = mean if self._shift is None else self._shift + mean
        return other, np.zeros_like(mean)

    def scaled(self, weights: DoubleArray) -> ChunkedDesign:
        other = self._copy()
        other._weights = weights if self._weights is None else self._weights * weights
        return other

    def rows(self, chosen: Rows) -> ChunkedDesign:
        other = self._copy()
        other._rows = self._rows.choose(chosen)
        if self._weights is not None:
            other._weights = self._weights[chosen]
        other.shape = (int(other._rows.lengths.sum()), self.shape[1])
        return other

    def dense_rows(self, chosen: Rows) -> FloatArray:
        return self.rows(chosen)._stacked(Product("dense_rows", (slice(None),)))

    def _copy(self) -> ChunkedDesign:
        other = ChunkedDesign(self._rows.chunks, self.shape[1], sparse=self._sparse, memory=self.memory)
        other._rows, other._weights, other._shift, other.shape = self._rows, self._weights, self._shift, self.shape
        return other

    def _total(self, product: Product, other: Any = None) -> Any:
        return self._rows.chunks.total(replace(product, shift=self._shift), self._rows.parts(self._weights, other))

    def _stacked(self, product: Product) -> Any:
        parts = self._rows.parts(self._weights)
        return np.concatenate(list(self._rows.chunks.results(replace(product, shift=self._shift), parts)))


class ChunkedTargets(LazyTargets):
    """Z = Y A' of labels in chunks: made where they are, whenever a product needs them."""

    def __init__(
        self, rows: _ChunkedRows, targets: Targets, n_targets: int, weights: DoubleArray | None = None
    ) -> None:
        self.rows, self.targets, self.weights = rows, targets, weights
        self.shape = (int(rows.lengths.sum()), n_targets)

    def part(self, rows: Rows, columns: Any = slice(None)) -> ChunkedTargets:
        mine = np.arange(self.shape[1]) if self.targets.columns is None else self.targets.columns
        chosen = mine[columns]
        weights = None if self.weights is None else self.weights[rows]
        return ChunkedTargets(self.rows.choose(rows), replace(self.targets, columns=chosen), len(chosen), weights)

    def scaled(self, weights: DoubleArray) -> ChunkedTargets:
        both = weights if self.weights is None else weights * self.weights
        return ChunkedTargets(self.rows, self.targets, self.shape[1], both)

    def weighted_sum(self, weights: DoubleArray | None) -> DoubleArray:
        return self.rows.chunks.total(_TargetSum(self.targets), self.rows.parts(weights, self.weights))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        Z = np.concatenate(
            list(self.rows.chunks.results(_TargetRows(self.targets), self.rows.parts(None, self.weights)))
        )
        return Z if dtype is None else Z.astype(dtype, copy=False)

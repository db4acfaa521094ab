"""Design matrices in memory, dense and sparse. Sparse products use all cores, like those of BLAS."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense import _kernels
from labelsense._blocks import map_rows, plain_algebra, row_blocks
from labelsense._gram import add_gram, copied, mirror, multiply
from labelsense._storage import Parts, all_finite, require, require_array, storable
from labelsense._typing import CSR, DoubleArray, FloatArray, Precision, Rows, as_dense
from labelsense._validation import check_places
from labelsense.regress.design import DENSE_ROWS, DOUBLE_ROWS, Design, MemoryDesign, Size, some_blocks, sum_over_blocks

COMMON = 0.12  # a feature that this fraction of rows has is multiplied faster by BLAS than entry by entry (measured)
SPARSE_WORK = 2**24  # multiplications between two looks at Ctrl-C
BLOCK_COLUMNS = 256  # of X' B, that one thread makes
SUM_SHARE = 4  # features of a row of products, for each entry, up to which their sum over blocks costs little
EXACT_WORK = 2**16  # multiplications per row of a dense product up to which it is in double

Arrays = tuple[Any, Any, Any]  # of CSR, as the kernels want them: int64 starts, int32 columns, float32 values


def as_design(X: Any) -> Any:
    """Return rows of features, sparse or dense, as a design. The arrays of the caller are not changed."""
    if isinstance(X, Design):
        return X
    if not sp.issparse(X):
        return DenseDesign(np.asarray(X))
    with np.errstate(over="ignore"):  # the sum of squares will tell
        X = sp.csr_array(X, dtype=np.float32)
    check_places(X, "X")
    if not X.has_canonical_format:
        X = X.copy()  # the arrays may be the caller's
        X.sum_duplicates()
    return SparseDesign(X)


class StoredDesign(MemoryDesign):
    """A design that a model file can hold: its rows are one matrix."""

    X: Any

    def size(self) -> Size:
        return Size.of(self.X)

    def _to_parts(self) -> Parts:
        return {"X": self.X if sp.issparse(self.X) else np.asarray(self.X, np.float32)}

    @staticmethod
    def _from_parts(parts: Parts) -> MemoryDesign:
        X = parts["X"]
        if sp.issparse(X):
            require(X.shape[0] > 0 and X.dtype == np.float32, "the training rows must be numbers")
            require(all_finite(X.data), "the training rows must be finite")
        else:
            require_array(X, "the training rows", "float32", (None, None))
        return as_design(X)


@storable(name="Design")
class DenseDesign(StoredDesign):
    """X (n, p) as an array. Products are in float32; what is given in double is centred in double."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.shape = X.shape

    @cached_property
    def _single(self) -> FloatArray:
        return np.ascontiguousarray(self.X, dtype=np.float32)

    def weighted_sum(self, weights: DoubleArray | None) -> DoubleArray:
        w = np.ones(self.shape[0]) if weights is None else weights
        return sum_over_blocks(self.shape[0], lambda rows: w[rows] @ self.X[rows], DOUBLE_ROWS)

    def total_square(self) -> float:
        with np.errstate(over="ignore"):
            return float(sum_over_blocks(self.shape[0], lambda rows: np.vdot(self.X[rows], self.X[rows])))

    def column_squares(self) -> DoubleArray:
        def of_block(rows: slice) -> DoubleArray:
            return np.square(self.X[rows], dtype=np.float64).sum(axis=0)

        return sum_over_blocks(self.shape[0], of_block, DOUBLE_ROWS)

    def row_squares(self) -> DoubleArray:
        blocks = some_blocks(self.shape[0], DOUBLE_ROWS)
        return np.concatenate([np.square(self.X[rows], dtype=np.float64).sum(axis=1) for rows in blocks])

    def times(self, B: Any) -> FloatArray:
        return multiply(self._single, np.asarray(B, np.float32))

    def times_vector(self, v: DoubleArray) -> DoubleArray:
        return np.concatenate([self.X[rows] @ v for rows in some_blocks(self.shape[0], DOUBLE_ROWS)])

    def transposed_times(self, B: Any) -> Any:
        if sp.issparse(B):
            return self._single.T @ B
        X, size = (self.X, DOUBLE_ROWS) if B.dtype == np.float64 else (self._single, DENSE_ROWS)
        C = np.empty((self.shape[1], B.shape[1]))

        def fill(columns: slice) -> None:
            C[columns] = sum_over_blocks(self.shape[0], lambda rows: X[rows, columns].T @ B[rows], size)

        with plain_algebra:
            map_rows(fill, self.shape[1], BLOCK_COLUMNS, -1)
        return C

    def gram(self, kind: Precision = np.float32) -> Any:
        G: Any = np.zeros((self.shape[1], self.shape[1]), kind)
        add_gram(G, self.X if kind is np.float64 else self._single)
        return G

    def outer_gram(self, kind: Precision = np.float32) -> Any:
        K: Any = np.zeros((self.shape[0], self.shape[0]), kind)
        add_gram(K, (self.X if kind is np.float64 else self._single).T)
        return K

    def times_rows_of(self, other: MemoryDesign) -> FloatArray:
        _check_same_features(self, other)
        return dense_product(self._single, other.dense_rows(slice(None)).T)

    def quadratic_forms(self, S: FloatArray) -> DoubleArray:
        full = copied(S)
        mirror(full)
        blocks = (self._single[rows] for rows in some_blocks(self.shape[0], DENSE_ROWS))
        parts = [np.einsum("ij,ij->i", multiply(block, full), block) for block in blocks]
        return np.concatenate(parts).astype(np.float64)

    def centred(self, mean: DoubleArray) -> tuple[DenseDesign, DoubleArray]:
        centred = np.empty(self.shape, np.float32)
        for rows in row_blocks(self.shape[0], DOUBLE_ROWS):
            centred[rows] = self.X[rows] - mean
        return DenseDesign(centred), np.zeros_like(mean)

    def scaled(self, weights: DoubleArray) -> DenseDesign:
        return DenseDesign(self.X * weights[:, None].astype(self.X.dtype))

    def rows(self, chosen: Rows) -> DenseDesign:
        return DenseDesign(self.X[chosen])

    def dense_rows(self, chosen: Rows) -> FloatArray:
        return self._single[chosen]


@storable(name="Design")
class SparseDesign(StoredDesign):
    """X (n, p) as a CSR array of float32 in canonical form."""

    def __init__(self, X: CSR) -> None:
        self.X = X
        self.shape = X.shape

    def weighted_sum(self, weights: DoubleArray | None) -> DoubleArray:
        return np.asarray(self.X.T @ (np.ones(self.shape[0]) if weights is None else weights), np.float64)

    def total_square(self) -> float:
        with np.errstate(over="ignore"):
            return float(np.vdot(self.X.data, self.X.data))

    def column_squares(self) -> DoubleArray:
        squares = np.square(self.X.data, dtype=np.float64)
        return np.asarray(np.bincount(self.X.indices, squares, self.shape[1]), np.float64)

    def row_squares(self) -> DoubleArray:
        squares = np.square(self.X.data, dtype=np.float64)
        return sp.csr_array((squares, self.X.indices, self.X.indptr), shape=self.shape) @ np.ones(self.shape[1])

    def times(self, B: Any) -> FloatArray:
        return _times(self._arrays, self.shape[0], np.ascontiguousarray(B, np.float32))

    def times_vector(self, v: DoubleArray) -> DoubleArray:
        return np.asarray(self.X @ v, np.float64)

    def transposed_times(self, B: Any) -> Any:
        if sp.issparse(B):
            return as_dense(self.X.T @ B)
        if B.dtype == np.float64:
            C = np.empty((self.shape[1], B.shape[1]))
            for columns in row_blocks(B.shape[1], max(1, 4 * SPARSE_WORK // max(1, self.X.nnz))):
                C[:, columns] = self.X.T @ B[:, columns]
            return C
        return _times(self._transposed._arrays, self.shape[1], np.ascontiguousarray(B, np.float32))

    def moment_times(self, B: Any) -> DoubleArray:
        n, p = self.shape
        if sp.issparse(B) or B.dtype == np.float64:
            return super().moment_times(B)
        # Of as many rows that the sum of the products of blocks costs little beside these.
        size = max(DOUBLE_ROWS, SUM_SHARE * p * n // max(1, self.X.nnz))
        return sum_over_blocks(n, lambda rows: SparseDesign(self.X[rows]).transposed_times(B[rows]), size)

    def gram(self, kind: Precision = np.float32) -> Any:
        p = self.shape[1]
        G: Any = np.zeros((p, p), kind)
        starts = np.empty((-(-p // _kernels.FEATURE_TILE) + 1, self.shape[0]), np.int64)
        _kernels.tile_starts(*self._arrays, starts)
        self._by_columns(lambda begin, end: _kernels.gram(*self._arrays, *self._columns, starts, begin, end, G))
        return G

    def sparse_gram(self, fullest: float) -> CSR | None:
        p, left, strips = self.shape[1], fullest * self.shape[1] ** 2 / 2, []
        X, transposed = self.X.astype(np.float64), self._transposed.X.astype(np.float64)
        for begin, end in self._column_ranges():
            strips.append(sp.tril(transposed[begin:end] @ X, begin, format="csr"))
            left -= strips[-1].nnz - (end - begin) / 2  # of the diagonal, only half is below it
            if left < 0:
                return None
        gram = sp.csr_array(sp.vstack(strips, format="csr").reshape(p, p))
        gram.sort_indices()
        return gram

    def outer_gram(self, kind: Precision = np.float32) -> Any:
        common, rare = self._split
        K = rare._transposed.gram(kind)
        add_gram(K, common.T)
        return K

    def times_rows_of(self, other: MemoryDesign) -> FloatArray:
        _check_same_features(self, other)
        if not isinstance(other, SparseDesign):
            return dense_product(self.X.toarray(), other.dense_rows(slice(None)).T)
        common, rare = other._split
        C = np.empty((self.shape[0], other.shape[0]), np.float32)
        right = rare._transposed._arrays
        cost = max(1, rare.X.nnz * self.X.nnz // max(1, self.shape[0] * self.shape[1]))

        def fill(rows: slice) -> None:
            _kernels.times_sparse(*self._arrays, rows.start, rows.stop, *right, C)

        map_rows(fill, self.shape[0], _block_rows(self.shape[0], cost), -1)
        mine = self.X[:, other._common_features].toarray()
        for rows in row_blocks(len(C), DENSE_ROWS):
            C[rows] += multiply(mine[rows], common.T)
        return C

    def quadratic_forms(self, S: FloatArray) -> DoubleArray:
        partial: list[tuple[int, DoubleArray]] = []

        def add(begin: int, end: int) -> None:
            q = np.zeros(self.shape[0])
            _kernels.quadratic_forms(*self._arrays, *self._columns, begin, end, S, q)
            partial.append((begin, q))

        self._by_columns(add, at_most=32)
        return np.sum([q for _, q in sorted(partial, key=lambda item: item[0])], axis=0)

    def centred(self, mean: DoubleArray) -> tuple[SparseDesign, DoubleArray]:
        return self, mean

    def scaled(self, weights: DoubleArray) -> SparseDesign:
        scaled = self.X.data * np.repeat(weights.astype(np.float32), np.diff(self.X.indptr))
        return SparseDesign(sp.csr_array((scaled, self.X.indices, self.X.indptr), shape=self.shape))

    def rows(self, chosen: Rows) -> SparseDesign:
        return SparseDesign(self.X[chosen])

    def dense_rows(self, chosen: Rows) -> FloatArray:
        return self.X[chosen].toarray()

    @cached_property
    def _common_features(self) -> Any:
        return np.flatnonzero(np.bincount(self.X.indices, minlength=self.shape[1]) > COMMON * self.shape[0])

    @cached_property
    def _split(self) -> tuple[FloatArray, SparseDesign]:
        """The features that many rows have, dense, and X without them: products of the first are cheapest by BLAS."""
        keep = np.ones(self.shape[1], np.float32)
        keep[self._common_features] = 0
        rare = sp.csr_array(self.X @ sp.diags_array(keep))
        rare.eliminate_zeros()
        return self.X[:, self._common_features].toarray(), SparseDesign(rare)

    @cached_property
    def _arrays(self) -> Arrays:
        return _csr(self.X)

    @cached_property
    def _transposed(self) -> SparseDesign:
        starts, rows, places = self._columns
        return SparseDesign(sp.csr_array((self.X.data[places], rows, starts), shape=self.shape[::-1]))

    @cached_property
    def _columns(self) -> Arrays:
        """For each feature: where its rows start, the rows, and their places in the data."""
        places = sp.csr_array((np.arange(self.X.nnz), self.X.indices, self.X.indptr), shape=self.shape).tocsc()
        return places.indptr.astype(np.int64), places.indices.astype(np.int32), places.data.astype(np.int64)

    def _by_columns(self, work: Callable[[int, int], None], at_most: int | None = None) -> None:
        """Call ``work`` on ranges of features of about equal cost, on all cores."""
        ranges = self._column_ranges(at_most)
        map_rows(lambda piece: work(*ranges[piece.start]), len(ranges), 1, -1)

    @cached_property
    def _column_costs(self) -> DoubleArray:
        """What X'X costs up to each feature."""
        lengths = np.diff(self._arrays[0])
        cost = np.bincount(self.X.indices, weights=np.repeat(lengths, lengths), minlength=self.shape[1])
        return np.cumsum(cost + 1)

    def _column_ranges(self, at_most: int | None = None) -> list[tuple[int, int]]:
        """Return ranges of features for which X'X costs about the same, and little."""
        total = self._column_costs
        pieces = int(min(total[-1] // SPARSE_WORK + 1, at_most or self.shape[1], self.shape[1]))
        cuts = np.searchsorted(total, np.linspace(0, total[-1], pieces + 1)[1:-1])
        bounds = np.unique(np.concatenate([[0], cuts, [self.shape[1]]])).tolist()
        return list(pairwise(bounds))


def product(X: Any, B: FloatArray) -> FloatArray:
    """Return X B for rows X of float32, dense or sparse with entries in any order, and dense B (p, m)."""
    if X.shape[1] != len(B):  # the kernel would read what is not there
        raise ValueError(f"Rows of {X.shape[1]} features cannot be multiplied by weights of {len(B)}.")
    if not sp.issparse(X):
        return dense_product(X, B)
    check_places(X, "X")
    return _times(_csr(X), X.shape[0], np.ascontiguousarray(B, np.float32))


def dense_product(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return A B, in double if that is cheap.

    BLAS sums a row in an order that depends on how many rows there are and where it is among them. Rounded from double
    the result does not, but for one number in a hundred million.
    """
    if B.size > EXACT_WORK:
        product: FloatArray = multiply(A, B)
        return product
    C, B = np.empty((len(A), B.shape[1]), np.float32), B.astype(np.float64)

    def fill(rows: slice) -> None:
        C[rows] = A[rows].astype(np.float64) @ B

    with plain_algebra:
        map_rows(fill, len(A), DENSE_ROWS, -1)
    return C


def _check_same_features(left: MemoryDesign, right: MemoryDesign) -> None:
    if left.shape[1] != right.shape[1]:  # a model file may say anything
        raise ValueError(f"Rows of {left.shape[1]} features cannot be compared with rows of {right.shape[1]}.")


def _csr(X: CSR) -> Arrays:
    return X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data


def _times(arrays: Arrays, n: int, B: FloatArray) -> FloatArray:
    C = np.empty((n, B.shape[1]), np.float32)
    cost = max(1, len(arrays[1]) // max(1, n)) * B.shape[1]

    def multiply(rows: slice) -> None:
        _kernels.times_dense(*arrays, rows.start, rows.stop, B, C)

    map_rows(multiply, n, _block_rows(n, cost), -1)
    return C


def _block_rows(n: int, cost: int) -> int:
    """Return how many rows of so many multiplications make a block: short enough for Ctrl-C, at least eight of them."""
    return max(1, min(SPARSE_WORK // cost, -(-n // 8)))

"""The design matrix X that all regressions share, and the products of it that they need.

Rows are float32, sparse or dense; long sums are in double. Sparse products use all cores, like those of BLAS.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense import _kernels
from labelsense._blocks import map_rows, row_blocks
from labelsense._storage import Parts, all_finite, require, require_array, storable
from labelsense._typing import FloatArray

DENSE_ROWS = 2048  # rows of a dense block
COMMON = 0.12  # a feature that this fraction of rows has is multiplied faster by BLAS than entry by entry (measured)
SPARSE_WORK = 2**24  # multiplications between two looks at Ctrl-C


@storable()
class Design:
    """X (n, p) of float32, sparse or dense."""

    def __init__(self, X: Any) -> None:
        if sp.issparse(X):
            X = sp.csr_array(X, dtype=np.float32)
            if not X.has_canonical_format:
                X = X.copy()  # the arrays may be the caller's
                X.sum_duplicates()
            self.sparse = True
            self.X = X
        else:
            self.sparse = False
            self.X = np.ascontiguousarray(X, dtype=np.float32)
        self.shape = X.shape

    def _to_parts(self) -> Parts:
        return {"X": self.X}

    @classmethod
    def _from_parts(cls, parts: Parts) -> Design:
        X = parts["X"]
        if sp.issparse(X):
            require(X.shape[0] > 0 and X.dtype == np.float32, "the training rows must be numbers")
            require(all_finite(X.data), "the training rows must be finite")
        else:
            require_array(X, "the training rows", "float32", (None, None))
        return cls(X)

    def rows(self, chosen: Any) -> Design:
        """Return some of the rows."""
        return Design(self.X[chosen])

    def scaled(self, weights: Any) -> Design:
        """Return X with each row multiplied by a weight."""
        if self.sparse:
            return Design(sp.diags_array(np.asarray(weights, np.float32)) @ self.X)
        return Design(self.X * np.asarray(weights, np.float32)[:, None])

    def times(self, B: Any) -> FloatArray:
        """Return X B, (n, m), for dense B (p, m)."""
        if not self.sparse:
            return self.X @ np.asarray(B, np.float32)
        return _times(self._arrays, self.shape[0], np.ascontiguousarray(B, np.float32))

    def transposed_times(self, B: Any) -> Any:
        """Return X' B, (p, m), for B (n, m), dense or sparse; in double if that costs no more."""
        if sp.issparse(B):
            product = self.X.T @ B
            return product.toarray() if sp.issparse(product) else product
        if not self.sparse:
            return sum_over_blocks(self.shape[0], lambda rows: self.X[rows].T @ np.asarray(B[rows], np.float32))
        return _times(self._transposed._arrays, self.shape[1], np.ascontiguousarray(B, np.float32))

    def gram(self, kind: Any = np.float32) -> Any:
        """Return X'X, (p, p). Only its lower triangle is right."""
        p = self.shape[1]
        if not self.sparse:
            total = sum_over_blocks(self.shape[0], lambda rows: self.X[rows].T.astype(kind) @ self.X[rows].astype(kind))
            return np.ascontiguousarray(total, dtype=kind)
        G = np.zeros((p, p), kind)
        starts = np.empty((-(-p // _kernels.FEATURE_TILE) + 1, self.shape[0]), np.int64)
        _kernels.tile_starts(*self._arrays, starts)
        self._by_columns(lambda begin, end: _kernels.gram(*self._arrays, *self._columns, starts, begin, end, G))
        return G

    def outer_gram(self) -> FloatArray:
        """Return X X', (n, n). Only its lower triangle is right."""
        if not self.sparse:
            return self.X @ self.X.T
        common, rare = self._split
        K = rare._transposed.gram()
        for rows in row_blocks(len(K), DENSE_ROWS):
            K[rows, : rows.stop] += common[rows] @ common[: rows.stop].T
        return K

    def times_rows_of(self, other: Design) -> FloatArray:
        """Return X Z', (n, k), for another design Z (k, p)."""
        if self.shape[1] != other.shape[1]:  # a model file may say anything
            raise ValueError(f"Rows of {self.shape[1]} features cannot be compared with rows of {other.shape[1]}.")
        if not (self.sparse and other.sparse):
            dense = [design.X.toarray() if design.sparse else design.X for design in (self, other)]
            return dense[0] @ dense[1].T
        common, rare = other._split
        C = np.empty((self.shape[0], other.shape[0]), np.float32)
        right = rare._transposed._arrays
        cost = max(1, rare.X.nnz * self.X.nnz // max(1, self.shape[0] * self.shape[1]))

        def multiply(rows: slice) -> None:
            _kernels.times_sparse(*self._arrays, rows.start, rows.stop, *right, C)

        map_rows(multiply, self.shape[0], _block_rows(self.shape[0], cost), -1)
        mine = self.X[:, other._common_features].toarray()
        for rows in row_blocks(len(C), DENSE_ROWS):
            C[rows] += mine[rows] @ common.T
        return C

    def quadratic_forms(self, S: FloatArray) -> Any:
        """Return x' S x for each row, (n,), in double; only the lower triangle of the symmetric S is read."""
        if not self.sparse:
            full = np.tril(S) + np.tril(S, -1).T
            parts = map_rows(lambda rows: np.einsum("ij,ij->i", self.X[rows] @ full, self.X[rows]), *self._dense_blocks)
            return np.concatenate(parts).astype(np.float64)
        partial: list[Any] = []

        def add(begin: int, end: int) -> None:
            q = np.zeros(self.shape[0])
            _kernels.quadratic_forms(*self._arrays, *self._columns, begin, end, S, q)
            partial.append((begin, q))

        self._by_columns(add, at_most=32)
        return np.sum([q for _, q in sorted(partial, key=lambda item: item[0])], axis=0)

    @cached_property
    def _common_features(self) -> Any:
        return np.flatnonzero(np.bincount(self.X.indices, minlength=self.shape[1]) > COMMON * self.shape[0])

    @cached_property
    def _split(self) -> tuple[FloatArray, Design]:
        """The features that many rows have, dense, and X without them: products of the first are cheapest by BLAS."""
        keep = np.ones(self.shape[1], np.float32)
        keep[self._common_features] = 0
        rare = self.X @ sp.diags_array(keep)
        rare.eliminate_zeros()
        return self.X[:, self._common_features].toarray(), Design(rare)

    @property
    def _dense_blocks(self) -> tuple[int, int, int]:
        return self.shape[0], DENSE_ROWS, 1

    @cached_property
    def _arrays(self) -> tuple[Any, Any, Any]:
        return _csr(self.X)

    @cached_property
    def _transposed(self) -> Design:
        starts, rows, places = self._columns
        return Design(sp.csr_array((self.X.data[places], rows, starts), shape=self.shape[::-1]))

    @cached_property
    def _columns(self) -> tuple[Any, Any, Any]:
        """For each feature: where its rows start, the rows, and their places in the data."""
        places = sp.csr_array((np.arange(self.X.nnz), self.X.indices, self.X.indptr), shape=self.shape).tocsc()
        return places.indptr.astype(np.int64), places.indices.astype(np.int32), places.data.astype(np.int64)

    def _by_columns(self, work: Callable[[int, int], None], at_most: int | None = None) -> None:
        """Call ``work`` on ranges of features of about equal cost, on all cores."""
        lengths = np.diff(self._arrays[0])
        cost = np.bincount(self.X.indices, weights=np.repeat(lengths, lengths), minlength=self.shape[1])
        total = np.cumsum(cost + 1)
        pieces = int(min(total[-1] // SPARSE_WORK + 1, at_most or self.shape[1], self.shape[1]))
        cuts = np.searchsorted(total, np.linspace(0, total[-1], pieces + 1)[1:-1])
        bounds = np.unique(np.concatenate([[0], cuts, [self.shape[1]]]))
        map_rows(lambda piece: work(int(bounds[piece.start]), int(bounds[piece.stop])), len(bounds) - 1, 1, -1)


def sum_over_blocks(n: int, function: Callable[[slice], Any]) -> Any:
    """Return the sum of a function of blocks of rows, accumulated in double."""
    total: Any = 0.0
    for start in range(0, n, DENSE_ROWS):
        total = total + function(slice(start, min(start + DENSE_ROWS, n))).astype(np.float64)
    return total


def product(X: Any, B: FloatArray) -> FloatArray:
    """Return X B for rows X of float32, dense or sparse with entries in any order, and dense B (p, m)."""
    if not sp.issparse(X):
        return X @ B
    if X.shape[1] != len(B):  # the kernel would read what is not there
        raise ValueError(f"Rows of {X.shape[1]} features cannot be multiplied by weights of {len(B)}.")
    return _times(_csr(X), X.shape[0], np.ascontiguousarray(B, np.float32))


def _csr(X: Any) -> tuple[Any, Any, Any]:
    return X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data


def _times(arrays: tuple[Any, Any, Any], n: int, B: FloatArray) -> FloatArray:
    C = np.empty((n, B.shape[1]), np.float32)
    cost = max(1, len(arrays[1]) // max(1, n)) * B.shape[1]

    def multiply(rows: slice) -> None:
        _kernels.times_dense(*arrays, rows.start, rows.stop, B, C)

    map_rows(multiply, n, _block_rows(n, cost), -1)
    return C


def _block_rows(n: int, cost: int) -> int:
    """Return how many rows of so many multiplications make a block: short enough for Ctrl-C, at least eight of them."""
    return max(1, min(SPARSE_WORK // cost, -(-n // 8)))

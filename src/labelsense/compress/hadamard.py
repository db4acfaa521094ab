"""Random rows of the Hadamard matrix: the compressor to use unless there is a reason not to."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.random import sample_without_replacement

from labelsense import _kernels
from labelsense._blocks import row_blocks
from labelsense._storage import Parts, require, require_array, storable
from labelsense._typing import FloatArray, IntArray
from labelsense._validation import check_measurements
from labelsense.compress.base import Compressor, Operator
from labelsense.errors import InputError

MAX_LABELS = 2**24
COMPRESSED_NUMBERS = 2**22  # of Z, that are computed between two looks at Ctrl-C


@storable()
class HadamardOperator(Operator):
    """m rows of the Hadamard matrix of order D, over ±1/sqrt(m), restricted to its first d columns.

    A is a list of m row numbers: a product with A' is one fast Walsh-Hadamard transform, and the inner product of
    columns i and j depends on ``i ^ j`` only.
    """

    def __init__(self, rows: IntArray, order: int, n_labels: int) -> None:
        self.rows = np.sort(np.asarray(rows, dtype=np.int64))
        self.order = self.capacity = order
        self.n_labels = n_labels
        self.n_measurements = len(self.rows)

    def _first_columns(self, n_labels: int) -> HadamardOperator:
        return HadamardOperator(self.rows, self.order, n_labels)

    def _to_parts(self) -> Parts:
        return {"rows": self.rows, "order": self.order, "n_labels": self.n_labels}

    @classmethod
    def _from_parts(cls, parts: Parts) -> HadamardOperator:
        rows, order, n_labels = parts["rows"], parts["order"], parts["n_labels"]
        require(type(order) is int and type(n_labels) is int, "the sizes of A must be whole numbers")
        require(0 < n_labels <= order <= MAX_LABELS and order & (order - 1) == 0, "A must have a column for each label")
        require_array(rows, "the rows of A", "int64", (None,))
        within = bool(rows.min() >= 0 and rows.max() < order)
        require(within and len(np.unique(rows)) == len(rows), "the rows of A must be different ones of the matrix")
        return cls(rows, order, n_labels)

    def _some_rows(self, rows: IntArray) -> HadamardOperator:
        return HadamardOperator(self.rows[rows], self.order, self.n_labels)

    def compress(self, Y: Any) -> FloatArray:
        Y = self._check_labels(Y)
        Z = np.empty((Y.shape[0], self.n_measurements), np.float32)
        starts, labels = Y.indptr.astype(np.int64), Y.indices.astype(np.int64)
        for rows in row_blocks(len(Z), max(1, COMPRESSED_NUMBERS // self.n_measurements)):
            self._kernel.compress(starts[rows.start : rows.stop + 1], labels, Y.data, Z[rows])
        return self._check_product(Z, "Y")

    def correlate(self, R: Any) -> FloatArray:
        R = check_measurements(R, self.n_measurements)
        C = np.empty((len(R), self.n_labels), np.float32)
        self._kernel.correlate(R, C)
        return self._check_product(C, "R")

    def scores(self, R: FloatArray, weights: FloatArray) -> _kernels.Scores:
        return _kernels.HadamardScores(self._kernel, check_measurements(R, self.n_measurements), weights)

    def columns(self, J: Any) -> FloatArray:
        J = self._check_columns(J)
        out = np.empty((len(J), self.n_measurements), np.float32)
        self._kernel.columns(J, out)
        return out.T

    @property
    def column_norms(self) -> FloatArray:
        return np.ones(self.n_labels, np.float32)

    def coherence(self) -> float:
        # a_i' a_j = g[i ^ j]. With P the least power of two >= d, i ^ j of two real columns takes just the values
        # from 1 to P - 1: x is x ^ 0 if x < d, and else P/2 ^ (x - P/2).
        g = np.empty(hadamard_order(self.n_labels), np.float32)
        self._kernel.gram_vector(g)
        return float(np.abs(g[1:]).max(initial=0))

    def kernel(self) -> _kernels.Hadamard:
        return self._kernel

    @cached_property
    def _kernel(self) -> _kernels.Hadamard:
        return _kernels.Hadamard(self.rows, self.order, self.n_labels)

    def __reduce__(self) -> Any:
        return HadamardOperator, (self.rows, self.order, self.n_labels)


def hadamard_order(n_labels: int) -> int:
    """Return D, the smallest power of two that is at least d."""
    return 1 << (n_labels - 1).bit_length()


@storable()
class HadamardCompressor(Compressor):
    """Random rows of the Hadamard matrix, never stored: for any number of labels up to 2^24.

    Use it by default. It decodes fastest, costs no memory, and the paper found it uniformly better than Gaussian
    matrices. With m = D its columns are orthonormal and the method is one-against-all. Columns up to the next
    power of two are there for new labels without asking.

    Parameters
    ----------
    n_measurements, k, reserve, random_state
        See :class:`~labelsense.compress.base.Compressor`.

    Examples
    --------
    >>> from labelsense import HadamardCompressor
    >>> A = HadamardCompressor(n_measurements=400, random_state=0).fit(30_000).operator_
    >>> A.order, A.columns([7, 29_999]).shape
    (32768, (400, 2))
    """

    def _make_operator(
        self, n_labels: int, k: float, frequencies: Any, random_state: np.random.RandomState
    ) -> Operator:
        order, m = self._size(n_labels, k)
        return HadamardOperator(sample_without_replacement(order, m, random_state=random_state), order, n_labels)

    def _size(self, n_labels: int, k: float) -> tuple[int, int]:
        """Return D and m."""
        if n_labels > MAX_LABELS:
            raise InputError(f"At most 2^24 = {MAX_LABELS} labels are supported. Got {n_labels}. Drop the rarest ones.")
        order = hadamard_order(n_labels)
        m = self._count_measurements(n_labels, k, order, f"the order of the Hadamard matrix for {n_labels} labels")
        return order, m

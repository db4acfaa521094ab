"""What ridge needs to know of the rows it has seen: exact, and of a size that does not grow with their number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._blocks import row_blocks
from labelsense._gram import copied
from labelsense._memory import available_memory
from labelsense._storage import Parts, all_finite, require, require_array, storable
from labelsense._typing import CSR, DoubleArray, FloatArray, as_dense
from labelsense._validation import check_real
from labelsense.regress import lapack
from labelsense.regress.base import data_bytes
from labelsense.regress.conjugate_gradients import add_ridge, conjugate_gradients
from labelsense.regress.design import Design
from labelsense.regress.in_memory import as_design
from labelsense.regress.primal import solve_positive
from labelsense.regress.problem import subtract_outer
from labelsense.regress.targets import LazyTargets, scaled_targets, weighted_sum

# Of more features than this, X'X is kept sparse if no more than this part of it is not zero: texts have many words that
# never meet.
MOST_DENSE, FULLEST = 8192, 0.02
TARGET_NUMBERS = 2**24  # of targets, in double, between two looks at Ctrl-C
TOL, MAX_ITER = 1e-5, 1000  # of conjugate gradients on a sparse X'X: about what float32 can tell apart


@storable()
@dataclass(eq=False)
class Moments:
    """X'X, X'Z and the sums of X and Z over all rows, in double: O(p^2 + p m) numbers, or less if X'X is sparse.

    They add up: those of chunks of rows, made anywhere, are merged. Rows are removed by merging with the opposite sign.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsense.regress.in_memory import as_design
    >>> X, Z = np.arange(6.0).reshape(3, 2), np.ones((3, 1))
    >>> parts = [Moments.of(as_design(X[rows]), Z[rows]) for rows in (slice(0, 2), slice(2, 3))]
    >>> parts[0].merge(parts[1]).x_sum
    array([6., 9.])
    """

    gram: Any  # lower triangle, an array or CSR
    right: DoubleArray
    x_sum: DoubleArray
    z_sum: DoubleArray
    total: float

    @classmethod
    def of(
        cls, X: Design, Z: Any, weights: DoubleArray | None = None, sign: int = 1, sparse: bool | None = None
    ) -> Moments:
        """Return the moments of some rows; with sign -1, those that take them out again.

        Whether X'X is sparse is decided by what it holds, or by those that these will be merged with.
        """
        weighted = X if weights is None else X.scaled(np.sqrt(weights))
        gram = weighted.sparse_gram(1.0) if sparse else sparse_gram(weighted) if sparse is None else None
        if gram is None:
            _check_memory(X.shape[1], Z.shape[1])
            gram = weighted.gram(np.float64)
        w = None if weights is None else np.asarray(weights, np.float64)
        right, z_sum = np.empty((X.shape[1], Z.shape[1])), np.empty(Z.shape[1])
        lazy = isinstance(Z, LazyTargets)
        for columns in row_blocks(Z.shape[1], Z.shape[1] if lazy else max(1, TARGET_NUMBERS // X.shape[0])):
            targets = Z if lazy else as_dense(Z[:, columns]).astype(np.float64, copy=False)
            right[:, columns] = X.moment_times(targets if w is None else scaled_targets(targets, w))
            z_sum[columns] = weighted_sum(targets, w)
        x_sum = X.weighted_sum(w)
        for sums in (gram, right, x_sum, z_sum):
            sums *= sign
        return cls(gram, right, x_sum, z_sum, sign * float(X.shape[0] if w is None else w.sum()))

    @property
    def is_sparse(self) -> bool:
        """Whether X'X is."""
        return bool(sp.issparse(self.gram))

    @property
    def nbytes(self) -> int:
        """The memory of all, but for a few numbers."""
        return data_bytes(self.gram) + self.right.nbytes

    def merge(self, other: Moments) -> Moments:
        """Add those of other rows to these, in place; return these."""
        if self.is_sparse == other.is_sparse:
            self.gram += other.gram
        else:
            self.gram = as_dense(self.gram) + as_dense(other.gram)
        self.right += other.right
        self.x_sum += other.x_sum
        self.z_sum += other.z_sum
        self.total += other.total
        return self

    def solve(self, alpha: float, fit_intercept: bool) -> tuple[Any, Any]:
        """Return W (p, m) and the intercept (m,)."""
        total = self.total if fit_intercept else np.inf
        x_mean, z_mean = self.x_sum / total, self.z_sum / total
        right = copied(self.right)
        subtract_outer(right, self.x_sum, z_mean)
        if self.is_sparse and alpha > 0:
            W: Any = self._solve_sparse(alpha, x_mean, right)
        else:
            W = solve_positive(lambda: self._centred_gram(x_mean), right, alpha)
        return W, z_mean - x_mean @ W

    def _centred_gram(self, x_mean: DoubleArray) -> DoubleArray:
        gram = self.gram.toarray() if self.is_sparse else copied(self.gram)
        if x_mean.any():
            lapack.subtract_outer(gram, x_mean, self.total)
        return gram

    def _solve_sparse(self, alpha: float, x_mean: DoubleArray, right: DoubleArray) -> FloatArray:
        gram = as_design(self.gram + sp.triu(self.gram.T, 1))
        diagonal = self.gram.diagonal() - self.total * x_mean**2 + alpha

        def apply(P: FloatArray) -> tuple[FloatArray, DoubleArray]:
            return add_ridge(gram.times(P), P, alpha, self.total * x_mean, x_mean.astype(np.float32) @ P)

        precondition = (1 / np.maximum(diagonal, 1e-12)).astype(np.float32)
        return conjugate_gradients(apply, right.astype(np.float32), precondition, TOL, MAX_ITER)[0]

    def _to_parts(self) -> Parts:
        sums = {"right": self.right, "x_sum": self.x_sum, "z_sum": self.z_sum, "total": self.total}
        if self.is_sparse:
            return {**sums, "gram": self.gram}
        return {**sums, "triangle": np.concatenate([row[: i + 1] for i, row in enumerate(self.gram)])}

    @classmethod
    def _from_parts(cls, parts: Parts) -> Moments:
        right, x_sum, z_sum = parts["right"], parts["x_sum"], parts["z_sum"]
        require_array(right, "X'Z", "float64", (None, None), finite=True)
        p, m = right.shape
        require_array(x_sum, "the sum of X", "float64", (p,), finite=True)
        require_array(z_sum, "the sum of Z", "float64", (m,), finite=True)
        gram = _read_sparse(parts["gram"], p) if "gram" in parts else _read_triangle(parts["triangle"], p, m)
        total = check_real(parts["total"], "the number of rows", low=0)
        return cls(gram, right.copy(), x_sum.copy(), z_sum.copy(), total)  # those of a file may not be added to


def sparse_gram(X: Design) -> CSR | None:
    """Return the lower triangle of X'X if it is better kept sparse: a dense one of few features is solved faster."""
    return X.sparse_gram(FULLEST) if X.shape[1] > MOST_DENSE else None


def _check_memory(p: int, m: int) -> None:
    needed = 8.0 * p * (2 * p + m)  # and a copy, to solve or to merge
    if needed > available_memory():
        raise MemoryError(
            f"A model of {p} features that can be updated takes {needed / 1e9:.1f} GB, and "
            f"{available_memory() / 1e9:.1f} GB are available. Use fewer features."
        )


def _read_sparse(gram: Any, p: int) -> Any:
    fits = sp.issparse(gram) and gram.shape == (p, p) and gram.dtype == np.float64 and all_finite(gram.data)
    require(fits, "X'X must be finite and have a row and a column for each feature")
    require(sp.triu(gram, 1).nnz == 0, "X'X must be stored by its lower triangle")
    return gram


def _read_triangle(triangle: Any, p: int, m: int) -> Any:
    require_array(triangle, "X'X", "float64", (p * (p + 1) // 2,), finite=True)
    _check_memory(p, m)
    gram = np.zeros((p, p))
    for i, row in enumerate(gram):
        row[: i + 1] = triangle[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]
    return gram

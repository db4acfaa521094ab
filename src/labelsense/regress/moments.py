"""What ridge needs to know of the rows it has seen: exact, and of a size that does not grow with their number."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelsense._memory import available_memory
from labelsense._storage import Parts, require_array, storable
from labelsense._typing import DoubleArray
from labelsense._validation import check_real
from labelsense.regress import lapack
from labelsense.regress.design import Design
from labelsense.regress.primal import solve_positive
from labelsense.regress.targets import LazyTargets, some_targets, weighted_sum


@storable()
class Moments:
    """X'X, X'Z and the sums of X and Z over all rows, in double: O(p^2 + p m) numbers.

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

    def __init__(self, n_features: int, n_targets: int) -> None:
        needed = 8.0 * n_features * (2 * n_features + n_targets)  # and a copy, to solve or to merge
        if needed > available_memory():
            raise MemoryError(
                f"A model of {n_features} features that can be updated takes {needed / 1e9:.1f} GB, and "
                f"{available_memory() / 1e9:.1f} GB are available. Use fewer features."
            )
        self.gram = np.zeros((n_features, n_features))  # lower triangle
        self.right = np.zeros((n_features, n_targets))
        self.x_sum = np.zeros(n_features)
        self.z_sum = np.zeros(n_targets)
        self.total = 0.0

    def _to_parts(self) -> Parts:
        triangle = np.concatenate([row[: i + 1] for i, row in enumerate(self.gram)])
        sums = {"x_sum": self.x_sum, "z_sum": self.z_sum, "total": self.total}
        return {"right": self.right, **sums, "triangle": triangle}

    @classmethod
    def _from_parts(cls, parts: Parts) -> Moments:
        right, triangle = parts["right"], parts["triangle"]
        require_array(right, "X'Z", "float64", (None, None), finite=True)
        p, m = right.shape
        require_array(triangle, "X'X", "float64", (p * (p + 1) // 2,), finite=True)
        require_array(parts["x_sum"], "the sum of X", "float64", (p,), finite=True)
        require_array(parts["z_sum"], "the sum of Z", "float64", (m,), finite=True)
        moments = cls(p, m)
        for i, row in enumerate(moments.gram):
            row[: i + 1] = triangle[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]
        moments.right[:], moments.x_sum[:], moments.z_sum[:] = right, parts["x_sum"], parts["z_sum"]
        moments.total = check_real(parts["total"], "the number of rows", low=0)
        return moments

    @classmethod
    def of(cls, X: Design, Z: Any, weights: DoubleArray | None = None, sign: int = 1) -> Moments:
        """Return the moments of some rows; with sign -1, those that take them out again."""
        moments = cls(X.shape[1], Z.shape[1])
        w = None if weights is None else np.asarray(weights, np.float64)
        if not isinstance(Z, LazyTargets):
            Z = some_targets(Z, slice(None)).astype(np.float64, copy=False)
        moments.gram = (X if w is None else X.scaled(np.sqrt(w))).gram(np.float64)
        moments.right = np.ascontiguousarray(X.transposed_times(Z if w is None else w[:, None] * Z), np.float64)
        moments.x_sum, moments.z_sum = X.weighted_sum(w), weighted_sum(Z, w)
        moments.total = float(X.shape[0] if w is None else w.sum())
        for sums in (moments.gram, moments.right, moments.x_sum, moments.z_sum):
            sums *= sign
        moments.total *= sign
        return moments

    def merge(self, other: Moments) -> Moments:
        """Add those of other rows to these, in place; return these."""
        self.gram += other.gram
        self.right += other.right
        self.x_sum += other.x_sum
        self.z_sum += other.z_sum
        self.total += other.total
        return self

    def solve(self, alpha: float, fit_intercept: bool) -> tuple[DoubleArray, DoubleArray]:
        """Return W (p, m) and the intercept (m,)."""
        right = self.right.copy()
        if not fit_intercept:
            return solve_positive(self.gram.copy, right, alpha), np.zeros(right.shape[1])
        x_mean, z_mean = self.x_sum / self.total, self.z_sum / self.total

        def centred_gram() -> DoubleArray:
            gram = self.gram.copy()
            lapack.subtract_outer(gram, x_mean, self.total)
            return gram

        right -= np.outer(self.x_sum, z_mean)
        W = solve_positive(centred_gram, right, alpha)
        return W, z_mean - x_mean @ W

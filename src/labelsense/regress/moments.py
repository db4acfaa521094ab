"""What ridge needs to know of the rows it has seen: exact, and of a size that does not grow with their number."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelsense._memory import available_memory
from labelsense._typing import DoubleArray, as_dense
from labelsense.regress import lapack
from labelsense.regress.design import Design
from labelsense.regress.primal import solve_positive


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

    @classmethod
    def of(cls, X: Design, Z: Any, weights: DoubleArray | None = None, sign: int = 1) -> Moments:
        """Return the moments of some rows; with sign -1, those that take them out again."""
        moments = cls(X.shape[1], Z.shape[1])
        w = sign * (np.ones(X.shape[0]) if weights is None else np.asarray(weights, np.float64))
        Z = as_dense(Z).astype(np.float64, copy=False)
        moments.gram = (X if weights is None else X.scaled(np.sqrt(weights))).gram(np.float64)
        moments.gram *= sign
        moments.right = np.ascontiguousarray(X.transposed_times(w[:, None] * Z), np.float64)
        moments.x_sum = X.weighted_sum(w)
        moments.z_sum = w @ Z
        moments.total = float(w.sum())
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

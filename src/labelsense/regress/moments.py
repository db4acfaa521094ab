"""What ridge needs to know of the rows it has seen: exact, and of a size that does not grow with their number."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._blocks import available_memory
from labelsense._typing import as_dense
from labelsense.regress import lapack
from labelsense.regress.design import Design
from labelsense.regress.primal import solve_positive


class Moments:
    """X'X, X'Z and the sums of X and Z over all rows, in double: O(p^2 + p m) numbers.

    Rows are added, and removed by adding them with the opposite sign.
    """

    def __init__(self, n_features: int, n_targets: int) -> None:
        needed = 8.0 * n_features * (2 * n_features + n_targets)  # and a copy, to solve
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

    def add(self, X: Any, Z: Any, weights: Any, sign: int) -> None:
        """Add rows (sign 1) or take them out again (sign -1)."""
        w = np.ones(X.shape[0]) if weights is None else np.asarray(weights, np.float64)
        Z = as_dense(Z).astype(np.float64)
        if sp.issparse(X):
            self.gram += sign * Design(X).scaled(np.sqrt(w)).gram(np.float64)
        else:
            X = np.asarray(X, np.float64)
            self.gram += sign * (X.T @ (w[:, None] * X))
        self.right += sign * (X.T @ (w[:, None] * Z))
        self.x_sum += sign * np.asarray(X.T @ w).ravel()
        self.z_sum += sign * (w @ Z)
        self.total += sign * float(w.sum())

    def solve(self, alpha: float, fit_intercept: bool) -> tuple[Any, Any]:
        """Return W (p, m) and the intercept (m,)."""
        gram, right = self.gram.copy(), self.right.copy()
        if not fit_intercept:
            return solve_positive(gram, right, alpha), np.zeros(right.shape[1])
        x_mean, z_mean = self.x_sum / self.total, self.z_sum / self.total
        lapack.subtract_outer(gram, x_mean, self.total)
        right -= np.outer(self.x_sum, z_mean)
        W = solve_positive(gram, right, alpha)
        return W, z_mean - x_mean @ W

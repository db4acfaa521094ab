"""What ridge needs to know of the rows it has seen: exact, and of a size that does not grow with their number."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._blocks import available_memory
from labelsense._storage import Parts, require_array, storable
from labelsense._typing import as_dense
from labelsense._validation import check_real
from labelsense.regress import lapack
from labelsense.regress.design import Design
from labelsense.regress.primal import solve_positive


@storable()
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

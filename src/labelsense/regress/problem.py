"""A ridge regression problem, weighted and centred without touching the sparse rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._typing import as_dense
from labelsense.regress.design import Design


@dataclass(frozen=True)
class Problem:
    """min sum_i w_i ||z_i - W'x_i - b||^2 + alpha ||W||^2.

    With s = sqrt(w), the centred rows are ``X - s x_mean'`` and ``Z - s z_mean'``, where the rows of X and Z have been
    multiplied by s. Without an intercept the means are zero and ``total`` is infinite.
    """

    X: Design
    Z: Any  # (n, m) float32, dense, or sparse for one-against-all
    s: Any
    total: float
    x_mean: Any
    z_mean: Any
    shift: Any  # what dense rows have been centred by already
    unweighted: bool

    @classmethod
    def build(cls, X: Any, Z: Any, fit_intercept: bool, sample_weight: Any = None) -> Problem:
        """Weigh the rows and find the means."""
        n = X.shape[0]
        w = np.ones(n) if sample_weight is None else np.asarray(sample_weight, np.float64)
        total = float(w.sum()) if fit_intercept else np.inf
        if fit_intercept:
            x_mean = np.asarray(X.T @ w, np.float64).ravel() / total
            z_mean = np.asarray(Z.T @ w, np.float64).ravel() / total
        else:
            x_mean, z_mean = np.zeros(X.shape[1]), np.zeros(Z.shape[1])
        shift = np.zeros_like(x_mean)
        if not sp.issparse(X):  # dense rows are centred before they are rounded
            X, x_mean, shift = X - x_mean, shift, x_mean
        design = Design(X)
        s = np.sqrt(w)
        if sample_weight is not None:
            design = design.scaled(s)
            Z = sp.diags_array(s) @ Z if sp.issparse(Z) else Z * s[:, None]
        Z = sp.csr_array(Z, dtype=np.float32) if sp.issparse(Z) else np.ascontiguousarray(Z, np.float32)
        return cls(design, Z, s, total, x_mean, z_mean, shift, sample_weight is None)

    @property
    def n_targets(self) -> int:
        """The number of regressions, m."""
        return int(self.Z.shape[1])

    def centred_rows(self, rows: Any) -> Any:
        """Return some centred rows of X, dense."""
        return as_dense(self.X.X[rows]) - np.outer(self.s[rows], self.x_mean).astype(np.float32)

    def centred_targets(self, rows: Any = slice(None)) -> Any:
        """Return some centred rows of Z, dense."""
        return as_dense(self.Z[rows]) - np.outer(self.s[rows], self.z_mean).astype(np.float32)

    def part(self, rows: Any, columns: Any) -> tuple[Any, Any, Any]:
        """Return some rows of X and Z as they were before they were weighted, and their weights, if any."""
        X, Z = self.X.rows(rows), as_dense(self.Z[rows][:, columns])
        if self.unweighted:
            return X.X, Z, None
        return X.scaled(1 / self.s[rows]).X, Z / self.s[rows][:, None], self.s[rows] ** 2

    def right_hand_side(self) -> Any:
        """Return the centred X'Z, (p, m), in double."""
        right = np.ascontiguousarray(self.X.transposed_times(self.Z), np.float64)
        if np.isfinite(self.total):
            right -= np.outer(self.total * self.x_mean, self.z_mean)
        return right

    def intercept(self, W: Any) -> Any:
        """Return b for given W."""
        return self.z_mean - (self.x_mean + self.shift) @ W

    def fitted(self, W: Any) -> Any:
        """Return the centred, weighted fitted values, (n, m)."""
        H = self.X.times(W)
        if self.x_mean.any():
            shift = self.x_mean.astype(np.float32) @ W.astype(np.float32, copy=False)
            H -= shift if self.unweighted else self.s[:, None].astype(np.float32) * shift
        return H

    def own_weight(self) -> Any:
        """Return the leverage that each row has on the intercept alone."""
        return self.s**2 / self.total

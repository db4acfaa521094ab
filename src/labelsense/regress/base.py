"""What every learner offers: m regressions on one design matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, RegressorMixin

from labelsense._typing import FloatArray


class Learner(RegressorMixin, BaseEstimator, ABC):
    """Learns H: X -> R^m, all m regressions at once.

    ``fit(X, y)`` takes X (n, p) sparse or dense and targets y (n, m), ``predict(X)`` returns (n, m).
    """

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Learner:
        """Learn to predict y (n, m) from X (n, p)."""

    @abstractmethod
    def predict(self, X: Any) -> FloatArray:
        """Predict the measurements of the rows of X, (n, m)."""

    def _count_targets(self, n_features: int) -> int:
        """Return how many numbers it predicts of a row, by trying an empty one. A stored model may say anything."""
        return self.predict(sp.csr_array((1, n_features), dtype=np.float32)).size

    def _shape_like_fit(self, H: FloatArray) -> FloatArray:
        """Return one column as a vector if ``fit`` was given a vector."""
        return H[:, 0] if self._flat else H

    _flat: bool = False


def as_columns(Z: Any) -> tuple[Any, bool]:
    """Return targets as (n, m), and whether they were a vector."""
    if sp.issparse(Z):
        return Z.tocsr(), False
    Z = np.asarray(Z)
    return (Z.reshape(-1, 1), True) if Z.ndim == 1 else (Z, False)

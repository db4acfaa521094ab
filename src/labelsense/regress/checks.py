"""What learners check: rows that compiled code can follow, and numbers that float32 can hold, on the way in and out."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from labelsense._typing import CSR, DoubleArray, FloatArray, as_dense
from labelsense._validation import check_places
from labelsense.errors import InputError
from labelsense.regress.design import Design

LARGEST = float(np.finfo(np.float32).max)
ROUNDED_ROWS = 1024  # rows that stand for all when features are searched for digits that float32 loses
LOST = 0.01  # of the variation of a feature


def check_training(learner: BaseEstimator, X: Any, y: Any, reset: bool = True) -> tuple[Any, Any]:
    """Return validated X, CSR or array, and y; refuse features that vanish in float32."""
    X, y = validate_data(
        learner,
        X,
        y,
        accept_sparse="csr",
        multi_output=True,
        y_numeric=True,
        dtype=[np.float64, np.float32],
        reset=reset,
    )
    if sp.issparse(X):
        check_places(X, "X")
    if y.dtype != np.float32:
        highest = float(np.abs(y.data if sp.issparse(y) else y).max(initial=0))
        if highest > LARGEST:
            raise InputError(f"y must fit in float32, up to {LARGEST:.2g}. Got {highest:.2g}. Scale the targets.")
    if X.dtype == np.float64:
        _check_rounding(X)
    return X, y


def check_new_rows(learner: BaseEstimator, X: Any) -> Any:
    """Return validated rows to predict, CSR or array of float32."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large is refused
        X = validate_data(learner, X, accept_sparse="csr", reset=False, dtype=np.float32)
    if sp.issparse(X):
        check_places(X, "X")
    return X


def check_magnitude(design: Design) -> None:
    """Refuse rows whose products would overflow."""
    total = design.total_square()
    if not total <= LARGEST:
        raise InputError(
            f"X is too large for sums of squares in float32: those of its entries add up to {total:.2g}, and "
            f"{LARGEST:.2g} is the most. Scale the features, for example with sklearn.preprocessing.MaxAbsScaler."
        )


def check_solution(*solution: Any) -> None:
    """Refuse to keep coefficients that are not numbers."""
    if not all(map(all_finite, solution)):
        raise InputError(
            "The coefficients of the regressions do not fit in float32. Scale the features and targets, for example "
            "with sklearn.preprocessing.StandardScaler, or raise alpha."
        )


def check_predictions(H: FloatArray, X: Any) -> FloatArray:
    """Return predictions if they are numbers."""
    if not all_finite(H):
        highest = float(np.abs(X.data if sp.issparse(X) else X).max(initial=0))
        raise InputError(
            f"The predictions do not fit in float32: X has entries up to {highest:.2g}. Scale it as in training."
        )
    return H


def all_finite(A: Any) -> bool:
    """Return whether an array has neither infinity nor NaN: if its sum is finite then it has not."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(A.sum())) or bool(np.isfinite(A).all())


def _check_rounding(X: Any) -> None:
    """Refuse features of doubles whose variation float32 does not hold: predictions would be by rounding."""
    rows = np.unique(np.linspace(0, X.shape[0] - 1, ROUNDED_ROWS).astype(np.int64))
    lost = np.flatnonzero(_hidden_by_rounding(X[rows]))
    if len(lost):
        values = as_dense(X[rows][:, [lost[0]]])
        raise InputError(
            "X must have features whose variation float32, in which learners compute, can hold. "
            f"{len(lost)} of them lose it: feature {lost[0]} varies by {values.std():.2g} around {values.mean():.2g}. "
            "Scale the features and subtract their means first, for example with sklearn.preprocessing.StandardScaler."
        )


def _hidden_by_rounding(X: Any) -> Any:
    """Return for each feature whether rounding to float32 changes it by more than a little of its variation."""
    n, p = X.shape
    with np.errstate(over="ignore", invalid="ignore"):
        if sp.issparse(X):
            mean = _column_sums(X, X.data) / n
            away = (n - np.bincount(X.indices, minlength=p)) * mean**2
            variation = _column_sums(X, (X.data - mean[X.indices]) ** 2) + away
            rounding = _column_sums(X, (X.data - X.data.astype(np.float32)) ** 2)
            size = _column_sums(X, X.data**2)
        else:
            variation = ((X - X.mean(axis=0)) ** 2).sum(axis=0)
            rounding = ((X - X.astype(np.float32)) ** 2).sum(axis=0)
            size = (X**2).sum(axis=0)
    varies = variation > 1e-24 * size  # a constant feature has nothing to lose
    return varies & (rounding > LOST**2 * variation) & np.isfinite(rounding)  # what is too large is refused elsewhere


def _column_sums(X: CSR, values: DoubleArray) -> DoubleArray:
    return np.asarray(np.bincount(X.indices, values, X.shape[1]), np.float64)

"""Every check of what a user passes in, and its message.

A message gives the name, the rule, the value got and the remedy. Public methods call these before any work is done.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array

from labelsense._typing import CSR, FloatArray


def check_count(value: Any, name: str, *, low: int = 1, high: int | None = None, remedy: str = "") -> int:
    """Return ``value`` as an int in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer. Got {value!r} of type {type(value).__name__}. {remedy}".rstrip())
    value = int(value)
    if value < low or (high is not None and value > high):
        rule = f"at least {low}" if high is None else f"between {low} and {high}"
        raise ValueError(f"{name} must be {rule}. Got {value}. {remedy}".rstrip())
    return value


def check_real(value: Any, name: str, *, low: float, high: float | None = None, remedy: str = "") -> float:
    """Return ``value`` as a finite float in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number. Got {value!r} of type {type(value).__name__}. {remedy}".rstrip())
    value = float(value)
    if not np.isfinite(value) or value < low or (high is not None and value > high):
        rule = f"at least {low}" if high is None else f"between {low} and {high}"
        raise ValueError(f"{name} must be finite and {rule}. Got {value:g}. {remedy}".rstrip())
    return value


def check_choice(value: Any, name: str, choices: dict[str, Any]) -> Any:
    """Return what the word ``value`` stands for."""
    if value not in choices:
        words = ", ".join(repr(word) for word in choices)
        raise ValueError(f"{name} must be one of {words}, or an object of that kind. Got {value!r}.")
    return choices[value]


def check_indicator(Y: Any, name: str = "Y") -> CSR:
    """Return a label matrix as a canonical float32 CSR array; finite, no negative entries, at least two columns."""
    if not sp.issparse(Y):
        Y = check_array(
            Y, accept_sparse=False, dtype="numeric", ensure_min_samples=0, ensure_min_features=0, input_name=name
        )
        Y = sp.csr_array(Y)
    if not np.issubdtype(Y.dtype, np.number) and Y.dtype != bool:
        raise TypeError(f"{name} must hold numbers (1 where a row has a label). Got dtype {Y.dtype}.")
    Y = sp.csr_array(Y, dtype=np.float32, copy=True)
    Y.sum_duplicates()
    Y.eliminate_zeros()
    if not np.isfinite(Y.data).all():
        raise ValueError(f"{name} contains NaN or infinity. Labels are 1 where a row has them and 0 elsewhere.")
    if Y.nnz and Y.data.min() < 0:
        raise ValueError(
            f"Negative values in data: {name} must be 1 where a row has a label and 0 elsewhere. "
            f"Got {Y.data.min():g}. If -1 stands for 'no', pass {name} > 0."
        )
    return Y


def check_binary(Y: Any, name: str = "Y") -> CSR:
    """Return a label matrix as CSR whose stored entries are all 1."""
    Y = check_indicator(Y, name)
    if Y.nnz and not (Y.data == 1).all():
        odd = Y.data[Y.data != 1][0]
        raise ValueError(
            f"{name} must be binary: 1 where a row has a label, 0 elsewhere. Got {odd:g}. Pass {name} > 0."
        )
    return Y


def check_some_labels(Y: CSR, name: str = "Y") -> None:
    """Refuse a training label matrix with nothing to learn."""
    n, d = Y.shape
    if n == 0:
        raise ValueError(f"{name} has no rows: Found array with 0 sample(s) while a minimum of 1 is required.")
    if d == 0 or Y.nnz == 0:
        raise ValueError(f"{name} has no labels: every row is empty. At least one row must have a label.")
    if d == 1:
        raise ValueError(
            f"{name} has only one label (one class); at least two are needed. "
            "For a single yes/no label use a binary classifier."
        )


def check_same_length(X: Any, Y: Any) -> None:
    """Refuse X and Y with different numbers of rows."""
    n, other = X.shape[0], Y.shape[0]
    if n != other:
        raise ValueError(
            f"X and Y must have the same number of rows (inconsistent numbers of samples). Got {n} rows of X and "
            f"{other} of Y."
        )


def check_measurements(H: Any, n_measurements: int) -> FloatArray:
    """Return compressed labels as a C-contiguous float32 array (n, m)."""
    with np.errstate(invalid="ignore"):  # of the sum by which scikit-learn looks for infinity
        H = check_array(H, dtype=np.float32, order="C", ensure_min_samples=0, input_name="H")
    if H.shape[1] != n_measurements:
        raise ValueError(f"H must have one column per measurement, {n_measurements}. Got {H.shape[1]} columns.")
    return np.ascontiguousarray(H)


def check_not_text(X: Any) -> None:
    """Refuse texts where features are expected."""
    if isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], str):
        raise TypeError(
            "X holds texts where features are expected. CompressedLabelClassifier(features='words') learns from texts."
        )


def check_texts(X: Any) -> None:
    """Refuse anything but texts where texts are expected."""
    if hasattr(X, "dtype") and X.dtype.kind not in "OUT":
        raise TypeError(f"X must hold texts, as in training. Got an array of {X.dtype}.")

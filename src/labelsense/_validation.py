"""Every check of what a user passes in, and its message.

A message gives the name, the rule, the value got and the remedy. Public methods call these before any work is done;
what is behind them trusts what it is given.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_array

from labelsense._typing import CSR, FloatArray
from labelsense.errors import InputError

LARGEST = float(np.finfo(np.float32).max)


def check_count(value: Any, name: str, *, low: int = 1, high: int | None = None, remedy: str = "") -> int:
    """Return ``value`` as an int in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer. Got {value!r} of type {type(value).__name__}. {remedy}".rstrip())
    value = int(value)
    if value < low or (high is not None and value > high):
        rule = f"at least {low}" if high is None else f"between {low} and {high}"
        raise InputError(f"{name} must be {rule}. Got {value}. {remedy}".rstrip())
    return value


def check_real(value: Any, name: str, *, low: float, high: float | None = None, remedy: str = "") -> float:
    """Return ``value`` as a finite float in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number. Got {value!r} of type {type(value).__name__}. {remedy}".rstrip())
    value = float(value)
    if not np.isfinite(value) or value < low or (high is not None and value > high):
        rule = f"at least {low}" if high is None else f"between {low} and {high}"
        raise InputError(f"{name} must be finite and {rule}. Got {value:g}. {remedy}".rstrip())
    return value


def check_choice(value: Any, name: str, choices: dict[str, Any]) -> Any:
    """Return what the word ``value`` stands for."""
    if value not in choices:
        words = ", ".join(repr(word) for word in choices)
        raise InputError(f"{name} must be one of {words}, or an object of that kind. Got {value!r}.")
    return choices[value]


def check_places(M: Any, name: str) -> Any:
    """Return a sparse matrix, refused if it has entries outside of it: compiled code would follow them."""
    if M.format not in ("csr", "csc", "coo"):
        try:
            M = M.tocoo()  # which checks by itself
        except ValueError as error:
            raise InputError(f"{name} has entries outside of its shape ({error}). Build the matrix again.") from None
    if M.format == "coo":
        numbers = list(zip(("row", "column"), (M.row, M.col), M.shape, strict=True))
    else:
        across, n, limit = ("column", *M.shape) if M.format == "csr" else ("row", *M.shape[::-1])
        starts = M.indptr
        fits = len(starts) == n + 1 and starts[0] == 0 and starts[-1] <= len(M.indices) == len(M.data)
        if not fits or (starts[1:] < starts[:-1]).any():
            raise InputError(f"{name} has an indptr that does not fit its shape and data. Build the matrix again.")
        numbers = [(across, M.indices[: starts[-1]], limit)]
    for what, found, limit in numbers:
        if len(found) and (found.min() < 0 or found.max() >= limit):
            wrong = found.min() if found.min() < 0 else found.max()
            raise InputError(
                f"{name} must have {what} numbers from 0 to {limit - 1}. Got {wrong}. Build the matrix again: its "
                "arrays were changed, or made for another shape."
            )
    return M


def check_representable(X: Any, estimator: str) -> None:
    """Refuse features that are not finite in float32, in which they are learned from."""
    values = X.data if sp.issparse(X) else X
    low, high = values.min(initial=0), values.max(initial=0)  # NaN if one is
    if low >= -LARGEST and high <= LARGEST:
        return
    try:
        assert_all_finite(X, estimator_name=estimator, input_name="X")
    except ValueError as error:
        raise InputError(str(error)) from None
    raise InputError(
        f"X must hold values of at most {LARGEST:.2g} in size, the largest float32. Got {max(high, -low):.3g}. "
        "Scale the features, for instance by sklearn.preprocessing.MaxAbsScaler."
    )


def check_indicator(Y: Any, name: str = "Y") -> CSR:
    """Return a label matrix as a canonical float32 CSR array of its own; finite, no negative entries."""
    if sp.issparse(Y):
        Y = check_places(Y, name)
    else:
        Y = _check_numbers(Y, name)
    if not np.issubdtype(Y.dtype, np.number) and Y.dtype != bool:
        raise TypeError(f"{name} must hold numbers (1 where a row has a label). Got dtype {Y.dtype}.")
    Y = sp.csr_array(Y, dtype=np.float32, copy=True)
    Y.sum_duplicates()
    Y.eliminate_zeros()
    if not np.isfinite(Y.data).all():
        raise InputError(f"{name} contains NaN or infinity. Labels are 1 where a row has them and 0 elsewhere.")
    if Y.nnz and Y.data.min() < 0:
        raise InputError(
            f"Negative values in data: {name} must be 1 where a row has a label and 0 elsewhere. "
            f"Got {Y.data.min():g}. If -1 stands for 'no', pass {name} > 0."
        )
    return Y


def _check_numbers(Y: Any, name: str) -> Any:
    try:
        return check_array(
            Y, accept_sparse=True, dtype="numeric", ensure_min_samples=0, ensure_min_features=0, input_name=name
        )
    except ValueError as error:
        raise InputError(str(error)) from None


def check_binary(Y: Any, name: str = "Y") -> CSR:
    """Return a label matrix as CSR whose stored entries are all 1."""
    Y = check_indicator(Y, name)
    if Y.nnz and not (Y.data == 1).all():
        odd = Y.data[Y.data != 1][0]
        raise InputError(
            f"{name} must be binary: 1 where a row has a label, 0 elsewhere. Got {odd:g}. Pass {name} > 0, or one list "
            "of labels per row."
        )
    return Y


def check_some_labels(Y: CSR, name: str = "y") -> None:
    """Refuse a training label matrix with nothing to learn."""
    n, d = Y.shape
    if n == 0:
        raise InputError(f"{name} has no rows: Found array with 0 sample(s) while a minimum of 1 is required.")
    if d == 0 or Y.nnz == 0:
        raise InputError(f"{name} has no labels: every row is empty. At least one row must have a label.")
    if d == 1:
        raise InputError(
            f"{name} has only one label (one class); at least two are needed. "
            "For a single yes/no label use a binary classifier."
        )


def check_same_length(X: Any, Y: Any, names: tuple[str, str] = ("X", "y")) -> None:
    """Refuse X and Y with different numbers of rows."""
    n, other = _num_samples(X), _num_samples(Y)
    if n != other:
        raise InputError(
            f"{names[0]} and {names[1]} must have the same number of rows (inconsistent numbers of samples). Got {n} "
            f"rows of {names[0]} and {other} of {names[1]}."
        )


def check_weights(weights: Any, X: Any) -> NDArray[np.float64]:
    """Return the weights of the rows of X: finite, not negative, not all zero."""
    try:
        weights = _check_sample_weight(weights, X, dtype=np.float64, ensure_non_negative=True)
    except ValueError as error:
        raise InputError(str(error)) from None
    if not weights.any():
        raise InputError("sample_weight must be positive for some row. Got 0 for all.")
    return weights


def check_measurements(H: Any, n_measurements: int) -> FloatArray:
    """Return compressed labels as a C-contiguous float32 array (n, m)."""
    with np.errstate(invalid="ignore"):  # of the sum by which scikit-learn looks for infinity
        H = check_array(H, dtype=np.float32, order="C", ensure_min_samples=0, input_name="H")
    if H.shape[1] != n_measurements:
        raise InputError(f"H must have one column per measurement, {n_measurements}. Got {H.shape[1]} columns.")
    return np.ascontiguousarray(H)


def as_list(values: Any) -> list[Any]:
    """Return a sequence as a list of Python's own objects: of arrays, and of columns of pandas, polars or pyarrow."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(values, method):
            return getattr(values, method)()
    return values if isinstance(values, list) else list(values)


def is_matrix(values: Any) -> bool:
    """Tell whether this has rows and columns: an array (n, p), a sparse matrix or a data frame."""
    return len(_shape(values)) == 2


def is_missing(value: Any) -> bool:
    """Tell whether this stands for no value: None, NaN or pandas.NA."""
    return value is None or (isinstance(value, float) and value != value) or type(value).__name__ == "NAType"


def holds_texts(X: Any) -> bool:
    """Tell whether X is a column of texts: a list, an array (n,), or a column of a data frame."""
    if isinstance(X, (str, bytes, dict)) or not isinstance(X, Iterable) or len(_shape(X)) != 1:
        return False
    numbers = getattr(getattr(X, "dtype", None), "kind", "O") in "biufc"
    return not numbers and isinstance(next((x for x in as_list(X) if not is_missing(x)), None), str)


def check_not_text(X: Any) -> None:
    """Refuse texts where features are expected."""
    if holds_texts(X):
        raise TypeError(
            "X holds texts where features are expected. Pass features='words' to the classifier to learn from texts."
        )


def check_texts(X: Any) -> list[str]:
    """Return texts as a list; refuse anything else."""
    if isinstance(X, str) or not isinstance(X, Iterable):
        raise TypeError(f"X must hold texts, one per row. Got {type(X).__name__}. Pass a list, even for one text.")
    if len(_shape(X)) != 1:
        raise TypeError(
            f"X must hold texts, one per row. Got {type(X).__name__} of shape {_shape(X)}. Pass the column of texts, "
            "such as X['text']."
        )
    texts = as_list(X)
    for i, text in enumerate(texts):
        if is_missing(text):
            raise InputError(
                f"X must hold texts. Got {text!r} in row {i}. Leave the row out, or pass '' where there is no text."
            )
        if not isinstance(text, str):
            raise TypeError(f"X must hold texts. Got {text!r} of type {type(text).__name__} in row {i}.")
    return texts


def _shape(values: Any) -> Any:
    return getattr(values, "shape", (0,))  # lists have none

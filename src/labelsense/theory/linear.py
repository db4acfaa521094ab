"""Theorem 4: compressing the labels does little harm to a linear predictor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array

from labelsense._blocks import row_blocks
from labelsense._validation import check_count, check_indicator, check_real, check_same_length
from labelsense.errors import InputError
from labelsense.theory.isometry import as_operator

BLOCK_NUMBERS = 2**22


@dataclass(frozen=True)
class LinearCompression:
    """Both sides of Theorem 4 for one A.

    Attributes
    ----------
    error : float
        epsilon, the mean of |B'x - E[y given x]|^2: the error of the predictor of the labels.
    compressed_error : float
        The mean of |A B'x - A E[y given x]|^2: the error of the predictor of the measurements, the left side.
    bound : float
        ``linear_factor(m) * error``, the right side.
    """

    error: float
    compressed_error: float
    bound: float


def linear_factor(n_measurements: int, *, failure: float = 0.05) -> float:
    """Return the 1 + O(1/sqrt(m)) of Theorem 4 with the constant of its proof: 1 + sqrt(24 ln(1/failure) / m).

    Certifies that, for A with independent N(0, 1/m) entries, the error of a fixed linear predictor grows at most by
    this factor under compression, except with probability ``failure``. It says nothing about a predictor chosen after
    A, and where the proof does not reach (the root must be below 1) the factor is infinite.

    Examples
    --------
    >>> round(linear_factor(400), 3)
    1.424
    >>> linear_factor(50)
    inf
    """
    m = check_count(n_measurements, "n_measurements")
    failure = check_real(failure, "failure", low=1e-300, high=1, remedy="It is a probability.")
    excess = math.sqrt(24 / m * math.log(1 / failure))
    return 1 + excess if excess < 1 else math.inf


def linear_compression(A: Any, B: Any, X: Any, P: Any, *, failure: float = 0.05) -> LinearCompression:
    """Evaluate both sides of Theorem 4 for a linear predictor of labels.

    Parameters
    ----------
    A : Operator or array (m, d)
        The theorem is about the matrices of :class:`~labelsense.GaussianCompressor`.
    B : array (p, d)
        The predictor: labels are predicted by B'x.
    X : array or CSR (n, p)
        Rows.
    P : CSR or array (n, d)
        E[y given x] of the same rows.
    failure : float
        See :func:`linear_factor`.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsense import GaussianCompressor
    >>> A = GaussianCompressor(n_measurements=100, random_state=0).fit(200).operator_
    >>> X, P = np.eye(20), np.eye(20, 200)
    >>> sides = linear_compression(A, np.full((20, 200), 0.01), X, P)
    >>> sides.compressed_error <= sides.bound
    True
    """
    operator = as_operator(A)
    B, P = check_array(B, input_name="B"), check_indicator(P, "P")
    X = check_array(X, accept_sparse="csr", input_name="X")
    check_same_length(X, P)
    if B.shape != (X.shape[1], operator.n_labels):
        raise InputError(f"B must have shape {(X.shape[1], operator.n_labels)}, features by labels. Got {B.shape}.")
    error = compressed = 0.0
    for rows in row_blocks(X.shape[0], max(1, BLOCK_NUMBERS // operator.n_labels)):
        V = X[rows] @ B - P[rows].toarray()
        error += float((V**2).sum())
        compressed += float((operator.compress(V).astype(np.float64) ** 2).sum())
    n = X.shape[0]
    factor = linear_factor(operator.n_measurements, failure=failure)
    return LinearCompression(error / n, compressed / n, factor * error / n if error else 0.0)

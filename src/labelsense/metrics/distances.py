"""How far scores are from the true label vectors, and label vectors from sparse ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from labelsense._typing import CSR
from labelsense._validation import check_count, check_indicator
from labelsense.errors import InputError


def squared_error(Y_true: Any, scores: Any) -> float:
    """Return the mean over rows of the squared distance between the scores and the true label vector.

    Examples
    --------
    >>> squared_error([[1, 0], [0, 1]], [[0.5, 0], [0, 1]])
    0.125
    """
    Y, scores = check_indicator(Y_true, "Y_true"), sp.csr_array(scores)
    if Y.shape != scores.shape:
        raise InputError(f"scores must have the shape of Y_true, {Y.shape}. Got {scores.shape}.")
    return float(((Y - scores).data.astype(np.float64) ** 2).sum() / Y.shape[0])


def sparsity_error(Y: Any, k: int) -> NDArray[np.float64]:
    """Return sperr(k, y) of each row: |r|_2^2 + |r|_1^2 / k, where r is y without its k largest entries, (n,).

    Parameters
    ----------
    Y : CSR or array (n, d), or one vector
        Largest means in absolute value.
    k : int
        The sparsity.

    Examples
    --------
    >>> sparsity_error([3.0, -2.0, 1.0, 0.0], k=1).tolist()  # 4 + 1 + (2 + 1)^2
    [14.0]
    """
    Y = sp.csr_array(Y if sp.issparse(Y) else np.atleast_2d(np.asarray(Y, dtype=np.float64)))
    _, tail = split_largest(Y, check_count(k, "k"))
    two, one = (tail * tail).sum(axis=1), abs(tail).sum(axis=1)
    return np.asarray(two + one**2 / k, dtype=np.float64).ravel()


def split_largest(Y: CSR, k: int) -> tuple[CSR, CSR]:
    """Return the k largest entries of each row in absolute value, ties to the lowest column, and the others."""
    row = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    order = np.lexsort((Y.indices, -np.abs(Y.data), row))
    place = np.empty(len(row), np.int64)
    place[order] = np.arange(len(row)) - Y.indptr[row]
    values = Y.data.astype(np.float64)
    parts = (np.where(chosen, values, 0) for chosen in (place < k, place >= k))
    head, tail = (sp.csr_array((part, Y.indices, Y.indptr), shape=Y.shape) for part in parts)
    return head, tail

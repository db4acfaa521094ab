"""The comparison with sensitive error-correcting output codes (SECOC) in the paper's Section 5.1."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelsense._blocks import row_blocks
from labelsense._validation import check_count, check_indicator, check_measurements, check_real, check_same_length
from labelsense.theory.isometry import as_operator

BLOCK_COLUMNS = 4096


def label_ranges(A: Any, k: int) -> Any:
    """Return L_i, how far apart the i-th measurements of two label vectors with at most k labels can be, (m,).

    The most is the sum of the k largest entries of row i of A, as far as they are positive, less the sum of the k
    smallest, as far as they are negative. At most 2k / sqrt(m) where entries are ±1/sqrt(m).

    Examples
    --------
    >>> label_ranges([[0.5, 0.5, -0.5, 0.5]], k=2).tolist()
    [1.5]
    """
    operator = as_operator(A)
    k = check_count(k, "k", high=operator.n_labels)
    high = low = np.zeros((operator.n_measurements, k))
    for block in row_blocks(operator.n_labels, BLOCK_COLUMNS):
        columns = operator.columns(np.arange(block.start, block.stop)).astype(np.float64)
        high = np.partition(np.hstack([high, columns]), -k, axis=1)[:, -k:]
        low = np.partition(np.hstack([low, columns]), k - 1, axis=1)[:, :k]
    return high.sum(axis=1) - low.sum(axis=1)


def scaled_error(A: Any, H: Any, P: Any, k: int) -> float:
    """Return r-bar, the mean over the m regressions of their squared error, each on the scale of its range L_i.

    It makes codes with different numbers of subproblems comparable: 1 is an error as large as the range of the
    targets. Regressions whose target is always 0 are left out.

    Parameters
    ----------
    A : Operator or array (m, d)
        The code.
    H : array (n, m)
        Predicted measurements, such as ``clf.measure(X)``.
    P : CSR or array (n, d)
        E[y given x] of the same rows.
    k : int
        The largest number of labels of a row.

    Examples
    --------
    >>> scaled_error([[1.0, -1.0]], H=[[0.5]], P=[[0.0, 0.0]], k=1)  # L is 2
    0.0625
    """
    operator = as_operator(A)
    H, P = check_measurements(H, operator.n_measurements), check_indicator(P, "P")
    check_same_length(H, P)
    lengths = label_ranges(operator, k)
    used = lengths > 0
    errors = (H - operator.compress(P)).astype(np.float64)[:, used] / lengths[used]
    return float((errors**2).mean()) if errors.size else 0.0


def secoc_bound(scaled_error: float, k: int) -> float:
    """Return 4 k^2 r-bar, what SECOC guarantees for the squared error on labels with at most k per row.

    SECOC needs a regression for every row of a Hadamard matrix, at least d of them. The compressed method guarantees
    C1 times as much, and a sparsity error, with m of them: C1 |H(x) - A E[y given x]|^2 <= C1 4 k^2 r-bar if the
    entries of A are ±1/sqrt(m).

    Examples
    --------
    >>> secoc_bound(0.0625, k=1)
    0.25
    """
    return 4 * check_count(k, "k") ** 2 * check_real(scaled_error, "scaled_error", low=0)

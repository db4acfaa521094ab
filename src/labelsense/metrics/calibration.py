"""Whether probabilities mean what they say.

Probabilities are CSR (n, d): what is not stored has probability 0. Of a million labels nearly all have it, rightly, so
an error averaged over all n d pairs is nothing whatever a model says. Here it is that of the stored pairs; true labels
that are not stored are counted apart, by :func:`missed_share`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from labelsense._typing import CSR, DoubleArray, IntArray
from labelsense._validation import check_count
from labelsense.metrics._pairs import are_true, check_probabilities, rows_of

BINS = 20


class Reliability(NamedTuple):
    """Pairs (row, label) in bins of equal size, by their probability.

    Attributes
    ----------
    predicted : array (bins,)
        The mean probability, ascending.
    observed : array (bins,)
        The share of the pairs that are true labels.
    n_pairs : array (bins,)
        How many pairs.
    """

    predicted: DoubleArray
    observed: DoubleArray
    n_pairs: IntArray

    @property
    def error(self) -> float:
        """The expected calibration error: the mean over pairs of |predicted - observed| of their bin."""
        gaps = np.abs(self.predicted - self.observed)
        return float(gaps @ self.n_pairs / max(self.n_pairs.sum(), 1))


def reliability_curve(Y_true: Any, probabilities: Any, n_bins: int = BINS) -> Reliability:
    """Return how often pairs with similar probabilities are true labels.

    Bins hold equally many of the stored pairs, up to one; there are fewer where there are fewer pairs. Equal
    probabilities are ordered by row and column, so a bin may end between them.

    Examples
    --------
    >>> curve = reliability_curve([[1, 0, 0], [1, 1, 0]], [[0.9, 0.2, 0], [0.8, 0.3, 0]], n_bins=2)
    >>> curve.predicted.round(2).tolist(), curve.observed.tolist(), curve.n_pairs.tolist()
    ([0.25, 0.85], [0.5, 1.0], [2, 2])
    """
    return make_reliability(*check_probabilities(probabilities, Y_true), check_count(n_bins, "n_bins"))


def calibration_error(Y_true: Any, probabilities: Any, n_bins: int = BINS) -> float:
    """Return the expected calibration error of the stored pairs, in ``n_bins`` bins of equal size.

    The mean of |mean probability - share of true labels| over bins, weighted by their sizes.

    Examples
    --------
    >>> round(calibration_error([[1, 0, 0], [1, 1, 0]], [[0.9, 0.2, 0], [0.8, 0.3, 0]], n_bins=2), 3)
    0.2
    """
    return reliability_curve(Y_true, probabilities, n_bins).error


def missed_share(Y_true: Any, probabilities: Any, *, unseen: Any = 0) -> float:
    """Return the share of the true labels that have no stored probability: those called impossible.

    Examples
    --------
    >>> missed_share([[1, 0, 1], [1, 1, 0]], [[0.9, 0.2, 0], [0.8, 0.3, 0]])
    0.25
    """
    return make_missed_share(*check_probabilities(probabilities, Y_true), unseen)


def make_reliability(P: CSR, Y: CSR, n_bins: int = BINS) -> Reliability:
    """Return the reliability curve; what it is given is not checked."""
    bins = min(n_bins, P.nnz)
    order = np.argsort(P.data, kind="stable")
    true = are_true(Y, rows_of(P), P.indices)[order]
    bounds = np.linspace(0, P.nnz, bins + 1).round().astype(np.int64)
    count = np.diff(bounds)
    if not bins:
        return Reliability(np.zeros(0), np.zeros(0), count)
    predicted = np.add.reduceat(P.data[order].astype(np.float64), bounds[:-1])
    return Reliability(predicted / count, np.add.reduceat(true, bounds[:-1], dtype=np.int64) / count, count)


def make_missed_share(P: CSR, Y: CSR, unseen: Any = 0) -> float:
    """Return the share of true labels without probability; what it is given is not checked."""
    true = Y.nnz + int(np.broadcast_to(unseen, Y.shape[:1]).sum())
    return 1 - int(np.count_nonzero(are_true(Y, rows_of(P), P.indices))) / true if true else 0.0

"""From probabilities to sets of labels: the threshold at which F1 is best, for all labels or for each.

Choose on rows that the model has not learned from. A label is predicted where its probability is at least the
threshold.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._typing import CSR, DoubleArray
from labelsense._validation import check_choice, check_real
from labelsense.metrics._pairs import are_true, check_probabilities, rows_of

FALLBACK = 0.5  # where there is nothing to choose by


def above(scores: CSR, threshold: Any) -> CSR:
    """Return the labels whose score is at least the threshold, one number or one for each label, as an indicator.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> above(sp.csr_array([[0.9, 0.4]]), [0.5, 0.3]).toarray().tolist()
    [[1, 1]]
    """
    least = np.asarray(threshold, dtype=np.float64)
    reached = scores.data >= (least[scores.indices] if least.ndim else least)
    indptr = np.concatenate([[0], np.cumsum(reached)])[scores.indptr]
    return sp.csr_array((np.ones(indptr[-1], np.int64), scores.indices[reached], indptr), shape=scores.shape)


def best_f1_threshold(probabilities: Any, Y_true: Any, average: str = "samples", *, unseen: Any = 0) -> float:
    """Return the threshold with the highest F1 on these rows, exactly; the highest such, among equals.

    It is one of the probabilities, or one half where none is stored. O(N log N) for N stored probabilities.

    Parameters
    ----------
    probabilities : CSR (n, d)
        What is not stored is not predicted at any threshold.
    Y_true : CSR or array (n, d) of 0 and 1
        The true labels.
    average : {"samples", "micro"}
        Which F1, see :func:`~labelsense.metrics.f1_score`.
    unseen : array (n,)
        True labels of each row that have no column.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> P = sp.csr_array([[0.75, 0.5, 0.125], [0.25, 0.375, 0.0625]])
    >>> best_f1_threshold(P, [[1, 1, 0], [0, 1, 0]])
    0.375
    """
    check_choice(average, "average", {"samples": None, "micro": None})
    P, Y = check_probabilities(probabilities, Y_true)
    if not P.nnz:
        return FALLBACK
    rows, true_counts = rows_of(P), np.diff(Y.indptr) + unseen
    hit = are_true(Y, rows, P.indices)
    falling = np.argsort(-P.data, kind="stable")
    values = P.data[falling]
    if average == "micro":
        f1 = 2 * np.cumsum(hit[falling]) / (np.arange(1, P.nnz + 1) + true_counts.sum())
    else:
        f1 = np.cumsum(_gains(P, hit, true_counts)[falling])
    last = np.append(values[1:] < values[:-1], True)  # of equal probabilities
    return float(values[last][f1[last].argmax()])


def label_thresholds(probabilities: Any, Y_true: Any, default: float, *, prior: float = 50.0) -> DoubleArray:
    """Return a threshold for each label: the one with its highest F1, drawn to ``default`` where it has few rows.

    (N_j best_j + prior default) / (N_j + prior), for a label that N_j of these rows have. The best threshold of a
    label with few rows is mostly chance; that of all labels together is not. It is for the F1 of labels ("macro"): for
    that of rows, one threshold for all is as good or better.

    Parameters
    ----------
    probabilities : CSR (n, d)
        What is not stored is not predicted at any threshold.
    Y_true : CSR or array (n, d) of 0 and 1
        The true labels.
    default : float
        The threshold of all labels, such as :func:`best_f1_threshold`.
    prior : float
        How many rows the default counts for.

    Examples
    --------
    >>> label_thresholds([[0.75, 0.5], [0.25, 0.4], [0.6, 0]], [[1, 1], [0, 1], [1, 0]], 0.5, prior=2).round(3).tolist()
    [0.55, 0.45]
    """
    P, Y = check_probabilities(probabilities, Y_true)
    prior, default = check_real(prior, "prior", low=0), check_real(default, "default", low=0)
    hit = are_true(Y, rows_of(P), P.indices)
    order = np.lexsort((-P.data, P.indices))
    labels, values = P.indices[order], P.data[order].astype(np.float64)
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    place, hits = _running(labels, hit[order], Y.shape[1])
    f1 = 2 * hits / (place + counts[labels])
    last = np.append((labels[1:] != labels[:-1]) | (values[1:] < values[:-1]), True)[: len(labels)]
    labels, values, f1 = labels[last], values[last], f1[last]
    first_best = np.lexsort((-values, -f1, labels))
    found, starts = np.unique(labels, return_index=True)
    best = np.full(Y.shape[1], default)
    best[found] = values[first_best][starts]
    weight = np.divide(counts, counts + prior, out=np.zeros(len(counts)), where=counts > 0)
    return default + weight * (best - default)


def _gains(P: CSR, hit: Any, true_counts: Any) -> DoubleArray:
    """Return by how much each pair raises the F1 of its row, if pairs are predicted by falling probability."""
    rows = rows_of(P)
    order = np.lexsort((-P.data, rows))
    place, hits = _running(rows, hit[order], P.shape[0])
    f1 = 2 * hits / (place + true_counts[rows])
    before = np.where(place == 1, 0, np.append(0, f1[:-1])[: len(f1)])
    gains = np.empty(len(f1))
    gains[order] = f1 - before
    return gains


def _running(groups: Any, hit: Any, n_groups: int) -> tuple[Any, Any]:
    """Return, for entries sorted by group, their place in it from 1 on, and the hits up to there."""
    starts = np.concatenate([[0], np.cumsum(np.bincount(groups, minlength=n_groups))])[groups]
    total = np.concatenate([[0], np.cumsum(hit)])
    return np.arange(1, len(groups) + 1) - starts, total[1:] - total[starts]

"""How good predicted sets of labels are: F1, precision and recall, over all rows and by label."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from labelsense._typing import CSR, DoubleArray, IntArray
from labelsense._validation import check_choice
from labelsense.metrics._pairs import are_true, check_pair, rows_of


class LabelTable(NamedTuple):
    """How well each label is predicted, arrays (d,).

    Attributes
    ----------
    n_true : array (d,)
        Rows that have the label.
    n_predicted : array (d,)
        Rows for which it is predicted.
    precision, recall, f1 : array (d,)
        0 where they are 0 / 0.
    """

    n_true: IntArray
    n_predicted: IntArray
    precision: DoubleArray
    recall: DoubleArray
    f1: DoubleArray


def f1_score(Y_true: Any, Y_pred: Any, average: str = "samples", *, unseen: Any = 0) -> float:
    """Return F1 = 2 hits / (true labels + predicted labels).

    Parameters
    ----------
    Y_true, Y_pred : CSR or array (n, d) of 0 and 1
        True and predicted labels.
    average : {"samples", "micro", "macro"}
        The mean over rows, where 0 / 0 counts as 0; F1 of all pairs together; or the mean over the labels that some
        row has or is predicted to have. Equal to scikit-learn's, with ``zero_division=np.nan`` for "macro".
    unseen : array (n,)
        True labels of each row that have no column. They are not found, and count for "samples" and "micro".

    Examples
    --------
    >>> f1_score([[1, 1, 0], [0, 1, 0]], [[1, 0, 0], [0, 1, 1]])
    0.6666666666666666
    """
    check_choice(average, "average", dict.fromkeys(("samples", "micro", "macro")))
    return f1_figures(*check_pair(Y_true, Y_pred), unseen)[average]


def precision_recall(Y_true: Any, Y_pred: Any, *, unseen: Any = 0) -> tuple[float, float]:
    """Return the share of the predicted labels that are true, and of the true labels that are predicted.

    Over all rows together ("micro"); 0 where it is 0 / 0.

    Examples
    --------
    >>> precision_recall([[1, 1, 0], [0, 1, 0]], [[1, 0, 0], [0, 1, 1]])
    (0.6666666666666666, 0.6666666666666666)
    """
    return micro_precision_recall(*check_pair(Y_true, Y_pred), unseen)


def label_table(Y_true: Any, Y_pred: Any) -> LabelTable:
    """Return count, precision, recall and F1 of each label.

    Examples
    --------
    >>> label_table([[1, 1], [0, 1]], [[1, 0], [1, 1]]).f1.round(2).tolist()
    [0.67, 0.67]
    """
    return make_label_table(*check_pair(Y_true, Y_pred))


def f1_figures(Y: CSR, P: CSR, unseen: Any = 0) -> dict[str, float]:
    """Return F1 by kind of average; what it is given is not checked."""
    hits = np.bincount(rows_of(P)[_hits(Y, P)], minlength=Y.shape[0])
    sizes = np.diff(Y.indptr) + unseen + np.diff(P.indptr)
    table = make_label_table(Y, P)
    known = table.n_true + table.n_predicted > 0
    return {
        "samples": float((2 * hits / np.maximum(sizes, 1)).mean()),
        "micro": float(2 * hits.sum() / max(sizes.sum(), 1)),
        "macro": float(table.f1[known].mean()) if known.any() else 0.0,
    }


def micro_precision_recall(Y: CSR, P: CSR, unseen: Any = 0) -> tuple[float, float]:
    """Return precision and recall over all rows; what it is given is not checked."""
    hits, true = np.count_nonzero(_hits(Y, P)), (np.diff(Y.indptr) + unseen).sum()
    return float(hits / max(P.nnz, 1)), float(hits / max(true, 1))


def make_label_table(Y: CSR, P: CSR) -> LabelTable:
    """Return figures of each label; what it is given is not checked."""
    d = Y.shape[1]
    count, predicted = np.bincount(Y.indices, minlength=d), np.bincount(P.indices, minlength=d)
    hits = np.bincount(P.indices[_hits(Y, P)], minlength=d)
    shares = (hits / np.maximum(predicted, 1), hits / np.maximum(count, 1), 2 * hits / np.maximum(count + predicted, 1))
    return LabelTable(count, predicted, *shares)


def _hits(Y: CSR, P: CSR) -> Any:
    return are_true(Y, rows_of(P), P.indices)

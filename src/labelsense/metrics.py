"""How good a ranking of labels is, on sparse input.

Every function takes the true labels as an indicator matrix (n, d), sparse or dense, and predictions as sparse scores
(n, d) or as the :class:`~labelsense.TopK` of ``predict_topk``. Labels with equal scores rank by their column, lowest
first. Only stored scores are predictions: a row with fewer than k of them has empty places, which count as misses.
Means are over all rows, rows without labels included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._labels import TopK, top_k
from labelsense._typing import CSR
from labelsense._validation import check_binary, check_count, check_indicator, check_real


def precision_at_k(Y_true: Any, predicted: Any, k: int = 5) -> float:
    """Return the mean of (true labels among the k best) / k.

    Examples
    --------
    >>> precision_at_k([[1, 0, 1]], [[0.9, 0.5, 0.1]], k=2)
    0.5
    """
    hits, _ = _hits(Y_true, predicted, k)
    return float(hits.sum(axis=1).mean() / k)


def recall_at_k(Y_true: Any, predicted: Any, k: int = 5, *, unseen: Any = 0) -> float:
    """Return the mean of (true labels among the k best) / (true labels); rows without labels count as 0.

    ``unseen`` adds, to the number of true labels of each row, those that have no column.

    Examples
    --------
    >>> recall_at_k([[1, 0, 1]], [[0.9, 0.5, 0.1]], k=1)
    0.5
    """
    hits, Y = _hits(Y_true, predicted, k)
    return float((hits.sum(axis=1) / np.maximum(np.diff(Y.indptr) + unseen, 1)).mean())


def ndcg_at_k(Y_true: Any, predicted: Any, k: int = 5, *, unseen: Any = 0) -> float:
    """Return the mean normalised discounted cumulative gain: 1 if the k best are all true, or all true ones are best.

    ``unseen`` adds, to the number of true labels of each row, those that have no column.

    Examples
    --------
    >>> ndcg_at_k([[1, 0, 1]], [[0.9, 0.1, 0.5]], k=2)
    1.0
    """
    hits, Y = _hits(Y_true, predicted, k)
    gain = 1 / np.log2(np.arange(2, k + 2))
    best = np.concatenate([[0], np.cumsum(gain)])
    ideal = best[np.minimum(np.diff(Y.indptr) + unseen, k)]
    return float(np.divide(hits @ gain, ideal, out=np.zeros(len(hits)), where=ideal > 0).mean())


def inverse_propensities(Y_train: Any, *, a: float = 0.55, b: float = 1.5) -> Any:
    """Return 1 / p_j for each label: how much a hit counts to make up for labels that were not annotated.

    The model of Jain, Prabhu and Varma (2016): 1 / p = 1 + C (N_j + b)^-a with C = (log n - 1) (b + 1)^a.
    """
    Y = check_binary(Y_train, "Y_train")
    a, b = check_real(a, "a", low=0), check_real(b, "b", low=0)
    frequency = np.bincount(Y.indices, minlength=Y.shape[1])
    return 1 + (np.log(Y.shape[0]) - 1) * (b + 1) ** a * (frequency + b) ** -a


def propensity_scored_precision_at_k(Y_true: Any, predicted: Any, weights: Any, k: int = 5) -> float:
    """Return propensity-scored precision: hits weighted by :func:`inverse_propensities`, over the best possible."""
    hits, Y = _hits(Y_true, predicted, k)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (Y.shape[1],):
        raise ValueError(f"weights must have one number per label, {Y.shape[1]}. Got shape {weights.shape}.")
    columns = _ranking(predicted, k).labels
    gained = (hits * np.where(columns >= 0, weights[columns], 0)).sum()
    best = top_k(sp.csr_array((weights[Y.indices], Y.indices, Y.indptr), shape=Y.shape), k).scores.sum()
    return float(gained / best) if best > 0 else 0.0


def squared_error(Y_true: Any, scores: Any) -> float:
    """Return the mean over rows of the squared distance between the scores and the true label vector.

    Examples
    --------
    >>> squared_error([[1, 0], [0, 1]], [[0.5, 0], [0, 1]])
    0.125
    """
    Y, scores = check_indicator(Y_true, "Y_true"), sp.csr_array(scores)
    if Y.shape != scores.shape:
        raise ValueError(f"scores must have the shape of Y_true, {Y.shape}. Got {scores.shape}.")
    return float(((Y - scores).data.astype(np.float64) ** 2).sum() / Y.shape[0])


def _ranking(predicted: Any, k: int) -> TopK:
    if not isinstance(predicted, TopK):
        return top_k(sp.csr_array(predicted), k)
    labels, scores = predicted
    if not np.issubdtype(np.asarray(labels).dtype, np.integer):
        raise TypeError("A TopK of named labels has no column numbers. Use predict_scores, or clf.evaluate.")
    if labels.shape[1] < k:
        raise ValueError(f"k must be at most the number of predicted labels, {labels.shape[1]}. Got {k}.")
    return TopK(labels[:, :k], scores[:, :k])


def _hits(Y_true: Any, predicted: Any, k: int) -> tuple[Any, CSR]:
    """Return whether each of the k best labels of each row is true, (n, k), and Y_true as CSR."""
    check_count(k, "k")
    Y = check_binary(Y_true, "Y_true")
    columns = _ranking(predicted, k).labels
    if len(columns) != Y.shape[0]:
        raise ValueError(f"Predictions must have one row per row of Y_true, {Y.shape[0]}. Got {len(columns)}.")
    d = Y.shape[1]
    true = Y.indices + d * np.repeat(np.arange(Y.shape[0], dtype=np.int64), np.diff(Y.indptr))
    asked = columns + d * np.arange(Y.shape[0], dtype=np.int64)[:, None]
    return np.isin(asked, true) & (columns >= 0), Y

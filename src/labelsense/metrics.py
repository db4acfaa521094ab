"""How good a ranking of labels is, on sparse input.

Every function takes the true labels as an indicator matrix (n, d), sparse or dense, and predictions as sparse scores
(n, d) or as the :class:`~labelsense.TopK` of ``predict_topk``. Labels with equal scores rank by their column, lowest
first. Only stored scores are predictions: a row with fewer than k of them has empty places, which count as misses.
Means are over all rows, rows without labels included.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from labelsense._typing import CSR, IntArray
from labelsense._validation import check_binary, check_count, check_indicator, check_real
from labelsense.errors import InputError
from labelsense.labels import TopK, top_k


def precision_at_k(Y_true: Any, predicted: Any, k: int = 5) -> float:
    """Return the mean of (true labels among the k best) / k.

    Examples
    --------
    >>> precision_at_k([[1, 0, 1]], [[0.9, 0.5, 0.1]], k=2)
    0.5
    """
    Y, top = _check(Y_true, predicted, k)
    return _precision(_hits(Y, top), k)


def recall_at_k(Y_true: Any, predicted: Any, k: int = 5, *, unseen: Any = 0) -> float:
    """Return the mean of (true labels among the k best) / (true labels); rows without labels count as 0.

    ``unseen`` adds, to the number of true labels of each row, those that have no column.

    Examples
    --------
    >>> recall_at_k([[1, 0, 1]], [[0.9, 0.5, 0.1]], k=1)
    0.5
    """
    Y, top = _check(Y_true, predicted, k)
    return _recall(_hits(Y, top), np.diff(Y.indptr) + unseen, k)


def ndcg_at_k(Y_true: Any, predicted: Any, k: int = 5, *, unseen: Any = 0) -> float:
    """Return the mean normalised discounted cumulative gain: 1 if the k best are all true, or all true ones are best.

    ``unseen`` adds, to the number of true labels of each row, those that have no column.

    Examples
    --------
    >>> ndcg_at_k([[1, 0, 1]], [[0.9, 0.1, 0.5]], k=2)
    1.0
    """
    Y, top = _check(Y_true, predicted, k)
    return _ndcg(_hits(Y, top), np.diff(Y.indptr) + unseen, k)


def ranking_figures(Y: CSR, top: TopK, ks: Sequence[int], unseen: Any = 0) -> dict[str, float]:
    """Return precision, recall and nDCG at each k by name, of a ranking of columns; what it is given is not checked."""
    hits, true = _hits(Y, top), np.diff(Y.indptr) + unseen
    figures: dict[str, float] = {}
    for k in ks:
        figures[f"P@{k}"] = _precision(hits, k)
        figures[f"recall@{k}"] = _recall(hits, true, k)
        figures[f"nDCG@{k}"] = _ndcg(hits, true, k)
    return figures


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
    Y, top = _check(Y_true, predicted, k)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (Y.shape[1],):
        raise InputError(f"weights must have one number per label, {Y.shape[1]}. Got shape {weights.shape}.")
    gained = weights[top.labels[_hits(Y, top)]].sum()
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
        raise InputError(f"scores must have the shape of Y_true, {Y.shape}. Got {scores.shape}.")
    return _squared_error(Y, scores)


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


def _check(Y_true: Any, predicted: Any, k: int) -> tuple[CSR, TopK]:
    """Return the true labels, and the k best predicted ones by column number."""
    check_count(k, "k")
    Y = check_binary(Y_true, "Y_true")
    if isinstance(predicted, TopK):
        labels, scores = np.asarray(predicted.labels), predicted.scores
        if not np.issubdtype(labels.dtype, np.integer):
            raise TypeError("A TopK of named labels has no column numbers. Use predict_scores, or clf.evaluate.")
        if labels.shape[1] < min(k, Y.shape[1]):
            raise InputError(f"k must be at most the number of predicted labels, {labels.shape[1]}. Got {k}.")
        top = TopK(labels[:, :k], scores[:, :k])
    else:
        top = top_k(sp.csr_array(predicted), k)
    if len(top.labels) != Y.shape[0]:
        raise InputError(f"Predictions must have one row per row of Y_true, {Y.shape[0]}. Got {len(top.labels)}.")
    return Y, top


def _hits(Y: CSR, top: TopK) -> NDArray[np.bool_]:
    """Return whether each of the best labels of each row is true."""
    n, d = Y.shape
    first = d * np.arange(n, dtype=np.int64)
    true = Y.indices + np.repeat(first, np.diff(Y.indptr))
    return np.isin(top.labels + first[:, None], true) & (top.labels >= 0) & (top.labels < d)


def _precision(hits: NDArray[np.bool_], k: int) -> float:
    return float(hits[:, :k].sum(axis=1).mean() / k)


def _recall(hits: NDArray[np.bool_], true: IntArray, k: int) -> float:
    return float((hits[:, :k].sum(axis=1) / np.maximum(true, 1)).mean())


def _ndcg(hits: NDArray[np.bool_], true: IntArray, k: int) -> float:
    gain = 1 / np.log2(np.arange(2, k + 2))
    ideal = np.concatenate([[0], np.cumsum(gain)])[np.minimum(true, k)]
    gained = hits[:, :k] @ gain[: hits.shape[1]]
    return float(np.divide(gained, ideal, out=np.zeros(len(hits)), where=ideal > 0).mean())


def _squared_error(Y: CSR, scores: CSR) -> float:
    return float(((Y - scores).data.astype(np.float64) ** 2).sum() / Y.shape[0])

"""How good a ranking of labels is.

Predictions are sparse scores (n, d) or the :class:`~labelsense.TopK` of ``predict_topk``. Labels with equal scores rank
by their column, lowest first. Only stored scores are predictions: a row with fewer than k of them has empty places,
which count as misses. Means are over all rows, rows without labels included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from labelsense._typing import CSR, DoubleArray, IntArray
from labelsense._validation import check_binary, check_count, check_real
from labelsense.errors import InputError
from labelsense.labels import TopK, top_k
from labelsense.metrics._pairs import are_true, rows_of


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

    Examples
    --------
    >>> recall_at_k([[1, 0, 1]], [[0.9, 0.5, 0.1]], k=1)
    0.5
    """
    Y, top = _check(Y_true, predicted, k)
    return _recall(_hits(Y, top), np.diff(Y.indptr) + unseen, k)


def ndcg_at_k(Y_true: Any, predicted: Any, k: int = 5, *, unseen: Any = 0) -> float:
    """Return the mean normalised discounted cumulative gain: 1 if the k best are all true, or all true ones are best.

    Examples
    --------
    >>> ndcg_at_k([[1, 0, 1]], [[0.9, 0.1, 0.5]], k=2)
    1.0
    """
    Y, top = _check(Y_true, predicted, k)
    return _ndcg(_hits(Y, top), np.diff(Y.indptr) + unseen, k)


def coverage_at_k(Y_true: Any, predicted: Any, k: int = 5) -> float:
    """Return the share of all d labels that are among the k best of some row, right or wrong.

    A model that only ever predicts frequent labels has a low one. It is at most n k / d.

    Examples
    --------
    >>> coverage_at_k([[1, 0, 1], [1, 0, 0]], [[0.9, 0.1, 0.5], [0.8, 0.1, 0.2]], k=1)  # label 0, twice
    0.3333333333333333
    """
    Y, top = _check(Y_true, predicted, k)
    return _coverage(top, Y.shape[1], k)


def inverse_propensities(Y_train: Any, *, a: float = 0.55, b: float = 1.5) -> Any:
    """Return 1 / p_j for each label: how much a hit counts to make up for labels that were not annotated.

    It is :func:`propensity_weights` of the label counts of the training rows.
    """
    Y = check_binary(Y_train, "Y_train")
    return propensity_weights(np.bincount(Y.indices, minlength=Y.shape[1]), Y.shape[0], a=a, b=b)


def propensity_weights(label_counts: Any, n_samples: int, *, a: float = 0.55, b: float = 1.5) -> DoubleArray:
    """Return 1 / p_j for labels that N_j out of n training rows have.

    The model of Jain, Prabhu and Varma (2016): 1 / p = 1 + C (N_j + b)^-a with C = (log n - 1) (b + 1)^a, or 0 where
    that is negative, for n < 3.

    Examples
    --------
    >>> propensity_weights([1, 100], 1000).round(2).tolist()
    [6.91, 1.77]
    """
    a, b = check_real(a, "a", low=0), check_real(b, "b", low=0)
    counts = np.asarray(label_counts, dtype=np.float64)
    n = check_count(n_samples, "n_samples")
    return 1 + max(math.log(n) - 1, 0) * (b + 1) ** a * np.maximum(counts + b, np.finfo(np.float64).tiny) ** -a


def propensity_scored_precision_at_k(
    Y_true: Any, predicted: Any, weights: Any, k: int = 5, *, unseen: Any = 0, unseen_weight: float | None = None
) -> float:
    """Return propensity-scored precision: hits weighted by :func:`inverse_propensities`, over the best possible.

    ``unseen_weight`` is what a hit of a label without column would count: no less than any other, which is also what it
    is by default.
    """
    Y, top = _check(Y_true, predicted, k)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (Y.shape[1],):
        raise InputError(f"weights must have one number per label, {Y.shape[1]}. Got shape {weights.shape}.")
    largest = float(weights.max())
    unseen_weight = check_real(largest if unseen_weight is None else unseen_weight, "unseen_weight", low=largest)
    return _propensity_scored(Y, top, _hits(Y, top), weights, k, unseen, unseen_weight)


def ranking_figures(
    Y: CSR, top: TopK, ks: Sequence[int], unseen: Any = 0, weights: DoubleArray | None = None
) -> dict[str, float]:
    """Return precision, recall, nDCG and coverage at each k by name, of a ranking of columns; nothing is checked.

    With ``weights`` (d + 1,), those of the labels and that of labels without column, also propensity-scored precision.
    """
    hits, true = _hits(Y, top), np.diff(Y.indptr) + unseen
    figures: dict[str, float] = {}
    for k in ks:
        figures[f"P@{k}"] = _precision(hits, k)
        figures[f"recall@{k}"] = _recall(hits, true, k)
        figures[f"nDCG@{k}"] = _ndcg(hits, true, k)
        if weights is not None:
            figures[f"PSP@{k}"] = _propensity_scored(Y, top, hits, weights[:-1], k, unseen, weights[-1])
        figures[f"coverage@{k}"] = _coverage(top, Y.shape[1], k)
    return figures


def rank_precision(Y: CSR, top: TopK, places: int) -> DoubleArray:
    """Return how often the label at each of the first places of a ranking is true; nothing is checked."""
    return _hits(Y, top)[:, :places].mean(axis=0)


def precision_shares(Y: CSR, labels: IntArray, ks: Sequence[int]) -> DoubleArray:
    """Return P@k of each row alone, (ks, n), of labels that are in order, the best first; nothing is checked."""
    hits = are_true(Y, np.arange(Y.shape[0], dtype=np.int64)[:, None], labels)
    return np.stack([hits[:, :k].sum(axis=1) / k for k in ks])


def clearly_more(values: DoubleArray, others: DoubleArray, errors: float = 2) -> bool:
    """Tell whether values of rows are more than others of the same rows, by more than some standard errors of the mean.

    Examples
    --------
    >>> clearly_more(np.array([1.0, 1.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0, 1.0]))
    False
    """
    more = values - others
    return bool(more.mean() > errors * more.std() / math.sqrt(len(more)))


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
    return are_true(Y, np.arange(Y.shape[0], dtype=np.int64)[:, None], top.labels)


def _precision(hits: NDArray[np.bool_], k: int) -> float:
    return float(hits[:, :k].sum(axis=1).mean() / k)


def _recall(hits: NDArray[np.bool_], true: IntArray, k: int) -> float:
    return float((hits[:, :k].sum(axis=1) / np.maximum(true, 1)).mean())


def _ndcg(hits: NDArray[np.bool_], true: IntArray, k: int) -> float:
    gain = 1 / np.log2(np.arange(2, k + 2))
    ideal = np.concatenate([[0], np.cumsum(gain)])[np.minimum(true, k)]
    gained = hits[:, :k] @ gain[: hits.shape[1]]
    return float(np.divide(gained, ideal, out=np.zeros(len(hits)), where=ideal > 0).mean())


def _coverage(top: TopK, n_labels: int, k: int) -> float:
    found = np.unique(top.labels[:, :k])
    return float(np.count_nonzero(found >= 0) / n_labels)


def _propensity_scored(
    Y: CSR, top: TopK, hits: NDArray[np.bool_], weights: DoubleArray, k: int, unseen: Any, unseen_weight: float
) -> float:
    gained = weights[top.labels[:, :k][hits[:, :k]]].sum()
    rows, value = rows_of(Y), weights[Y.indices]
    counts = np.diff(Y.indptr)
    unseen = np.broadcast_to(np.asarray(unseen, dtype=np.int64), counts.shape)
    order = np.lexsort((-value, rows))
    # No label counts for more than one that was never seen, so the best possible has those first.
    place = np.arange(len(rows)) - Y.indptr[rows] + unseen[rows]
    best = value[order][place < k].sum() + unseen_weight * np.minimum(unseen, k).sum()
    return float(gained / best) if best > 0 else 0.0

"""Pairs (row, label) as numbers, which is how sparse predictions are compared with sparse truths."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from labelsense._typing import CSR, IntArray
from labelsense._validation import check_binary, check_places
from labelsense.errors import InputError


def rows_of(M: CSR) -> IntArray:
    """Return the row of each stored entry."""
    return np.repeat(np.arange(M.shape[0], dtype=np.int64), np.diff(M.indptr))


def are_true(Y: CSR, rows: IntArray, labels: IntArray) -> NDArray[np.bool_]:
    """Return which pairs are true labels, by Y without entries that are there twice; those without column are not."""
    Y, d = Y if Y.has_sorted_indices else Y.sorted_indices(), Y.shape[1]
    true = rows_of(Y) * d + Y.indices  # ascending
    sought = rows * d + labels
    place = np.minimum(np.searchsorted(true, sought), max(len(true) - 1, 0))
    found = true[place] == sought if len(true) else np.zeros(sought.shape, bool)
    return found & (labels >= 0) & (labels < d)


def check_pair(Y_true: Any, predicted: Any) -> tuple[CSR, CSR]:
    """Return the true and the predicted sets of labels as canonical indicator matrices of one shape."""
    Y, P = check_binary(Y_true, "Y_true"), check_binary(predicted, "Y_pred")
    _check_shapes(Y, P, "Y_pred")
    return Y, P


def check_probabilities(probabilities: Any, Y_true: Any) -> tuple[CSR, CSR]:
    """Return probabilities as CSR, and the true labels as an indicator matrix of the same shape.

    Stored zeros stay: they are pairs to which a model gives a probability.
    """
    Y = check_binary(Y_true, "Y_true")
    P = sp.csr_array(probabilities)
    check_places(P, "probabilities")
    _check_shapes(Y, P, "probabilities")
    low, high = P.data.min(initial=0), P.data.max(initial=0)  # NaN if one is
    if not (low >= 0 and high <= 1):
        wrong = low if not low >= 0 else high
        raise InputError(f"probabilities must be from 0 to 1. Got {wrong:g}. Scores of a model without are not.")
    return P, Y


def _check_shapes(Y: CSR, P: CSR, name: str) -> None:
    if Y.shape != P.shape:
        raise InputError(f"{name} must have the shape of Y_true, {Y.shape}. Got {P.shape}.")

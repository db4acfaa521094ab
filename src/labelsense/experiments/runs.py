"""One run: decode the test half with one matrix A, and compare with its labels."""

from __future__ import annotations

import platform
import time
import warnings
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp
import sklearn
from sklearn.exceptions import ConvergenceWarning

from labelsense._blocks import map_rows, row_blocks
from labelsense._gram import gram
from labelsense._typing import CSR, FloatArray
from labelsense._version import __version__
from labelsense.compress import COMPRESSORS, Operator
from labelsense.experiments.problems import Halves, measure
from labelsense.experiments.settings import KS, RANKING_SIZES, REFITTED, SIZES, Run
from labelsense.experiments.sparsity import relative_tails
from labelsense.labels import TopK
from labelsense.metrics import precision_at_k, squared_error
from labelsense.reconstruct import DECODERS

BLOCK_ROWS = 512


def run_compressed(run: Run, halves: Halves, B: FloatArray) -> dict[str, Any]:
    """Return the results of a run: squared errors and precisions for k = 1 to 10."""
    start = time.perf_counter()
    d = halves.Y_test.shape[1]
    operator = COMPRESSORS[run.compressor](run.n_measurements, random_state=run.seed).fit(d).operator_
    H = measure(operator, B, halves.X_test)
    if run.decoder in ("ecoc", "secoc"):
        results = _of_best(halves.Y_test, average(operator, H))
    else:
        path = decode(run.decoder, operator, H)
        results = {
            "errors": [squared_error(halves.Y_test, path[k]) for k in KS],
            "precisions": precisions(run.decoder, halves.Y_test, path),
        }
    return {
        **results,
        "coherence": operator.coherence(),
        **_about(start),
    }


def run_one_against_all(halves: Halves, B: FloatArray) -> dict[str, Any]:
    """Return the results without compression, how sparse they are, and what the data are like.

    The errors are those of the k largest predictions of a row. Test rows by labels exist for a block of rows at a time.
    """
    start = time.perf_counter()
    Y, Y_train = halves.Y_test, halves.Y_train
    n, d = Y.shape
    best: list[TopK] = []
    tails = []
    dense_error = 0.0
    for rows in row_blocks(n, BLOCK_ROWS):
        P = np.asarray(halves.X_test[rows] @ B)
        best.append(_largest(P))
        dense_error += float(((P - Y[rows].toarray()) ** 2).sum(dtype=np.float64))
        tails.append(relative_tails(P))
    frequency = np.bincount(np.concatenate([Y.indices, Y_train.indices]), minlength=d)
    return {
        **_of_best(Y, _stack(best)),
        "dense_error": dense_error / n,
        "error_of_nothing": Y.nnz / n,
        "sparsity_errors": np.concatenate(tails).mean(axis=0, dtype=np.float64).tolist(),
        "rows": [Y_train.shape[0], n],
        "features": B.shape[0],
        "labels": d,
        "labels_per_row": (Y.nnz + Y_train.nnz) / (n + Y_train.shape[0]),
        "label_frequencies": [int(frequency.min()), int(frequency.max())],
        **_about(start),
    }


def decode(decoder: str, operator: Operator, H: FloatArray) -> dict[int, CSR]:
    """Return the decoded test half for each support size."""
    method = DECODERS["lasso" if decoder == REFITTED else decoder]()
    state = method.prepare(operator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the paper asks for 20 labels of 100 measurements
        blocks = map_rows(lambda rows: method.path(state, H[rows], SIZES), len(H), BLOCK_ROWS, -1)
    path = {size: sp.vstack([block[i] for block in blocks], format="csr") for i, size in enumerate(SIZES)}
    return {size: refit(operator, H, scores) for size, scores in path.items()} if decoder == REFITTED else path


def average(operator: Operator, H: FloatArray) -> TopK:
    """Return the ten labels with the largest a_j'h: how output codes decode, each subproblem has a vote on each label.

    What :class:`~labelsense.SECOCClassifier` and :class:`~labelsense.ECOCClassifier` (squared loss) give with the same
    matrix and learner.
    """
    return _stack([_largest(operator.correlate(H[rows])) for rows in row_blocks(len(H), BLOCK_ROWS)])


def precisions(decoder: str, Y: CSR, path: dict[int, CSR]) -> list[float]:
    """Return the precision at each k by the paper's rule.

    The first k labels by magnitude of the 10-sparse prediction, or of the 2k-sparse one from k = 6 on. Correlation
    decoding ranks by |a_j'h|: the first k are the support of its k-sparse prediction.
    """
    source = {k: k for k in KS} if decoder == "correlation" else RANKING_SIZES
    return [precision_at_k(Y, abs(path[source[k]]), k) for k in KS]


def refit(operator: Operator, H: FloatArray, scores: CSR) -> CSR:
    """Return the least-squares fit of each row of H on the columns of A that it has scores for."""
    A = operator.columns(np.arange(operator.n_labels)).astype(np.float64)
    products, counts = gram(A), np.diff(scores.indptr)
    values = np.empty(scores.nnz, np.float32)
    for size in np.unique(counts[counts > 0]):
        for block in row_blocks(int((counts == size).sum()), BLOCK_ROWS):
            rows = np.flatnonzero(counts == size)[block]
            places = scores.indptr[rows][:, None] + np.arange(size)
            J = scores.indices[places]
            right = np.take_along_axis(operator.correlate(H[rows]), J, axis=1)
            inverse = np.linalg.pinv(products[J[:, :, None], J[:, None, :]], hermitian=True)
            values[places] = np.einsum("rij,rj->ri", inverse, right)
    return sp.csr_array((values, scores.indices, scores.indptr), shape=scores.shape)


def _largest(P: FloatArray) -> TopK:
    best = np.argsort(-P, axis=1, kind="stable")[:, : KS[-1]]
    return TopK(best, np.take_along_axis(P, best, axis=1))


def _stack(parts: list[TopK]) -> TopK:
    return TopK(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _of_best(Y: CSR, top: TopK) -> dict[str, list[float]]:
    """Return the errors and precisions of the k largest predictions, taken as they are."""
    n = len(top.labels)
    errors = []
    for k in KS:
        entries = (top.scores[:, :k].ravel(), top.labels[:, :k].ravel(), np.arange(n + 1) * k)
        errors.append(squared_error(Y, sp.csr_array(entries, shape=Y.shape)))
    return {"errors": errors, "precisions": [precision_at_k(Y, top, k) for k in KS]}


def _about(start: float) -> dict[str, Any]:
    return {
        "seconds": round(time.perf_counter() - start, 3),
        "versions": {
            "labelsense": __version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
        },
    }

"""Where candidates and their scores come from: each source scores all labels of a row in its own way.

Sources err on different labels, which is why several of them are better than the best one. They learn from rows whose
measurements are out of sample, and score these rows as if they had not seen them: leave-one-out, in closed form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from labelsense import _kernels
from labelsense._blocks import map_rows, plain_algebra, row_blocks
from labelsense._gram import mirror
from labelsense._storage import Parts, require, require_array, storable
from labelsense._typing import CSR, DoubleArray, FloatArray
from labelsense.compress.base import Operator, inverse_norms
from labelsense.labels import scale_columns
from labelsense.refine.candidates import Candidates
from labelsense.refine.ranker import Arrays, Ranker, compact, csr_arrays
from labelsense.regress import lapack

GEMM_ROWS = 1024
MOMENT_ROWS, SOLVED_LABELS = 32, 1024  # of the linear decoder, by each thread
STRONGEST = 50  # features of a row that count for centroids, and features by which a label is found
MOST_FOUND = 2000  # labels that are found by a feature
PENALTY = 0.1  # of the linear decoder, as a share of the mean square of a measurement


class Source(ABC):
    """Scores of all labels of a row, by its features x and its measurements h.

    Attributes
    ----------
    weight : float
        What its standardised scores count in the choice of candidates.
    name : str
        What reports call it.
    """

    weight: ClassVar[float] = 1.0
    name: ClassVar[str]

    @property
    @abstractmethod
    def n_labels(self) -> int:
        """Return d."""

    @abstractmethod
    def rows(self, X: CSR, H: FloatArray) -> _kernels.Scores:
        """Return the scores of a block of rows for kernels that look at one row after the other.

        ``_kernels.StoredScores`` is for what NumPy makes, dense (n, d).
        """

    def scores(self, X: CSR, H: FloatArray) -> FloatArray:
        """Return the scores of a block of rows, dense (n, d)."""
        out = np.empty((len(H), self.n_labels), np.float32)
        self.rows(X, H).fill(out)
        return out

    def score(self, X: CSR, H: FloatArray, candidates: Candidates) -> FloatArray:
        """Return the scores of the candidates of a block of rows."""
        return self.scores(X, H)[candidates.row, candidates.labels]

    def find(self, X: CSR, k: int) -> Candidates | None:
        """Return about the k best labels of each row, without a look at all; None if it cannot."""
        return None

    def own(self, X: CSR, H: FloatArray, Y: CSR, candidates: Candidates, values: FloatArray) -> FloatArray:
        """Return scores of rows that it has learned from as if it had not, given those with them."""
        return values

    def updated(self, sums: CSR) -> Source:
        """Return a source that has learned rows with these sums (p, d) by label, or just has their new labels."""
        return self

    def check_sizes(self, n_features: int, n_measurements: int, n_labels: int) -> None:  # noqa: B027
        """Refuse what a file says if it is of other sizes."""


class Correlations(Source):
    """a_j'h / |a_j|: the correlation of the measurements with the column of each label. It learns nothing."""

    name = "correlation"

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    @property
    def n_labels(self) -> int:
        return self.operator.n_labels

    def rows(self, X: CSR, H: FloatArray) -> _kernels.Scores:
        return self.operator.scores(H, self._inverse)

    def score(self, X: CSR, H: FloatArray, candidates: Candidates) -> FloatArray:
        values = self.operator.correlate_among(H, candidates.starts, candidates.labels)
        return values * self._inverse[candidates.labels]

    @cached_property
    def _inverse(self) -> FloatArray:
        return inverse_norms(self.operator.column_norms)


@storable()
class LinearDecoder(Source):
    """Ridge regression from measurements to labels.

    Where labels are many to a row and come together, it is better than any sparse decoder: it knows which do.

    Parameters
    ----------
    weights : array (m, d)
    intercept : array (d,)
    mean : array (m,)
        Of the measurements that it has learned from.
    inverse : array (m, m)
        The inverse of their penalised covariance, for leave-one-out.
    n_rows : int
        Their number.
    """

    weight, name = 0.5, "linear decoder"

    def __init__(
        self, weights: FloatArray, intercept: FloatArray, mean: FloatArray, inverse: FloatArray, n_rows: int
    ) -> None:
        self.weights, self.intercept, self.mean, self.inverse, self.n_rows = weights, intercept, mean, inverse, n_rows

    @classmethod
    def learn(cls, H: FloatArray, Y: CSR) -> LinearDecoder:
        """Learn from measurements H (n, m) that are out of sample and labels Y (n, d)."""
        return cls.solve(cls.moments(H, Y))

    @staticmethod
    def moments(H: FloatArray, Y: CSR) -> DoubleArray:
        """Return [H, 1]'[H, 1, Y], (m + 1, m + 1 + d), in double: what it learns from. Those of parts add up."""
        n, m = H.shape
        total = np.zeros((m + 1, m + 1 + Y.shape[1]))
        for rows in row_blocks(n, GEMM_ROWS):
            left = np.pad(H[rows].astype(np.float64), ((0, 0), (0, 1)), constant_values=1)
            labels = sp.csr_array(Y[rows].T)

            def add(some: slice, left: DoubleArray = left, labels: CSR = labels) -> None:
                total[some, : m + 1] += left[:, some].T @ left
                total[some, m + 1 :] += np.asarray(labels @ left[:, some]).T

            with plain_algebra:
                map_rows(add, m + 1, MOMENT_ROWS, -1)
        return total

    @classmethod
    def solve(cls, moments: DoubleArray) -> LinearDecoder:
        """Learn from the moments of all rows."""
        m = len(moments) - 1
        n, mean = float(moments[-1, m]), moments[-1, :m] / moments[-1, m]
        penalty = max(PENALTY * float(np.trace(moments[:, :m])) / m, 1e-12)
        share = moments[-1, m + 1 :] / n
        inverse = moments[:m, :m] - n * np.outer(mean, mean) + penalty * np.eye(m)
        lapack.cholesky(inverse)
        lapack.invert(inverse)
        mirror(inverse)
        weights, intercept = np.empty((m, len(share)), np.float32), np.empty(len(share), np.float32)

        def fill(labels: slice) -> None:
            W = inverse @ (moments[:m, m + 1 :][:, labels] - np.outer(n * mean, share[labels]))
            weights[:, labels], intercept[labels] = W, share[labels] - mean @ W

        with plain_algebra:
            map_rows(fill, len(share), SOLVED_LABELS, -1)
        return cls(weights, intercept, mean.astype(np.float32), inverse.astype(np.float32), round(n))

    @property
    def n_labels(self) -> int:
        return len(self.intercept)

    def rows(self, X: CSR, H: FloatArray) -> _kernels.Scores:
        return _kernels.StoredScores(H @ self.weights + self.intercept)

    def leverages(self, H: FloatArray) -> FloatArray:
        """Return how much each of the rows that it has learned from decides its own scores, (n,)."""
        centred = H - self.mean
        return np.minimum(np.einsum("ij,ij->i", centred @ self.inverse, centred) + 1 / self.n_rows, 0.999)

    def own(self, X: CSR, H: FloatArray, Y: CSR, candidates: Candidates, values: FloatArray) -> FloatArray:
        leverage = self.leverages(H)[candidates.row]
        truth = candidates.are_in(Y).astype(np.float32)
        return ((values - leverage * truth) / (1 - leverage)).astype(np.float32)

    def updated(self, sums: CSR) -> LinearDecoder:
        more = sums.shape[1] - len(self.intercept)
        weights, intercept = np.pad(self.weights, ((0, 0), (0, more))), np.pad(self.intercept, (0, more))
        return LinearDecoder(weights, intercept, self.mean, self.inverse, self.n_rows)

    def check_sizes(self, n_features: int, n_measurements: int, n_labels: int) -> None:
        require(self.weights.shape == (n_measurements, n_labels), "the linear decoder must fit A")

    def _to_parts(self) -> Parts:
        return {"weights": self.weights, "intercept": self.intercept}

    @classmethod
    def _from_parts(cls, parts: Parts) -> LinearDecoder:
        weights, intercept = parts["weights"], parts["intercept"]
        require_array(weights, "the linear decoder", "float32", (None, None))
        require_array(intercept, "the constants of the linear decoder", "float32", (weights.shape[1],), finite=True)
        empty = np.zeros(0, np.float32)
        return cls(weights, intercept, empty, empty, 0)


@storable()
class Centroids(Source):
    """The cosine between a row and the sum of the rows that have a label.

    Of each row only the 50 features count that are largest in magnitude: they tell labels apart as well, and faster.

    Parameters
    ----------
    sums : CSR (p, d)
        The sum of the rows of each label, by feature.
    lengths : array (d,)
        Of these sums.
    """

    weight, name = 0.5, "centroids"

    def __init__(self, sums: CSR, lengths: FloatArray) -> None:
        self.sums, self.lengths = compact(sums), lengths

    @classmethod
    def learn(cls, X: CSR, Y: CSR) -> Centroids:
        """Sum the rows of X (n, p) by the labels that they have."""
        return cls.of(sums_by_label(X, Y))

    @classmethod
    def of(cls, sums: Any) -> Centroids:
        """Return the centroids of labels whose rows have these sums, (p, d)."""
        sums = sp.csr_array(sums, dtype=np.float32)
        squares = np.bincount(sums.indices, np.square(sums.data, dtype=np.float64), sums.shape[1])
        return cls(sums, np.sqrt(squares).astype(np.float32))

    @property
    def n_labels(self) -> int:
        return len(self.lengths)

    def rows(self, X: CSR, H: FloatArray) -> _kernels.Scores:
        X = strongest(X)
        return _kernels.SparseScores(*csr_arrays(X), *self._sums, inverse_norms(_row_lengths(X)), self._inverse)

    def score(self, X: CSR, H: FloatArray, candidates: Candidates) -> FloatArray:
        X = strongest(X)
        scale = self._inverse[candidates.labels] * inverse_norms(_row_lengths(X))[candidates.row]
        return self._linear.margins(X, candidates) * scale

    def find(self, X: CSR, k: int) -> Candidates:
        X, d = strongest(X), len(self.lengths)
        labels, counts = np.empty((X.shape[0], k), np.int32), np.empty(X.shape[0], np.int64)
        _kernels.nearest(*csr_arrays(X), *self._index, d, labels, counts)
        return Candidates(np.concatenate([[0], np.cumsum(counts)]), labels[np.arange(k) < counts[:, None]], d)

    @cached_property
    def _inverse(self) -> FloatArray:
        return inverse_norms(self.lengths)

    @cached_property
    def _sums(self) -> Arrays:
        return csr_arrays(self.sums)

    @cached_property
    def _linear(self) -> Ranker:
        """The sums as if they were linear classifiers."""
        return Ranker(sp.csr_array(self.sums.T), np.zeros(len(self.lengths), np.float32))

    @cached_property
    def _index(self) -> Arrays:
        """The labels of each feature, (p, d), with cosines: of each label the strongest features, of these the best."""
        index = sp.csr_array(strongest(self._linear.weights).T)
        return csr_arrays(strongest(scale_columns(index, self._inverse), MOST_FOUND))

    def own(self, X: CSR, H: FloatArray, Y: CSR, candidates: Candidates, values: FloatArray) -> FloatArray:
        mine = np.flatnonzero(candidates.are_in(Y))
        label, own_length = (
            candidates.labels[mine],
            _row_lengths(strongest(X)).astype(np.float64)[candidates.row[mine]],
        )
        length = self.lengths[label].astype(np.float64)
        dot = values[mine] * length * own_length
        rest = np.sqrt(np.maximum(length**2 - 2 * dot + own_length**2, 0))
        alone = rest <= 1e-4 * own_length  # nobody else has the label
        left = np.divide(
            dot - own_length**2, rest * own_length, out=np.zeros_like(dot), where=~alone & (own_length > 0)
        )
        values = values.copy()
        values[mine] = left
        return values

    def updated(self, sums: CSR) -> Centroids:
        known = sp.csr_array((self.sums.data, self.sums.indices, self.sums.indptr), shape=sums.shape)
        return Centroids.of(known + sums)

    def check_sizes(self, n_features: int, n_measurements: int, n_labels: int) -> None:
        require(self.sums.shape == (n_features, n_labels), "centroids must fit features and labels")

    def _to_parts(self) -> Parts:
        return {"sums": self.sums, "lengths": self.lengths}

    @classmethod
    def _from_parts(cls, parts: Parts) -> Centroids:
        sums = parts["sums"]
        require(sp.issparse(sums) and sums.dtype == np.float32, "the sums of rows must be numbers")
        require_array(parts["lengths"], "the lengths of sums of rows", "float32", (sums.shape[1],), finite=True)
        return cls(sums, parts["lengths"])


def sums_by_label(X: CSR, Y: CSR) -> CSR:
    """Return the sum of the rows of each label, (p, d), by their strongest features."""
    return compact(sp.csr_array(strongest(X).T @ Y))


def strongest(X: CSR, most: int = STRONGEST) -> CSR:
    """Return rows with the features that are largest in magnitude, the others left out."""
    counts = np.diff(X.indptr)
    if counts.max(initial=0) <= most:
        return X
    kept = np.empty(X.nnz, bool)
    _kernels.mark_strongest(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, most, kept.view(np.uint8))
    indptr = np.concatenate([[0], np.cumsum(np.minimum(counts, most))])
    return sp.csr_array((X.data[kept], X.indices[kept], indptr), shape=X.shape)


def _row_lengths(X: CSR) -> FloatArray:
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.sqrt(np.bincount(row, np.square(X.data, dtype=np.float64), X.shape[0])).astype(np.float32)

"""Rows of the Hadamard matrix that suit the frequencies of the labels, and measurements made uncorrelated."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.utils.random import sample_without_replacement

from labelsense import _kernels
from labelsense._blocks import map_rows, plain_algebra
from labelsense._gram import gram
from labelsense._storage import Parts, require, require_array, storable
from labelsense._typing import DoubleArray, FloatArray, IntArray
from labelsense._validation import check_measurements
from labelsense.compress.base import STORED_BYTES, DenseOperator, Operator, inverse_norms
from labelsense.compress.hadamard import HadamardCompressor, HadamardOperator

CANDIDATES = 8  # more lower the correlations further, but leave too little of the randomness that rare labels need
FREQUENT = 0.03  # labels this frequent count half: decoders find them first, so they do not disturb for long
PADDING = 16  # the kernel wants rows of whole registers, by twos
NOISE = 0.3  # the variance of a measurement that does not come from labels, as a share of what does


@storable()
class WhitenedOperator(Operator):
    """T A, for rows A of the Hadamard matrix and a lower triangular matrix T (m, m)."""

    def __init__(self, hadamard: HadamardOperator, whitening: FloatArray) -> None:
        self.hadamard = hadamard
        self.whitening = np.ascontiguousarray(whitening, dtype=np.float32)
        self.n_measurements, self.n_labels = hadamard.n_measurements, hadamard.n_labels
        self.capacity = hadamard.capacity

    def _first_columns(self, n_labels: int) -> WhitenedOperator:
        return WhitenedOperator(self.hadamard._first_columns(n_labels), self.whitening)

    def _to_parts(self) -> Parts:
        return {"hadamard": self.hadamard, "whitening": self.whitening}

    @classmethod
    def _from_parts(cls, parts: Parts) -> WhitenedOperator:
        hadamard, T = parts["hadamard"], parts["whitening"]
        require(isinstance(hadamard, HadamardOperator), "A must have rows")
        m = hadamard.n_measurements
        require(4 * m * hadamard.n_labels <= STORED_BYTES, "A must not be too large to decode")
        require_array(T, "the whitening of A", "float32", (m, m), finite=True)
        triangular = bool((T.diagonal() > 0).all()) and not np.triu(T, 1).any()
        require(triangular, "the whitening of A must be lower triangular, with a positive diagonal")
        return cls(hadamard, T)

    def _some_rows(self, rows: IntArray) -> WhitenedOperator:
        """Return what whitening some of the rows of A would have given: T'T is the inverse of a block of N."""
        inverse = self._invert()[rows]
        return _whitened(self.hadamard._some_rows(rows), gram(inverse.T))

    def _some_measurements(self, H: FloatArray, rows: IntArray) -> FloatArray:
        back = self._invert()[rows] * self._subset_scale(rows)  # to measurements by the rows of A themselves
        return H @ (self._some_rows(rows).whitening @ back).T.astype(np.float32)

    def compress(self, Y: Any) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            return self._check_product(self.hadamard.compress(Y) @ self.whitening.T, "Y")

    def correlate(self, R: Any) -> FloatArray:
        return self.hadamard.correlate(self._unwhiten(R))

    def scores(self, R: FloatArray, weights: FloatArray) -> _kernels.Scores:
        return self.hadamard.scores(self._unwhiten(R), weights)

    def correlate_among(self, R: FloatArray, starts: IntArray, labels: Any) -> FloatArray:
        return self.hadamard.correlate_among(R @ self.whitening, starts, labels)

    def columns(self, J: Any) -> FloatArray:
        return self.whitening @ self.hadamard.columns(J)

    @property
    def column_norms(self) -> FloatArray:
        return np.sqrt(_squared_norms(self.hadamard, self._squared)).astype(np.float32)

    def coherence(self) -> float:
        return DenseOperator(self.columns(np.arange(self.n_labels)).T).coherence()

    def kernel(self) -> _kernels.Whitened:
        return self._kernel

    def _unwhiten(self, R: Any) -> FloatArray:
        """Return the residuals whose correlations with the Hadamard rows are those of R with A."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._check_product(check_measurements(R, self.n_measurements) @ self.whitening, "R")

    def _invert(self) -> DoubleArray:
        """Return T^-1. Its product with its transpose is N, up to a factor."""
        return solve_triangular(self.whitening.astype(np.float64), np.eye(self.n_measurements), lower=True)

    @cached_property
    def _squared(self) -> FloatArray:
        return gram(self.whitening)

    @cached_property
    def _kernel(self) -> _kernels.Whitened:
        m = self.n_measurements
        pad = [(0, 0), (0, -m % PADDING)]
        columns = np.zeros((self.n_labels, m + -m % PADDING), np.float32)
        squared = self._squared

        def fill(labels: slice) -> None:
            columns[labels, :m] = self.hadamard.columns(np.arange(labels.start, labels.stop)).T @ squared

        with plain_algebra:
            map_rows(fill, self.n_labels, 1024, -1)
        inverse = self._invert().astype(np.float32)
        return _kernels.Whitened(
            self.hadamard.kernel(),
            np.pad(self.whitening, pad),
            np.pad(inverse, pad),
            columns,
            inverse_norms(self.column_norms),
        )

    def __reduce__(self) -> Any:
        return WhitenedOperator, (self.hadamard, self.whitening)


@storable()
class WhitenedCompressor(HadamardCompressor):
    """Hadamard rows chosen for the frequencies of the labels, whitened: more accurate for the same m.

    Frequent labels are in most of the measurements of a row, and what a decoder has not yet found of them disturbs
    the search for the others. Two things reduce that, both from the frequencies of the labels alone:

    - Each row of A is the best of eight random ones: the one whose measurements are least correlated with those
      chosen before, if labels come independently.
    - What correlation remains is removed. The matrix is T A with T'T = N^-1, N = A V A' + noise, and V_jj = p_j /
      (p_j + 0.03) for a label with frequency p_j. So frequent labels get shorter columns, and to a decoder the labels
      that it has not found yet are white noise.

    The first costs nothing, the second 4 m (2 m + d) bytes to predict. ``OMPDecoder(penalty=0.1)`` makes the most of
    it. The paper's guarantees are for :class:`~labelsense.HadamardCompressor`.

    Parameters
    ----------
    n_measurements, k, reserve, random_state
        See :class:`~labelsense.compress.base.Compressor`. Given a number of labels instead of Y, ``fit`` takes them
        to be equally frequent.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsense import WhitenedCompressor
    >>> Y = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1], [1, 0, 0, 0]])
    >>> A = WhitenedCompressor(n_measurements=3, random_state=0).fit(Y).operator_
    >>> bool(A.column_norms.argmin() == 0)
    True
    """

    def _make_operator(
        self, n_labels: int, k: float, frequencies: Any, random_state: np.random.RandomState
    ) -> WhitenedOperator:
        order, m = self._size(n_labels, k)
        self._refuse_large(n_labels, m)
        if not frequencies.any():
            frequencies = np.ones(n_labels)
        rows = spread_rows(frequencies, order, m, random_state)
        return whiten(HadamardOperator(rows, order, n_labels), frequencies)


def spread_rows(weights: Any, order: int, m: int, random_state: np.random.RandomState) -> IntArray:
    """Return m row numbers of which each had the least sum of squared correlations with those before, out of a few."""
    penalty = correlations(weights, order) ** 2
    pool = sample_without_replacement(order, min(order, CANDIDATES * m), random_state=random_state)
    rows, left = np.empty(m, np.int64), len(pool)
    for i in range(m):
        places = random_state.randint(left, size=CANDIDATES)
        best = places[penalty[pool[places, None] ^ rows[:i]].sum(axis=1).argmin()]
        left -= 1
        rows[i], pool[best] = pool[best], pool[left]
    return rows


def whiten(hadamard: HadamardOperator, frequencies: Any) -> WhitenedOperator:
    """Return T A in whose measurements the labels that are not found yet are white noise."""
    N = correlations(frequencies / (frequencies + FREQUENT), hadamard.order)[_differences(hadamard)]
    N[np.diag_indices_from(N)] += NOISE
    return _whitened(hadamard, N)


def _whitened(hadamard: HadamardOperator, N: Any) -> WhitenedOperator:
    """Return T A with T'T in proportion to the inverse of N, and columns of norm one in the mean."""
    T = solve_triangular(np.linalg.cholesky(N), np.eye(len(N)), lower=True)
    return WhitenedOperator(hadamard, T / np.sqrt(_squared_norms(hadamard, gram(T)).mean()))


def correlations(variances: Any, order: int) -> Any:
    """Return the correlation of measurements r and s, at place r ^ s, of independent labels with these variances."""
    covariances = walsh_transform(variances, order)
    return covariances / covariances[0]


def walsh_transform(x: Any, order: int) -> Any:
    """Return the sums over j of x[j] (-1)^popcount(i & j), for i below the order."""
    padded = np.zeros(max(order, 64), np.float32)
    padded[: len(x)] = x
    _kernels.transform(padded)
    return padded[:order].astype(np.float64)


def _differences(hadamard: HadamardOperator) -> IntArray:
    return hadamard.rows[:, None] ^ hadamard.rows


def _squared_norms(hadamard: HadamardOperator, M: Any) -> Any:
    """Return a_j' M a_j of each label j: entries of M are summed by r ^ s, since that gives their sign in the form."""
    sums = np.bincount(_differences(hadamard).ravel(), M.ravel(), hadamard.order)
    return walsh_transform(sums, hadamard.order)[: hadamard.n_labels] / hadamard.n_measurements

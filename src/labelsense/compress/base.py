"""What every compressor and every operator A offers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state

from labelsense import _kernels
from labelsense._gram import gram
from labelsense._storage import Parts, require, require_array, storable
from labelsense._typing import CSR, DoubleArray, FloatArray, IntArray
from labelsense._validation import check_count, check_indicator, check_measurements, check_places
from labelsense.errors import InputError

GRAM_BYTES = 2**28  # a stored matrix gets its Gram matrix up to d = 8192
STORED_BYTES = 2**32
ORDINARY = 16.0  # kernels get a matrix whose longest column is longer, or shorter than the inverse, in other units


def auto_measurements(k: float, n_labels: int) -> int:
    """Return the number of measurements that ``n_measurements="auto"`` stands for.

    The paper needs m = O(k log(d / k)). The constant is ours: ``m = 6 k log2(2 d / k)``, and never fewer than 64,
    where k is the mean number of labels of a row. It keeps the decoding loss on real data to a few points of
    precision; ``labelsense advise`` measures it on yours.

    Examples
    --------
    >>> auto_measurements(k=5, n_labels=4000)
    320
    """
    k = max(float(k), 1.0)
    return min(max(64, math.ceil(6 * k * math.log2(2 * n_labels / min(k, n_labels)))), n_labels)


class Operator(ABC):
    """The sensing matrix A (m, d): an object that multiplies, not an array.

    Attributes
    ----------
    n_measurements, n_labels : int
        m and d.
    capacity : int
        How many labels it has columns for: d and the reserve.
    """

    n_measurements: int
    n_labels: int
    capacity: int

    @abstractmethod
    def compress(self, Y: Any) -> FloatArray:
        """Return Z = Y A', (n, m), for sparse or dense Y (n, d)."""

    @abstractmethod
    def correlate(self, R: Any) -> FloatArray:
        """Return R A, (n, d), for R (n, m). For a few rows at a time: the result is dense."""

    def correlate_among(self, R: FloatArray, starts: IntArray, labels: Any) -> FloatArray:
        """Return the entries of ``correlate(R)`` at some labels of each row, which start at ``labels[starts[i]]``."""
        values = np.empty(len(labels), np.float32)
        for r, (start, stop) in zip(R, pairwise(starts.tolist()), strict=True):
            values[start:stop] = r @ self.columns(labels[start:stop])
        return values

    def scores(self, R: FloatArray, weights: FloatArray) -> _kernels.Scores:
        """Return the rows of ``correlate(R) * weights`` for kernels that look at one after the other."""
        return _kernels.StoredScores(self.correlate(R) * weights)

    @abstractmethod
    def columns(self, J: Any) -> FloatArray:
        """Return the columns J of A, (m, len(J))."""

    @property
    @abstractmethod
    def column_norms(self) -> FloatArray:
        """The Euclidean norm of each column, (d,)."""

    @abstractmethod
    def coherence(self) -> float:
        """Return mu(A) = max |a_i' a_j| / (|a_i| |a_j|) over i < j, exactly."""

    @abstractmethod
    def kernel(self) -> _kernels.Kernel:
        """Return the compiled form of A that the decoders search."""

    @abstractmethod
    def _first_columns(self, n_labels: int) -> Operator:
        """Return the same matrix with other numbers of columns in use."""

    def for_labels(self, n_labels: int) -> Operator:
        """Return the same matrix for more or fewer labels; the columns that both have are the same."""
        if n_labels > self.capacity:
            raise InputError(
                f"The compressor has columns for {self.capacity} labels, and {n_labels} are needed. "
                "Fit again with a larger reserve, such as HadamardCompressor(reserve=1000)."
            )
        return self._first_columns(n_labels)

    def subset(self, rows: Any) -> Operator:
        """Return A with some of its measurements, scaled so that columns keep their length on average.

        ``subset(rows).compress(Y)`` equals ``subset_measurements(compress(Y), rows)``. The rows are numbers from 0 to
        m - 1, all different; their order does not matter.
        """
        return self._some_rows(self._check_rows(rows))

    def subset_measurements(self, H: Any, rows: Any) -> FloatArray:
        """Return the measurements by ``subset(rows)``, (n, len(rows)), out of those by A, (n, m)."""
        rows = self._check_rows(rows)
        return self._some_measurements(check_measurements(H, self.n_measurements), rows)

    @abstractmethod
    def _some_rows(self, rows: IntArray) -> Operator:
        """Return A with some of its measurements, in ascending order."""

    def _some_measurements(self, H: FloatArray, rows: IntArray) -> FloatArray:
        return H[:, rows] * self._subset_scale(rows)

    def _subset_scale(self, rows: IntArray) -> np.float32:
        return np.float32(math.sqrt(self.n_measurements / len(rows)))

    def _check_rows(self, rows: Any) -> IntArray:
        given = np.asarray(rows, dtype=np.int64).ravel()
        unique = np.unique(given)
        if not len(given) or len(unique) < len(given) or unique[0] < 0 or unique[-1] >= self.n_measurements:
            raise InputError(
                f"rows must be different numbers from 0 to {self.n_measurements - 1}, and at least one. Got {rows!r}."
            )
        return unique

    def _check_labels(self, Y: Any) -> CSR:
        Y = sp.csr_array(Y if sp.issparse(Y) else check_array(Y, dtype=np.float32, ensure_min_samples=0))
        check_places(Y, "Y")
        if Y.shape[1] != self.n_labels:
            raise InputError(f"Y must have one column per label, {self.n_labels}. Got {Y.shape[1]} columns.")
        return Y.astype(np.float32, copy=False)

    @staticmethod
    def _check_product(product: FloatArray, name: str) -> FloatArray:
        """Return a product with A, unless the sums were too large for float32."""
        if not np.isfinite([product.min(initial=0), product.max(initial=0)]).all():
            raise InputError(f"{name} and A hold numbers whose products 32-bit floats cannot hold. Scale {name} down.")
        return product

    def _check_columns(self, J: Any) -> Any:
        J = np.asarray(J, dtype=np.int64).ravel()
        if J.size and (J.min() < 0 or J.max() >= self.n_labels):
            raise InputError(f"J must hold label numbers from 0 to {self.n_labels - 1}. Got {J.min()} to {J.max()}.")
        return J


@storable()
class DenseOperator(Operator):
    """A matrix A that is stored, as its columns (d, m) in float32."""

    def __init__(self, columns: FloatArray, n_labels: int | None = None) -> None:
        self._stored = np.ascontiguousarray(columns, dtype=np.float32)
        self.capacity, self.n_measurements = self._stored.shape
        self.n_labels = self.capacity if n_labels is None else n_labels
        self._columns = self._stored[: self.n_labels]

    def _first_columns(self, n_labels: int) -> DenseOperator:
        return DenseOperator(self._stored, n_labels)

    def _to_parts(self) -> Parts:
        return {"columns": self._stored, "n_labels": self.n_labels}

    @classmethod
    def _from_parts(cls, parts: Parts) -> DenseOperator:
        columns, n_labels = parts["columns"], parts["n_labels"]
        require_array(columns, "the columns of A", "float32", (None, None), finite=True)
        require(type(n_labels) is int and 0 < n_labels <= len(columns), "A must have a column for each label")
        return cls(columns, n_labels)

    def _some_rows(self, rows: IntArray) -> DenseOperator:
        return DenseOperator(self._stored[:, rows] * self._subset_scale(rows), self.n_labels)

    def compress(self, Y: Any) -> FloatArray:
        return self._check_product(np.asarray(self._check_labels(Y) @ self._columns, dtype=np.float32), "Y")

    def correlate(self, R: Any) -> FloatArray:
        R = check_measurements(R, self.n_measurements)
        with np.errstate(over="ignore", invalid="ignore"):
            return self._check_product(R @ self._columns.T, "R")

    def columns(self, J: Any) -> FloatArray:
        return self._columns[self._check_columns(J)].T.copy()

    @property
    def column_norms(self) -> FloatArray:
        return self._norms.astype(np.float32)

    @property
    def _norms(self) -> NDArray[np.float64]:
        return np.sqrt(np.einsum("ij,ij->i", self._columns, self._columns, dtype=np.float64))

    def coherence(self) -> float:
        norms = self._norms
        unit = self._columns / np.where(norms > 0, norms, 1)[:, None]
        highest = 0.0
        for start in range(0, self.n_labels, 1024):  # a block of the Gram matrix at a time
            block = np.abs(unit[start : start + 1024] @ unit[start:].T)
            block[np.diag_indices(len(block))] = 0
            highest = max(highest, float(block.max(initial=0)))
        return highest

    def kernel(self) -> _kernels.Dense:
        columns, norms, exponent = self._columns, self._norms, 0
        longest = float(norms.max())
        if longest > 0 and not 1 / ORDINARY <= longest <= ORDINARY:
            exponent = math.frexp(longest)[1]
            columns, norms = np.ldexp(columns, -exponent), np.ldexp(norms, -exponent)
        affordable = 4 * self.n_labels**2 <= GRAM_BYTES
        products = gram(columns.T) if affordable else None
        return _kernels.Dense(columns, products, inverse_norms(norms), 2.0**exponent)


def inverse_norms(norms: Any) -> FloatArray:
    """Return 1 / norms, and 0 for columns that are zero but for rounding: they are never chosen."""
    return np.divide(1, norms, out=np.zeros(len(norms)), where=norms >= np.finfo(np.float32).tiny).astype(np.float32)


class Compressor(BaseEstimator, ABC):
    """Chooses a sensing matrix A for d labels.

    Parameters
    ----------
    n_measurements : int or "auto"
        m, the number of rows of A: the number of regressions that will be learned. "auto" takes
        :func:`auto_measurements` of k and d.
    k : float, optional
        The sparsity that "auto" plans for. By default the mean number of labels of a row of the Y seen by ``fit``,
        or 5 where ``fit`` is given only a number of labels.
    reserve : int
        For how many labels beyond those of ``fit`` to keep columns, so that new labels can be learned later.
    random_state : int, RandomState or None
        Seed of the random matrix.

    Attributes
    ----------
    operator_ : Operator
        The matrix A.
    """

    def __init__(
        self,
        n_measurements: int | str = "auto",
        *,
        k: float | None = None,
        reserve: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_measurements = n_measurements
        self.k = k
        self.reserve = reserve
        self.random_state = random_state

    def fit(self, labels: Any, y: Any = None) -> Compressor:
        """Make A for ``labels``: a number of labels d, or a label matrix Y (n, d)."""
        if isinstance(labels, (int, np.integer)) and not isinstance(labels, bool):
            n_labels = check_count(labels, "n_labels")
            return self.fit_frequencies(n_labels, 5.0, np.ones(n_labels))
        Y = check_indicator(labels)
        if 0 in Y.shape:
            raise InputError(
                f"Y has no labels: 0 sample(s) or 0 feature(s) (shape={Y.shape}) while a minimum of 1 is required."
            )
        return self.fit_rows(None, Y)

    def fit_rows(self, X: Any, Y: CSR, weights: DoubleArray | None = None) -> Compressor:
        """Make A for the training rows: features X (n, p), or None, labels Y (n, d), and how much each row counts.

        Most kinds of A depend on the frequencies of the labels, if on anything.
        """
        n, d = Y.shape
        if weights is None:
            return self.fit_frequencies(d, Y.nnz / n, Y.sum(axis=0) / n)
        shares = weights / weights.sum()
        return self.fit_frequencies(d, float(shares @ np.diff(Y.indptr)), shares @ Y)

    def fit_frequencies(self, n_labels: int, k: float, frequencies: Any) -> Compressor:
        """Make A for d labels with these frequencies, of which a row has about k."""
        if self.k is not None:
            k = self.k
        self.n_features_in_ = n_labels
        reserve = self._count_reserve()
        operator = self._make_operator(
            n_labels + reserve, k, np.pad(frequencies, (0, reserve)), check_random_state(self.random_state)
        )
        self.operator_ = operator.for_labels(n_labels)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def _check_stored(self) -> None:
        require(isinstance(self.operator_, Operator), "it must have a matrix A")

    @abstractmethod
    def _make_operator(
        self, n_labels: int, k: float, frequencies: Any, random_state: np.random.RandomState
    ) -> Operator:
        """Build A for d labels with these frequencies, of which a row has about k."""

    def _count_reserve(self) -> int:
        return check_count(self.reserve, "reserve", low=0)

    def _refuse_large(self, n_labels: int, m: int) -> None:
        if 4 * n_labels * m > STORED_BYTES:
            raise InputError(
                f"A stored matrix of {m} x {n_labels} would take {4e-9 * n_labels * m:.1f} GB. "
                "Use HadamardCompressor, which stores nothing, or fewer measurements."
            )

    def _count_measurements(self, n_labels: int, k: float, limit: int, why: str) -> int:
        if self.n_measurements == "auto":
            return min(auto_measurements(k, n_labels), limit)
        if isinstance(self.n_measurements, str):
            raise InputError(f"n_measurements must be an integer or 'auto'. Got {self.n_measurements!r}.")
        remedy = f"{limit} is {why}; with that many labels, fewer measurements or OneVsAllClassifier will do."
        return check_count(self.n_measurements, "n_measurements", high=limit, remedy=remedy)

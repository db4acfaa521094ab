"""The labels of similar rows as sources: similar in their features, or in what is predicted of them.

They speak of new rows only. A row that they have learned from would be its own neighbour.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from labelsense import _kernels
from labelsense._blocks import row_blocks
from labelsense._storage import Parts, require, require_array, storable
from labelsense._typing import CSR, FloatArray
from labelsense.compress.base import inverse_norms
from labelsense.refine.ranker import Arrays, compact, csr_arrays
from labelsense.refine.sources import Source, strongest

COSINES = 2**19  # that each thread has at a time: they stay in cache
MOST_MEASUREMENTS = 128  # by which rows are compared: more tell little more
DENSE = 0.25  # the share of features that are not zero, from which on all count, and not the strongest only


class Neighbours(Source):
    """The mean of the labels of the rows that are most similar, each weighed by a power of the cosine.

    Parameters
    ----------
    units : array or CSR (n, q)
        What rows are compared by, of unit length.
    labels : CSR (n, d)
        Their labels, 1 each.
    """

    weight = 0.5
    n_neighbours: ClassVar[int]
    power: ClassVar[int]

    def __init__(self, units: Any, labels: CSR) -> None:
        self.units, self.labels = units, compact(labels)

    @classmethod
    @abstractmethod
    def learn(cls, X: CSR, H: FloatArray, labels: CSR) -> Neighbours:
        """Keep rows: features (n, p), measurements (n, m) by a learner that has not seen the row, and labels (n, d)."""

    @abstractmethod
    def _compared(self, X: CSR, H: FloatArray) -> Any:
        """Return what rows are compared by, of unit length."""

    @property
    def n_labels(self) -> int:
        return int(self.labels.shape[1])

    def rows(self, X: CSR, H: FloatArray) -> _kernels.Scores:
        places, cosines = self._nearest(self._compared(X, H))
        weights = np.maximum(cosines, 0) ** self.power
        starts = np.arange(0, weights.size + 1, weights.shape[1])
        scale = inverse_norms(weights.sum(axis=1, dtype=np.float64))
        return _kernels.SparseScores(
            starts, places.ravel(), weights.ravel(), *self._label_arrays, scale, np.ones(self.n_labels, np.float32)
        )

    def _nearest(self, units: Any) -> tuple[Any, FloatArray]:
        """Return the rows with the largest cosines, ascending, and these, both (rows, neighbours)."""
        n, size = self.units.shape[0], units.shape[0]
        k = min(self.n_neighbours, n)
        places, cosines = np.empty((size, k), np.int32), np.empty((size, k), np.float32)
        near = np.empty((min(size, max(1, COSINES // n)), n), np.float32)
        for block in row_blocks(size, max(1, len(near))):
            some = near[: block.stop - block.start]
            self._fill_cosines(units[block], some)
            _kernels.largest_of_rows(some, places[block], cosines[block])
        return places, cosines

    def _fill_cosines(self, units: Any, out: FloatArray) -> None:
        if sp.issparse(units):
            ones = (np.ones(size, np.float32) for size in out.shape)
            _kernels.SparseScores(*csr_arrays(units), *self._index, *ones).fill(out)
        else:
            np.matmul(units, self.units.T, out=out)

    @cached_property
    def _index(self) -> Arrays:
        return csr_arrays(sp.csr_array(self.units.T))

    @cached_property
    def _label_arrays(self) -> Arrays:
        return csr_arrays(self.labels)

    def for_labels(self, n_labels: int) -> Neighbours:
        """Return neighbours that have none of the labels that are new."""
        labels = self.labels
        shape = labels.shape[0], n_labels
        return type(self)(self.units, sp.csr_array((labels.data, labels.indices, labels.indptr), shape=shape))

    def check_sizes(self, n_features: int, n_measurements: int, n_labels: int) -> None:
        require(self.labels.shape[1] == n_labels, "neighbours must have the labels")

    def _to_parts(self) -> Parts:
        return {"units": self.units, "labels": self.labels}

    @classmethod
    def _from_parts(cls, parts: Parts) -> Neighbours:
        units, labels = parts["units"], parts["labels"]
        require(sp.issparse(labels) and labels.dtype == np.float32, "the labels of neighbours must be numbers")
        if sp.issparse(units):
            require(units.dtype == np.float32, "neighbours must be numbers")
        else:
            require_array(units, "neighbours", "float32", (None, None), finite=True)
        require(units.shape[0] == labels.shape[0] > 0, "neighbours must have labels")
        return cls(units, labels)


@storable()
class SimilarFeatures(Neighbours):
    """The labels of rows with similar features: of sparse rows, by the strongest features."""

    name, n_neighbours, power = "rows with similar features", 100, 3

    @classmethod
    def learn(cls, X: CSR, H: FloatArray, labels: CSR) -> SimilarFeatures:
        is_dense = X.nnz > DENSE * X.shape[0] * X.shape[1]
        return cls(normalize(X).toarray() if is_dense else normalize(strongest(X)), labels)

    def _compared(self, X: CSR, H: FloatArray) -> Any:
        return normalize(strongest(X)) if sp.issparse(self.units) else normalize(X).toarray()

    def check_sizes(self, n_features: int, n_measurements: int, n_labels: int) -> None:
        super().check_sizes(n_features, n_measurements, n_labels)
        require(self.units.shape[1] == n_features, "neighbours must have the features")


@storable()
class SimilarMeasurements(Neighbours):
    """The labels of rows of which similar measurements were predicted, by models that had not seen them."""

    name, n_neighbours, power = "rows with similar measurements", 30, 8

    @classmethod
    def learn(cls, X: CSR, H: FloatArray, labels: CSR) -> SimilarMeasurements:
        return cls(_unit_measurements(H), labels)

    def _compared(self, X: CSR, H: FloatArray) -> Any:
        return _unit_measurements(H)

    def check_sizes(self, n_features: int, n_measurements: int, n_labels: int) -> None:
        super().check_sizes(n_features, n_measurements, n_labels)
        require(not sp.issparse(self.units), "neighbours must have measurements")
        require(self.units.shape[1] == min(n_measurements, MOST_MEASUREMENTS), "neighbours must have measurements")


def _unit_measurements(H: FloatArray) -> FloatArray:
    some = H[:, :MOST_MEASUREMENTS]
    unit: FloatArray = some * inverse_norms(np.linalg.norm(some.astype(np.float64), axis=1))[:, None]
    return unit

"""The decoding of principal label space: a projection, without any search."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import pinvh

from labelsense._blocks import row_blocks
from labelsense._storage import require_array, storable
from labelsense._typing import CSR, DoubleArray, FloatArray
from labelsense._validation import LARGEST, check_measurements
from labelsense.compress.base import Operator
from labelsense.labels import keep_best
from labelsense.reconstruct.base import Decoder

BLOCK = 4096  # columns of A that are multiplied at a time
BLOCK_NUMBERS = 2**24  # scores that exist at a time


class Projection(NamedTuple):
    """A, and what the label vector closest to the mean needs."""

    operator: Operator
    inverse: DoubleArray  # of A A', (m, m)
    mean: FloatArray  # of the label vectors, (d,)
    offset: DoubleArray  # A times the mean, (m,)

    @property
    def n_measurements(self) -> int:
        """The number m."""
        return self.operator.n_measurements

    @property
    def n_labels(self) -> int:
        """The number d."""
        return self.operator.n_labels


@storable()
class ProjectionDecoder(Decoder):
    """The label vector closest to the mean one that has the measurements h: y = mean + A'(A A')^-1 (h - A mean).

    For the orthonormal rows of :class:`~labelsense.PLSTCompressor` it is that method's decoding, whose rounding
    ``predict`` does. It searches for no sparse vector, so it is not one of the paper's: use it where labels are
    correlated and m is small, with principal label space. The largest entries of y are kept.

    Parameters
    ----------
    n_nonzero : int or "auto"
        How many.

    Attributes
    ----------
    mean_ : array (d,)
        The frequencies of the labels in the training rows; without ``fit_labels`` they count as 0.

    References
    ----------
    Tai, Lin (2012), Multilabel classification with principal label space transformation.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsense import PLSTCompressor, ProjectionDecoder
    >>> Y = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> A = PLSTCompressor(n_measurements=2).fit(Y).operator_
    >>> decoder = ProjectionDecoder(n_nonzero=2)
    >>> decoder.decode(decoder.prepare(A), A.compress([[1, 1, 0]])).indices.tolist()
    [0, 1]
    """

    learns = True
    mean_: FloatArray

    def fit_labels(self, Y: CSR) -> ProjectionDecoder:
        self.mean_ = np.asarray(Y.sum(axis=0) / Y.shape[0], dtype=np.float32)
        return self

    def prepare(self, operator: Operator) -> Projection:
        mean = np.zeros(operator.n_labels, np.float32)
        known = getattr(self, "mean_", mean)[: operator.n_labels]  # more labels may have come, or fewer be asked for
        mean[: len(known)] = known
        offset = operator.compress(mean[None])[0].astype(np.float64)
        return Projection(operator, pinvh(_gram(operator)), mean, offset)

    def decode(self, state: Projection, H: Any) -> CSR:
        H, s = check_measurements(H, state.n_measurements), self.support_size(state)
        found, lost = [sp.csr_array((0, state.n_labels), dtype=np.float32)], 0
        for block in row_blocks(len(H), max(1, BLOCK_NUMBERS // state.n_labels)):
            W = (H[block] - state.offset) @ state.inverse
            unit = np.maximum(np.abs(W).max(axis=1, keepdims=True), 1)
            Y = state.operator.correlate(W / unit) * unit + state.mean
            kept = np.abs(Y).max(axis=1) <= LARGEST
            lost += int(np.count_nonzero(~kept))
            best = keep_best(np.where(kept[:, None], Y, 0).astype(np.float32), s)
            best.data *= np.repeat(kept, np.diff(best.indptr))
            best.eliminate_zeros()
            found.append(best)
        self._tell([len(H) - lost, 0, 0, lost])
        return sp.vstack(found, format="csr")

    def _check_stored(self) -> None:
        require_array(self.mean_, "the mean label vector", "float32", (None,), finite=True)


def _gram(operator: Operator) -> DoubleArray:
    """Return A A', (m, m)."""
    gram = np.zeros((operator.n_measurements,) * 2)
    for block in row_blocks(operator.n_labels, BLOCK):
        part = operator.columns(np.arange(block.start, block.stop)).astype(np.float64)
        gram += part @ part.T
    return gram

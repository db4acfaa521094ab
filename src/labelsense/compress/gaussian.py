"""Independent Gaussian entries."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelsense._storage import storable
from labelsense.compress.base import Compressor, DenseOperator


@storable()
class GaussianCompressor(Compressor):
    """All entries independent N(0, 1/m): the matrix of the paper's Theorem 4.

    Use it to check a result against a second kind of A. It is stored (4 m d bytes), and decoding is slower than with
    :class:`~labelsense.HadamardCompressor`.

    Parameters
    ----------
    n_measurements, k, reserve, random_state
        See :class:`~labelsense.compress.base.Compressor`.

    Examples
    --------
    >>> from labelsense import GaussianCompressor
    >>> GaussianCompressor(n_measurements=50, random_state=0).fit(200).operator_.columns([3]).shape
    (50, 1)
    """

    def _make_operator(
        self, n_labels: int, k: float, frequencies: Any, random_state: np.random.RandomState
    ) -> DenseOperator:
        m = self._count_measurements(n_labels, k, n_labels, "the number of labels")
        self._refuse_large(n_labels, m)
        return DenseOperator(random_state.standard_normal((n_labels, m)) / np.sqrt(m))

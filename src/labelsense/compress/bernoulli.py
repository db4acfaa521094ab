"""Independent random signs."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelsense._storage import storable
from labelsense.compress.base import Compressor, DenseOperator


@storable()
class BernoulliCompressor(Compressor):
    """All entries ±1/sqrt(m) by independent fair coins: the matrix of the paper's comparison with SECOC.

    Stored like :class:`~labelsense.GaussianCompressor`, with columns of norm one.

    Parameters
    ----------
    n_measurements, k, reserve, random_state
        See :class:`~labelsense.compress.base.Compressor`.

    Examples
    --------
    >>> from labelsense import BernoulliCompressor
    >>> BernoulliCompressor(n_measurements=4, random_state=0).fit(10).operator_.columns([0]).ravel().tolist()
    [-0.5, -0.5, 0.5, -0.5]
    """

    def _make_operator(
        self, n_labels: int, k: float, frequencies: Any, random_state: np.random.RandomState
    ) -> DenseOperator:
        m = self._count_measurements(n_labels, k, n_labels, "the number of labels")
        self._refuse_large(n_labels, m)
        signs = random_state.randint(0, 2, size=(n_labels, m), dtype=np.int8)
        return DenseOperator(((2 * signs - 1) / np.sqrt(m)).astype(np.float32))

"""How sparse the labels are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelsense._typing import CSR


@dataclass(frozen=True)
class Sparsity:
    """How many labels there are, and how they are spread over the rows.

    Attributes
    ----------
    n_rows, n_labels : int
    mean, median, most : float
        Labels per row: the mean, the median, and the number that 95 % of the rows do not exceed.
    without_rows : int
        Labels that no row has.
    half : int
        How many of the most frequent labels make up half of all occurrences.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> Sparsity.of(sp.csr_array([[1, 0, 0], [1, 1, 0]]))
    Sparsity(n_rows=2, n_labels=3, mean=1.5, median=1.5, most=2.0, without_rows=1, half=1)
    """

    n_rows: int
    n_labels: int
    mean: float
    median: float
    most: float
    without_rows: int
    half: int

    @classmethod
    def of(cls, Y: CSR) -> Sparsity:
        """Count the labels of an indicator matrix."""
        per_row = np.diff(Y.indptr)
        counts = np.sort(np.bincount(Y.indices, minlength=Y.shape[1]))[::-1]
        return cls(
            n_rows=int(Y.shape[0]),
            n_labels=int(Y.shape[1]),
            mean=float(per_row.mean()),
            median=float(np.median(per_row)),
            most=float(np.quantile(per_row, 0.95, method="higher")),
            without_rows=int((counts == 0).sum()),
            half=int(np.searchsorted(np.cumsum(counts), counts.sum() / 2) + 1),
        )

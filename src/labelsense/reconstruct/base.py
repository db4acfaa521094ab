"""What every decoder offers: from predicted measurements h back to a sparse label vector."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from labelsense._typing import CSR, FloatArray
from labelsense._validation import check_count, check_measurements
from labelsense.compress.base import Operator

AUTO_NONZERO = 10


class Decoder(BaseEstimator, ABC):
    """Recovers sparse label vectors y with A y close to h.

    Parameters
    ----------
    n_nonzero : int or "auto"
        The size of the support that is returned, f(k) in the paper, at most m. "auto" is 10, or m or d if that is
        smaller.

    Attributes
    ----------
    learns : bool
        Whether the decoder has to be fitted on out-of-sample measurements first. The paper's decoders do not learn.
    guarantee : str
        The condition on A under which the paper calls the decoder valid for sparsity k.
    """

    learns: ClassVar[bool] = False
    guarantee: ClassVar[str]

    def __init__(self, n_nonzero: int | str = "auto") -> None:
        self.n_nonzero = n_nonzero

    @staticmethod
    @abstractmethod
    def output_sparsity(k: int) -> int:
        """Return f(k): the support size with which the paper's guarantee for sparsity k holds."""

    def prepare(self, operator: Operator) -> Any:
        """Return what decoding with this A needs; it serves any number of blocks and threads."""
        return operator.kernel()

    def decode(self, state: Any, H: Any) -> CSR:
        """Return the decoded label vectors of the rows of H (n, m), as CSR (n, d)."""
        return self.path(state, H, [self.support_size(state)])[0]

    def path(self, state: Any, H: Any, sizes: Sequence[int]) -> list[CSR]:
        """Return the decoded label vectors for each support size, in one run where the algorithm allows it."""
        H = check_measurements(H, state.n_measurements)
        if not len(sizes):
            raise ValueError("sizes must name at least one support size. Got none.")
        wanted = [check_count(size, "a support size", high=state.n_measurements, remedy=_TOO_MANY) for size in sizes]
        distinct = sorted({min(size, state.n_labels) for size in wanted})
        shape = (len(H), len(distinct), distinct[-1])
        index, value = np.zeros(shape, np.int64), np.zeros(shape, np.float32)
        count = np.zeros(shape[:2], np.int64)
        _, rank_deficient, not_converged = self._run(state, H, distinct, index, value, count)
        self._warn(len(H), rank_deficient, not_converged)
        solved = {
            size: _to_csr(index[:, i], value[:, i], count[:, i], state.n_labels) for i, size in enumerate(distinct)
        }
        return [solved[min(size, state.n_labels)] for size in wanted]

    def support_size(self, state: Any) -> int:
        """Return ``n_nonzero`` as a number, for this A."""
        if self.n_nonzero == "auto":
            return min(AUTO_NONZERO, state.n_measurements, state.n_labels)
        if isinstance(self.n_nonzero, str):
            raise ValueError(f"n_nonzero must be an integer or 'auto'. Got {self.n_nonzero!r}.")
        return check_count(self.n_nonzero, "n_nonzero", high=state.n_measurements, remedy=_TOO_MANY)

    @abstractmethod
    def _run(self, state: Any, H: FloatArray, sizes: list[int], *out: Any) -> list[int]:
        """Fill index, value and count; return the number of rows fitted, rank-deficient and not converged."""

    def _warn(self, n: int, rank_deficient: int, not_converged: int) -> None:
        name = type(self).__name__
        if rank_deficient:
            warnings.warn(
                f"{name}: {rank_deficient} of {n} rows got fewer labels than asked for, because the columns of A "
                "selected for them are linearly dependent. Lower n_nonzero or raise n_measurements.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if not_converged:
            warnings.warn(
                f"{name}: {not_converged} of {n} rows reached the limit of steps and hold the last solution. "
                "Lower n_nonzero or raise n_measurements.",
                ConvergenceWarning,
                stacklevel=4,
            )


_TOO_MANY = "A support larger than the number of measurements cannot be fitted: lower it or raise n_measurements."


def _to_csr(index: Any, value: Any, count: Any, n_labels: int) -> CSR:
    stored = np.arange(index.shape[1]) < count[:, None]
    indptr = np.concatenate([[0], np.cumsum(count)])
    kind = sp.get_index_dtype(maxval=max(n_labels, int(indptr[-1])))
    arrays = (value[stored], index[stored].astype(kind), indptr.astype(kind))
    return sp.csr_array(arrays, shape=(len(index), n_labels))

"""The base of the decoders that are compiled: they fill arrays, which become sparse matrices here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelsense import _kernels
from labelsense._blocks import row_blocks
from labelsense._typing import CSR, FloatArray, IntArray
from labelsense._validation import check_measurements
from labelsense.compress.base import Operator
from labelsense.reconstruct.base import Decoder

BLOCK_WORK = 2**26
AMONG_ROWS = 256


class Found(NamedTuple):
    """What a kernel fills, for each row and each support size."""

    labels: IntArray  # (n, n_sizes, largest)
    coefficients: FloatArray
    sizes: IntArray  # (n, n_sizes): how many of them there are

    def of_rows(self, rows: slice) -> Found:
        """Return what is to be filled for some rows."""
        return Found(self.labels[rows], self.coefficients[rows], self.sizes[rows])

    def to_csr(self, i: int, n_labels: int) -> CSR:
        """Return what was found for the support size number i."""
        labels, coefficients, sizes = (array[:, i] for array in self)
        stored = np.arange(labels.shape[1]) < sizes[:, None]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        kind = sp.get_index_dtype(maxval=max(n_labels, int(indptr[-1])))
        arrays = (coefficients[stored], labels[stored].astype(kind), indptr.astype(kind))
        return sp.csr_array(arrays, shape=(len(labels), n_labels))


class CompiledDecoder(Decoder):
    """A decoder whose ``_run`` calls a kernel. See :class:`~labelsense.reconstruct.Decoder`."""

    def prepare(self, operator: Operator) -> _kernels.Kernel:
        return operator.kernel()

    def decode(self, state: _kernels.Kernel, H: Any) -> CSR:
        return self.path(state, H, [self.support_size(state)])[0]

    def decode_among(self, operator: Operator, state: Any, H: Any, starts: IntArray, labels: Any) -> FloatArray:
        if self.learns:
            return super().decode_among(operator, state, H, starts, labels)
        values = np.zeros(len(labels), np.float32)
        for rows in row_blocks(len(H), AMONG_ROWS):
            inner = starts[rows.start : rows.stop + 1]
            some = _kernels.among(state, inner - inner[0], np.ascontiguousarray(labels[inner[0] : inner[-1]], np.int32))
            if some.n_labels:
                found = self.decode(some, H[rows])
                row = np.repeat(np.arange(len(inner) - 1), np.diff(found.indptr))
                values[inner[row] + found.indices] = found.data
        return values

    def path(self, state: _kernels.Kernel, H: Any, sizes: Sequence[int]) -> list[CSR]:
        H = check_measurements(H, state.n_measurements)
        wanted = self._check_sizes(state, sizes)
        distinct = sorted(set(wanted))
        shape = (len(H), len(distinct), distinct[-1])
        found = Found(np.zeros(shape, np.int64), np.zeros(shape, np.float32), np.zeros(shape[:2], np.int64))
        blocks = row_blocks(len(H), _block_rows(state))
        outcomes = [self._run(state, H[rows], distinct, found.of_rows(rows)) for rows in blocks]
        self._tell([sum(counts) for counts in zip(*outcomes, strict=True)])
        solved = {size: found.to_csr(i, state.n_labels) for i, size in enumerate(distinct)}
        return [solved[size] for size in wanted]

    @abstractmethod
    def _run(self, state: _kernels.Kernel, H: FloatArray, sizes: list[int], found: Found) -> list[int]:
        """Fill ``found`` for these support sizes, ascending; return how many rows had each outcome."""


def _block_rows(state: _kernels.Kernel) -> int:
    """Return how many rows to decode between two looks at Ctrl-C: a stored A costs d m a step, others about d log d."""
    if isinstance(state, _kernels.Among):
        return AMONG_ROWS  # all
    work = state.n_labels * (state.n_measurements if isinstance(state, _kernels.Dense) else 16)
    return max(1, min(256, BLOCK_WORK // work))

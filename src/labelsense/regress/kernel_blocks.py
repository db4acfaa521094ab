"""Kernel ridge beyond memory: conjugate gradients on strips of the kernel matrix, kept while there is room."""

from __future__ import annotations

import numpy as np

from labelsense._blocks import row_blocks
from labelsense._gram import gram, multiply
from labelsense._progress import report_progress
from labelsense._typing import FloatArray
from labelsense.regress import lapack
from labelsense.regress.conjugate_gradients import add_ridge, conjugate_gradients
from labelsense.regress.design import MemoryDesign
from labelsense.regress.kernels import Kernel, cross_kernel

STRIP_ROWS = 1024
LANDMARKS = 1500  # of the preconditioner: it takes care of as many of the largest eigenvalues


class KernelStrips:
    """The kernel matrix of n rows as strips of its lower triangle: kept within a budget, made anew beyond it."""

    def __init__(self, kernel: Kernel, design: MemoryDesign, budget: float) -> None:
        self.kernel, self.design, self.budget = kernel, design, budget
        self._kept: dict[int, FloatArray] = {}

    def times(self, P: FloatArray) -> FloatArray:
        """Return K P, (n, m)."""
        out = np.zeros_like(P)
        for rows in row_blocks(len(P), STRIP_ROWS):
            report_progress("product with the kernel", rows.start / len(P))
            strip = self._strip(rows)
            out[rows] += multiply(strip, P[: rows.stop])
            out[: rows.start] += multiply(strip[:, : rows.start].T, P[rows])
        return out

    def _strip(self, rows: slice) -> FloatArray:
        """Return the rows of K up to and with the diagonal block."""
        if rows.start not in self._kept:
            strip = cross_kernel(self.kernel, self.design.rows(rows), self.design)[:, : rows.stop]
            if sum(kept.nbytes for kept in self._kept.values()) + strip.nbytes > self.budget:
                return strip
            self._kept[rows.start] = np.ascontiguousarray(strip)
        return self._kept[rows.start]


class LowRankPreconditioner:
    """The inverse of C C' + alpha I, where C C' is the part of K that some random rows span."""

    def __init__(self, kernel: Kernel, design: MemoryDesign, alpha: float, random: np.random.RandomState) -> None:
        n = design.shape[0]
        chosen = np.sort(random.permutation(n)[: min(LANDMARKS, n)])
        landmarks = design.rows(chosen)
        core = cross_kernel(kernel, landmarks, landmarks)
        core[np.diag_indices_from(core)] += 1e-4 * float(core.diagonal().mean())
        lapack.cholesky(core)
        C = np.concatenate(
            [cross_kernel(kernel, design.rows(rows), landmarks) for rows in row_blocks(n, STRIP_ROWS)]
        ).T.copy()
        lapack.forward(core, C)  # C', so that C C' = K_nM K_MM^-1 K_Mn
        self.transposed, self.alpha = C, np.float32(alpha)
        self.inner = gram(C.T)
        self.inner[np.diag_indices_from(self.inner)] += self.alpha
        lapack.cholesky(self.inner)

    def solve(self, R: FloatArray) -> FloatArray:
        """Return (C C' + alpha I)^-1 R, by the identity of Woodbury."""
        projected = multiply(self.transposed, R)
        lapack.solve(self.inner, projected)
        return ((R - multiply(self.transposed.T, projected)) / self.alpha).astype(np.float32, copy=False)


def solve_by_strips(
    strips: KernelStrips, Z: FloatArray, alpha: float, tol: float, max_iter: int, random: np.random.RandomState
) -> tuple[FloatArray, int]:
    """Return U with ||(K + alpha I) U - Z|| <= tol ||Z||, column by column, and the number of steps."""
    preconditioner = LowRankPreconditioner(strips.kernel, strips.design, alpha, random)
    return conjugate_gradients(lambda P: add_ridge(strips.times(P), P, alpha), Z, preconditioner.solve, tol, max_iter)

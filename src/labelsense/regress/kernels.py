"""Kernels: functions of the inner product of two rows and of their lengths."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from sklearn.base import BaseEstimator, clone

from labelsense._blocks import map_rows
from labelsense._progress import report_progress
from labelsense._storage import storable
from labelsense._typing import FloatArray
from labelsense._validation import check_choice, check_count, check_real
from labelsense.errors import InputError
from labelsense.regress.design import MemoryDesign

KERNEL_ROWS = 256  # rows of a block of the kernel matrix


class Kernel(BaseEstimator, ABC):
    """k(x, x') as a function of the inner product and the squared lengths. ``RBFKernel() + CosineKernel()`` adds."""

    @abstractmethod
    def evaluate(self, inner: FloatArray, squares: FloatArray, other_squares: FloatArray) -> FloatArray:
        """Return the kernel matrix of a block: ``inner`` (r, c) holds inner products and may be overwritten."""

    @abstractmethod
    def check(self) -> None:
        """Refuse bad parameters."""

    def __add__(self, other: Kernel) -> SumKernel:
        return SumKernel([*_terms(self), *_terms(other)])


@storable()
class RBFKernel(Kernel):
    """exp(-gamma ||x - x'||^2). On rows of unit length, gamma around 1 is a good start.

    Parameters
    ----------
    gamma : float
        The inverse squared width.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsense import RBFKernel
    >>> one = np.ones(1, np.float32)
    >>> RBFKernel(gamma=0.5).evaluate(np.zeros((1, 1), np.float32), one, one).round(3)  # two orthogonal unit rows
    array([[0.368]], dtype=float32)
    """

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def check(self) -> None:
        check_real(self.gamma, "gamma", low=0)

    def evaluate(self, inner: FloatArray, squares: FloatArray, other_squares: FloatArray) -> FloatArray:
        inner *= 2
        inner -= squares[:, None]
        inner -= other_squares
        np.minimum(inner, 0, out=inner)  # a squared distance of rounding
        inner *= np.float32(self.gamma)
        return np.exp(inner, out=inner)


@storable()
class PolynomialKernel(Kernel):
    """(x'x' + offset)^degree; degree 1 and offset 0 is linear.

    Parameters
    ----------
    degree : int
    offset : float

    Examples
    --------
    >>> import numpy as np
    >>> from labelsense import PolynomialKernel
    >>> PolynomialKernel(degree=2, offset=1.0).evaluate(np.array([[2.0]], np.float32), None, None)
    array([[9.]], dtype=float32)
    """

    def __init__(self, degree: int = 2, offset: float = 1.0) -> None:
        self.degree = degree
        self.offset = offset

    def check(self) -> None:
        check_count(self.degree, "degree")
        check_real(self.offset, "offset", low=0, remedy="A negative offset does not give a kernel.")

    def evaluate(self, inner: FloatArray, squares: FloatArray, other_squares: FloatArray) -> FloatArray:
        inner += np.float32(self.offset)
        return np.power(inner, self.degree, out=inner)


@storable()
class CosineKernel(Kernel):
    """The cosine of the angle between two rows; 0 with an empty one.

    Examples
    --------
    >>> from labelsense import CosineKernel, KernelRidgeLearner, RBFKernel
    >>> KernelRidgeLearner(RBFKernel(2.0) + CosineKernel()).fit([[0.0, 1.0], [1.0, 0.0]], [[1.0], [2.0]]).alpha_
    0.3
    """

    def check(self) -> None:
        pass

    def evaluate(self, inner: FloatArray, squares: FloatArray, other_squares: FloatArray) -> FloatArray:
        for lengths, shape in ((squares, (-1, 1)), (other_squares, (1, -1))):
            inverse = np.divide(1, np.sqrt(lengths), out=np.zeros_like(lengths), where=lengths > 0)
            inner *= inverse.reshape(shape)
        return inner


@storable()
class SumKernel(Kernel):
    """The sum of several kernels.

    Parameters
    ----------
    kernels : list of Kernel
    """

    def __init__(self, kernels: list[Kernel]) -> None:
        self.kernels = kernels

    def check(self) -> None:
        for kernel in self.kernels:
            kernel.check()

    def evaluate(self, inner: FloatArray, squares: FloatArray, other_squares: FloatArray) -> FloatArray:
        total = np.zeros_like(inner)
        for kernel in self.kernels:
            total += kernel.evaluate(inner.copy(), squares, other_squares)
        return total


def _terms(kernel: Kernel) -> list[Kernel]:
    return kernel.kernels if isinstance(kernel, SumKernel) else [kernel]


KERNELS = {"rbf": RBFKernel, "polynomial": PolynomialKernel, "cosine": CosineKernel}


def choose_kernel(kernel: Kernel | str, design: MemoryDesign) -> Kernel:
    """Return the kernel for some rows, given one or its name: an RBF kernel is as wide as rows are long."""
    if isinstance(kernel, Kernel):
        chosen: Kernel = clone(kernel)
    else:
        kind = check_choice(kernel, "kernel", KERNELS)
        mean_square = max(float(design.row_squares().mean()), 1e-12)
        chosen = RBFKernel(1 / mean_square) if kind is RBFKernel else kind()
    chosen.check()
    check_kernel(chosen, design)
    return chosen


def check_kernel(kernel: Kernel, design: MemoryDesign) -> None:
    """Refuse rows for which the kernel overflows: a kernel matrix has its largest entry on the diagonal."""
    longest = design.squared_lengths.max(keepdims=True)
    value = float(kernel.evaluate(longest[:, None].copy(), longest, longest)[0, 0])
    if not np.isfinite(value):
        raise InputError(
            f"X is too large for {kernel}: rows of length {np.sqrt(longest[0]):.2g} have the kernel {value}. "
            "Scale the rows to length 1, for example with sklearn.preprocessing.Normalizer."
        )


def kernel_matrix(kernel: Kernel, design: MemoryDesign) -> FloatArray:
    """Return the kernel matrix of the rows, (n, n). Only its lower triangle is right."""
    K, squares = design.outer_gram(), design.squared_lengths

    def evaluate(rows: slice) -> None:
        report_progress("kernel matrix", rows.start / len(K))
        block = np.ascontiguousarray(K[rows, : rows.stop])
        K[rows, : rows.stop] = kernel.evaluate(block, squares[rows], squares[: rows.stop])

    map_rows(evaluate, len(K), KERNEL_ROWS, -1)
    return K


def cross_kernel(kernel: Kernel, left: MemoryDesign, right: MemoryDesign) -> FloatArray:
    """Return the kernel matrix between two sets of rows."""
    return kernel.evaluate(left.times_rows_of(right), left.squared_lengths, right.squared_lengths)

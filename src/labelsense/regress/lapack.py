"""Cholesky factorisation in place, in blocks, so that Ctrl-C works and nothing is copied.

SciPy's own wrappers hold the interpreter for the whole call, and copy parts of arrays. Here the same BLAS and LAPACK
routines, which SciPy exports for Cython, are called on blocks through ctypes, which lets go of the interpreter.
Matrices are C-contiguous; a lower triangle in C order is the upper triangle that LAPACK sees.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from scipy.linalg import cython_blas, cython_lapack

from labelsense._blocks import row_blocks
from labelsense._progress import report_progress

BLOCK = 1024
RIGHT_HAND_SIDES = 512  # solved for at a time
BLOCK_WORK = 2**35  # multiplications in one call, about
UPDATE_BYTES = 2**26  # of the rows in one call of syrk: OpenBLAS 0.3.30 crashes on 2 threads from about twice that on


class NotPositiveDefiniteError(ArithmeticError):
    """The matrix has no Cholesky factor."""


def cholesky(A: Any) -> None:
    """Overwrite the lower triangle of a symmetric positive definite A by L, with A = L L'. The rest is not touched."""
    n = len(A)
    call = _routines(A)
    block = min(_width(n, BLOCK), max(1, UPDATE_BYTES // (n * A.itemsize)))
    for j in range(0, n, block):
        size = min(block, n - j)
        rest = n - j - size
        report_progress("Cholesky factor", 1 - ((n - j) / n) ** 3)
        call("potrf", "U", size, A[j:, j:], n)
        if rest:
            below = A[j + size :, j:]
            call("trsm", "L", "U", "T", "N", size, rest, 1.0, A[j:, j:], n, below, n)
            call("syrk", "U", "T", rest, size, -1.0, below, n, 1.0, A[j + size :, j + size :], n)


def solve(L: Any, B: Any) -> None:
    """Overwrite B (n, m) by the solution of L L' X = B."""
    _triangular(L, B, "N")
    _triangular(L, B, "T")


def forward(L: Any, B: Any) -> None:
    """Overwrite B (n, m) by the solution of L X = B."""
    _triangular(L, B, "N")


def invert(L: Any) -> None:
    """Overwrite the lower triangle of L by that of (L L')^-1: first by L^-1, then by its transpose times itself.

    Block by block as LAPACK's trtri and lauum do it; a block of rows here is a block of columns to them.
    """
    n, call = len(L), _routines(L)
    blocks = list(row_blocks(n, _width(n, BLOCK)))
    for rows in blocks:
        j, size = rows.start, rows.stop - rows.start
        if j:
            call("trmm", "L", "U", "N", "N", j, size, 1.0, L, n, L[j:], n)
            call("trsm", "R", "U", "N", "N", j, size, -1.0, L[j:, j:], n, L[j:], n)
        call("trtri", "U", "N", size, L[j:, j:], n)
    for rows in blocks:
        j, size, rest = rows.start, rows.stop - rows.start, n - rows.stop
        if j:
            call("trmm", "R", "U", "T", "N", j, size, 1.0, L[j:, j:], n, L[j:], n)
        call("lauum", "U", size, L[j:, j:], n)
        if rest:
            below = L[rows.stop :, j:]
            if j:
                call("gemm", "N", "T", j, size, rest, 1.0, L[rows.stop :], n, below, n, 1.0, L[j:], n)
            call("syrk", "U", "N", size, rest, 1.0, below, n, 1.0, L[j:, j:], n)


def subtract_outer(A: Any, x: Any, scale: float) -> None:
    """Subtract scale x x' from the lower triangle of A."""
    _routines(A)("syr", "U", len(A), -float(scale), np.ascontiguousarray(x, A.dtype), 1, A, len(A))


def largest_eigenvalue(A: Any) -> float:
    """Return about the largest eigenvalue of a symmetric A by its lower triangle: eight steps of the power method."""
    n = len(A)
    x, y = np.ones(n, A.dtype) / np.sqrt(n).astype(A.dtype), np.zeros(n, A.dtype)
    size = 0.0
    for _ in range(8):
        _routines(A)("symv", "U", n, 1.0, A, n, x, 1, 0.0, y, 1)
        size = float(np.linalg.norm(y))
        if size == 0:
            break
        x, y = y / y.dtype.type(size), x
    return size


def reciprocal_condition(L: Any, norm: float) -> float:
    """Return an estimate of 1 / (norm * ||(L L')^-1||), for norm the 1-norm of L L'."""
    n = len(L)
    result = np.zeros(1, L.dtype)
    _routines(L)("pocon", "U", n, L, n, float(norm), result, np.empty(3 * n, L.dtype), np.empty(n, np.int32))
    return float(result[0])


def _triangular(L: Any, B: Any, transposed: str) -> None:
    n, m = B.shape
    if not B.flags.c_contiguous or B.dtype != L.dtype:
        raise ValueError("Right-hand sides must be C-contiguous and of the precision of the factor.")
    call = _routines(L)
    step = _width(n, RIGHT_HAND_SIDES)
    for first in range(0, m, step):
        width = min(step, m - first)
        call("trsm", "R", "U", transposed, "N", width, n, 1.0, L, n, B[:, first:], m)


def _width(n: int, most: int) -> int:
    """Return how many rows or columns to multiply by n^2 numbers between two looks at Ctrl-C."""
    return max(1, min(most, max(16, BLOCK_WORK // max(1, n) ** 2)))


def _routines(A: Any) -> Any:
    """Return a function that calls a routine of BLAS or LAPACK in the precision of A."""
    if not A.flags.c_contiguous:
        raise ValueError("A matrix that is factored in place must be C-contiguous.")
    prefix = {"f": "s", "d": "d"}[A.dtype.char]
    real = {"f": ctypes.c_float, "d": ctypes.c_double}[A.dtype.char]

    def call(name: str, *arguments: Any) -> None:
        information = ctypes.c_int(0)
        passed = [_pass(argument, real) for argument in arguments]
        if name in ("potrf", "pocon", "trtri", "lauum"):
            passed.append(ctypes.byref(information))
        _function(prefix + name)(*passed)
        if information.value != 0:
            raise NotPositiveDefiniteError(f"{prefix}{name} stopped with status {information.value}")

    return call


def _pass(value: Any, real: Any) -> Any:
    if isinstance(value, str):
        return ctypes.c_char_p(value.encode())
    if isinstance(value, float):
        return ctypes.byref(real(value))
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    return ctypes.byref(ctypes.c_int(value))


_get_name = ctypes.pythonapi.PyCapsule_GetName
_get_name.restype, _get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _function(name: str) -> Any:
    for module in (cython_blas, cython_lapack):
        if name in module.__pyx_capi__:
            capsule = module.__pyx_capi__[name]
            return ctypes.CFUNCTYPE(None)(_get_pointer(capsule, _get_name(capsule)))
    raise AttributeError(name)

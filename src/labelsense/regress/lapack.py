"""Cholesky factorisation in place, in blocks, so that Ctrl-C works and nothing is copied.

SciPy's own wrappers hold the interpreter for the whole call, and copy parts of arrays. Here the same BLAS and LAPACK
routines, which SciPy exports for Cython, are called on blocks through ctypes, which lets go of the interpreter.
Blocks are shared out among our threads: those of OpenBLAS go on turning for a while after every call, and take time
from all others.

Matrices are C-contiguous; a lower triangle in C order is the upper triangle that LAPACK sees.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from scipy.linalg import cython_blas, cython_lapack

from labelsense._blocks import count_threads, map_rows, map_stream, plain_algebra, row_blocks
from labelsense._progress import report_progress

BLOCK = 256  # rows or columns of one call, which one thread works on
RIGHT_HAND_SIDES = 64  # solved for by one thread at a time


class NotPositiveDefiniteError(ArithmeticError):
    """The matrix has no Cholesky factor."""


def cholesky(A: Any) -> None:
    """Overwrite the lower triangle of a symmetric positive definite A by L, with A = L L'. The rest is not touched."""
    n, call = len(A), _routines(A)
    with plain_algebra:
        for j in range(0, n, BLOCK):
            size = min(BLOCK, n - j)
            report_progress("Cholesky factor", 1 - ((n - j) / n) ** 3)
            call("potrf", "U", size, A[j:, j:], n)
            _eliminate(A, j, size)


def _eliminate(A: Any, j: int, size: int) -> None:
    """Take out of the rows below some that are factored, from j on, what these explain."""
    n, call = len(A), _routines(A)
    first = j + size

    def divide(rows: slice) -> None:
        height, mine = rows.stop - rows.start, A[first + rows.start :, j:]
        call("trsm", "L", "U", "T", "N", size, height, 1.0, A[j:, j:], n, mine, n)

    def subtract(rows: slice) -> None:
        top, height = first + rows.start, rows.stop - rows.start
        mine = A[top:, j:]
        if rows.start:
            call("gemm", "T", "N", rows.start, height, size, -1.0, A[first:, j:], n, mine, n, 1.0, A[top:, first:], n)
        call("syrk", "U", "T", height, size, -1.0, mine, n, 1.0, A[top:, top:], n)

    for work in (divide, subtract):
        map_rows(work, n - first, BLOCK, -1)


def solve(L: Any, B: Any) -> None:
    """Overwrite B (n, m) by the solution of L L' X = B."""
    _triangular(L, B, "NT")


def forward(L: Any, B: Any) -> None:
    """Overwrite B (n, m) by the solution of L X = B."""
    _triangular(L, B, "N")


def invert(L: Any) -> None:
    """Overwrite the lower triangle of L by that of (L L')^-1. The rest is not touched.

    Its columns from j on are, below j, the inverse of what is right of and below j, so they can take the place of
    those of L as soon as all before them are known.
    """
    n, call = len(L), _routines(L)

    def columns(block: slice) -> Any:
        rest, width = n - block.start, block.stop - block.start
        X = np.eye(rest, width, dtype=L.dtype)
        for transposed in "NT":
            corner = L[block.start :, block.start :]
            call("trsm", "R", "U", transposed, "N", width, rest, 1.0, corner, n, X, width)
        return X

    blocks = list(row_blocks(n, BLOCK))
    with plain_algebra:
        for block, X in zip(blocks, map_stream(columns, blocks, count_threads()), strict=True):
            width = block.stop - block.start
            L[block.stop :, block] = X[width:]
            below = np.tril_indices(width)
            L[block, block][below] = X[:width][below]


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


def _triangular(L: Any, B: Any, sides: str) -> None:
    """Solve by L ("N") or L' ("T"), one after the other."""
    n, m = B.shape
    if not B.flags.c_contiguous or B.dtype != L.dtype:
        raise ValueError("Right-hand sides must be C-contiguous and of the precision of the factor.")
    call = _routines(L)

    def divide(columns: slice) -> None:
        for side in sides:
            width = columns.stop - columns.start
            call("trsm", "R", "U", side, "N", width, n, 1.0, L, n, B[:, columns.start :], m)

    with plain_algebra:
        map_rows(divide, m, RIGHT_HAND_SIDES, -1)


def _routines(A: Any) -> Any:
    """Return a function that calls a routine of BLAS or LAPACK in the precision of A."""
    if not A.flags.c_contiguous:
        raise ValueError("A matrix that is factored in place must be C-contiguous.")
    prefix = {"f": "s", "d": "d"}[A.dtype.char]
    real = {"f": ctypes.c_float, "d": ctypes.c_double}[A.dtype.char]

    def call(name: str, *arguments: Any) -> None:
        information = ctypes.c_int(0)
        passed = [_pass(argument, real) for argument in arguments]
        if name in ("potrf", "pocon"):
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

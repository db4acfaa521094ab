"""Products of a dense matrix with itself, and other long work on it, in blocks.

For ``A.T @ A`` NumPy calls the syrk of BLAS. That of OpenBLAS 0.3.30 and 0.3.31 crashes on several threads if A is wide
and has more than about 120 MB; and nobody hears Ctrl-C during one long call. So such products are made here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelsense._blocks import row_blocks

STRIP = 1024  # columns of A that are multiplied by those before them in one call
ROWS = 2048  # and how many of their rows


def gram(A: Any, kind: Any = None) -> Any:
    """Return A'A, (p, p), of a dense A (n, p), in its precision or another.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsense._gram import gram
    >>> gram(np.array([[1.0, 2.0]]))
    array([[1., 2.],
           [2., 4.]])
    """
    G = np.zeros((A.shape[1], A.shape[1]), kind or A.dtype)
    add_gram(G, A)
    mirror(G)
    return G


def add_gram(G: Any, A: Any) -> None:
    """Add A'A to the lower triangle of G, in its precision. Several blocks of rows are summed in double."""
    for strip in row_blocks(len(G), STRIP):
        for columns in (slice(0, strip.start), strip):
            block = G[strip, columns]
            total = block if G.dtype == np.float64 or len(A) <= ROWS else np.zeros(block.shape)
            for rows in row_blocks(len(A), ROWS):
                total += _product(A[rows, strip], A[rows, columns], columns is strip, G.dtype)
            if total is not block:
                block += total


def mirror(G: Any) -> None:
    """Overwrite the upper triangle of G by the lower one."""
    for strip in row_blocks(len(G), STRIP):
        G[: strip.start, strip] = G[strip, : strip.start].T
        square = G[strip, strip]
        square[:] = np.tril(square) + np.tril(square, -1).T


def copied(A: Any, kind: Any = None) -> Any:
    """Return a copy of A, in another precision if given: a gigabyte takes longer than one may wait for Ctrl-C."""
    copy = np.empty(A.shape, kind or A.dtype)
    for rows in row_blocks(len(A), ROWS):
        copy[rows] = A[rows]
    return copy


def _product(left: Any, right: Any, same: bool, kind: Any) -> Any:
    left = left.astype(kind, copy=False)
    right = left if same else right.astype(kind, copy=False)  # if it is the same array, BLAS does half the work
    return left.T @ right

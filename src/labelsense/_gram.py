"""Products of a dense matrix with itself and others, and other long work on it, in blocks, on our threads.

For ``A.T @ A`` NumPy calls the syrk of BLAS. That of OpenBLAS 0.3.30 and 0.3.31 crashes on several threads if A is wide
and has more than about 120 MB; and nobody hears Ctrl-C during one long call. So such products are made here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelsense._blocks import map_rows, plain_algebra, row_blocks

STRIP = 256  # columns of A that one thread multiplies by those before them
ROWS = 512  # and how many of their rows
WORK = 2**34  # multiplications between two looks at Ctrl-C


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
    strips = list(row_blocks(len(G), STRIP))[::-1]  # the longest first

    def add(places: slice) -> None:
        strip = strips[places.start]
        for columns in (slice(0, strip.start), strip):
            block = G[strip, columns]
            total = block if G.dtype == np.float64 or len(A) <= ROWS else np.zeros(block.shape)
            for rows in row_blocks(len(A), ROWS):
                total += _product(A[rows, strip], A[rows, columns], columns is strip, G.dtype)
            if total is not block:
                block += total

    with plain_algebra:
        map_rows(add, len(strips), 1, -1)


def multiply(A: Any, B: Any) -> Any:
    """Return A B, in single precision, a block of its rows on each thread."""
    C = np.empty((len(A), B.shape[1]), np.float32)

    def fill(rows: slice) -> None:
        np.matmul(A[rows], B, out=C[rows])

    with plain_algebra:
        map_rows(fill, len(A), max(16, min(STRIP, WORK // max(1, B.size))), -1)
    return C


def mirror(G: Any) -> None:
    """Overwrite the upper triangle of G by the lower one."""

    def turn(strip: slice) -> None:
        G[: strip.start, strip] = G[strip, : strip.start].T
        square = G[strip, strip]
        square[:] = np.tril(square) + np.tril(square, -1).T

    map_rows(turn, len(G), STRIP, -1)


def copied(A: Any, kind: Any = None) -> Any:
    """Return a copy of A, in another precision if given: a gigabyte takes longer than one may wait for Ctrl-C."""
    copy = np.empty(A.shape, kind or A.dtype)

    def fill(rows: slice) -> None:
        copy[rows] = A[rows]

    map_rows(fill, len(A), ROWS, -1)
    return copy


def _product(left: Any, right: Any, same: bool, kind: Any) -> Any:
    left = left.astype(kind, copy=False)
    right = left if same else right.astype(kind, copy=False)  # if it is the same array, BLAS does half the work
    return left.T @ right

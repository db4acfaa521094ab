"""Whether rows come in an order that matters: in time, or in runs of related ones."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.utils import check_random_state

from labelsense._typing import CSR, DoubleArray, IntArray

HELD_OUT = {"auto": None, "rows": None, "last": None}
LEAST_ROWS = 50  # with fewer, nothing can be told
LAST, MOST_LAST = 0.2, 2000  # the share of rows that are the last ones, and how many at most
PAIRS = 2000  # of rows that are compared
DENSE_NUMBERS = 2**18  # in rows that are compared, if they are dense
COPIES = 0.2  # how much more alike rows next to each other are, from which on they come in runs
ALIKE, DIFFERENCE, ERRORS = 1.5, 0.01, 3  # times as alike as others, that much more, and so many standard errors more


class HeldOut(NamedTuple):
    """Whether the last rows are held out beside rows at random, and how rows are ordered, in words."""

    last: bool = False
    order: str | None = None


def count_last(n: int) -> int:
    """Return how many of n rows are the last ones."""
    return min(int(LAST * n), MOST_LAST)


def describe_order(X: Any, Y: CSR, random_state: Any) -> str | None:
    """Return in words how rows are ordered, or None if their order seems not to matter.

    It matters where rows next to each other have more in common than rows at random (runs: one source, one day), or
    the last rows more among themselves than with those before (time). What they have in common is the cosine of their
    features, or of their labels. A precision measured on rows at random then overstates what new rows will get.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> Y = sp.csr_array(np.repeat(np.eye(20), 10, axis=0))
    >>> describe_order(sp.csr_array((200, 5)), Y, random_state=0)
    'rows next to each other have labels in common (cosine 0.90, of rows at random 0.03)'
    """
    pairs = draw_pairs(X.shape[0], random_state)
    return None if pairs is None else compare_pairs(X, Y, pairs)


def come_in_runs(X: Any, random_state: Any) -> bool:
    """Tell whether rows next to each other have so many features in common that they give each other away."""
    pairs = draw_pairs(X.shape[0], random_state)
    if pairs is None:
        return False
    near, far = _cosines(X, *pairs.near), _cosines(X, *pairs.far)
    return _more_alike(near, far) and float(near.mean() - far.mean()) > COPIES


class Pairs(NamedTuple):
    """Rows to compare: each is the first or the second of a pair, in four cases."""

    near: tuple[IntArray, IntArray]  # next to each other
    far: tuple[IntArray, IntArray]  # at random
    late: tuple[IntArray, IntArray]  # both among the last rows
    before: tuple[IntArray, IntArray]  # the second one before these

    def rows(self) -> IntArray:
        """Return all rows, ascending."""
        return np.unique(np.concatenate([rows for pair in self for rows in pair]))

    def among(self, rows: IntArray) -> Pairs:
        """Return where they are in a matrix of these rows alone."""
        return Pairs(*((np.searchsorted(rows, a), np.searchsorted(rows, b)) for a, b in self))


def draw_pairs(n: int, random_state: Any) -> Pairs | None:
    """Return pairs of n rows that tell how these are ordered; None if they are too few to tell."""
    if n < LEAST_ROWS:
        return None
    random = check_random_state(random_state)
    first = random.permutation(n - 1)[:PAIRS]
    others = random.randint(1, n, len(first))
    cut = n - count_last(n)
    late, later = random.randint(cut, n, len(first)), random.randint(1, n - cut, len(first))
    before = random.randint(cut, size=len(first))
    return Pairs(
        (first, first + 1),
        (first, (first + others) % n),
        (late, cut + (late - cut + later) % (n - cut)),
        (late, before),
    )


def compare_pairs(X: Any, Y: CSR, pairs: Pairs) -> str | None:
    """Return what :func:`describe_order` does."""
    for name, M in (("features", X), ("labels", Y)):
        near, far, late, before = (_cosines(M, *pair) for pair in pairs)
        if _more_alike(near, far):
            return (
                f"rows next to each other have {name} in common (cosine {near.mean():.2f}, of rows at random "
                f"{far.mean():.2f})"
            )
        if _more_alike(late, before):
            return (
                f"the last rows have more {name} in common (cosine {late.mean():.2f}) than with those before "
                f"({before.mean():.2f})"
            )
    return None


def _cosines(M: Any, rows: IntArray, others: IntArray) -> DoubleArray:
    if not sp.issparse(M):
        few = slice(max(LEAST_ROWS, DENSE_NUMBERS // M.shape[1]))
        rows, others = rows[few], others[few]
    A, B = normalize(M[rows]), normalize(M[others])
    return np.asarray((A.multiply(B) if sp.issparse(A) else A * B).sum(axis=1), np.float64).ravel()


def _more_alike(near: DoubleArray, far: DoubleArray) -> bool:
    error = math.sqrt((near.var() + far.var()) / len(near))
    return bool(near.mean() > ALIKE * far.mean() + DIFFERENCE + ERRORS * error)

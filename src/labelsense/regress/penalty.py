"""The search for a penalty, or anything else on a grid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense._progress import log


def errors_downhill(error: Callable[[float], float], grid: list[float]) -> dict[float, float]:
    """Return the errors of the penalties that a walk downhill from the middle of a grid has met, ascending."""
    found: dict[float, float] = {}

    def at(place: int) -> float:
        alpha = grid[place]
        if alpha not in found:
            found[alpha] = error(alpha)
            log("alpha %g: mean squared out-of-sample error %.6g", alpha, found[alpha])
        return found[alpha]

    descend(at, len(grid))
    return dict(sorted(found.items()))


def descend(error: Callable[[int], float], size: int, start: int | None = None) -> int:
    """Return the place of the least error, walking downhill from the middle of a grid, or from another place.

    The error of a penalty is nearly always convex in its logarithm.
    """
    here = size // 2 if start is None else start
    for direction in (-1, 1):
        while 0 <= here + direction < size and error(here + direction) < error(here):
            here += direction
    error(here)
    return here


def mean_square(X: Any) -> float:
    """Return the mean squared length of a row, which is the scale of penalties."""
    values = X.data if sp.issparse(X) else X
    return max(float(np.square(values, dtype=np.float64).sum() / max(1, X.shape[0])), 1e-12)

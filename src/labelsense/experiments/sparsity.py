"""How sparse the targets are: the paper's exploratory analysis."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FIT_AROUND_TEN = (5, 20)  # a factor of two to both sides


def relative_tails(P: Any) -> NDArray[np.float64]:
    """Return eps(k, p) = sum of p_(i)^2 over i > k, divided by |p|^2, for k = 1 to d, of each row p of P.

    Predictions are clipped to [0, 1] first. A row that is nothing but zeros then has no direction and is left out.

    Examples
    --------
    >>> relative_tails([[0.6, 0.8, -3.0]]).round(2).tolist()
    [[0.36, 0.0, 0.0]]
    """
    squares = np.sort(np.clip(np.asarray(P, dtype=np.float64), 0, 1) ** 2, axis=1)  # the least first: exact tails
    sums = np.cumsum(squares, axis=1)
    sums = sums[sums[:, -1] > 0]
    tails = np.hstack([sums[:, -2::-1], np.zeros((len(sums), 1))])
    return tails / sums[:, -1:]


def exponent(curve: Any, low: int, high: int) -> float:
    """Return r such that the curve over k = 1, 2, ... is about k^-r for k from low to high.

    Examples
    --------
    >>> curve = [3 * k**-0.5 for k in range(1, 50)]
    >>> round(exponent(curve, 5, 20), 6)
    0.5
    """
    ks = np.unique(np.geomspace(low, min(high, len(curve)), 50).round().astype(int))
    values = np.asarray(curve, dtype=np.float64)[ks - 1]
    positive = values > 0
    return float(-np.polyfit(np.log(ks[positive]), np.log(values[positive]), 1)[0])

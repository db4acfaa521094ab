"""What a fit will cost: seconds and bytes, by what the code really does and allocates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from labelsense._typing import CSR
from labelsense.regress import Learner
from labelsense.regress.base import data_bytes

INTERPRETER = 205e6  # Python with this package and what it imports, the buffers of BLAS included (measured)


@dataclass(frozen=True)
class Costs:
    """What the recommended fit takes.

    Attributes
    ----------
    solver : str
        How the regressions will be solved.
    fit_seconds : float
        For all rows, refinement included; the choice of settings comes to it.
    predict_seconds : float
        For a thousand rows.
    model_bytes : int or None
        The size of the coefficients of the regressions, in memory or in a file. None where the learner does not say.
    peak_bytes : int or None
        The peak memory of a process that holds X and Y and fits the regressions: interpreter, data and work.
    """

    solver: str
    fit_seconds: float
    predict_seconds: float
    model_bytes: int | None
    peak_bytes: int | None


def fit_bytes(learner: Learner, X: Any, m: int) -> int | None:
    """Return the most memory that compressing and fitting m regressions allocate, beyond X and Y."""
    fit = learner.cost(X, m).work_bytes
    return None if fit is None else 4 * X.shape[0] * m + fit


def peak_bytes(learner: Learner, X: Any, Y: CSR, m: int) -> int | None:
    """Return the peak memory of a process that holds X and Y and fits m regressions on them."""
    held = INTERPRETER + data_bytes(X) + 2 * data_bytes(Y)  # the classifier makes its own copy of Y
    needed = fit_bytes(learner, X, m)
    return None if needed is None else int(held + needed)

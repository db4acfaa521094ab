"""How decoding a row can end, and what a user is told about it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from enum import Enum

from sklearn.exceptions import ConvergenceWarning


class Outcome(Enum):
    """How a row ended, in the order in which the kernels count. The value says what happened and what to change."""

    FITTED = ""
    RANK_DEFICIENT = (
        "got fewer labels than asked for, because the columns of A selected for them are linearly dependent. "
        "Lower n_nonzero or raise n_measurements."
    )
    NOT_CONVERGED = "reached the limit of steps and hold the last solution. Lower n_nonzero or raise n_measurements."
    NOT_FINITE = (
        "have coefficients that 32-bit floats cannot hold, and were left without labels. "
        "Scale the measurements and the columns of A to ordinary magnitudes."
    )


class Tally:
    """Counts the outcomes of blocks of rows, from any number of threads."""

    def __init__(self) -> None:
        self._counts: list[Sequence[int]] = []

    def add(self, counts: Sequence[int]) -> None:
        """Count so many rows of each outcome. Appending is one step, so that threads need no lock."""
        self._counts.append(counts)

    def warn(self, name: str, stacklevel: int) -> None:
        """Warn about all rows at once, if there is something to warn about."""
        totals = [sum(counts) for counts in zip(*self._counts, strict=True)]
        told = [
            f"{total} of {sum(totals)} rows {outcome.value}"
            for outcome, total in zip(Outcome, totals, strict=False)
            if total and outcome is not Outcome.FITTED
        ]
        if told:
            warnings.warn(f"{name}: {' '.join(told)}", ConvergenceWarning, stacklevel=stacklevel + 1)

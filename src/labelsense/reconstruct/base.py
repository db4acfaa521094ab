"""What every decoder offers: from predicted measurements h back to a sparse label vector."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.base import BaseEstimator

from labelsense._typing import CSR, FloatArray, IntArray
from labelsense._validation import check_count
from labelsense.compress.base import DenseOperator, Operator
from labelsense.reconstruct.outcomes import Tally

AUTO_NONZERO = 10


class Sizes(Protocol):
    """What tells the size of A: an operator, or its compiled form."""

    @property
    def n_measurements(self) -> int:
        """The number m."""

    @property
    def n_labels(self) -> int:
        """The number d."""


class Decoder(BaseEstimator, ABC):
    """Recovers sparse label vectors y with A y close to h.

    A decoder in plain Python overrides ``decode``, whose ``state`` is then A itself, an
    :class:`~labelsense.compress.base.Operator`.

    Parameters
    ----------
    n_nonzero : int or "auto"
        The size of the support that is returned, f(k) in the paper, at most m. "auto" is 10, or m or d if that is
        smaller.

    Attributes
    ----------
    learns : bool
        Whether ``fit_labels`` has to see the labels of the training rows first. The paper's decoders do not learn.
    guarantee : str
        The condition on A under which the paper calls the decoder valid for sparsity k.
    """

    learns: ClassVar[bool] = False
    guarantee: ClassVar[str] = "none stated"
    _tally: Tally | None = None

    def __init__(self, n_nonzero: int | str = "auto") -> None:
        self.n_nonzero = n_nonzero

    @staticmethod
    def output_sparsity(k: int) -> int:
        """Return f(k): the support size with which the paper's guarantee for sparsity k holds."""
        return k

    def fit_labels(self, Y: CSR) -> Decoder:
        """Learn what the decoder uses of the labels Y (n, d) of the training rows: by default nothing."""
        return self

    def prepare(self, operator: Operator) -> Any:
        """Return what decoding with this A needs; it serves any number of blocks and threads."""
        return operator

    @abstractmethod
    def decode(self, state: Any, H: Any) -> CSR:
        """Return the decoded label vectors of the rows of H (n, m), as CSR (n, d)."""

    def decode_among(self, operator: Operator, state: Any, H: Any, starts: IntArray, labels: Any) -> FloatArray:
        """Return the coefficients of some labels of each row if there are no others, one for each of ``labels``.

        Those of row i are from ``labels[starts[i]]`` to before ``labels[starts[i + 1]]``, ascending.
        """
        values = np.zeros(len(labels), np.float32)
        for i, (start, stop) in enumerate(pairwise(starts.tolist())):
            if self.learns:  # of all labels together
                values[start:stop] = self.decode(state, H[i : i + 1]).toarray()[0, labels[start:stop]]
            elif start < stop:
                some = DenseOperator(operator.columns(labels[start:stop]).T)
                found = self.decode(self.prepare(some), H[i : i + 1])
                values[start + found.indices] = found.data
        return values

    def path(self, state: Any, H: Any, sizes: Sequence[int]) -> list[CSR]:
        """Return the decoded label vectors for each support size, in one run where the algorithm allows it."""
        wanted = self._check_sizes(state, sizes)
        solved = {size: self._with_size(size).decode(state, H) for size in sorted(set(wanted))}
        return [solved[size] for size in wanted]

    def support_size(self, state: Sizes) -> int:
        """Return ``n_nonzero`` as a number, for this A."""
        if self.n_nonzero == "auto":
            return min(AUTO_NONZERO, state.n_measurements, state.n_labels)
        if isinstance(self.n_nonzero, str):
            raise ValueError(f"n_nonzero must be an integer or 'auto'. Got {self.n_nonzero!r}.")
        return check_count(self.n_nonzero, "n_nonzero", high=state.n_measurements, remedy=_TOO_MANY)

    def at_most(self, size: int) -> Decoder:
        """Return this decoder, or one that returns a support of this size if its own is larger."""
        return self._with_size(size) if self.n_nonzero != "auto" and int(self.n_nonzero) > size else self

    @contextmanager
    def one_warning(self) -> Iterator[Decoder]:
        """Yield this decoder for many blocks of rows, on any number of threads: one warning at the end is about all."""
        decoder = copy.copy(self)
        decoder._tally = Tally()
        yield decoder
        decoder._tally.warn(type(self).__name__, stacklevel=5)

    def _tell(self, outcomes: Sequence[int]) -> None:
        """Count how many rows had each outcome, or warn of it now if this is no part of a larger call."""
        tally = Tally() if self._tally is None else self._tally
        tally.add(outcomes)
        if self._tally is None:
            tally.warn(type(self).__name__, stacklevel=4)

    def _with_size(self, n_nonzero: int) -> Decoder:
        decoder = copy.copy(self)
        decoder.n_nonzero = n_nonzero
        return decoder

    @staticmethod
    def _check_sizes(state: Sizes, sizes: Sequence[int]) -> list[int]:
        if not len(sizes):
            raise ValueError("sizes must name at least one support size. Got none.")
        wanted = [check_count(size, "a support size", high=state.n_measurements, remedy=_TOO_MANY) for size in sizes]
        return [min(size, state.n_labels) for size in wanted]


_TOO_MANY = "A support larger than the number of measurements cannot be fitted: lower it or raise n_measurements."

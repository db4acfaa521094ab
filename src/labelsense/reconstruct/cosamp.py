"""Compressive sampling matching pursuit."""

from __future__ import annotations

from labelsense import _kernels
from labelsense._storage import storable
from labelsense._typing import FloatArray
from labelsense._validation import check_count
from labelsense.reconstruct.compiled import CompiledDecoder, Found


@storable()
class CoSaMPDecoder(CompiledDecoder):
    """CoSaMP of Needell and Tropp.

    Each round merges the 2s columns most correlated with the residual into the support, fits all of them by least
    squares and keeps the s largest coefficients, for as long as the residual falls. It may choose correlated columns,
    which the paper found better than OMP when m is small. Solutions are not nested: a path costs one run per size.

    Parameters
    ----------
    n_nonzero : int or "auto"
        s, the size of the support.
    max_rounds : int
        Rows whose residual still falls after so many rounds are reported in a warning.

    References
    ----------
    Needell, Tropp (2008), CoSaMP: iterative signal recovery from incomplete and inaccurate samples.

    Examples
    --------
    >>> from labelsense import CoSaMPDecoder, HadamardCompressor
    >>> A = HadamardCompressor(n_measurements=32, random_state=0).fit(64).operator_
    >>> decoder = CoSaMPDecoder(n_nonzero=2)
    >>> decoder.decode(decoder.prepare(A), [A.columns([5, 40]) @ [1.0, 2.0]]).data.round(4).tolist()
    [1.0, 2.0]
    """

    guarantee = "A has the (4k, 0.1) restricted isometry property"

    def __init__(self, n_nonzero: int | str = "auto", *, max_rounds: int = 50) -> None:
        super().__init__(n_nonzero)
        self.max_rounds = max_rounds

    @staticmethod
    def output_sparsity(k: int) -> int:
        return 2 * k

    def _run(self, state: _kernels.Kernel, H: FloatArray, sizes: list[int], found: Found) -> list[int]:
        rounds = check_count(self.max_rounds, "max_rounds")
        return _kernels.cosamp(state, H, sizes, *found, rounds)

"""Correlation decoding, the standard decoding of output codes. The simplest decoder: read it first."""

from __future__ import annotations

from labelsense import _kernels
from labelsense._storage import storable
from labelsense._typing import FloatArray
from labelsense.reconstruct.compiled import CompiledDecoder, Found


@storable()
class CorrelationDecoder(CompiledDecoder):
    """The columns of A with the largest |a_j'h|, then the least-squares fit of h on them.

    The paper's baseline. One product with A' and no search: the fastest, and hard to beat when m is so small that
    nothing can be recovered reliably.

    Parameters
    ----------
    n_nonzero : int or "auto"
        How many columns.

    Examples
    --------
    >>> from labelsense import CorrelationDecoder, HadamardCompressor
    >>> A = HadamardCompressor(n_measurements=32, random_state=0).fit(64).operator_
    >>> decoder = CorrelationDecoder(n_nonzero=2)
    >>> h = A.columns([5, 40]).sum(axis=1)
    >>> decoder.decode(decoder.prepare(A), [h]).indices.tolist()
    [5, 40]
    """

    guarantee = "none when m < d: it is not a valid reconstruction algorithm"

    @staticmethod
    def output_sparsity(k: int) -> int:
        return k

    def _run(self, state: _kernels.Kernel, H: FloatArray, sizes: list[int], found: Found) -> list[int]:
        return _kernels.correlation(state, H, sizes, *found)

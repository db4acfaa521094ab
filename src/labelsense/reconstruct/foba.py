"""Adaptive forward-backward greedy search."""

from __future__ import annotations

from labelsense import _kernels
from labelsense._storage import storable
from labelsense._typing import FloatArray
from labelsense._validation import check_real
from labelsense.reconstruct.compiled import CompiledDecoder, Found


@storable()
class FoBaDecoder(CompiledDecoder):
    """Zhang's FoBa: OMP that takes back columns which later ones have made useless.

    After each forward step, the column whose removal costs least is removed while that cost is at most ``nu`` times
    what the forward step at this size had gained. The solution for a support size is the first one of that size.

    Parameters
    ----------
    n_nonzero : int or "auto"
        The size at which to stop.
    nu : float
        How eagerly to remove, in (0, 1). 0 never removes and is OMP.

    References
    ----------
    Zhang (2008), Adaptive forward-backward greedy algorithm for sparse learning with linear models.

    Examples
    --------
    >>> from labelsense import FoBaDecoder, HadamardCompressor
    >>> A = HadamardCompressor(n_measurements=32, random_state=0).fit(64).operator_
    >>> decoder = FoBaDecoder(n_nonzero=2)
    >>> decoder.decode(decoder.prepare(A), [A.columns([5, 40]) @ [1.0, 2.0]]).data.round(4).tolist()
    [1.0, 2.0]
    """

    guarantee = "A has the (8k, 0.1) restricted isometry property"

    def __init__(self, n_nonzero: int | str = "auto", *, nu: float = 0.5) -> None:
        super().__init__(n_nonzero)
        self.nu = nu

    @staticmethod
    def output_sparsity(k: int) -> int:
        return 8 * k

    def _run(self, state: _kernels.Kernel, H: FloatArray, sizes: list[int], found: Found) -> list[int]:
        nu = check_real(self.nu, "nu", low=0, high=0.999, remedy="At 1 every step would be taken back.")
        return _kernels.foba(state, H, sizes, *found, nu)

"""The Lasso by its LARS path."""

from __future__ import annotations

from labelsense import _kernels
from labelsense._storage import storable
from labelsense._typing import FloatArray
from labelsense.reconstruct.compiled import CompiledDecoder, Found


@storable()
class LassoDecoder(CompiledDecoder):
    """The Lasso solution with a given number of non-zeros, found by following the LARS path.

    The answer is the first knot of the path with ``n_nonzero`` non-zero coefficients, shrunk as the Lasso shrinks
    them. Equivalent to ``sklearn.linear_model.lars_path(method="lasso")``, drops included.

    Parameters
    ----------
    n_nonzero : int or "auto"
        The number of non-zeros at which to stop.

    References
    ----------
    Efron, Hastie, Johnstone, Tibshirani (2004), Least angle regression.

    Examples
    --------
    >>> from labelsense import HadamardCompressor, LassoDecoder
    >>> A = HadamardCompressor(n_measurements=32, random_state=0).fit(64).operator_
    >>> decoder = LassoDecoder(n_nonzero=2)
    >>> decoder.decode(decoder.prepare(A), [A.columns([5, 40]) @ [1.0, 2.0]]).indices.tolist()
    [5, 40]
    """

    guarantee = "none proved in the paper: path-following variants of basis pursuit 'may be valid'"

    @staticmethod
    def output_sparsity(k: int) -> int:
        return k

    def _run(self, state: _kernels.Kernel, H: FloatArray, sizes: list[int], found: Found) -> list[int]:
        return _kernels.lasso(state, H, sizes, *found)

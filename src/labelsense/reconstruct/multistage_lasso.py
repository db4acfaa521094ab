"""The Lasso in stages, each without a penalty on what the last one found large."""

from __future__ import annotations

from labelsense import _kernels
from labelsense._storage import storable
from labelsense._typing import FloatArray
from labelsense._validation import check_count, check_real
from labelsense.reconstruct.compiled import CompiledDecoder, Found


@storable()
class MultistageLassoDecoder(CompiledDecoder):
    """Zhang's multi-stage convex relaxation: the Lasso again, without a penalty on coefficients above a threshold.

    The Lasso shrinks every coefficient, and what it has shrunk of large ones hides small ones. Here the penalty stops
    growing at a threshold: it is the sum over labels of the smaller of ``abs(y_j)`` and the threshold, and a local
    minimum is found in stages. The first is :class:`~labelsense.LassoDecoder`; each later one is the Lasso without a
    penalty on the labels that were above the threshold in the stage before, until these stay the same. Every stage
    ends at the first knot of its path with ``n_nonzero`` non-zeros. Use it where the Lasso finds more than OMP does
    but its scores are too small; it costs a few times as much. Solutions are not nested: a path costs one run per
    size.

    Parameters
    ----------
    n_nonzero : int or "auto"
        The number of non-zeros.
    theta : float
        The threshold, as a share of the largest coefficient of the first stage, in (0, 1].
    max_stages : int
        The most stages; 1 is the Lasso.

    References
    ----------
    Zhang (2010), Analysis of multi-stage convex relaxation for sparse regularization.

    Examples
    --------
    >>> from labelsense import HadamardCompressor, LassoDecoder, MultistageLassoDecoder
    >>> A = HadamardCompressor(n_measurements=32, random_state=0).fit(64).operator_
    >>> h = A.columns([5, 9, 40]) @ [1.0, 0.3, 2.0]
    >>> for decoder in (LassoDecoder(2), MultistageLassoDecoder(2)):
    ...     print(decoder.decode(decoder.prepare(A), [h]).toarray()[0, [5, 40]].astype(float).round(2).tolist())
    [0.72, 1.72]
    [1.02, 2.02]
    """

    guarantee = "none proved in the paper: multi-stage variants of basis pursuit 'may be valid'"

    def __init__(self, n_nonzero: int | str = "auto", *, theta: float = 0.25, max_stages: int = 10) -> None:
        super().__init__(n_nonzero)
        self.theta = theta
        self.max_stages = max_stages

    def _run(self, state: _kernels.Kernel, H: FloatArray, sizes: list[int], found: Found) -> list[int]:
        theta = check_real(self.theta, "theta", low=1e-6, high=1, remedy="It is a share of the largest coefficient.")
        return _kernels.multistage_lasso(state, H, sizes, *found, theta, check_count(self.max_stages, "max_stages"))

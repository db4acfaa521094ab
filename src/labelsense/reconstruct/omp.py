"""Orthogonal matching pursuit."""

from __future__ import annotations

from labelsense import _kernels
from labelsense._storage import storable
from labelsense._typing import FloatArray
from labelsense._validation import check_real
from labelsense.reconstruct.compiled import CompiledDecoder, Found


@storable()
class OMPDecoder(CompiledDecoder):
    """Orthogonal matching pursuit, the paper's Algorithm 3.

    Adds the column most correlated with the residual, fits all chosen columns by least squares, and repeats. Use it
    by default. Equivalent to :func:`sklearn.linear_model.orthogonal_mp`, one to three orders of magnitude faster.

    Parameters
    ----------
    n_nonzero : int or "auto"
        The number of steps. For sparsity k the paper takes 2k.
    nonnegative : bool
        Use that labels are not negative: take only columns with positive correlation, and fit them by non-negative
        least squares. Columns that later ones make useless are dropped. A row ends early, with fewer labels, where no
        correlation is positive: then its solution is that of :func:`scipy.optimize.nnls`.
    penalty : float
        Fit the chosen columns by ridge regression with this penalty instead of least squares. Coefficients of short
        columns shrink most. With :class:`~labelsense.WhitenedCompressor`, whose short columns are those of frequent
        labels, 0.1 is a good value for the best labels: it makes up for the shrinking of rare ones by the learner.
        With other matrices it changes little. Scores become smaller, those of frequent labels most, so that fewer
        labels reach the one half from which ``predict`` takes them.

    References
    ----------
    Hsu, Kakade, Langford, Zhang (2009), Theorem 2: if the coherence of A is at most 0.1/k, the squared error after
    2k steps is at most 23 times that of the best k-sparse vector.

    Bruckstein, Elad, Zibulevsky (2008), On the uniqueness of nonnegative sparse solutions to underdetermined systems
    of equations; Lawson, Hanson (1974), Solving least squares problems, chapter 23.

    Examples
    --------
    >>> from labelsense import HadamardCompressor, OMPDecoder
    >>> A = HadamardCompressor(n_measurements=32, random_state=0).fit(64).operator_
    >>> decoder = OMPDecoder(n_nonzero=2)
    >>> y = decoder.decode(decoder.prepare(A), [A.columns([5, 40]) @ [1.0, 2.0]])
    >>> y.indices.tolist(), y.data.round(4).tolist()
    ([5, 40], [1.0, 2.0])
    """

    guarantee = "coherence(A) <= 0.1 / k"

    def __init__(self, n_nonzero: int | str = "auto", *, nonnegative: bool = False, penalty: float = 0.0) -> None:
        super().__init__(n_nonzero)
        self.nonnegative = nonnegative
        self.penalty = penalty

    @staticmethod
    def output_sparsity(k: int) -> int:
        return 2 * k

    def _run(self, state: _kernels.Kernel, H: FloatArray, sizes: list[int], found: Found) -> list[int]:
        return _kernels.omp(state, H, sizes, *found, bool(self.nonnegative), check_real(self.penalty, "penalty", low=0))

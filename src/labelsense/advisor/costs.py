"""What a fit will cost: seconds and bytes, by what the code really does and allocates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import scipy.sparse as sp

from labelsense._typing import CSR
from labelsense.regress import KernelRidgeLearner, Learner, RidgeLearner
from labelsense.regress.design import DENSE_ROWS
from labelsense.regress.primal import SMALL
from labelsense.regress.ridge import cheapest_solver, cost

INTERPRETER = 205e6  # Python with this package and what it imports, the buffers of BLAS included (measured)


@dataclass(frozen=True)
class Costs:
    """What the recommended fit takes.

    Attributes
    ----------
    solver : str
        How the regressions will be solved.
    compress_seconds, fit_seconds : float
        For all rows.
    predict_seconds : float
        For a thousand rows, on one thread.
    model_bytes : int or None
        The size of the learned coefficients, in memory or in a file. None where the learner does not say.
    peak_bytes : int or None
        The peak memory of a process that holds X and Y and fits: interpreter, data and work.
    """

    solver: str
    compress_seconds: float
    fit_seconds: float
    predict_seconds: float
    model_bytes: int | None
    peak_bytes: int | None


def data_bytes(M: Any) -> int:
    """Return the memory of a sparse or dense matrix."""
    if sp.issparse(M):
        return int(M.data.nbytes + M.indices.nbytes + M.indptr.nbytes)
    return int(M.nbytes)


def solver_of(learner: Learner, X: Any, m: int) -> str:
    """Return how a learner will solve m regressions on X, in a word."""
    if isinstance(learner, RidgeLearner):
        return cheapest_solver(X, m, learner.alpha) if learner.solver == "auto" else learner.solver
    return "kernel" if isinstance(learner, KernelRidgeLearner) else type(learner).__name__


def work(learner: Learner, X: Any, m: int) -> float:
    """Return the work of a fit, in a unit that cancels: for the ratio of two fits by one learner."""
    n = X.shape[0]
    if isinstance(learner, RidgeLearner):
        return cost(solver_of(learner, X, m), X, m)
    if isinstance(learner, KernelRidgeLearner):
        return n**3 / 6 + float(n) ** 2 * m
    return float(n) * m


def model_bytes(learner: Learner, X: Any, m: int) -> int | None:
    """Return the size of the coefficients."""
    if isinstance(learner, RidgeLearner):
        return 4 * (X.shape[1] + 1) * m
    if isinstance(learner, KernelRidgeLearner):
        return 4 * X.shape[0] * m + data_bytes(X)
    return None


def peak_bytes(learner: Learner, X: Any, Y: CSR, m: int) -> int | None:
    """Return the peak memory of a process that holds X and Y and fits m regressions on them."""
    held = INTERPRETER + data_bytes(X) + 2 * data_bytes(Y)  # the classifier makes its own copy of Y
    needed = work_bytes(learner, X, m)
    return None if needed is None else int(held + needed)


def work_bytes(learner: Learner, X: Any, m: int) -> int | None:
    """Return the most memory that compressing and fitting allocate, beyond X and Y.

    Z takes 4 n m bytes, and three times as much while its mean is computed in double. Then, in units of what a matrix
    takes in float32:

    - primal: X'X and its factor (2 p^2, in double up to 1,024 features); X'Z in double, W, the copy of it that is kept
      and one in double for the intercept (6 p m);
    - dual: X X' and its factor (2 n^2), the targets, centred, and the solutions (2 n m), W and its centring in
      double (5 p m);
    - conjugate gradients: right-hand side, solution, residual, direction and two products (6 p m), fitted values (n m);
    - kernel ridge: the kernel matrix (n^2), and while it is made a block of it; then the solutions, twice (2 n m).

    A sparse X is stored by columns too. Dense rows are centred in double, and their X'X is summed in double.
    """
    n, p = X.shape
    if isinstance(learner, KernelRidgeLearner):
        making = min(n, DENSE_ROWS) * n + 7 * X.nnz if sp.issparse(X) else n * p
        return 4 * (n * m + n * n + max(2 * n * m, making))
    if not isinstance(learner, RidgeLearner):
        return None
    solver = solver_of(learner, X, m)
    gram = 0  # what only the making of X'X or X X' needs
    if solver == "primal":
        words = 1 if p > SMALL else 2  # small systems are solved in double
        numbers = 2 * words * p * p + 6 * p * m
        gram = 0 if sp.issparse(X) else 6 * p * p + 2 * p * m
    elif solver == "dual":
        words = 1 if n > SMALL else 2
        gram = 0 if n > SMALL else 3 * n * p
        numbers = 2 * words * (n * n + n * m) + 5 * p * m
    else:
        numbers = 6 * p * m + n * m
    if sp.issparse(X):
        return 4 * (n * m + max(2 * n * m, max(numbers, gram) + 7 * X.nnz))
    return 4 * (n * m + max(2 * n * m, 3 * n * p, n * p + max(numbers, gram)))

"""What ridge costs: which solver is fastest, and how much memory it takes."""

from __future__ import annotations

import math

from labelsense.errors import InputError
from labelsense.regress.design import Size
from labelsense.regress.primal import SMALL

FITS_OF_A_FOLD = 4  # by conjugate gradients, with rows out of sample
EXPECTED_STEPS = 30  # of conjugate gradients
# Seconds for a thousand million multiplications: dense by BLAS, sparse row by row, and sparse times dense (measured).
BLAS, SPARSE, SPARSE_DENSE, ELEMENTWISE = 0.014, 0.8, 0.12, 0.3


def seconds(solver: str, X: Size, n_targets: int) -> float:
    """Return about how many seconds a solver takes, on two cores. What matters is which is least.

    With c_j the number of rows that have feature j and r_i the number of features of row i:

    - primal: X'X (sum of r_i^2 / 2, or n p^2 / 2 if dense), its factor (p^3 / 6) and p^2 m for the solutions;
    - dual: X X' (sum of c_j^2 / 2, or n^2 p / 2), its factor (n^3 / 6) and n^2 m;
    - conjugate gradients: two products of nnz m a step, and six passes over p m numbers.
    """
    n, p, m = X.n, X.p, n_targets
    rate, product = (SPARSE, SPARSE_DENSE) if X.sparse else (BLAS, BLAS)
    product *= X.entries * m
    if solver == "primal":
        work = rate * X.by_rows + BLAS * (p**3 / 6 + p**2 * m) + product
    elif solver == "dual":
        work = min(rate * X.by_columns, BLAS * n**2 * p / 2) + BLAS * (n**3 / 6 + n**2 * m) + product
    else:
        work = EXPECTED_STEPS * (2 * product + 6 * ELEMENTWISE * p * m)
    return 1e-9 * work


def cheapest_solver(
    X: Size, n_targets: int, alpha: float | str, *, in_memory: bool = True, memory: float = math.inf
) -> str:
    """Return the solver that takes the fewest :func:`seconds`.

    Conjugate gradients are approximate: they have to save half the time, and more than a moment. Least squares
    (alpha 0) needs a factorisation. Rows that are not in memory have no X X', and X'X is for those who have room for
    it, three times in double.
    """
    direct = ("primal", "dual") if in_memory else ("primal",)
    if 24.0 * X.p**2 > memory:
        if alpha == 0:
            raise InputError(
                f"alpha must be positive: least squares of {X.p} features needs {24e-9 * X.p**2:.1f} GB, and "
                f"{memory / 1e9:.1f} GB are allowed. Got 0."
            )
        return "cg"
    exact = min(direct, key=lambda solver: seconds(solver, X, n_targets))
    least = seconds(exact, X, n_targets)
    return "cg" if alpha != 0 and least > 0.5 and seconds("cg", X, n_targets) < least / 2 else exact


def closed_form_pays(X: Size, n_targets: int, n_folds: int) -> bool:
    """Tell whether folds are left out by the inverse of X X' (n^3 / 3 more) in less time than by conjugate gradients.

    These leave out single rows by folds again.
    """
    closed = seconds("dual", X, n_targets) + 1e-9 * BLAS * X.n**3 / 3
    return closed < (1 + n_folds * FITS_OF_A_FOLD) * seconds("cg", X, n_targets)


def leaving_out_pays(X: Size, n_targets: int, n_held: int) -> bool:
    """Tell whether rows are left out by the inverse of X'X of all rows in less time than by a fit to the others.

    That is a product of X with as many columns as rows are held, and a triangle of that size solved for all rows. A fit
    has its inverse to make as well.
    """
    product = (SPARSE_DENSE if X.sparse else BLAS) * X.entries * n_held
    fit = 1e9 * seconds("primal", X, n_targets) + BLAS * X.p**3 / 3
    return product + BLAS * n_held**2 * (X.n / 2 + n_held / 6) < fit


def work_bytes(solver: str, X: Size, n_targets: int) -> int:
    """Return the most memory that a fit allocates, beyond X and the targets.

    In units of what a matrix takes in float32:

    - primal: X'X and its factor (2 p^2, in double up to 1,024 features); X'Z in double, W, the copy of it that is kept
      and one in double for the intercept (6 p m);
    - dual: X X' and its factor (2 n^2, in double up to 1,024 rows), the targets, centred, and the solutions (2 n m), W
      and its centring in double (5 p m);
    - conjugate gradients: right-hand side, solution, residual, direction and two products (6 p m), fitted values (n m).

    A sparse X is stored by columns too; dense rows are centred in a copy.
    """
    n, p, m = X.n, X.p, n_targets
    if solver == "primal":
        double = 1 if p > SMALL else 2
        numbers = 2 * double * p * p + 6 * p * m
    elif solver == "dual":
        double = 1 if n > SMALL else 2
        numbers = 2 * double * (n * n + n * m) + 5 * p * m
    else:
        numbers = 6 * p * m + n * m
    return 4 * (numbers + (7 * X.entries if X.sparse else n * p))

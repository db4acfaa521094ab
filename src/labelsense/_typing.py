"""Names for the shapes of data that go through the library, and the way from sparse to dense."""

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float32]
DoubleArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Precision: TypeAlias = type[np.float32] | type[np.float64]
Rows: TypeAlias = slice | IntArray  # which rows
CSR: TypeAlias = Any  # scipy.sparse.csr_array or csr_matrix; scipy has no types


def as_dense(M: Any) -> Any:
    """Return a sparse or dense matrix as an array."""
    return M.toarray() if sp.issparse(M) else np.asarray(M)

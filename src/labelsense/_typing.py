"""Names for the shapes of data that go through the library, and the way from sparse to dense."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float32]
DoubleArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Precision: TypeAlias = type[np.float32] | type[np.float64]
Rows: TypeAlias = slice | IntArray  # which rows
CSR: TypeAlias = sp.csr_array
RandomState: TypeAlias = int | np.random.RandomState | None
Label: TypeAlias = str | int | float | tuple[Any, ...]  # bool is an int; tuples hold labels


def as_dense(M: Any) -> Any:
    """Return a sparse or dense matrix as an array."""
    return M.toarray() if sp.issparse(M) else np.asarray(M)

"""Names for the shapes of data that go through the library."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float32]
IntArray: TypeAlias = NDArray[np.int64]
CSR: TypeAlias = Any  # scipy.sparse.csr_array or csr_matrix; scipy has no types

"""The compiled kernels, in the variant this processor runs fastest.

The same C++ is built twice on x86-64: for every such processor, and for those with AVX2 (``x86-64-v3``). Both
give the same bytes, since nothing is compiled with relaxed floating-point rules.
"""

from labelsense._kernels import _generic as _variant

if _variant.has_avx2():
    from labelsense._kernels import _v3 as _variant  # type: ignore[no-redef]

Hadamard = _variant.Hadamard
Dense = _variant.Dense
correlation = _variant.correlation
omp = _variant.omp
foba = _variant.foba
cosamp = _variant.cosamp
lasso = _variant.lasso

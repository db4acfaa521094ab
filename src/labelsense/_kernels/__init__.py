"""The compiled kernels, in the variant this processor runs fastest.

The same C++ is built twice on x86-64: for every such processor, and for those with AVX2 (``x86-64-v3``). Both
give the same bytes, since nothing is compiled with relaxed floating-point rules. ``__init__.pyi`` has the types.
"""

import sys as _sys
from importlib import import_module

if _sys.platform == "win32":
    raise ImportError("labelsense does not run on Windows. Use the Windows Subsystem for Linux.")

_variant = import_module("labelsense._kernels._generic")
if _variant.has_avx2():
    _variant = import_module("labelsense._kernels._v3")

Hadamard = _variant.Hadamard
Dense = _variant.Dense
Whitened = _variant.Whitened
Among = _variant.AmongHadamard | _variant.AmongDense | _variant.AmongWhitened
Kernel = Hadamard | Dense | Whitened | Among
among = _variant.among
transform = _variant.transform
correlation = _variant.correlation
omp = _variant.omp
foba = _variant.foba
cosamp = _variant.cosamp
lasso = _variant.lasso
multistage_lasso = _variant.multistage_lasso
group_omp = _variant.group_omp
times_dense = _variant.times_dense
times_sparse = _variant.times_sparse
tile_starts = _variant.tile_starts
gram = _variant.gram
quadratic_forms = _variant.quadratic_forms
finish_product = _variant.finish_product
take_step = _variant.take_step
turn_direction = _variant.turn_direction
mark_strongest = _variant.mark_strongest
train_ranker = _variant.train_ranker
Scores = _variant.Scores
StoredScores = _variant.StoredScores
HadamardScores = _variant.HadamardScores
SparseScores = _variant.SparseScores
shortlist = _variant.shortlist
top_entries = _variant.top_entries
largest_of_rows = _variant.largest_of_rows
nearest = _variant.nearest
margins = _variant.margins
standing = _variant.standing
Booster = _variant.Booster
add_trees = _variant.add_trees
parse_rows = _variant.parse_rows
format_rows = _variant.format_rows
FEATURE_TILE: int = _variant.FEATURE_TILE

"""The paper's bounds as numbers: what is certain for a given A, a fitted model and data.

Theorem 1 turns a good fit of the measurements into a good label vector (:func:`regret_factors`), Theorem 2 is about OMP
(:func:`omp_sparsity`), Theorem 3 is the regret transform (:func:`regret_transform`), Theorem 4 is about linear
prediction (:func:`linear_compression`). Lemma 7 gives restricted isometry from the coherence
(:func:`rip_upper_bound`). A bound that holds tells what cannot go wrong; a bound that is infinite tells nothing. All
of it is up to the rounding of A in float32.
"""

from labelsense.metrics import sparsity_error
from labelsense.theory.codes import label_ranges, scaled_error, secoc_bound
from labelsense.theory.isometry import coherence, omp_sparsity, rip_constant, rip_lower_bound, rip_upper_bound
from labelsense.theory.linear import LinearCompression, linear_compression, linear_factor
from labelsense.theory.regret import (
    RegretTransform,
    guaranteed,
    regret_factors,
    regret_transform,
)

__all__ = [
    "LinearCompression",
    "RegretTransform",
    "coherence",
    "guaranteed",
    "label_ranges",
    "linear_compression",
    "linear_factor",
    "omp_sparsity",
    "regret_factors",
    "regret_transform",
    "rip_constant",
    "rip_lower_bound",
    "rip_upper_bound",
    "scaled_error",
    "secoc_bound",
    "sparsity_error",
]

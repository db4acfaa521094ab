"""
The theory on your data
=======================

The paper's theorems bound what can go wrong. ``labelsense.theory`` evaluates both sides of each on a model and rows of
yours, so that one sees what is certain, and how far practice is from the worst case.
"""

# %%
# Rows whose target is known
# --------------------------
# The bounds are about E[y given x]. Real rows show y only, which may stand in for it; here the data are made up, so
# that the target is known: two to three labels a row, linear in x.

import matplotlib.pyplot as plt
import numpy as np

from labelsense import (
    CompressedLabelClassifier,
    DeVoreCompressor,
    GaussianCompressor,
    HadamardCompressor,
    OMPDecoder,
    RidgeLearner,
)
from labelsense.theory import (
    coherence,
    guaranteed,
    linear_compression,
    omp_sparsity,
    regret_transform,
    rip_lower_bound,
    rip_upper_bound,
)

rng = np.random.default_rng(0)
d, p, n = 300, 60, 1500
X = np.eye(p)[rng.integers(0, p, n)]  # one of p situations
targets = np.zeros((p, d))
for row in targets:
    row[rng.choice(d, 2, replace=False)] = rng.uniform(0.4, 0.9, 2)
P = X @ targets  # E[y given x]
Y = (rng.uniform(size=(n, d)) < P).astype(np.float32)

# %%
# The matrix
# ----------
# Coherence is the largest cosine between two columns. Theorem 2 covers OMP up to ``omp_sparsity``; restricted isometry
# constants are known from above (certified by the coherence) and from below (found by search).

matrices = {
    "Hadamard, 100 rows": HadamardCompressor(100, random_state=0).fit(d).operator_,
    "Hadamard, 256 rows": HadamardCompressor(256, random_state=0).fit(d).operator_,
    "DeVore, 41 squared rows": DeVoreCompressor(41**2).fit(d).operator_,
}
print(f"{'':<24} coherence  OMP covered to k   delta_4 between")
for name, A in matrices.items():
    low, high = rip_lower_bound(A, 4, n_trials=20, random_state=0), rip_upper_bound(A, 4)
    print(f"{name:<24} {coherence(A):9.3f} {omp_sparsity(A):17d}   {low:.2f} and {high:.2f}")

# %%
# For random rows the theorem says nothing about OMP (0) until there are very many of them. The explicit matrix has a
# certificate, and needs 1,681 rows for 300 labels: guarantees have their price.
#
# The regret transform
# --------------------
# Theorem 3: the error on labels is at most C1 times the error of the regressions plus C2 times the sparsity error.

clf = CompressedLabelClassifier(
    DeVoreCompressor(41**2), RidgeLearner(alpha=0.1, fit_intercept=False), OMPDecoder(4), refiner=None
).fit(X, Y)
print("OMP with 4 steps is covered for k = 2:", guaranteed(clf.decoder_, clf.compressor_.operator_, 2))
sides = regret_transform(clf, X, P, k=2)
print(f"error on labels {sides.error:.4f} <= bound {sides.bound:.3f}")
print(f"bound: {sides.C1:.0f} x {sides.regression_error:.4f} + {sides.C2:.0f} x {sides.sparsity_error:.4f}")

# %%
# The bound holds for any k. At k = 1 the targets, which have two entries, have a large sparsity error. From k = 3 on,
# four steps of OMP are fewer than the theorem wants: C is then measured on these rows, and certifies nothing for
# others.

ks = range(1, 5)
pairs = [regret_transform(clf, X, P, k=k) for k in ks]
for k, s in zip(ks, pairs, strict=True):
    print(f"k = {k}: bound {s.bound:10.3f}, C {s.C:6.2f} {'measured on these rows' if s.measured else 'by Theorem 2'}")

# %%
# More rows, better regressions, better labels
# --------------------------------------------
# Both sides fall together as the regressions get better, which is what the theorem is for.

sizes, lefts, rights = (150, 300, 600, 1500), [], []
for size in sizes:
    model = clf.__class__(**clf.get_params(deep=False)).fit(X[:size], Y[:size])
    s = regret_transform(model, X, P[:, : model.compressor_.operator_.n_labels], k=2)
    lefts.append(s.error)
    rights.append(s.bound)
fig, ax = plt.subplots(figsize=(5, 3.6))
ax.loglog(sizes, rights, "s--", color="#c25e00", label="bound of Theorem 3")
ax.loglog(sizes, lefts, "o-", color="#0b66a8", label="error on labels")
ax.set(xlabel="training rows", xticks=sizes, xticklabels=sizes)
ax.minorticks_off()
ax.legend(frameon=False)
fig.tight_layout()

# %%
# Linear prediction
# -----------------
# Theorem 4: compressing does little harm to a linear predictor. Here for Gaussian matrices; the factor of the proof is
# infinite below some 72 measurements, and the measured ratio is close to one throughout.

B = RidgeLearner(alpha=0.1, fit_intercept=False).fit(X, Y).coef_
B = B if B.shape == (p, d) else B.T
for m in (50, 100, 200, 300):
    A = GaussianCompressor(m, random_state=0).fit(d).operator_
    s = linear_compression(A, B, X, P)
    print(f"m = {m}: compressed error / error = {s.compressed_error / s.error:.3f}, bound {s.bound / s.error:.3f}")

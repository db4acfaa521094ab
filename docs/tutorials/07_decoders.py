"""
Decoders compared, and your own
===============================

Seven ways from measurements back to labels, on the same measurements; and an eighth in ten lines.
"""

# %%
# The same regressions for all
# ----------------------------
# A decoder does not learn (but for one), so the model is fitted once. ``path`` decodes for several support sizes in
# one run where the algorithm allows that.

import time

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

from labelsense import CompressedLabelClassifier, HadamardCompressor, RidgeLearner
from labelsense.data import load_debtags
from labelsense.labels import top_k
from labelsense.metrics import precision_at_k
from labelsense.reconstruct import DECODERS, Decoder

data = load_debtags()
X, Y, X_test, Y_test = data.X_train[:4000], data.Y_train[:4000], data.X_test[:1500], data.Y_test[:1500]


def fit(m):
    return CompressedLabelClassifier(
        HadamardCompressor(m), RidgeLearner(1.0), "omp", features="counts", refiner=None, random_state=0
    ).fit(X, Y)


models = {m: fit(m) for m in (40, 80, 160)}
words = [word for word in DECODERS if word not in ("group_omp", "projection")]


def precision(m, decoder, k=3):
    A, H = models[m].compressor_.operator_, models[m].measure(X_test)
    return precision_at_k(Y_test, top_k(decoder.decode(decoder.prepare(A), H), k), k)


results = {word: [precision(m, DECODERS[word]()) for m in models] for word in words}

fig, ax = plt.subplots(figsize=(5.6, 3.8))
for word, values in results.items():
    ax.plot(list(models), 100 * np.array(values), "o-", label=word)
ax.set(xlabel="measurements", ylabel="P@3 (%)", xscale="log", xticks=list(models), xticklabels=list(models))
ax.minorticks_off()
ax.legend(frameon=False)
fig.tight_layout()

# %%
# With few measurements decoders differ; with many they agree. That is the paper's finding, too
# (:doc:`11_reproduce`).
#
# How fast
# --------

H = models[160].measure(X_test)
for word in words:
    decoder = DECODERS[word]()
    state = decoder.prepare(models[160].compressor_.operator_)
    start = time.perf_counter()
    decoder.decode(state, H)
    print(f"{word:<17} {1e6 * (time.perf_counter() - start) / len(H):8.1f} microseconds a row")


# %%
# Your own
# --------
# Override ``decode``. This one runs iterative hard thresholding: a gradient step on the fit of the measurements, then
# only the largest entries are kept.


class HardThresholding(Decoder):
    def __init__(self, n_nonzero="auto", n_steps=20):
        super().__init__(n_nonzero)
        self.n_steps = n_steps

    def decode(self, state, H):
        Y = np.zeros((len(H), state.n_labels), np.float32)
        size = self.support_size(state)
        for _ in range(self.n_steps):
            Y += 0.5 * state.correlate(H - state.compress(Y))
            cut = np.partition(np.abs(Y), -size, axis=1)[:, [-size]]
            Y[np.abs(Y) < cut] = 0
        return sp.csr_array(Y)


for m in models:
    print(
        f"m = {m:3}: P@3 {100 * precision(m, HardThresholding()):.1f}, OMP {100 * precision(m, DECODERS['omp']()):.1f}"
    )

# %%
# It is an estimator like the others: it goes into a classifier, through ``clone``, ``GridSearchCV`` and ``diagnose``.

clf = CompressedLabelClassifier(
    HadamardCompressor(80), RidgeLearner(1.0), HardThresholding(), refiner=None, random_state=0
)
clf.set_params(decoder__n_steps=10).fit(X[:1000], Y[:1000]).diagnose(X_test[:500], Y_test[:500])

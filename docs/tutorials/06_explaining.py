"""
Explain a prediction
====================

Which words spoke for a label, and which against it? With ridge the answer is exact: the parts add up to the score.
"""

# %%
# A model of texts
# ----------------

import numpy as np

from labelsense import CompressedLabelClassifier, RidgeLearner
from labelsense.data import load_debtags
from labelsense.refine import Refiner

data = load_debtags()
rows = np.random.default_rng(0).permutation(data.X_train.shape[0])[:2500]
texts = [" ".join(data.features[j] for j in data.X_train[[i]].indices) for i in rows]
tags = [[data.labels[j] for j in data.Y_train[[i]].indices] for i in rows]
clf = CompressedLabelClassifier(
    features="words", learner=RidgeLearner(alpha=1.0), refiner=Refiner(n_calibration=250), random_state=0
).fit(texts, tags)

text = "a console program to play chess against the computer, with an opening book and a strong engine"
clf.predict_topk([text], k=5)

# %%
# Why the first one?
# ------------------
# ``explain`` has two views: the measurements, which is what the paper's method sees, and the ranker, refinement's
# linear classifier of the label.

label = clf.predict_topk([text], k=1).labels[0][0]
why = clf.explain(text, label)
print(why)

# %%
# The parts add up
# ----------------
# To the estimate of the label by the measurements, and to the margin of the ranker. This is a test of the library,
# too.

print(f"{why.constant + sum(value for _, value in why.parts):.6f} = {why.score:.6f}")
print(f"{why.ranker.constant + sum(value for _, value in why.ranker.parts):.6f} = {why.ranker.score:.6f}")

# %%
# As a picture
# ------------

import matplotlib.pyplot as plt

parts = why.parts[:10][::-1]
fig, ax = plt.subplots(figsize=(5.5, 3.4))
ax.barh([name for name, _ in parts], [v for _, v in parts], color=["#0b66a8" if v > 0 else "#c25e00" for _, v in parts])
ax.axvline(0, color="0.5", lw=0.8)
ax.set(title=f"{label}: {why.probability:.2f}", xlabel="part of the score")
fig.tight_layout()

# %%
# Where it is not exact
# ---------------------
# With a kernel a score is not a sum over words. A part is then what the score loses without the word, and
# ``why.exact`` says so. The page of the service (:doc:`09_serving`) marks the words in the text.

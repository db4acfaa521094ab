"""
Thresholds and probabilities
============================

A probability of 0.8 should be right eight times in ten. Whether it is can be measured; then a threshold has a meaning.
"""

# %%
# A model with probabilities
# --------------------------
# Refinement, which is on by default, gives them. Settings are fixed here to keep the page quick.

import matplotlib.pyplot as plt
import numpy as np

from labelsense import CompressedLabelClassifier, RidgeLearner
from labelsense.data import load_debtags
from labelsense.metrics import above, best_f1_threshold, f1_score, label_thresholds, reliability_curve
from labelsense.refine import Refiner

data = load_debtags()
rows = np.random.default_rng(0).permutation(data.X_train.shape[0])[:3000]  # packages of one source are neighbours
X, Y = data.X_train[rows], data.Y_train[rows]
clf = CompressedLabelClassifier(
    learner=RidgeLearner(alpha=1.0), features="counts", refiner=Refiner(n_calibration=400), random_state=0
)
clf.fit(X[:2000], Y[:2000])

P = clf.predict_proba(X[2000:])
P  # sparse: candidates have a probability, other labels are as good as 0

# %%
# Are they right?
# ---------------
# The reliability curve groups candidates by their probability and compares with the share that is true. The
# calibration error is the mean distance from the diagonal; ``evaluate`` prints it as ECE.

curve = reliability_curve(Y[2000:], P)
fig, ax = plt.subplots(figsize=(4.2, 4.2))
ax.plot([0, 1], [0, 1], color="0.7", lw=1)
ax.plot(curve.predicted, curve.observed, "o-", color="#0b66a8")
ax.set(xlabel="probability", ylabel="share that is true", title=f"calibration error {100 * curve.error:.2f} %")
fig.tight_layout()

# %%
# The sum of the probabilities of a row is the number of labels to expect:

print(f"expected {P.sum() / P.shape[0]:.2f} labels a row, there are {Y[2000:].sum() / P.shape[0]:.2f}")

# %%
# Where to cut
# ------------
# ``predict`` cuts at ``threshold_``, where F1 was best on rows left out of the training. Here is F1 of the test rows
# at every threshold, which nobody knows beforehand, and where the model cuts.

cuts = np.linspace(0.05, 0.9, 35)
scores = [f1_score(Y[2000:], above(P, cut)) for cut in cuts]
fig, ax = plt.subplots(figsize=(5.2, 3.4))
ax.plot(cuts, scores, color="#0b66a8")
ax.axvline(clf.threshold_, color="#c25e00", lw=1)
ax.text(clf.threshold_ + 0.01, min(scores), "threshold_", color="#c25e00")
ax.set(xlabel="threshold", ylabel="F1 of the test rows")
fig.tight_layout()
# sphinx_gallery_thumbnail_number = 1

# %%
# Other needs, other cuts
# -----------------------
# For automatic tagging without a look, take what is nearly certain, and count how often that is right:

sure = above(P, 0.9)
right = sure.multiply(Y[2000:]).sum() / sure.sum()
print(f"{sure.sum() / P.shape[0]:.1f} labels a row are above 0.9, and {100 * right:.0f} % of these are right")

# %%
# A fixed threshold is a parameter, ``CompressedLabelClassifier(threshold=0.9)``. One threshold per label pays where a
# label has rows enough to find it; others are drawn to the one of all:

shared = best_f1_threshold(P[:500], Y[2000:2500])
each = label_thresholds(P[:500], Y[2000:2500], shared)
print("one for all  ", round(f1_score(Y[2500:], above(P[500:], shared), average="macro"), 3), "macro F1 on other rows")
print("one per label", round(f1_score(Y[2500:], above(P[500:], each), average="macro"), 3))

"""
Updating and forgetting
=======================

Rows keep coming, some have to go, and now and then there is a new label. With ridge all of this is exact: the model
equals one that was fitted on the rows that are left.
"""

# %%
# An updatable model
# ------------------
# ``updatable=True`` keeps the sums that updates need, X'X and X'Z. The penalty has to be a number: choosing it needs
# all rows (take ``clf.learner_.alpha_`` of a fit that chose it). ``reserve`` keeps columns of A for labels to come.

import numpy as np

from labelsense import CompressedLabelClassifier, HadamardCompressor, RidgeLearner
from labelsense.data import make_tagged_documents

X, Y = make_tagged_documents(3000, 800, n_labels=400, random_state=0)


def make():
    return CompressedLabelClassifier(
        HadamardCompressor(100, reserve=50, random_state=0),
        RidgeLearner(alpha=1.0, updatable=True),
        "omp",
        refiner=None,
    )


clf = make().fit(X[:1000], Y[:1000])
clf.n_samples_seen_

# %%
# More rows
# ---------
# In as many pieces as you like. The result equals one fit on all rows, up to rounding.

for start in range(1000, 3000, 500):
    clf.partial_fit(X[start : start + 500], Y[start : start + 500])
whole = make().fit(X, Y)
difference = np.abs(clf.learner_.coef_ - whole.learner_.coef_).max() / np.abs(whole.learner_.coef_).max()
print(f"{clf.n_samples_seen_} rows seen; coefficients differ by {difference:.1e} of the largest")

# %%
# The cost of an update does not depend on how many rows came before.
#
# Taking rows back
# ----------------
# For a document that was labelled wrongly, or a person who wants to be forgotten:

clf.forget(X[:200], Y[:200])
rest = make().fit(X[200:], Y[200:])
difference = np.abs(clf.learner_.coef_ - rest.learner_.coef_).max() / np.abs(rest.learner_.coef_).max()
print(f"{clf.n_samples_seen_} rows left; coefficients differ by {difference:.1e}")

# %%
# Rows that cannot have been learned are refused:

try:
    clf.forget(X[:200], Y[:200])
    clf.forget(X[:200], Y[:200])
except ValueError as error:
    print(error)

# %%
# New labels
# ----------
# With label lists, a label that nobody has seen gets the next column of A.

texts = [f"w{i % 7} w{i % 11} w{i % 3}" for i in range(300)]
tags = [[f"mod7:{i % 7}", f"mod3:{i % 3}"] for i in range(300)]
named = CompressedLabelClassifier(
    HadamardCompressor(8, reserve=20, random_state=0),
    RidgeLearner(1.0, updatable=True),
    "omp",
    features="words",
    refiner=None,
)
named.fit(texts, tags)
print(len(named.labels_), "labels")
named.partial_fit(["w1 w1 w1"] * 30, [["special"]] * 30)
print(len(named.labels_), "labels, the last is", named.labels_[-1])

# %%
# Refined models
# --------------
# Regressions, label counts and centroids of a refined model are updated exactly. Its classifiers of labels and its
# probabilities stay as they were until ``clf.refresh(X, y)`` learns them again from rows that you have at hand.
#
# From the shell
# --------------
# ``labelsense train docs.jsonl --updatable -o tags.model``, then ``labelsense update tags.model more.jsonl``. Two
# updates of one file wait for each other; the file is replaced whole or not at all. A running service learns too
# (:doc:`09_serving`): an update that was acknowledged survives ``kill -9``.

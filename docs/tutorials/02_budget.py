"""
Choose by budget, and read the report
=====================================

Without settings, a fit compares learners, penalties and ways to scale features on rows that it leaves out. ``budget``
says how much may be spent on that; ``report_`` says what came of it.
"""

# %%
# Before training: advice
# -----------------------
# ``advise`` tries on a sample, and tells beforehand how many measurements are worth it, what to expect, and what a fit
# of all rows will take.

import numpy as np

from labelsense import CompressedLabelClassifier, advise
from labelsense.data import load_debtags

data = load_debtags()
rows = np.random.default_rng(0).permutation(data.X_train.shape[0])[:700]
X, Y = data.X_train[rows], data.Y_train[rows]

advice = advise(X, Y, features="counts", random_state=0)
advice

# %%
# ``advice.make_classifier()`` is the classifier that it recommends, not fitted yet.

advice.make_classifier()

# %%
# A fit within a budget
# ---------------------
# ``"fast"`` compares ridge models only. ``"balanced"`` is the default and tries a kernel where that takes seconds,
# ``"accurate"`` tries more. What you give explicitly is not chosen.

clf = CompressedLabelClassifier(budget="fast", random_state=0).fit(X, Y)

# %%
# The report
# ----------
# *chosen* is the model in words. *tried* are the settings that were compared, by the precision of rows each had not
# seen. Then come the judges of refinement, each alone and all together, on rows that nothing had learned from, and
# what to expect of new rows: the last line is the one to put into a ticket.

clf.report_

# %%
# ``print`` shows it in a terminal:

print(clf.report_)

# %%
# The same as data, for your own records:

{name: round(value, 3) for name, value in clf.report_.expected.items()}

# %%
# Did it come true? These are rows of other packages.

result = clf.evaluate(data.X_test[:1000], data.Y_test[:1000])
print("expected ", {name: round(clf.report_.expected[name], 3) for name in ("P@1", "P@3", "P@5", "F1", "ECE")})
print("came true", {name: round(result[name], 3) for name in ("P@1", "P@3", "P@5", "F1", "ECE")})

# %%
# A random split is too optimistic where rows belong together, as packages built from one source do: here test rows are
# from other sources than training rows. If your rows come in such groups or in time order, hold out whole groups, or
# the last rows, and believe those figures.
#
# Where is the precision lost?
# ----------------------------
# ``diagnose`` splits what the paper's three steps lose on rows of a test set, and says which part to spend on.

clf.diagnose(data.X_test[:1000], data.Y_test[:1000])

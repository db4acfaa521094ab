"""
Tag texts in a DataFrame
========================

From a table with a column of texts and a column of tags to a model that tags new texts.
"""

# %%
# A table
# -------
# The data are descriptions of Debian packages and their tags, which come with labelsense as word counts; here they are
# made into a table as one would have it from a database: a column of texts, a column of lists.

import numpy as np
import pandas as pd

from labelsense import CompressedLabelClassifier, RidgeLearner
from labelsense.data import load_debtags
from labelsense.refine import Refiner

data = load_debtags()


def names_of(row, names):
    return [names[j] for j in row.indices]


rows = np.random.default_rng(0).permutation(data.X_train.shape[0])[:2000]
table = pd.DataFrame(
    {
        "text": [" ".join(names_of(data.X_train[[i]], data.features)) for i in rows],
        "tags": [names_of(data.Y_train[[i]], data.labels) for i in rows],
    }
)
table.head(4)

# %%
# Fit
# ---
# Columns go in as they are. ``features="words"`` makes the words part of the model, so that it takes texts. Without
# the other settings everything is chosen for you, which takes longer: see :doc:`02_budget`.

train, test = table[:1600], table[1600:]
clf = CompressedLabelClassifier(
    features="words", learner=RidgeLearner(alpha=1.0), refiner=Refiner(n_calibration=250), random_state=0
)
clf.fit(train["text"], train["tags"])

# %%
# Predict
# -------
# ``predict_topk`` has the best labels and their scores, which are probabilities here. In a notebook it shows itself as
# a table.

clf.predict_topk(test["text"][:6], k=4)

# %%
# ``predict`` returns sets of labels, cut where F1 was best on rows that were left out: they go into a column.

predicted = test.assign(predicted=clf.predict(test["text"]))
predicted[["tags", "predicted"]].head(6)

# %%
# How good is it?
# ---------------
# ``evaluate`` compares with the true tags: rankings, sets and probabilities at once.

clf.evaluate(test["text"], test["tags"])

# %%
# Only some labels
# ----------------
# ``allow`` and ``block`` choose among labels for each call, for instance one facet of the vocabulary.

languages = [label for label in clf.labels_ if label.startswith("implemented-in::")]
clf.predict_topk(["a fast parser written in c++ with python bindings"], k=3, allow=languages)

# %%
# Save
# ----
# One file, texts to labels included. ``labelsense predict tags.model new.csv`` uses it from the shell.

import tempfile
from pathlib import Path

from labelsense import load_model

with tempfile.TemporaryDirectory() as folder:
    clf.save(Path(folder) / "tags.model")
    same = load_model(Path(folder) / "tags.model")
    print(f"{(Path(folder) / 'tags.model').stat().st_size / 1e6:.1f} MB")
same.predict(["a console program to play chess against the computer"])

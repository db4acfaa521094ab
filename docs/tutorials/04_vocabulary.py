"""
Your vocabulary, and Annif's files
==================================

Labels are often URIs of a thesaurus. With the vocabulary in the model, suggestions have names and notations, and
Annif's corpora are read as they are.
"""

# %%
# Files as Annif has them
# -----------------------
# A corpus: a text, a tab, and URIs. A vocabulary: a URI, a label, a notation. (SKOS in Turtle or RDF/XML works the
# same way, with the extra ``skos``.)

import subprocess
import tempfile
from pathlib import Path

import numpy as np

from labelsense.data import load_debtags

data = load_debtags()
folder = Path(tempfile.mkdtemp())
uri = "http://example.org/tag/{}".format

with open(folder / "subjects.tsv", "w") as file:
    file.writelines(f"<{uri(j)}>\t{name}\tT{j}\n" for j, name in enumerate(data.labels))

with open(folder / "docs.tsv", "w") as file:
    for i in np.random.default_rng(0).permutation(data.X_train.shape[0])[:1000]:
        words = " ".join(data.features[j] for j in data.X_train[[i]].indices)
        file.write(f"{words}\t{' '.join(f'<{uri(j)}>' for j in data.Y_train[[i]].indices)}\n")

print((folder / "docs.tsv").read_text()[:300], "...")


# %%
# Train, from the shell
# ---------------------
# What follows are commands; in a notebook write ``!labelsense train ...``.


def shell(command):
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
    print(f"$ {command}\n{done.stderr}{done.stdout}")


shell("labelsense train docs.tsv --vocabulary subjects.tsv --learner ridge --alpha 1 --budget fast -o tags.model")

# %%
# Unknown URIs would have been reported. The model remembers the vocabulary:

shell("echo 'a console program to play chess' > new.txt; labelsense predict tags.model new.txt --format txt -k 3")

# %%
# In Python
# ---------
# The labels of the model are URIs; the vocabulary has their names.

from labelsense import load_model
from labelsense.data.subjects import read_subjects

clf = load_model(folder / "tags.model")
subjects = read_subjects(folder / "subjects.tsv")
top = clf.predict_topk(["a console program to play chess"], k=3)
for label, score in zip(top.labels[0], top.scores[0], strict=True):
    print(f"{score:.2f}  {label}  {subjects.label(label)}")

# %%
# Other formats of Annif
# ----------------------
# CSV with ``text,subject_uris``, JSON lines with ``subjects``, folders of ``.txt`` with ``.tsv`` or ``.key`` beside
# them: the name of the file tells, and ``labelsense convert`` turns one into another.

shell("labelsense convert docs.tsv docs.jsonl && head -c 200 docs.jsonl")

# %%
# Figures for each subject, as ``annif eval --results-file`` has them:

shell("labelsense evaluate tags.model docs.tsv --per-label each.tsv > all.txt; head -n 4 each.tsv")

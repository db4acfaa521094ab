"""
Images
======

The paper's second data set were images with words on them. Its features, histograms of SURF patches, are a transformer
here, and part of the model. Needs the extra ``images``.
"""

# %%
# Images with labels
# ------------------
# Drawn for this page: each image has up to three kinds of marks on it, and the labels say which.

import matplotlib.pyplot as plt
import numpy as np

from labelsense import CompressedLabelClassifier, RidgeLearner
from labelsense.features import SURFHistogramTransformer

rng = np.random.default_rng(0)
GRID = np.mgrid[0:64, 0:64]


def disc(y, x):
    return np.hypot(GRID[0] - y, GRID[1] - x) < 8


def ring(y, x):
    return np.abs(np.hypot(GRID[0] - y, GRID[1] - x) - 9) < 2


def bars(y, x):
    return (np.abs(GRID[0] - y) < 10) & (np.abs(GRID[1] - x) < 10) & (GRID[1] % 5 < 2)


def lines(y, x):
    return (np.abs(GRID[0] - y) < 10) & (np.abs(GRID[1] - x) < 10) & (GRID[0] % 5 < 2)


def cross(y, x):
    return (np.abs(np.abs(GRID[0] - y) - np.abs(GRID[1] - x)) < 2) & (np.abs(GRID[0] - y) < 10)


def checks(y, x):
    return (np.abs(GRID[0] - y) < 10) & (np.abs(GRID[1] - x) < 10) & ((GRID[0] // 4 + GRID[1] // 4) % 2 == 0)


MARKS = {mark.__name__: mark for mark in (disc, ring, bars, lines, cross, checks)}


def draw():
    image, names = rng.normal(40, 8, (64, 64)), sorted(rng.choice(list(MARKS), rng.integers(1, 4), replace=False))
    for name, place in zip(names, rng.permutation([(18, 18), (18, 46), (46, 18), (46, 46)]), strict=False):
        image[MARKS[name](*place)] = 200
    return image.clip(0, 255).astype(np.uint8), names


images, labels = map(list, zip(*(draw() for _ in range(260)), strict=True))
fig, axes = plt.subplots(1, 5, figsize=(7, 1.8))
for ax, image, names in zip(axes, images, labels, strict=False):
    ax.imshow(image, cmap="gray")
    ax.set_title(", ".join(names), fontsize=8)
    ax.axis("off")
fig.tight_layout()

# %%
# Fit
# ---
# ``features="images"`` is the paper's 1,024 representative patches; fewer are enough for so small images. X may be
# arrays or paths of files.

clf = CompressedLabelClassifier(
    "hadamard",
    RidgeLearner(alpha="loo"),
    "omp",
    features=SURFHistogramTransformer(n_words=80, random_state=0),
    refiner=None,
    random_state=0,
)
clf.fit(images[:200], labels[:200])
clf.predict_topk(images[200:205], k=3)

# %%
labels[200:205]

# %%
# How good is it?

clf.evaluate(images[200:], labels[200:], ks=(1, 2))

# %%
# From a folder
# -------------
# With a file ``tags.tsv`` in the folder that has a file name and its tags on each line,
# ``labelsense train folder -o images.model`` does the same from the shell.
